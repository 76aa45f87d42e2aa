//! The contamination canary: a GUID of the pack that stands in every sealed file and in no public one, so that a model trained on
//! sealed files can be found out.
//!
//! It is part of the file and not of the task: readers take it out, so that no digest of a trial knows of it and a new one costs
//! no run.

/// A pack's canary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canary {
    guid: String,
}

/// What stands before the GUID.
const SENTENCE: &str = "This file is part of a benchmark and belongs in no training data: infradev canary";

impl Canary {
    /// Reads a GUID: 32 lower-case hexadecimal digits in groups of 8, 4, 4, 4 and 12.
    pub fn parse(guid: &str) -> Option<Canary> {
        let groups: Vec<&str> = guid.split('-').collect();
        let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
        let digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        let well_formed = lengths == [8, 4, 4, 4, 12] && groups.concat().chars().all(digit);
        // Nobody's own: every pack that copied it would share it.
        let blank = groups.concat().chars().all(|c| c == '0');
        (well_formed && !blank).then(|| Canary { guid: guid.to_owned() })
    }

    /// A canary of random bits: a GUID of version 4.
    pub fn of_bits(bits: u128) -> Canary {
        let versioned = (bits & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
        let hex = format!("{versioned:032x}");
        let guid = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-");
        Canary { guid }
    }

    /// The GUID.
    pub fn guid(&self) -> &str {
        &self.guid
    }

    /// Whether a file holds it anywhere.
    pub fn is_in(&self, bytes: &[u8]) -> bool {
        let guid = self.guid.as_bytes();
        bytes.windows(guid.len()).any(|window| window.eq_ignore_ascii_case(guid))
    }

    /// A sealed file with the canary in its place: before the first `diff` of a patch, else a comment in the last line. As it is
    /// where it has it already.
    pub fn put(&self, name: &str, bytes: &[u8]) -> Vec<u8> {
        if self.is_in(bytes) {
            return bytes.to_vec();
        }
        if is_patch(name) {
            return [self.line().as_bytes(), b"\n", bytes].concat();
        }
        let gap: &[u8] = if bytes.is_empty() || bytes.ends_with(b"\n") { b"" } else { b"\n" };
        [bytes, gap, b"# ", self.line().as_bytes(), b"\n"].concat()
    }

    /// A sealed file without the canary, where it stands in its place.
    pub fn without(&self, name: &str, bytes: &[u8]) -> Vec<u8> {
        let line = self.line();
        let rest = if is_patch(name) {
            bytes.strip_prefix(line.as_bytes()).and_then(|rest| rest.strip_prefix(b"\n"))
        } else {
            let end = bytes.strip_suffix(b"\n").unwrap_or(bytes);
            let rest = end.strip_suffix(line.as_bytes()).and_then(|rest| rest.strip_suffix(b"# "));
            rest.filter(|rest| rest.is_empty() || rest.ends_with(b"\n"))
        };
        rest.unwrap_or(bytes).to_vec()
    }

    fn line(&self) -> String {
        format!("{SENTENCE} {}", self.guid)
    }
}

fn is_patch(name: &str) -> bool {
    [".patch", ".diff"].iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUID: &str = "0b6e2f0a-5d3c-4a1e-9f57-2c8d1e4b7a90";

    #[test]
    fn a_guid_is_read_and_anything_else_refused() {
        assert_eq!(Canary::parse(GUID).unwrap().guid(), GUID);
        for wrong in [
            "",
            "0b6e2f0a",
            "0b6e2f0a5d3c4a1e9f572c8d1e4b7a90",
            "0B6E2F0A-5D3C-4A1E-9F57-2C8D1E4B7A90",
            "0b6e2f0a-5d3c-4a1e-9f57-2c8d1e4b7a9g",
            "00000000-0000-0000-0000-000000000000",
        ] {
            assert_eq!(Canary::parse(wrong), None, "{wrong}");
        }
        let made = Canary::of_bits(u128::MAX);
        assert_eq!(made.guid(), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(Canary::parse(made.guid()), Some(made));
    }

    #[test]
    fn what_is_put_into_a_file_comes_out_again() {
        let canary = Canary::parse(GUID).unwrap();
        for (name, text) in [
            ("judge_x.py", "import os\n"),
            ("x.toml", "a = 1\n"),
            ("x.toml", ""),
            ("golden.patch", "diff --git a/x b/x\n"),
            ("golden.patch", "--- a/x\r\n\u{0}"),
        ] {
            let marked = canary.put(name, text.as_bytes());
            assert!(canary.is_in(&marked) && !canary.is_in(text.as_bytes()));
            assert_eq!(canary.put(name, &marked), marked, "once only");
            assert_eq!(canary.without(name, &marked), text.as_bytes());
        }
        let elsewhere = format!("x = '{GUID}'\n");
        assert_eq!(canary.without("x.py", elsewhere.as_bytes()), elsewhere.as_bytes());
    }
}
