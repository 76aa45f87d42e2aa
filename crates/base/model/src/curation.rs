//! What a history holds that is worth a task: candidates with facts, the evidence for each, and a score.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::task::{Area, Kind};

/// The schema version of `infradev curate --json`.
pub const CURATION_SCHEMA: u32 = 1;

/// What was read, and where.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// The word or text that was met.
    pub what: String,
    /// `subject`, `body`, or a path of the tree.
    pub place: String,
}

/// How one commit repeats another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Repeats {
    /// Its message names the commit or number that it was picked from.
    CherryPick,
    /// It brings back what was reverted.
    Reland,
    /// It has the same number.
    SameNumber,
    /// It has the same title and changes the same files.
    SameTitle,
}

/// Another commit of the same change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AlsoAt {
    /// Its id.
    pub commit: String,
    /// How it is known for the same.
    pub by: Repeats,
}

/// Why a commit is no candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LeftOutBecause {
    /// A later commit took it back.
    Reverted,
    /// It takes another back.
    Revert,
    /// Another commit of the same change is the candidate.
    Duplicate,
    /// The first of its history: nothing is before it.
    NoParent,
    /// It changes no file.
    Empty,
    /// It changes no Python source outside of tests, vendored and generated files.
    NoSource,
    /// It adds or changes no test file (`test_*.py`, `*_test.py`).
    NoTests,
    /// It changes more source files than a task may.
    TooLarge,
    /// Neither syntax tree of its source differs: comments, docstrings, layout.
    NoCode,
    /// The clone lacks objects of it.
    MissingObjects,
    /// A filter of the command line.
    Filtered,
}

/// A commit that is no candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// Its id.
    pub commit: String,
    /// Its subject.
    pub subject: String,
    /// Why.
    pub because: LeftOutBecause,
    /// The commit that reverted it, or that it repeats or reverts.
    pub other: Option<String>,
}

/// Lines added and deleted of some files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lines {
    /// Files.
    pub files: u32,
    /// Lines added.
    pub added: u32,
    /// Lines deleted.
    pub deleted: u32,
}

/// Definitions added and changed, by syntax tree. Docstrings and comments are no change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Definitions {
    /// Functions and methods that are new.
    pub functions_added: u32,
    /// Functions and methods whose own statements or signature changed.
    pub functions_changed: u32,
    /// Classes that are new.
    pub classes_added: u32,
    /// Classes with another own statement, base or decorator.
    pub classes_changed: u32,
    /// Functions and classes that are new to who uses the code: no name of theirs begins with an underscore, and nothing of
    /// their body stood elsewhere before. The methods of a new class are not counted beside it.
    pub public_added: u32,
    /// Parameters, fields and options of a command line that what was there before has gained.
    pub settings: u32,
    /// Definitions that stand elsewhere now, with the same name and body.
    pub moved: u32,
    /// Functions that have another name now, with the same body.
    pub renamed: u32,
    /// Definitions that are gone, neither moved nor renamed.
    pub removed: u32,
}

/// What tests run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Device {
    Cpu,
    Cuda,
}

/// What its tests need, as far as their text says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Needs {
    /// The smallest number of ranks at which no changed test says that it has too few.
    pub world: u32,
    /// All sizes that the tests name.
    pub worlds: Vec<u32>,
    /// The tests open a process group.
    pub distributed: bool,
    /// GPUs; 0 where they run without.
    pub gpus: u32,
    /// CPU or CUDA.
    pub device: Device,
    /// What says so.
    pub evidence: Vec<Evidence>,
}

/// A guess with what speaks for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Guess<T> {
    /// The guess.
    pub is: T,
    /// What speaks for it.
    pub evidence: Vec<Evidence>,
}

/// Whether tests look at more than that code runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Checks {
    /// Comparisons of numbers or tensors.
    pub numbers: Vec<Evidence>,
    /// Looks at memory, time, bytes or counts of calls.
    pub resources: Vec<Evidence>,
}

