//! Content digests: 256-bit BLAKE3, written as 64 lower-case hex digits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A BLAKE3 digest of some content, as 64 lower-case hex digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(blake3::hash(bytes).to_hex().to_string())
    }

    /// All 64 hex digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first twelve hex digits, for names of folders and lines that people read.
    pub fn short(&self) -> &str {
        &self.0[..self.0.len().min(12)]
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Digests a sequence of named parts. A part is framed by its lengths, so no two different sequences give the same
/// bytes.
#[derive(Debug, Default)]
pub struct DigestBuilder {
    hasher: blake3::Hasher,
}

impl DigestBuilder {
    /// An empty sequence under a domain name (for example `infradev task v1`), so that digests of unlike things differ.
    pub fn new(domain: &str) -> DigestBuilder {
        let mut builder = DigestBuilder { hasher: blake3::Hasher::new() };
        builder.part("domain", domain.as_bytes());
        builder
    }

    /// Adds one named part.
    pub fn part(&mut self, name: &str, bytes: &[u8]) -> &mut DigestBuilder {
        self.hasher.update(&(name.len() as u64).to_le_bytes());
        self.hasher.update(name.as_bytes());
        self.hasher.update(&(bytes.len() as u64).to_le_bytes());
        self.hasher.update(bytes);
        self
    }

    /// The digest of all parts so far.
    pub fn finish(&self) -> Digest {
        Digest(self.hasher.finalize().to_hex().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moving_a_byte_from_one_part_to_the_next_changes_the_digest() {
        let mut left = DigestBuilder::new("t");
        left.part("a", b"xy").part("b", b"z");
        let mut right = DigestBuilder::new("t");
        right.part("a", b"x").part("b", b"yz");
        assert_ne!(left.finish(), right.finish());
    }
}
