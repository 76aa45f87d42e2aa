//! Every noun and file format of InfraDev. Parses and serialises; does no other I/O.

mod digest;
mod error;

pub use digest::{Digest, DigestBuilder};
pub use error::{Class, Classified};
