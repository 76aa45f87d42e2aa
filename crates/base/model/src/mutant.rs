//! A mutant: golden with one small mistake in a line that it added. Data, nothing that runs.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::digest::{Digest, DigestBuilder};

/// What kind of mistake a mutant makes. Where two operators make the same of a file, the first in this order names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Operator {
    /// One hunk of golden back to base's lines.
    TakeBackHunk,
    /// One file back to base's text; one that golden adds is missing.
    TakeBackFile,
    /// A collective or a point-to-point transfer does not happen.
    DropCollective,
    /// A reduction happens twice.
    DoubleCollective,
    /// A collective, rank or size is of another process group, or of the default one.
    WrongGroup,
    /// A reduction sums where it should average or take the maximum, and the like.
    WrongReduceOp,
    /// A statement runs on rank 0 alone.
    RankZeroOnly,
    /// A sum is not divided by the number of ranks.
    MissingWorldSizeDivision,
    /// The whole tensor is used where a rank should hold its shard.
    FullMaterialisation,
    /// A copy where golden gives a view, so that writes to it are lost.
    CopyForView,
    /// A view or the same object where golden copies, so that later writes show through.
    ViewForCopy,
    /// Memory is not given back or moved off the device.
    NoFree,
    /// A cache, a buffer of a captured graph or a version is not brought up to date, or a hit is assumed.
    StaleCache,
    /// Values are accumulated or kept in a narrower type.
    WrongDtype,
    /// A gradient flows, or a graph is kept, where golden cuts it.
    MissingDetach,
    /// A gradient is cut where golden lets it flow.
    CutGradient,
    /// An asynchronous operation is not waited for.
    MissingWait,
    /// A flag, option or optional value is taken for off.
    IgnoredFlag,
    /// A condition is forced, so that one path is always taken.
    FallbackAlways,
    /// An `if` that only raises, returns, breaks or continues is gone; or an `assert`.
    DropGuard,
    /// An `elif` or `else` is gone with its body.
    DropBranch,
    /// State keeps its old value: an assignment to an attribute, a `del`, a `.clear()`, a `.zero_()` is gone.
    DropReset,
    /// A decorator is gone.
    DropDecorator,
    /// A keyword argument is left out of a call, so its default holds.
    DropKeyword,
    /// One call as base had it, or a new call statement dropped.
    TakeBackCall,
    /// A comparison is another one.
    SwapComparison,
    /// `and` for `or`, an operand or a `not` left out.
    SwapBoolean,
    /// An arithmetical operator is another one.
    SwapArithmetic,
    /// A constant is another one.
    SwapConstant,
}

impl Operator {
    /// All of them, in their order.
    pub const ALL: [Operator; 29] = [
        Operator::TakeBackHunk,
        Operator::TakeBackFile,
        Operator::DropCollective,
        Operator::DoubleCollective,
        Operator::WrongGroup,
        Operator::WrongReduceOp,
        Operator::RankZeroOnly,
        Operator::MissingWorldSizeDivision,
        Operator::FullMaterialisation,
        Operator::CopyForView,
        Operator::ViewForCopy,
        Operator::NoFree,
        Operator::StaleCache,
        Operator::WrongDtype,
        Operator::MissingDetach,
        Operator::CutGradient,
        Operator::MissingWait,
        Operator::IgnoredFlag,
        Operator::FallbackAlways,
        Operator::DropGuard,
        Operator::DropBranch,
        Operator::DropReset,
        Operator::DropDecorator,
        Operator::DropKeyword,
        Operator::TakeBackCall,
        Operator::SwapComparison,
        Operator::SwapBoolean,
        Operator::SwapArithmetic,
        Operator::SwapConstant,
    ];

