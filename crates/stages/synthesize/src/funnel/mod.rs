//! The funnel: mutants of golden go through the official tests, what passes them through the probes; what is left at the end
//! names promises that nothing checks.
//!
//! Golden itself goes first, as the unmutated control ([`control`]): a task whose golden fails its own tests is not tried.
//! One of its runs follows lines, so that a mutant runs only the cases that reach it ([`trying`]); what their answers come to is
//! said by [`rejecting`]. Golden written anew goes the same way ([`rewriting`]). Mutants are spread over the executor's slots, a warm session each; what is finished is in a
//! journal of the run and is not repeated.

mod candidates;
mod change;
mod control;
mod done;
mod given;
mod leaning;
mod mutations;
mod rejecting;
mod rewriting;
mod running;
mod trying;

use std::collections::BTreeSet;

use infradev_executor::{ChangedFile, DeriveError, ExecutorError};
use infradev_model::{Class, Classified, FormatError, Mutant, Suite};
use infradev_pycode::{Span, lines_around};
use infradev_store::StoreError;
use infradev_trial::{Line, TrialError};

pub use candidates::{mutant_named, write_candidates};
pub use change::{ChangeAsk, ChangeError, DraftedChange};
pub use control::{Control, ControlCase, SuiteControl};
pub use given::given_mutants;
pub use mutations::{Listed, Mutations};
pub use rejecting::Rule;
pub use rewriting::rewrites_of;
pub use running::{FunnelPlan, Told, run};

/// Cases named in a message.
const NAMED: usize = 5;

/// Why the funnel stopped.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum FunnelError {
    #[error(transparent)]
    Executor(#[from] ExecutorError),
    #[error(transparent)]
    Derive(#[from] DeriveError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Trial(#[from] TrialError),
    #[error("{task}: the unmutated change fails {suite} tests at world size {world}: {}", named(failing))]
    GoldenFails { task: String, suite: Suite, world: u32, failing: Vec<String> },
    #[error(transparent)]
    Listing(#[from] FormatError),
    #[error("{path}: {why}")]
    Given { path: String, why: String },
    #[error("{task}: the unmutated change passes no test{}", because(notes))]
    NoTests { task: String, notes: Vec<String> },
    #[error("{}: the unmutated change has no test of this id", named(ids))]
    NoSuchCase { ids: Vec<String> },
}

impl Classified for FunnelError {
    fn class(&self) -> Class {
        match self {
            FunnelError::Executor(error) => error.class(),
            FunnelError::Derive(error) => error.class(),
            FunnelError::Store(error) => error.class(),
            FunnelError::Trial(error) => error.class(),
            FunnelError::Listing(error) => error.class(),
            FunnelError::GoldenFails { .. }
            | FunnelError::NoTests { .. }
            | FunnelError::NoSuchCase { .. }
            | FunnelError::Given { .. } => Class::BadInput,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            FunnelError::Executor(error) => error.hint(),
            FunnelError::Derive(error) => error.hint(),
            FunnelError::Store(error) => error.hint(),
            FunnelError::Trial(error) => error.hint(),
            FunnelError::GoldenFails { .. } => Some(
                "what fails before any mutation says nothing of a mutant: mend it, or leave such cases out with \
                 --skip-failing"
                    .to_string(),
            ),
            FunnelError::Listing(error) => error.hint(),
            FunnelError::Given { .. } => None,
            FunnelError::NoSuchCase { .. } => Some(
                "ids are FILE::FUNCTION or FILE::CLASS::FUNCTION, with [PARAMETERS] for one of its cases, as \
                 `pytest --collect-only -q` lists them"
                    .to_string(),
            ),
            FunnelError::NoTests { .. } => {
                Some("mutants are tried on tests that the unmutated change passes; check the names of the tests, and \
                     that they pass in a fresh clone: what git ignores is not there".to_string())
            }
        }
    }
}

fn named(failing: &[String]) -> String {
    let more = failing.len().saturating_sub(NAMED);
    let mut text = failing.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
    if more > 0 {
        text.push_str(&format!("; and {more} more"));
    }
    text
}

fn because(notes: &[String]) -> String {
    if notes.is_empty() { String::new() } else { format!(": {}", named(notes)) }
}

/// The lines that must run for a mutant to matter, as lines of the file of this index. None where they are not known.
fn lines_of(mutant: &Mutant, index: u32, golden: &str) -> Option<BTreeSet<Line>> {
    if !mutant.file.ends_with(".py") {
        return None;
    }
    let span = match mutant.replacement {
        Some(_) => Span { start: mutant.start, end: mutant.end },
        None => Span { start: 0, end: golden.len() },
    };
    let lines = lines_around(&mutant.file, golden, span).ok()?;
    Some(lines.into_iter().map(|line| (index, line)).collect())
}

/// Bytes kept of the lines that a mutant changes.
const SHOWN: usize = 2_000;

/// Golden's lines that a mutant changes, and what stands there instead.
fn shown(mutant: &Mutant, golden: &str) -> (String, String) {
    let start = golden[..mutant.start].rfind('\n').map_or(0, |at| at + 1);
    // A span that ends with its line's end has none of the next.
    let from =
        if mutant.end > start && golden[..mutant.end].ends_with('\n') { mutant.end - 1 } else { mutant.end };
    let end = golden[from..].find('\n').map_or(golden.len(), |at| from + at);
    let bounded = |text: &str| {
        let text = text.trim_end();
        let cut = text.floor_char_boundary(SHOWN);
        if cut < text.len() { format!("{}…", &text[..cut]) } else { text.to_string() }
    };
    let becomes = match &mutant.replacement {
        Some(replacement) => {
            let rest = golden.get(mutant.end..end).unwrap_or_default();
            bounded(&format!("{}{replacement}{rest}", &golden[start..mutant.start]))
        }
        None => String::new(),
    };
    (bounded(&golden[start..end]), becomes)
}

/// Golden's texts of the Python files that it changes: what mutants are made of, and whose lines are followed.
fn followed(files: &[ChangedFile]) -> Vec<String> {
    let python = files.iter().filter(|file| file.golden.is_some() && file.path.ends_with(".py"));
    python.map(|file| file.path.clone()).collect()
}
