//! The journal of a run: an append-only file of one JSON object a line.
//!
//! ```text
//! {"schema":1,"seq":0,"sum":"9c1f…16 digits","event":{…}}
//! ```
//!
//! `seq` counts lines from 0; `sum` is the start of the BLAKE3 digest of `seq` and the text of `event`. A kill in the
//! middle of a write leaves a part of the last line, which was never acknowledged: it is reported and cut off. A damaged
//! line elsewhere is an error that names it, while [`read`] still gives all others.
//!
//! A line is one `write`, so it survives the end of this process at once. It is flushed to the disk only by
//! [`Journal::flush`] (a run does so when it finishes): after a power failure the last lines may be missing, never mixed,
//! and the trials that they tell of run again.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use infradev_model::Digest;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::disk;
use crate::error::StoreError;

/// The schema version of a journal's lines.
pub const JOURNAL_SCHEMA: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    schema: u32,
    seq: u64,
    sum: String,
    #[serde(borrow)]
    event: &'a RawValue,
}

/// A damaged line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

/// All that can be read of a journal.
#[derive(Debug, Clone, PartialEq)]
pub struct Contents<E> {
    /// Whole lines with their number, counted from 1.
    pub events: Vec<(usize, E)>,
    /// The last line, if a kill or a full disk left only a part of it.
    pub torn: Option<Damage>,
    /// Damaged lines before the last, and whole lines out of order.
    pub damaged: Vec<Damage>,
    /// Bytes up to the end of the last line that is not torn.
    whole_bytes: u64,
    /// Lines in them.
    whole_lines: usize,
    next_seq: u64,
}

/// A journal open for appending; the caller holds the run's lock.
#[derive(Debug)]
pub struct Journal<E> {
    path: PathBuf,
    file: File,
    bytes: u64,
    seq: u64,
    events: PhantomData<fn(E)>,
}

/// Reads a journal as far as it can be read; a missing file is an empty journal.
pub fn read<E: DeserializeOwned>(path: &Path) -> Result<Contents<E>, StoreError> {
    Ok(parse(&disk::read_if_there(path)?.unwrap_or_default()))
}

/// The same journal as it is now, of which what is known was read before: only what was appended is read, unless the file is shorter than
/// it was.
pub fn read_on<E: DeserializeOwned>(path: &Path, known: Contents<E>) -> Result<Contents<E>, StoreError> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(parse(&[])),
        Err(error) => return Err(StoreError::io("read", path, error)),
    };
    let broken = |error| StoreError::io("read", path, error);
    if file.metadata().map_err(broken)?.len() < known.whole_bytes {
        return read(path);
    }
    file.seek(SeekFrom::Start(known.whole_bytes)).map_err(broken)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(broken)?;
    Ok(parse_on(Contents { torn: None, ..known }, &bytes))
}

fn parse<E: DeserializeOwned>(bytes: &[u8]) -> Contents<E> {
    let contents = Contents {
        events: Vec::new(),
        torn: None,
        damaged: Vec::new(),
        whole_bytes: 0,
        whole_lines: 0,
        next_seq: 0,
    };
    parse_on(contents, bytes)
}

/// Reads the bytes that follow what is known.
fn parse_on<E: DeserializeOwned>(mut contents: Contents<E>, bytes: &[u8]) -> Contents<E> {
    let (before, lines) = (contents.whole_bytes, contents.whole_lines);
    let mut at = 0;
    for (index, raw) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let number = lines + index + 1;
        at += raw.len();
        let is_last = at == bytes.len();
        let parsed = match raw.strip_suffix(b"\n") {
            Some(line) => parse_line::<E>(line),
            None => Err("it ends in the middle".to_owned()),
        };
        match parsed {
            Ok((seq, event)) => {
                if seq != contents.next_seq {
                    let what = format!("it is number {seq} where {} should stand", contents.next_seq);
                    contents.damaged.push(Damage { line: number, what });
                }
                contents.events.push((number, event));
                contents.next_seq = seq + 1;
                (contents.whole_bytes, contents.whole_lines) = (before + at as u64, number);
            }
            Err(what) if is_last => contents.torn = Some(Damage { line: number, what }),
            Err(what) => {
                contents.damaged.push(Damage { line: number, what });
                contents.next_seq += 1;
                (contents.whole_bytes, contents.whole_lines) = (before + at as u64, number);
            }
        }
    }
    contents
}

