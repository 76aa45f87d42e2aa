//! A mutant: golden with one small mistake in a line that it added. Data, nothing that runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::digest::{Digest, DigestBuilder};

/// What kind of mistake a mutant makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Operator {
    /// One hunk of golden back to base's lines.
    TakeBackHunk,
    /// One file back to base's text; one that golden adds is missing.
    TakeBackFile,
}

impl Operator {
    /// The name as documents have it: `take-back-hunk`.
    pub fn name(self) -> &'static str {
        match self {
            Operator::TakeBackHunk => "take-back-hunk",
            Operator::TakeBackFile => "take-back-file",
        }
    }
}

/// One mutant of golden: the text of one file with one span replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mutant {
    /// Path in golden's tree, with `/`.
    pub file: String,
    /// First byte of the span in golden's text of the file.
    pub start: usize,
    /// The byte after its last.
    pub end: usize,
    /// The line of `start`, from 1.
    pub line: u32,
    /// What stands there instead; `None` where the file is removed.
    pub replacement: Option<String>,
    /// The kind of mistake.
    pub operator: Operator,
    /// The innermost function or class that holds the span, dotted (`Layer.forward`); `None` at the module's level.
    pub function: Option<String>,
    /// The digest of file, mutated text and nothing else: two mutants of equal content are one.
    pub digest: Digest,
}

impl Mutant {
    /// The digest of a file's content after mutation.
    pub fn digest_of(file: &str, mutated: Option<&str>) -> Digest {
        let mut builder = DigestBuilder::new("infradev mutant v1");
        builder.part("file", file.as_bytes());
        if let Some(text) = mutated {
            builder.part("text", text.as_bytes());
        }
        builder.finish()
    }

    /// The file's text after mutation; `None` where the file is removed. `golden` is golden's text of the file.
    pub fn text(&self, golden: &str) -> Option<String> {
        self.replacement.as_ref().map(|replacement| {
            format!("{}{replacement}{}", &golden[..self.start], &golden[self.end..])
        })
    }
}