/// Whether golden can be made hollow.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Hollowable {
    /// Added functions that would raise; 0 where hollow is not applicable.
    pub functions: u32,
    /// Added functions that keep their bodies.
    pub kept: u32,
}

/// A file that pins the packages that were resolved.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct PackageLock {
    /// Its path in the tree: `uv.lock`, `poetry.lock` and the like.
    pub path: String,
    /// The id of its text: changes with the same have the same packages.
    pub blob: String,
}

/// What a change is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Facts {
    /// Python source outside of tests, vendored and generated files.
    pub source: Lines,
    /// Of it the lines that hold code, in files whose syntax trees differ: no docstrings, comments, blank lines. A line that
    /// only moved within its file is none of them.
    pub substance: Lines,
    /// Tests in Python.
    pub tests: Lines,
    /// The rest: data, documentation, generated and vendored files, scripts.
    pub other: Lines,
    /// Definitions of the source.
    pub definitions: Definitions,
    /// Test functions that are new.
    pub tests_added: u32,
    /// Test functions that changed.
    pub tests_changed: u32,
    /// What its tests need.
    pub needs: Needs,
    /// Files of native code.
    pub native: Vec<String>,
    /// Files that say which packages are needed.
    pub dependencies: Vec<String>,
    /// Files of its tree that pin the resolved packages; none where packages are only asked for.
    #[serde(default)]
    pub locks: Vec<PackageLock>,
    /// A guess of the area.
    pub area: Guess<Area>,
    /// A guess of the kind.
    pub kind: Guess<Kind>,
    /// What its tests check.
    pub checks: Checks,
    /// Whether golden can be made hollow.
    pub hollow: Hollowable,
    /// Python files that do not parse, with where.
    pub unparsed: Vec<String>,
}

/// One part of a score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScorePart {
    /// Its name.
    pub name: String,
    /// What it adds to the score.
    pub points: i32,
    /// What it was made from.
    pub why: String,
}

/// What a forge says of a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pull {
    /// Its page.
    pub url: String,
    /// Its title.
    pub title: String,
    /// Its description, cut where it is very long.
    pub body: String,
    /// Its labels.
    pub labels: Vec<String>,
}

/// What was asked of a forge, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PullsRead {
    /// `owner/name`.
    pub repository: String,
    /// Candidates whose pull request is known.
    pub known: u32,
    /// Numbers that are no pull request there.
    pub absent: u32,
    /// Why not all were read, and what to do next.
    pub stopped: Option<String>,
}

/// A merged change that may become a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Candidate {
    /// The commit.
    pub commit: String,
    /// Its first parent.
    pub base: String,
    /// `#12` of GitHub, `!12` of GitLab.
    pub number: Option<String>,
    /// Date of its author, ISO 8601.
    pub date: String,
    /// Its title, without numbers.
    pub title: String,
    /// Other commits of the same change.
    pub also: Vec<AlsoAt>,
    /// What GitHub says of its pull request, where it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull: Option<Pull>,
    /// What it is made of.
    pub facts: Facts,
    /// The sum of the parts.
    pub score: i32,
    /// The parts.
    pub parts: Vec<ScorePart>,
}

/// What `infradev curate --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurationDocument {
    /// Version of this document's format.
    pub schema: u32,
    /// The revisions read, with the commit of each.
    pub revisions: BTreeMap<String, String>,
    /// Commits read.
    pub commits: u32,
    /// Distinct numbers of pull and merge requests among them.
    pub numbers: u32,
    /// Candidates, the best first; with `--want`, those chosen.
    pub candidates: Vec<Candidate>,
    /// How many commits were left out, by reason.
    pub left_out: BTreeMap<LeftOutBecause, u32>,
    /// Those left out for a revert or as a duplicate, each with the commit that is why.
    pub related: Vec<LeftOut>,
    /// What `--want` asked for and the history does not have.
    pub missing: Vec<String>,
    /// What GitHub was asked, where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pulls: Option<PullsRead>,
}
