//! The prompt of an attempt: rendered from the four parts of the paper's appendix B, never written by hand.
//!
//! It is made of a [`PublicTask`], which holds nothing to leak.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Class, Classified};
use crate::shown::shown_parts;
use crate::task::PublicTask;

/// The schema version of `infradev prompt --json`.
pub const PROMPT_SCHEMA: u32 = 1;

/// Which text an agent is given (the paper's ablation, §4.3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arm {
    /// Specification and contract, written together with the probes.
    #[default]
    Synthesised,
    /// The pull request's own description in their place.
    PrDescription,
}

/// What a part of the prompt is for (the paper's figures 8 to 11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PartKind {
    /// What is wanted: `spec.md`, or the pull request's description.
    Specification,
    /// To work alone, without a look at the original change.
    Autonomy,
    /// `contract.toml`, readable. Not in the arm of the description.
    Contract,
    /// In which order to run what, and what the grader runs.
    Execution,
}

/// One part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromptPart {
    /// What it is for.
    pub part: PartKind,
    /// Markdown.
    pub text: String,
}

/// What `infradev prompt --json` prints, and what an attempt is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Prompt {
    /// Version of this document's format.
    pub schema: u32,
    /// The task's id.
    pub task: String,
    /// Which text it is.
    pub arm: Arm,
    /// Its parts, in order.
    pub parts: Vec<PromptPart>,
    /// All of it, Markdown.
    pub text: String,
}

/// Why a prompt can't be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// The arm of the description, and there is none.
    #[error("task {task}: there is no description of a pull request (tasks/{task}/description.md)")]
    NoDescription {
        /// The task's id.
        task: String,
    },
}

impl Classified for PromptError {
    fn class(&self) -> Class {
        Class::BadInput
    }

    fn hint(&self) -> Option<String> {
        Some(
            "put the pull request's own text there, as it was when it was opened; `infradev new` writes the commit's message"
                .to_owned(),
        )
    }
}

/// What an attempt may add to the prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PromptSettings {
    /// Which text.
    pub arm: Arm,
    /// Minutes that the agent has; nothing is said of it where there is no limit.
    pub minutes: Option<u32>,
}

impl Prompt {
    /// Renders the prompt of a task.
    ///
    /// # Errors
    /// Where the arm of the description is asked for and the task has none.
    pub fn render(task: &PublicTask, settings: PromptSettings) -> Result<Prompt, PromptError> {
        let described = match settings.arm {
            Arm::Synthesised => without_comments(&task.description),
            Arm::PrDescription => match &task.pull_request {
                Some(text) if !text.trim().is_empty() => text.clone(),
                _ => return Err(PromptError::NoDescription { task: task.spec.id.clone() }),
            },
        };
        let mut parts = vec![
            (PartKind::Specification, described.trim().to_owned()),
            (PartKind::Autonomy, autonomy(settings.minutes)),
        ];
        if settings.arm == Arm::Synthesised {
            parts.push((PartKind::Contract, task.contract.shown().text));
        }
        parts.push((PartKind::Execution, execution(task)));
        let texts: Vec<&str> = parts.iter().map(|(_, text)| text.as_str()).collect();
        let text = texts.join("\n\n") + "\n";
        let parts = parts.into_iter().map(|(part, text)| PromptPart { part, text }).collect();
        Ok(Prompt { schema: PROMPT_SCHEMA, task: task.spec.id.clone(), arm: settings.arm, parts, text })
    }
}

/// A text without its HTML comments, which are notes between authors.
fn without_comments(text: &str) -> String {
    shown_parts(text).into_iter().map(|part| &text[part]).collect()
}

const AUTONOMY: &str = "\
## How to work

Make this change in the source tree of the current folder, by yourself, to the end: nobody answers questions while you work, and what \
is left open is yours to decide. What is graded is how the tree differs from what you were given.

The change was once made in the project's own history. Do not look it up: neither the change, nor its discussion, nor the tests that \
grade it. That means no git hosts, no forks or mirrors of the project, no package index for another release of it, no other copy of it \
on this machine. A submission that was copied is void. Everything that you need is in this text and in the tree.";

