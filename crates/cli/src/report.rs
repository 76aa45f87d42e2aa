//! How errors and results reach the person: stderr for words, stdout for results.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

use infradev_model::{Class, Classified};

/// An error as it is shown.
#[derive(Debug)]
pub struct Failure {
    class: Class,
    message: String,
    hint: Option<String>,
}

impl<E: Classified> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure { class: error.class(), message: error.to_string(), hint: error.hint() }
    }
}

impl Failure {
    /// The command line asks for something that is not there.
    pub fn usage(message: impl Display) -> Failure {
        Failure { class: Class::Usage, message: message.to_string(), hint: None }
    }

    /// Something that was given is not usable.
    pub fn bad_input(message: impl Display) -> Failure {
        Failure { class: Class::BadInput, message: message.to_string(), hint: None }
    }

    /// The machine failed.
    pub fn fault(message: impl Display) -> Failure {
        Failure { class: Class::Fault, message: message.to_string(), hint: None }
    }

    /// What was wrong, where the same input would be refused again.
    pub fn refusal(&self) -> Option<&str> {
        (self.class == Class::BadInput).then_some(self.message.as_str())
    }

    /// Its message and hint.
    pub fn into_parts(self) -> (String, Option<String>) {
        (self.message, self.hint)
    }

    /// What to do next.
    pub fn hint(mut self, hint: impl Display) -> Failure {
        self.hint = Some(hint.to_string());
        self
    }
}

/// Says what went wrong, and gives the exit code. `resumable` says whether the same command continues where this one stopped.
pub fn fail(failure: Failure, resumable: bool) -> ExitCode {
    let resume = "run the same command again to resume".to_string();
    if failure.class == Class::Interrupted || infradev_supervise::cancelled() {
        say("interrupted", YELLOW, "");
        if resumable {
            say("hint", CYAN, &resume);
        }
        return ExitCode::from(Class::Interrupted.exit_code());
    }
    say("error", RED, &failure.message);
    if let Some(hint) = failure.hint {
        say("hint", CYAN, &hint);
    }
    ExitCode::from(failure.class.exit_code())
}

const RED: anstyle::Style = anstyle::AnsiColor::Red.on_default().bold();
const YELLOW: anstyle::Style = anstyle::AnsiColor::Yellow.on_default().bold();
const CYAN: anstyle::Style = anstyle::AnsiColor::Cyan.on_default().bold();

/// A text with its control characters written out, line ends and tabs apart. What a patch under test says (an exception's
/// message, a log) is printed to a terminal, where an escape sequence could rewrite the verdict.
pub fn visible(text: &str) -> Cow<'_, str> {
    let control = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(control) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if control(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

fn say(word: &str, style: anstyle::Style, text: &str) {
    let text = visible(text);
    let colon = if text.is_empty() { "" } else { ": " };
    let _ = writeln!(anstream::stderr().lock(), "{style}{word}{style:#}{colon}{text}");
}

/// A warning.
pub fn warn(text: impl Display) {
    say("warning", YELLOW, &text.to_string());
}

/// What to do about something that is no error.
pub fn hint(text: impl Display) {
    say("hint", CYAN, &text.to_string());
}

/// A line on stderr.
pub fn note(text: impl Display) {
    let _ = writeln!(anstream::stderr().lock(), "{}", visible(&text.to_string()));
}

/// Text on stdout. A reader that has gone (`| head`) is no error.
pub fn print(text: impl Display) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    match write!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::fault(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// One JSON document on stdout.
pub fn print_json(document: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(document)
        .map_err(|error| Failure::fault(format!("cannot write the document: {error}")))?;
    print(text + "\n")
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn escape_sequences_are_written_out_and_lines_kept() {
        assert_eq!(visible("a\tb\nc \u{e9}"), "a\tb\nc \u{e9}");
        assert_eq!(visible("\u{1b}[2Jgone\r\u{9b}1m"), "\\u{1b}[2Jgone\\r\\u{9b}1m");
    }
}
