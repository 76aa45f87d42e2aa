//! From an agent's log to what it did: `trajectory.json`, in Harbor's Agent Trajectory Interchange Format (ATIF) v1.8, and the
//! agent's own word on its end and its tokens. One pass; an event is held at a time, and a step.

mod book;
mod chain;
mod claude;
mod codex;
mod document;
mod gemini;
mod mini;
mod openhands;

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use infradev_model::atif::{StepSource, TrajectoryAgent};
use infradev_model::{Metered, OutputFormat, TrajectoryReport};
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use serde_json::Value;

use crate::log::{LONGEST, Line, Lines, event};
use crate::meter::message;
use crate::output::{OwnWord, Said};
use book::Book;

/// What is read.
pub(crate) struct Log {
    /// The folder of what is kept of the attempt: `agent.log`, `prompt.md`, `out/`. The trajectory is put there.
    pub kept: PathBuf,
    /// What the log's lines are.
    pub format: OutputFormat,
    /// Whose it is.
    pub agent: TrajectoryAgent,
    /// What the proxy counted.
    pub metered: Metered,
}

/// Events of one kind of log.
trait Events {
    /// Takes an event.
    fn event(&mut self, event: Value, book: &mut Book);

    /// Takes a line that is no event.
    fn no_event(&mut self, _line: &[u8], book: &mut Book) {
        book.report.malformed += 1;
    }

    /// There are no more.
    fn end(&mut self, _book: &mut Book) {}

    /// Whether each run that comes to its end says so in an event.
    fn has_last_word(&self) -> bool {
        true
    }
}

/// Reads a log to its end and writes its trajectory; none for a log of plain text. What is malformed is counted.
pub(crate) fn read(log: &Log) -> (Said, Option<TrajectoryReport>) {
    let mut events: Box<dyn Events> = match log.format {
        OutputFormat::Text => return (Said::default(), None),
        OutputFormat::ClaudeStreamJson => Box::new(claude::Claude::default()),
        OutputFormat::QwenStreamJson => Box::new(claude::Claude::of_qwen()),
        OutputFormat::CodexJsonl => Box::new(codex::Codex::default()),
        OutputFormat::GeminiStreamJson => Box::new(gemini::Gemini::default()),
        OutputFormat::OpenhandsJsonl => Box::new(openhands::OpenHands::of(&log.kept.join("out"))),
        OutputFormat::MiniTrajectory => return whole(log),
    };
    let prompt = prompt(&log.kept);
    let mut book = Book::begin(&log.kept, log.agent.clone());
    book.root().aside(StepSource::User, prompt.clone(), None);
    let file = File::open(log.kept.join("agent.log"));
    let readable = file.and_then(|file| lines(file, events.as_mut(), &mut book)).is_ok();
    book.report.cut_off |= !readable;
    events.end(&mut book);
    // The end of a log that could not be read may have said it.
    let whole = readable && book.report.too_long == 0;
    if whole && events.has_last_word() && book.said.word == OwnWord::Nothing {
        book.said.word = OwnWord::Missing(without_last_word(&book));
    }
    let (said, report) = book.finish(&prompt, &log.metered);
    (said, Some(report))
}

/// A log that is one document, which the agent put where its own commands write too.
fn whole(log: &Log) -> (Said, Option<TrajectoryReport>) {
    let mut book = Book::begin(&log.kept, log.agent.clone());
    match plain_file(&log.kept.join("out"), Path::new("trajectory.json")) {
        Some(file) => mini::read(file, &mut book),
        None => book.not_shown("out/trajectory.json, which is not there"),
    }
    // A document that ends early, or is none, holds no end of the run; behind what is too long to be read it may stand.
    if book.report.too_long == 0 && book.said.word == OwnWord::Nothing {
        book.said.word = OwnWord::Missing(without_last_word(&book));
    }
    let (said, report) = book.finish(&prompt(&log.kept), &log.metered);
    (said, Some(report))
}

