//! Sealed frames over unix socket pairs (docs/src/protocol.md): every frame carries its number and a keyed BLAKE2s seal, so
//! bytes that the other side's kit did not write are seen.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use blake2::Blake2sMac;
use blake2::digest::{KeyInit, Mac, consts::U16};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// Largest header, bytes.
pub const HEADER_LIMIT: u32 = 16 << 20;
/// A payload of so many bytes at most goes out in one write with its header.
const SMALL: usize = 64 << 10;
/// Largest payload, bytes.
pub const PAYLOAD_LIMIT: u64 = 1 << 30;

const MAGIC: &[u8; 4] = b"IDF1";
const PREFIX: usize = 4 + 4 + 4 + 8 + 16;

/// A channel's key.
pub type Key = [u8; 32];

/// A key in hex, as messages carry it.
pub fn hex(key: &Key) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What was wrong with bytes on a channel.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// Bytes that carry no valid seal, number or bounds.
    #[error("{0}")]
    Forged(String),
    /// A sealed frame whose content makes no sense.
    #[error("a sealed frame that makes no sense: {0}")]
    Senseless(String),
    /// The channel failed.
    #[error("the channel failed: {0}")]
    Io(#[from] io::Error),
}

/// A frame: its header's bytes (JSON) and its payload.
#[derive(Debug)]
pub struct Frame {
    /// JSON text.
    pub header: Vec<u8>,
    /// Raw bytes, often a safetensors file.
    pub payload: Vec<u8>,
}

impl Frame {
    /// Decodes the header.
    pub fn message<T: DeserializeOwned>(&self) -> Result<T, FrameError> {
        serde_json::from_slice(&self.header).map_err(|error| FrameError::Senseless(error.to_string()))
    }
}

fn seal(key: &Key, direction: u8, lengths: &[u8], header: &[u8], payload: &[&[u8]]) -> [u8; 16] {
    let mut mac = <Blake2sMac<U16> as KeyInit>::new(key.into());
    Mac::update(&mut mac, &[direction]);
    Mac::update(&mut mac, lengths);
    Mac::update(&mut mac, header);
    payload.iter().for_each(|part| Mac::update(&mut mac, part));
    mac.finalize().into_bytes().into()
}

/// What goes before the payload: prefix and header. A payload may be a gigabyte and is written from where it lies.
fn prologue(key: &Key, direction: u8, seq: u32, header: &[u8], payload: &[&[u8]]) -> Vec<u8> {
    let length: usize = payload.iter().map(|part| part.len()).sum();
    let mut bytes = Vec::with_capacity(PREFIX + header.len() + if length <= SMALL { length } else { 0 });
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&seq.to_le_bytes());
    bytes.extend_from_slice(&(header.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&(length as u64).to_le_bytes());
    let seal = seal(key, direction, &bytes[4..20], header, payload);
    bytes.extend_from_slice(&seal);
    bytes.extend_from_slice(header);
    bytes
}

/// Sends frames.
#[derive(Debug)]
pub struct Sender {
    stream: OwnedWriteHalf,
    key: Key,
    seq: u32,
}

impl Sender {
    /// Sends one frame.
    pub async fn send<T: Serialize>(&mut self, message: &T, payload: &[u8]) -> Result<(), FrameError> {
        self.send_with(message, payload, &[]).await
    }