    /// The name as documents have it: `take-back-hunk`.
    pub fn name(self) -> &'static str {
        match self {
            Operator::TakeBackHunk => "take-back-hunk",
            Operator::TakeBackFile => "take-back-file",
            Operator::DropCollective => "drop-collective",
            Operator::DoubleCollective => "double-collective",
            Operator::WrongGroup => "wrong-group",
            Operator::WrongReduceOp => "wrong-reduce-op",
            Operator::RankZeroOnly => "rank-zero-only",
            Operator::MissingWorldSizeDivision => "missing-world-size-division",
            Operator::FullMaterialisation => "full-materialisation",
            Operator::CopyForView => "copy-for-view",
            Operator::ViewForCopy => "view-for-copy",
            Operator::NoFree => "no-free",
            Operator::StaleCache => "stale-cache",
            Operator::WrongDtype => "wrong-dtype",
            Operator::MissingDetach => "missing-detach",
            Operator::CutGradient => "cut-gradient",
            Operator::MissingWait => "missing-wait",
            Operator::IgnoredFlag => "ignored-flag",
            Operator::FallbackAlways => "fallback-always",
            Operator::DropGuard => "drop-guard",
            Operator::DropBranch => "drop-branch",
            Operator::DropReset => "drop-reset",
            Operator::DropDecorator => "drop-decorator",
            Operator::DropKeyword => "drop-keyword",
            Operator::TakeBackCall => "take-back-call",
            Operator::SwapComparison => "swap-comparison",
            Operator::SwapBoolean => "swap-boolean",
            Operator::SwapArithmetic => "swap-arithmetic",
            Operator::SwapConstant => "swap-constant",
        }
    }

    /// The promise that a mutant of this kind breaks, as the end of a sentence: "no test checks that …".
    pub fn promise(self) -> &'static str {
        match self {
            Operator::TakeBackHunk => {
                "this hunk of the change matters: with base's lines in its place something goes wrong"
            }
            Operator::TakeBackFile => {
                "the change to this file matters: with base's file in its place something goes wrong"
            }
            Operator::DropCollective => "ranks exchange what they hold before anyone uses it",
            Operator::DoubleCollective => "each rank's share is counted once",
            Operator::WrongGroup => "ranks exchange within the right group, also where it is not all of them",
            Operator::WrongReduceOp => {
                "the reduction is the right one, which only values that differ from rank to rank can show"
            }
            Operator::RankZeroOnly => "every rank does this, not only the first",
            Operator::MissingWorldSizeDivision => "the result does not grow with the number of ranks",
            Operator::FullMaterialisation => "a rank holds and works on its own part only",
            Operator::CopyForView => "what is written through the view arrives in the storage it shares",
            Operator::ViewForCopy => "the copy keeps its values when the original changes",
            Operator::NoFree => "memory is released here, and the peak stays where it should",
            Operator::StaleCache => "what is cached or captured is refreshed before it is used again",
            Operator::WrongDtype => {
                "the numbers hold in the wider type, which only sums of many or of unlike sizes can show"
            }
            Operator::MissingDetach => "no gradient flows past here, and no graph is kept alive",
            Operator::CutGradient => "gradients flow through this to what made it",
            Operator::MissingWait => "a result is used only after it is complete",
            Operator::IgnoredFlag => "the feature that this turns on is really on, not silently off",
            Operator::FallbackAlways => {
                "both paths are taken, each where it should be; the fast one is not silently left out"
            }
            Operator::DropGuard => "what the guard refuses or passes over never gets beyond it",
            Operator::DropBranch => "the other case is handled as well, not only the first",
            Operator::DropReset => "state is renewed here, so that nothing of the last use shows in the next",
            Operator::DropDecorator => "the function runs under what its decorator arranges",
            Operator::DropKeyword => "the value that is passed here arrives, and differs from the default",
            Operator::TakeBackCall => "this call is made, and made with the new arguments",
            Operator::SwapComparison => "the case at the boundary falls on the right side",
            Operator::SwapBoolean => "each part of the condition counts by itself",
            Operator::SwapArithmetic => "the value is computed right, for numbers where the operator matters",
            Operator::SwapConstant => "this constant has the right value",
        }
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
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
    /// The innermost function or class that holds the span, as Python's `__qualname__`
    /// has it (`Layer.forward`, `outer.<locals>.inner`); `None` at the module's level.
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

    /// The promise that it breaks, as the end of a sentence: that of its operator, but where it takes a new file away.
    pub fn promise(&self) -> &'static str {
        match (self.operator, &self.replacement) {
            (Operator::TakeBackFile, None) => {
                "this new file matters: where it is missing something goes wrong"
            }
            _ => self.operator.promise(),
        }
    }

    /// The file's text after mutation; `None` where the file is removed. `golden` is golden's text of the file.
    pub fn text(&self, golden: &str) -> Option<String> {
        self.replacement
            .as_ref()
            .map(|replacement| format!("{}{replacement}{}", &golden[..self.start], &golden[self.end..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operator_has_a_name_as_documents_have_it() {
        for operator in Operator::ALL {
            assert_eq!(serde_json::to_value(operator).unwrap(), operator.name());
        }
    }

    #[test]
    fn the_book_has_every_operator_with_the_promise_it_breaks() {
        let book = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/src/mutants.md");
        let book = std::fs::read_to_string(book).unwrap();
        for operator in Operator::ALL {
            let (name, promise) = (format!("| `{operator}` | "), format!(" | {} |", operator.promise()));
            let is_row = |line: &&str| line.starts_with(&name) && line.ends_with(&promise);
            assert_eq!(book.lines().filter(is_row).count(), 1, "{operator}");
        }
    }
}