fn prompt(kept: &Path) -> String {
    let bytes = std::fs::read(kept.join("prompt.md")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Opens a file below a folder where an agent may have put anything: a link out of it, a pipe.
fn plain_file(out: &Path, path: &Path) -> Option<File> {
    let out = File::open(out).ok()?;
    let how = OpenHow::new()
        .flags(OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_SYMLINKS);
    let file = File::from(openat2(&out, path, how).ok()?);
    file.metadata().ok()?.is_file().then_some(file)
}

fn lines(file: File, events: &mut dyn Events, book: &mut Book) -> io::Result<()> {
    let mut lines = Lines::new(BufReader::with_capacity(1 << 20, file), LONGEST);
    loop {
        match lines.next()? {
            None => return Ok(()),
            Some(Line::TooLong) => book.report.too_long += 1,
            Some(Line::Whole(line) | Line::Unended(line)) if line.trim_ascii().is_empty() => {}
            Some(Line::Whole(line)) => match event(line) {
                Some(event) => take(event, events, book),
                None => events.no_event(line, book),
            },
            Some(Line::Unended(line)) => match event(line) {
                Some(event) => take(event, events, book),
                None => book.report.cut_off = true,
            },
        }
    }
}

fn take(event: Value, events: &mut dyn Events, book: &mut Book) {
    book.report.events += 1;
    if event["type"] == "error" {
        book.error = Some(message(if event["error"].is_object() { &event["error"] } else { &event }));
    }
    events.event(event, book);
}

/// What is said of one that told nothing of its end.
fn without_last_word(book: &Book) -> String {
    let said = "it ended without its last word";
    book.error.as_ref().map_or_else(|| said.to_owned(), |error| format!("{said}; it said before: {error}"))
}

/// Takes a part out of an event.
fn part(value: &mut Value, name: &str) -> Value {
    value.get_mut(name).map(Value::take).unwrap_or_default()
}

/// A text as it is, nothing as nothing, anything else as JSON.
fn text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A message's content in words: texts as they are, `[image]` and the like for what is none.
fn words(content: Value, book: &mut Book) -> String {
    let Value::Array(parts) = content else { return text(content) };
    let mut said = Vec::new();
    for mut one in parts {
        match one["type"].as_str() {
            Some("text") => said.push(text(part(&mut one, "text"))),
            Some(kind) => {
                book.not_shown(&format!("content of the kind {kind}"));
                said.push(format!("[{kind}]"));
            }
            None => said.push(text(one)),
        }
    }
    said.join("\n")
}

/// An ISO 8601 time that names its zone, as any reader of ATIF takes it; none for what is none.
fn time(value: &Value) -> Option<String> {
    let text = value.as_str().filter(|text| text.is_ascii() && text.len() <= 40)?;
    let pattern = |text: &str, pattern: &str| {
        text.len() == pattern.len()
            && text
                .bytes()
                .zip(pattern.bytes())
                .all(|(c, p)| if p == b'0' { c.is_ascii_digit() } else { c == p })
    };
    let (head, rest) = text.split_at_checked(19).filter(|(head, _)| pattern(head, "0000-00-00T00:00:00"))?;
    let number = |at: usize, length: usize| head[at..at + length].parse::<u32>().unwrap_or(u32::MAX);
    let (year, month, day) = (number(0, 4), number(5, 2), number(8, 2));
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let days = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    let within = year > 0 && (1..=days).contains(&day);
    if !within || number(11, 2) > 23 || number(14, 2) > 59 || number(17, 2) > 59 {
        return None;
    }
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => {
            let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
            if !(1..=9).contains(&digits) {
                return None;
            }
            &fraction[digits..]
        }
        None => rest,
    };
    let offset = || {
        let sign = zone.strip_prefix(['+', '-'])?;
        let hours = sign.get(..2)?.parse::<u32>().ok()?;
        Some(pattern(sign, "00:00") && hours < 24 && sign[3..].parse::<u32>().ok()? < 60)
    };
    (zone == "Z" || offset() == Some(true)).then(|| text.to_owned())
}

#[cfg(test)]
mod tests;