fn parse_line<E: DeserializeOwned>(line: &[u8]) -> Result<(u64, E), String> {
    let line: Line<'_> =
        serde_json::from_slice(line).map_err(|e| format!("it is no line of a journal ({e})"))?;
    if line.schema != JOURNAL_SCHEMA {
        return Err(format!("its schema is {}; this one reads {JOURNAL_SCHEMA}", line.schema));
    }
    if line.sum != checksum(line.seq, line.event.get()) {
        return Err("its checksum does not fit its content".to_owned());
    }
    let event =
        serde_json::from_str(line.event.get()).map_err(|e| format!("its event is not known ({e})"))?;
    Ok((line.seq, event))
}

fn checksum(seq: u64, event: &str) -> String {
    Digest::of(format!("{seq} {event}").as_bytes()).as_str()[..16].to_owned()
}

impl<E: Serialize + DeserializeOwned> Journal<E> {
    /// Opens for appending, with what is in it. A torn last line is cut off.
    ///
    /// # Errors
    /// [`StoreError::CorruptJournal`] for a damaged line before the last.
    pub fn open(path: &Path) -> Result<(Journal<E>, Contents<E>), StoreError> {
        let contents = read::<E>(path)?;
        if let Some(first) = contents.damaged.first() {
            return Err(StoreError::CorruptJournal {
                path: path.to_owned(),
                line: first.line,
                what: first.what.clone(),
                readable: contents.events.len(),
            });
        }
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .map_err(|e| StoreError::io("open", path, e))?;
        file.set_len(contents.whole_bytes).map_err(|e| StoreError::io("mend", path, e))?;
        file.seek(SeekFrom::End(0)).map_err(|e| StoreError::io("open", path, e))?;
        let (bytes, seq) = (contents.whole_bytes, contents.next_seq);
        Ok((Journal { path: path.to_owned(), file, bytes, seq, events: PhantomData }, contents))
    }

    /// Appends one event. Once this returns, the line survives a kill of this process.
    ///
    /// # Errors
    /// A full disk, or a failure to write; the journal is then as it was before.
    pub fn append(&mut self, event: &E) -> Result<(), StoreError> {
        let broken = |e: serde_json::Error| {
            StoreError::io("write", &self.path, std::io::Error::new(std::io::ErrorKind::InvalidData, e))
        };
        let event = serde_json::value::to_raw_value(event).map_err(broken)?;
        let sum = checksum(self.seq, event.get());
        let line = Line { schema: JOURNAL_SCHEMA, seq: self.seq, sum, event: &event };
        let mut text = serde_json::to_vec(&line).map_err(broken)?;
        text.push(b'\n');
        if let Err(e) = self.file.write_all(&text) {
            // What was written of the line is taken back, so that the next append does not stand behind a half.
            let _ = self.file.set_len(self.bytes);
            let _ = self.file.seek(SeekFrom::End(0));
            return Err(StoreError::io("write", &self.path, e));
        }
        self.bytes += text.len() as u64;
        self.seq += 1;
        Ok(())
    }

