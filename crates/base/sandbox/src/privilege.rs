//! What this process may do on this host.

/// `CAP_SETGID`, capability.h.
const SETGID: u32 = 6;
/// `CAP_SETUID`.
const SETUID: u32 = 7;
/// `CAP_SYS_ADMIN`.
const SYS_ADMIN: u32 = 21;

/// Root with the right to make namespaces without a user namespace.
pub(crate) fn may_unshare() -> bool {
    nix::unistd::geteuid().is_root() && has(effective_capabilities(), SYS_ADMIN)
}

/// Whether processes of ours can take the uids from `first` on as *host* uids (as seen from this process's own user
/// namespace).
pub(crate) fn may_change_uid(first: u32, count: u32) -> bool {
    let capabilities = effective_capabilities();
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    may_unshare() && has(capabilities, SETUID) && has(capabilities, SETGID) && maps(&map, first, count)
}

fn has(capabilities: u64, number: u32) -> bool {
    capabilities & (1 << number) != 0
}

fn effective_capabilities() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0)
}

/// Whether one line of a uid map (inside, outside, count; user_namespaces(7)) covers the range.
fn maps(map: &str, first: u32, count: u32) -> bool {
    map.lines().any(|line| {
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|n| n.parse().ok()).collect();
        let [inside, _, length] = numbers[..] else { return false };
        inside <= u64::from(first) && u64::from(first) + u64::from(count) <= inside + length
    })
}

#[cfg(test)]
mod tests {
    use super::maps;

    #[test]
    fn a_container_that_maps_few_uids_cannot_separate() {
        assert!(maps("         0          0 4294967295\n", 200_000, 16));
        assert!(!maps("0 100000 65536\n", 200_000, 16));
        assert!(!maps("", 200_000, 16));
    }
}