    /// Sends one frame whose first byte carries these descriptors.
    pub async fn send_with<T: Serialize>(
        &mut self,
        message: &T,
        payload: &[u8],
        fds: &[BorrowedFd<'_>],
    ) -> Result<(), FrameError> {
        let header = serde_json::to_vec(message).map_err(|error| FrameError::Senseless(error.to_string()))?;
        self.send_written(&header, &[payload], fds).await
    }

    /// Sends one frame whose payload is these parts, one after the other.
    pub async fn send_parts<T: Serialize>(&mut self, message: &T, parts: &[&[u8]]) -> Result<(), FrameError> {
        let header = serde_json::to_vec(message).map_err(|error| FrameError::Senseless(error.to_string()))?;
        self.send_written(&header, parts, &[]).await
    }

    /// Sends one frame whose header is written already.
    pub async fn send_written(
        &mut self,
        header: &[u8],
        payload: &[&[u8]],
        fds: &[BorrowedFd<'_>],
    ) -> Result<(), FrameError> {
        let mut bytes = prologue(&self.key, b'h', self.seq, header, payload);
        let small = payload.iter().map(|part| part.len()).sum::<usize>() <= SMALL;
        if small {
            payload.iter().for_each(|part| bytes.extend_from_slice(part));
        }
        self.seq = self.seq.wrapping_add(1);
        let mut start = 0;
        if !fds.is_empty() {
            let raw: Vec<RawFd> = fds.iter().map(|fd| fd.as_raw_fd()).collect();
            let stream: &UnixStream = self.stream.as_ref();
            start = stream
                .async_io(Interest::WRITABLE, || {
                    let parts = [io::IoSlice::new(&bytes)];
                    let rights = [ControlMessage::ScmRights(&raw)];
                    sendmsg::<()>(stream.as_raw_fd(), &parts, &rights, MsgFlags::MSG_DONTWAIT, None)
                        .map_err(io::Error::from)
                })
                .await?;
        }
        self.stream.write_all(&bytes[start..]).await?;
        for part in payload.iter().filter(|_| !small) {
            self.stream.write_all(part).await?;
        }
        Ok(())
    }

    /// Seals what follows with another key.
    pub fn rekey(&mut self, key: Key) {
        self.key = key;
    }
}

/// Receives frames.
#[derive(Debug)]
pub struct Receiver {
    stream: OwnedReadHalf,
    key: Key,
    seq: u32,
}

impl Receiver {
    /// The next frame; `None` where the channel ended: between two frames, or within one, as a rank's end leaves it that is killed
    /// while it sends. Nothing of a frame counts before its seal.
    pub async fn next(&mut self) -> Result<Option<Frame>, FrameError> {
        let mut prefix = [0u8; PREFIX];
        let mut filled = 0;
        while filled < PREFIX {
            let read = match self.stream.read(&mut prefix[filled..]).await {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => 0,
                Err(error) => return Err(error.into()),
            };
            if read == 0 {
                return Ok(None);
            }
            filled += read;
            let known = filled.min(4);
            if prefix[..known] != MAGIC[..known] {
                return Err(FrameError::Forged(format!(
                    "bytes that are no frame (they begin {})",
                    preview(&prefix[..filled])
                )));
            }
        }
        let seq = u32::from_le_bytes([prefix[4], prefix[5], prefix[6], prefix[7]]);
        let header_len = u32::from_le_bytes([prefix[8], prefix[9], prefix[10], prefix[11]]);
        let mut eight = [0u8; 8];
        eight.copy_from_slice(&prefix[12..20]);
        let payload_len = u64::from_le_bytes(eight);
        if seq != self.seq {
            return Err(FrameError::Forged(format!("a frame numbered {seq} where {} is due", self.seq)));
        }
        if header_len > HEADER_LIMIT || payload_len > PAYLOAD_LIMIT {
            return Err(FrameError::Forged(format!(
                "a frame of {header_len} + {payload_len} bytes, over the bound of {HEADER_LIMIT} + {PAYLOAD_LIMIT}"
            )));
        }
        let Some(header) = self.take(u64::from(header_len)).await? else { return Ok(None) };
        let Some(payload) = self.take(payload_len).await? else { return Ok(None) };
        let expected = seal(&self.key, b'r', &prefix[4..20], &header, &[&payload]);
        if expected != prefix[20..36] {
            return Err(FrameError::Forged(format!(
                "a frame without a valid seal (its header begins {})",
                preview(&header)
            )));
        }
        self.seq = self.seq.wrapping_add(1);
        Ok(Some(Frame { header, payload }))
    }

    /// Reads `len` bytes, growing as they come: a length alone reserves nothing. `None` where the channel ends before.
    async fn take(&mut self, len: u64) -> Result<Option<Vec<u8>>, FrameError> {
        let mut bytes = Vec::with_capacity(len.min(1 << 16) as usize);
        let read = match (&mut self.stream).take(len).read_to_end(&mut bytes).await {
            Ok(read) => read as u64,
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => 0,
            Err(error) => return Err(error.into()),
        };
        Ok((read == len).then_some(bytes))
    }

    /// Checks what follows with another key.
    pub fn rekey(&mut self, key: Key) {
        self.key = key;
    }
}

fn preview(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(40)];
    format!("{:?}", String::from_utf8_lossy(cut))
}

/// Wraps our end of a socket pair.
pub fn channel(stream: UnixStream, key: Key) -> (Sender, Receiver) {
    let (read, write) = stream.into_split();
    (Sender { stream: write, key, seq: 0 }, Receiver { stream: read, key, seq: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    }

    fn encode(key: &Key, direction: u8, seq: u32, header: &[u8], payload: &[u8]) -> Vec<u8> {
        [prologue(key, direction, seq, header, &[payload]), payload.to_vec()].concat()
    }

    async fn receive(bytes: &[u8], key: Key) -> Result<Option<Frame>, FrameError> {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (_sender, mut receiver) = channel(ours, key);
        let bytes = bytes.to_vec();
        let writer = tokio::spawn(async move { theirs.write_all(&bytes).await });
        let frame = receiver.next().await;
        drop(receiver);
        let _ = writer.await;
        frame
    }

    proptest! {
        #[test]
        fn a_sealed_frame_arrives_as_it_was_sent(header in ".{0,80}", payload in prop::collection::vec(any::<u8>(), 0..300)) {
            let header = serde_json::to_vec(&header).unwrap();
            let bytes = encode(&[7; 32], b'r', 0, &header, &payload);
            let frame = runtime().block_on(receive(&bytes, [7; 32])).unwrap().unwrap();
            prop_assert_eq!(frame.header, header);
            prop_assert_eq!(frame.payload, payload);
        }

        #[test]
        fn a_frame_with_any_bit_flipped_is_refused(at in 0usize..60, bit in 0u8..8) {
            let mut bytes = encode(&[7; 32], b'r', 0, br#"{"type":"bye"}"#, b"payload of it");
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
            let got = runtime().block_on(receive(&bytes, [7; 32]));
            // A length that was made larger is a frame that never ends.
            prop_assert!(matches!(got, Err(FrameError::Forged(_)) | Ok(None)));
        }
    }

    #[test]
    fn a_frame_of_the_other_direction_or_another_key_or_number_is_refused() {
        let good = |direction, seq| encode(&[7; 32], direction, seq, b"{}", b"");
        for (bytes, key) in [(good(b'h', 0), [7; 32]), (good(b'r', 0), [8; 32]), (good(b'r', 1), [7; 32])] {
            let got = runtime().block_on(receive(&bytes, key));
            assert!(matches!(got, Err(FrameError::Forged(_))), "{got:?}");
        }
    }

    #[test]
    fn parts_arrive_as_one_payload_in_a_small_frame_and_in_a_large_one() {
        for length in [10, SMALL, SMALL + 10] {
            let (first, second) = (vec![1; length / 2], vec![2; length - length / 2]);
            let frame = runtime().block_on(async {
                let (ours, theirs) = UnixStream::pair().unwrap();
                let (mut sender, _receiver) = channel(ours, [7; 32]);
                let read = async {
                    let mut bytes = vec![0; PREFIX + 2 + length];
                    let mut stream = theirs;
                    stream.read_exact(&mut bytes).await.unwrap();
                    bytes
                };
                let parts: [&[u8]; 2] = [&first, &second];
                let (sent, bytes) = tokio::join!(sender.send_written(b"{}", &parts, &[]), read);
                sent.unwrap();
                bytes
            });
            assert_eq!(frame, encode(&[7; 32], b'h', 0, b"{}", &[first, second].concat()));
        }
    }

    #[test]
    fn a_frame_that_its_sender_did_not_live_to_end_is_an_end_and_no_forgery() {
        let whole = encode(&[7; 32], b'r', 0, br#"{"type":"bye"}"#, &[1; 100_000]);
        for length in [1, 4, PREFIX - 1, PREFIX, PREFIX + 5, whole.len() - 1] {
            let got = runtime().block_on(receive(&whole[..length], [7; 32]));
            assert!(matches!(got, Ok(None)), "{length}: {got:?}");
        }
    }

    #[test]
    fn a_channel_that_ends_between_frames_is_no_forgery() {
        assert!(runtime().block_on(receive(b"", [0; 32])).unwrap().is_none());
    }
}