    /// Waits until all lines are on the disk.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        self.file.sync_data().map_err(|e| StoreError::io("flush", &self.path, e))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn journal_of(events: &[String]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let (mut journal, _) = Journal::<String>::open(&path).unwrap();
        for event in events {
            journal.append(event).unwrap();
        }
        (folder, path)
    }

    fn texts(contents: &Contents<String>) -> Vec<String> {
        contents.events.iter().map(|(_, event)| event.clone()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_is_appended_is_read_back(events in prop::collection::vec(any::<String>(), 0..12)) {
            let (_folder, path) = journal_of(&events);
            let contents = read::<String>(&path).unwrap();
            prop_assert_eq!(texts(&contents), events);
            prop_assert!(contents.torn.is_none() && contents.damaged.is_empty());
        }

        #[test]
        fn cut_at_any_byte_it_holds_each_whole_line_and_goes_on(
            events in prop::collection::vec(any::<String>(), 1..6), cut in any::<prop::sample::Index>(),
        ) {
            let (_folder, path) = journal_of(&events);
            let bytes = std::fs::read(&path).unwrap();
            let cut = cut.index(bytes.len());
            std::fs::write(&path, &bytes[..cut]).unwrap();
            let whole = bytes[..cut].iter().filter(|byte| **byte == b'\n').count();
            let at_a_line_end = cut == 0 || bytes[cut - 1] == b'\n';

            let (mut journal, contents) = Journal::<String>::open(&path).unwrap();
            prop_assert_eq!(texts(&contents), events[..whole].to_vec());
            prop_assert_eq!(contents.torn.is_some(), !at_a_line_end);
            journal.append(&"after".to_owned()).unwrap();
            let again = read::<String>(&path).unwrap();
            prop_assert_eq!(again.events.len(), whole + 1);
            prop_assert!(again.torn.is_none() && again.damaged.is_empty());
        }

        #[test]
        fn a_changed_byte_is_found_in_its_line_and_costs_no_other(
            events in prop::collection::vec(any::<String>(), 2..6), at in any::<prop::sample::Index>(), to in any::<u8>(),
        ) {
            let (_folder, path) = journal_of(&events);
            let mut bytes = std::fs::read(&path).unwrap();
            let at = at.index(bytes.len());
            prop_assume!(bytes[at] != to && bytes[at] != b'\n' && to != b'\n');
            bytes[at] = to;
            let line = bytes[..at].iter().filter(|byte| **byte == b'\n').count();
            std::fs::write(&path, &bytes).unwrap();
            let contents = read::<String>(&path).unwrap();
            let mut left = events.clone();
            left.remove(line);
            prop_assert_eq!(texts(&contents), left);
            let is_last = line + 1 == events.len();
            prop_assert_eq!(contents.torn.is_some(), is_last);
            prop_assert_eq!(contents.damaged.iter().map(|d| d.line).collect::<Vec<_>>(), if is_last { vec![] } else { vec![line + 1] });
            prop_assert_eq!(Journal::<String>::open(&path).is_ok(), is_last);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn read_on_from_any_byte_it_is_what_it_is_read_at_once(
            events in prop::collection::vec(any::<String>(), 1..6), cut in any::<prop::sample::Index>(), to in any::<u8>(),
        ) {
            let (_folder, path) = journal_of(&events);
            let mut bytes = std::fs::read(&path).unwrap();
            let half = bytes.len() / 2;
            if bytes[half] != b'\n' && to != b'\n' {
                bytes[half] = to;
            }
            std::fs::write(&path, &bytes[..cut.index(bytes.len())]).unwrap();
            let before = read::<String>(&path).unwrap();
            std::fs::write(&path, &bytes).unwrap();
            let whole = read::<String>(&path).unwrap();
            prop_assert_eq!(read_on(&path, before).unwrap(), whole.clone());
            // One that was made anew is shorter, and is read from its beginning.
            std::fs::write(&path, b"").unwrap();
            prop_assert_eq!(read_on(&path, whole).unwrap().events, vec![]);
        }
    }

    #[test]
    fn a_line_that_was_taken_out_or_doubled_is_found() {
        let (_folder, path) = journal_of(&["a".into(), "b".into(), "c".into(), "d".into()]);
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        for (changed, line) in [(&[0, 2, 3][..], 2), (&[0, 1, 1, 2, 3], 3), (&[0, 1, 2, 3, 3], 5)] {
            std::fs::write(&path, changed.iter().map(|n| lines[*n]).collect::<String>()).unwrap();
            assert_eq!(read::<String>(&path).unwrap().events.len(), changed.len());
            let error = Journal::<String>::open(&path).unwrap_err();
            let StoreError::CorruptJournal { line: at, .. } = error else { panic!("{error}") };
            assert_eq!(at, line);
        }
    }
}
