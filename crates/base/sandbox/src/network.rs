//! Traffic counters of network namespaces, read from outside.

use serde::{Deserialize, Serialize};

/// Bytes that crossed a sandbox's own loopback since it started. Loopback receives what it sends, so one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopbackBytes(pub u64);

/// `(received, sent)` bytes of an interface in the text of a `/proc/<pid>/net/dev`, proc(5).
pub(crate) fn interface_bytes(text: &str, interface: &str) -> Option<(u64, u64)> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(interface)?.strip_prefix(':'))?;
    let mut numbers = line.split_ascii_whitespace().map(str::parse::<u64>);
    Some((numbers.next()?.ok()?, numbers.nth(7)?.ok()?))
}

/// Bytes on the loopback of the namespace that the process is in.
pub(crate) fn loopback_of(pid: i32) -> Option<LoopbackBytes> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/net/dev")).ok()?;
    interface_bytes(&text, "lo").map(|(received, _)| LoopbackBytes(received))
}

#[cfg(test)]
mod tests {
    use super::interface_bytes;

    #[test]
    fn received_and_sent_bytes_are_the_first_and_ninth_number() {
        let text = "Inter-|   Receive  |  Transmit\n face |bytes packets\n    lo:  100 2 0 0 0 0 0 0 300 4 0 0 0 0 0 0\n  \
                    lo2: 7 1 0 0 0 0 0 0 8 1 0 0 0 0 0 0\n";
        assert_eq!(interface_bytes(text, "lo"), Some((100, 300)));
        assert_eq!(interface_bytes(text, "lo2"), Some((7, 8)));
        assert_eq!(interface_bytes(text, "eth0"), None);
    }
}