fn autonomy(minutes: Option<u32>) -> String {
    let mut text = AUTONOMY.to_owned();
    if let Some(minutes) = minutes {
        let unit = if minutes == 1 { "minute" } else { "minutes" };
        let _ = write!(text, "\n\nYou have {minutes} {unit}; what stands in the tree then is graded.");
    }
    text
}

/// What to run, in which order, and what the grader runs.
fn execution(task: &PublicTask) -> String {
    let spec = &task.spec;
    let roots = listed(&spec.tests.roots);
    let collect =
        if spec.tests.roots.is_empty() { String::new() } else { format!(" {}", spec.tests.roots.join(" ")) };
    let mut text = "## How it is run\n\n".to_owned();
    text.push_str(
        "Run the code while you write it. Names and signatures that agree with this text are not enough: a patch that was never run \
         does not pass.\n\n",
    );
    let _ = writeln!(
        text,
        "1. **Imports and collection first.** Import every module that you touched and collect the tests (`python -m pytest \
         --collect-only -q{collect}`), at the start and again after each edit of a file that others import. One syntax or \
         indentation error in a shared module keeps all tests from being collected, and then all of them count as failed. Stop and \
         mend it before anything else. See that the package is imported from this tree and not from an installed copy.",
    );
    text.push_str(
        "2. **Then one process.** Run what you changed in a single process, forward, and backward where gradients are due: shapes, \
         types, finite numbers, a gradient for each parameter that should have one.\n",
    );
    let devices = match spec.gpus {
        0 => "on the CPU".to_owned(),
        1 => "on 1 GPU".to_owned(),
        gpus => format!("on {gpus} GPUs"),
    };
    let most = spec.worlds.iter().max().copied().unwrap_or(1);
    let sizes: Vec<String> = spec.worlds.iter().map(u32::to_string).collect();
    if most == 1 {
        let _ = writeln!(
            text,
            "3. **Then as the grader does.** The tests run in one process (a world size of 1) {devices}."
        );
    } else {
        let _ = writeln!(
            text,
            "3. **Then the grader's world size.** The tests run {devices} at {} of {}, one process a rank. A run on one rank says \
             nothing of how ranks work together. Run your own checks at these sizes, such as `torchrun --nproc-per-node {most} -m \
             pytest -x{collect}`, each under a time limit: ranks that wait for each other wait for ever, and a hang is a failure.",
            if sizes.len() == 1 { "a world size" } else { "world sizes" },
            listed_plain(&sizes),
        );
    }
    let _ = write!(
        text,
        "\nThe grader runs {python}, without network beyond its own loopback and with {memory} MiB of memory. A test case has \
         {case} s on all ranks, set-up included; collecting a file {file} s; all of it {trial} s.",
        python = python(task),
        memory = spec.limits.memory_mib,
        case = spec.timeouts.case,
        file = spec.timeouts.collect,
        trial = spec.timeouts.trial,
    );
    if !spec.tests.roots.is_empty() {
        let _ = write!(
            text,
            " Files below {roots}, conftest.py and pytest's configuration are replaced by the grader's own: write tests there for \
             yourself, nothing of the change."
        );
    }
    text
}

fn python(task: &PublicTask) -> String {
    let environment = &task.environment;
    let framework: Vec<&str> =
        environment.framework.iter().map(|module| module.split('.').next().unwrap_or(module)).collect();
    let with = framework.first().map_or(String::new(), |first| format!(" with {first}"));
    match &environment.python {
        Some(version) => format!("Python {version}{with}"),
        None => format!("Python{with}"),
    }
}

/// `` `a`, `b` and `c` ``.
fn listed(items: &[String]) -> String {
    listed_plain(&items.iter().map(|item| format!("`{item}`")).collect::<Vec<_>>())
}

fn listed_plain(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [many @ .., last] => format!("{} and {last}", many.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_between_authors_are_left_out() {
        for (text, kept) in [
            ("# T\n\n<!-- a draft\nof two lines -->\n\n## What\n", "# T\n\n## What\n"),
            ("<!-- first -->\n# T\n", "# T\n"),
            ("one <!-- here --> two", "one two"),
            ("one <!-- never ends", "one <!-- never ends"),
            ("a --> b", "a --> b"),
        ] {
            assert_eq!(without_comments(text), kept);
        }
    }
}
