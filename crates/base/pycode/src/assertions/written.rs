//! The assertions that an agent wrote along its way, by its trajectory.

use std::collections::{HashMap, HashSet};

use infradev_model::atif::{ToolCall, Trajectory};
use infradev_patch::looks_like_test;
use serde_json::{Map, Value};

use super::shell::{self, Piece};
use super::{Assertion, Share, assertions};

/// A Python text that a call of a tool wrote or ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenText {
    /// The step, from 1; of a subagent's trajectory, its own.
    pub step: u64,
    /// The file, as the call names it; none for a program that was run from the command's own text.
    pub path: Option<String>,
    /// The whole text as far as the trajectory tells it, else the part that was put into the file.
    pub text: String,
}

/// What the tests that an agent wrote check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// Texts that hold tests, or programs that assert.
    pub texts: usize,
    /// Texts of tests and programs that are not Python as they stand, of which nothing was read.
    pub unparsed: usize,
    /// Each assertion once, with its text's step and file: one that is written again, in another version of the file too, is the same.
    pub assertions: Vec<(WrittenAt, Assertion)>,
}

/// Where an assertion was written first.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WrittenAt {
    /// The step.
    pub step: u64,
    /// The file; none for a program in a command.
    pub path: Option<String>,
}

impl Written {
    /// The counts.
    pub fn share(&self) -> Share {
        Share::of(self.assertions.iter().map(|(_, one)| one))
    }
}

/// Classes the assertions that a trajectory wrote: those of Python files that look like tests by path or define a function `test…`, and
/// those of programs run from a command (`python -c`, here-documents).
pub fn assertions_of_trajectory(trajectory: &Trajectory) -> Written {
    let mut written = Written::default();
    let mut seen: HashSet<(Option<String>, String, String)> = HashSet::new();
    for text in written_python(trajectory) {
        if !is_test(&text) {
            continue;
        }
        let name = text.path.as_deref().unwrap_or("program");
        let Some(found) = parsed(name, &text.text) else {
            written.unparsed += 1;
            continue;
        };
        written.texts += usize::from(!found.is_empty());
        for one in found {
            if seen.insert((text.path.clone(), one.within.clone(), one.text.clone())) {
                written.assertions.push((WrittenAt { step: text.step, path: text.path.clone() }, one));
            }
        }
    }
    written
}

fn is_test(text: &WrittenText) -> bool {
    text.path.as_deref().is_none_or(|path| {
        looks_like_test(path.as_bytes()) || text.text.contains("def test") || path.starts_with("/tmp/")
    })
}

/// The assertions of a text; of a part of a file, without its indent or inside a function.
fn parsed(name: &str, text: &str) -> Option<Vec<Assertion>> {
    if let Ok(found) = assertions(name, text) {
        return Some(found);
    }
    let bare = without_indent(text);
    assertions(name, &bare).or_else(|_| assertions(name, &format!("{bare}\n    pass\n"))).ok()
}

fn without_indent(text: &str) -> String {
    let full = text.lines().filter(|line| !line.trim().is_empty());
    let indent = full.map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
    text.lines().map(|line| line.get(indent..).unwrap_or("")).collect::<Vec<_>>().join("\n")
}

/// The Python texts that a trajectory's calls wrote into files or gave to an interpreter, subagents' after its own. Read by the form
/// of the arguments and not by the tool's name: a path with a content, with an old and a new text, a list of such; a command of a
/// shell; a patch in Codex's form. A file that was written before has its whole text after an edit.
pub fn written_python(trajectory: &Trajectory) -> Vec<WrittenText> {
    let mut reading = Reading::default();
    reading.trajectory(trajectory);
    reading.found
}

#[derive(Default)]
struct Reading {
    found: Vec<WrittenText>,
    /// Files as far as they are known whole.
    files: HashMap<String, String>,
    step: u64,
}

const PATHS: [&str; 6] = ["file_path", "path", "filename", "absolute_path", "target_file", "file"];
const NEW: [&str; 7] =
    ["content", "contents", "file_text", "new_string", "new_str", "replacement", "insert_text"];
const OLD: [&str; 3] = ["old_string", "old_str", "old_text"];
const COMMANDS: [&str; 4] = ["command", "cmd", "script", "input"];

fn string<'v>(arguments: &'v Map<String, Value>, names: &[&str]) -> Option<&'v str> {
    names.iter().find_map(|name| arguments.get(*name)?.as_str())
}

impl Reading {
    fn trajectory(&mut self, trajectory: &Trajectory) {
        for step in &trajectory.steps {
            self.step = step.step_id;
            step.tool_calls.iter().flatten().for_each(|call| self.call(call));
        }
        trajectory.subagent_trajectories.iter().flatten().for_each(|part| self.trajectory(part));
    }

    fn call(&mut self, call: &ToolCall) {
        let arguments = &call.arguments;
        if let Some(path) = string(arguments, &PATHS) {
            self.edit(path, arguments);
            for edit in arguments.get("edits").and_then(Value::as_array).into_iter().flatten() {
                edit.as_object().into_iter().for_each(|edit| self.edit(path, edit));
            }
            return;
        }
        if let Some(code) = string(arguments, &["code"]) {
            self.program(code);
        }
        for name in COMMANDS {
            match arguments.get(name) {
                Some(Value::String(command)) => self.command(command),
                Some(Value::Array(words)) => {
                    // `["bash", "-lc", "…"]`: the last word is the command.
                    words
                        .last()
                        .and_then(Value::as_str)
                        .into_iter()
                        .for_each(|command| self.command(command));
                }
                _ => {}
            }
        }
        if let Some(patch) = string(arguments, &["patch", "diff"]) {
            shell::of_apply_patch(patch).into_iter().for_each(|piece| self.piece(piece));
        }
    }

    fn command(&mut self, command: &str) {
        let pieces = match command.trim_start().starts_with("*** Begin Patch") {
            true => shell::of_apply_patch(command),
            false => shell::pieces(command),
        };
        pieces.into_iter().for_each(|piece| self.piece(piece));
    }

    fn piece(&mut self, piece: Piece) {
        match piece {
            Piece::Script(text) => self.program(&text),
            Piece::File { path, text } => self.file(&path, text),
            Piece::Part { path, text } => self.part(&path, &text),
        }
    }

    fn program(&mut self, text: &str) {
        self.found.push(WrittenText { step: self.step, path: None, text: text.to_owned() });
    }

    fn file(&mut self, path: &str, text: String) {
        if path.ends_with(".py") {
            self.found.push(WrittenText { step: self.step, path: Some(path.to_owned()), text: text.clone() });
            self.files.insert(path.to_owned(), text);
        }
    }

    fn part(&mut self, path: &str, text: &str) {
        if path.ends_with(".py") {
            self.found.push(WrittenText {
                step: self.step,
                path: Some(path.to_owned()),
                text: text.to_owned(),
            });
        }
    }

    fn edit(&mut self, path: &str, arguments: &Map<String, Value>) {
        let Some(new) = string(arguments, &NEW) else { return };
        let Some(old) = string(arguments, &OLD) else {
            let inserts = arguments.contains_key("insert_line") || arguments.contains_key("insert_text");
            return if inserts { self.part(path, new) } else { self.file(path, new.to_owned()) };
        };
        match self.files.get(path).filter(|known| !old.is_empty() && known.contains(old)) {
            Some(known) => {
                let whole = match arguments.get("replace_all").and_then(Value::as_bool) {
                    Some(true) => known.replace(old, new),
                    _ => known.replacen(old, new, 1),
                };
                self.file(path, whole);
            }
            None => self.part(path, new),
        }
    }
}
