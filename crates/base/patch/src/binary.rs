//! `GIT binary patch`: base 85 (git's alphabet), zlib, and git's pack delta.
//!
//! Source: git's `base85.c`, and the delta format of `gitformat-pack` ("Deltified representation").

use std::io::{Read, Write};

/// Largest file that a binary patch may unpack to, in bytes.
pub(crate) const MAX_UNPACKED: usize = 64 << 20;

/// Most that all binary changes of a patch, and all files that it writes, may come to together, in bytes.
pub(crate) const MAX_TOTAL: usize = 256 << 20;

const ALPHABET: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

/// The binary change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BinaryPatch {
    /// From old to new.
    pub forward: BinaryChunk,
    /// From new to old, where the patch holds it.
    pub reverse: Option<BinaryChunk>,
}

/// How a chunk gives the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// The whole content.
    Literal,
    /// A delta against the other side.
    Delta,
}

/// One direction of a binary change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BinaryChunk {
    /// What the data are.
    pub method: Method,
    /// Bytes once inflated.
    pub size: usize,
    /// The data, deflated (zlib).
    pub deflated: Vec<u8>,
}

impl BinaryChunk {
    /// A chunk that holds this content whole.
    pub fn literal(content: &[u8]) -> BinaryChunk {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        // Writing to memory can't fail.
        let deflated = encoder.write_all(content).and_then(|()| encoder.finish()).unwrap_or_default();
        BinaryChunk { method: Method::Literal, size: content.len(), deflated }
    }

    /// The content of the side that this chunk leads to, given the other side's.
    ///
    /// # Errors
    /// What is wrong with the data, or that a delta was made against content of another length.
    pub fn unpack(&self, other: &[u8]) -> Result<Vec<u8>, String> {
        let data = self.inflate()?;
        match self.method {
            Method::Literal => Ok(data),
            Method::Delta => apply_delta(other, &data),
        }
    }

    pub(crate) fn inflate(&self) -> Result<Vec<u8>, String> {
        if self.size > MAX_UNPACKED {
            return Err(format!("binary data of {} bytes, more than {MAX_UNPACKED}", self.size));
        }
        let mut data = Vec::new();
        flate2::read::ZlibDecoder::new(self.deflated.as_slice())
            .take(self.size as u64 + 1)
            .read_to_end(&mut data)
            .map_err(|error| format!("damaged binary data: {error}"))?;
        if data.len() != self.size {
            return Err(format!("binary data do not have the stated {} bytes", self.size));
        }
        Ok(data)
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let method = match self.method {
            Method::Literal => "literal",
            Method::Delta => "delta",
        };
        out.extend(format!("{method} {}\n", self.size).bytes());
        for line in self.deflated.chunks(52) {
            out.push(if line.len() <= 26 {
                b'A' + line.len() as u8 - 1
            } else {
                b'a' + line.len() as u8 - 27
            });
            for group in line.chunks(4) {
                let mut word = [0u8; 4];
                word[..group.len()].copy_from_slice(group);
                let mut value = u32::from_be_bytes(word);
                let mut digits = [0u8; 5];
                for digit in digits.iter_mut().rev() {
                    *digit = ALPHABET[(value % 85) as usize];
                    value /= 85;
                }
                out.extend(digits);
            }
            out.push(b'\n');
        }
        out.push(b'\n');
    }
}

/// Decodes one line of base 85 (without its newline) onto `out`.
pub(crate) fn decode_line(line: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
    let (&head, digits) = line.split_first().ok_or("empty line")?;
    let length = match head {
        b'A'..=b'Z' => (head - b'A') as usize + 1,
        b'a'..=b'z' => (head - b'a') as usize + 27,
        _ => return Err("a line of binary data starts with its length, a letter"),
    };
    if digits.len() != length.div_ceil(4) * 5 {
        return Err("a line of binary data does not have its stated length");
    }
    let mut left = length;
    for group in digits.chunks(5) {
        let mut value: u64 = 0;
        for digit in group {
            let position = ALPHABET.iter().position(|a| a == digit).ok_or("not a digit of base 85")?;
            value = value * 85 + position as u64;
        }
        let word = u32::try_from(value).map_err(|_| "a group of base 85 overflows")?.to_be_bytes();
        out.extend(&word[..left.min(4)]);
        left -= left.min(4);
    }
    Ok(())
}

/// Applies a pack delta.
fn apply_delta(base: &[u8], delta: &[u8]) -> Result<Vec<u8>, String> {
    let cut_short = || "the delta is cut short".to_string();
    let mut bytes = delta.iter().copied();
    let base_size = varint(&mut bytes).ok_or_else(cut_short)?;
    let result_size = varint(&mut bytes).ok_or_else(cut_short)?;
    if base_size != base.len() {
        return Err(format!("the delta was made against {base_size} bytes, the file has {}", base.len()));
    }
    if result_size > MAX_UNPACKED {
        return Err(format!("the delta gives {result_size} bytes, more than {MAX_UNPACKED}"));
    }
    let mut out = Vec::new();
    while let Some(op) = bytes.next() {
        if op & 0x80 != 0 {
            let mut field = |bits: std::ops::Range<u8>| {
                let mut value = 0usize;
                for (shift, bit) in bits.enumerate() {
                    if op & (1 << bit) != 0 {
                        value |= (bytes.next()? as usize) << (8 * shift);
                    }
                }
                Some(value)
            };
            let offset = field(0..4).ok_or_else(cut_short)?;
            let size = field(4..7).ok_or_else(cut_short)?;
            let size = if size == 0 { 0x10000 } else { size };
            let copied = base.get(offset..offset + size).ok_or("the delta copies beyond the file")?;
            if out.len() + size > result_size {
                return Err("the delta gives more bytes than it states".into());
            }
            out.extend_from_slice(copied);
        } else if op != 0 {
            if out.len() + op as usize > result_size {
                return Err("the delta gives more bytes than it states".into());
            }
            for _ in 0..op {
                out.push(bytes.next().ok_or_else(cut_short)?);
            }
        } else {
            return Err("the delta holds a reserved instruction".into());
        }
    }
    if out.len() != result_size {
        return Err("the delta gives fewer bytes than it states".into());
    }
    Ok(out)
}

fn varint(bytes: &mut impl Iterator<Item = u8>) -> Option<usize> {
    let mut value = 0usize;
    for shift in (0..usize::BITS - 8).step_by(7) {
        let byte = bytes.next()?;
        value |= ((byte & 0x7f) as usize) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn base_85_of_any_content_reads_back(content in proptest::collection::vec(any::<u8>(), 0..600)) {
            let chunk = BinaryChunk::literal(&content);
            let mut text = Vec::new();
            chunk.write(&mut text);
            let mut back = Vec::new();
            let body = text.split(|&b| b == b'\n').skip(1).filter(|l| !l.is_empty());
            for line in body {
                decode_line(line, &mut back).unwrap();
            }
            prop_assert_eq!(&back, &chunk.deflated);
            prop_assert_eq!(chunk.unpack(b"").unwrap(), content);
        }

        #[test]
        fn no_delta_makes_the_reader_panic(delta in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = apply_delta(b"some base", &delta);
        }
    }

    #[test]
    fn a_bomb_is_refused_at_its_stated_size() {
        let mut chunk = BinaryChunk::literal(&vec![0; 1 << 20]);
        chunk.size = 1000;
        assert!(chunk.inflate().unwrap_err().contains("stated 1000"));
    }
}
