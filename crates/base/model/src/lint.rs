//! What is wrong with a task's contract and specification.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::task::NameKind;

/// The schema version of `infradev contract … --json`.
pub const CONTRACT_SCHEMA: u32 = 1;

/// Which rule a finding breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ContractRule {
    /// A test touches a name of golden's that the contract does not list.
    Missing,
    /// The contract lists a name that no test touches, without `untested`; or one that is touched, with it.
    Untouched,
    /// Golden has no such name.
    Unknown,
    /// The listed signature is not golden's.
    Signature,
    /// A statement of a body of golden's stands in the text.
    BodyLine,
    /// A number or a message of a body of golden's stands in the text.
    Constant,
    /// A name that golden chose for itself stands in the text.
    PrivateName,
    /// So many tokens of golden's code stand in the text in a row.
    LongNgram,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct ContractFinding {
    /// A file of the task (`spec.md`, `contract.toml`, `probes/…`), or an official test's path in the tree.
    pub file: String,
    /// Its line, from 1.
    pub line: u32,
    /// The rule.
    pub rule: ContractRule,
    /// What is wrong, in one sentence.
    pub what: String,
}

impl std::fmt::Display for ContractFinding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.what)
    }
}

/// A name of golden's that tests touch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TouchedName {
    /// Its dotted name, as a test imports it where one does.
    pub name: String,
    /// What it is; `null` for a parameter of a function that base has, and for a key of a dictionary.
    pub kind: Option<NameKind>,
    /// The first place where it is touched.
    pub file: String,
    /// Its line, from 1.
    pub line: u32,
}

/// What `infradev contract lint --json` prints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContractDocument {
    /// Version of this document's format.
    pub schema: u32,
    /// The task's id.
    pub task: String,
    /// Names of golden's that official tests and observers touch.
    pub touched: Vec<TouchedName>,
    /// What is wrong.
    pub findings: Vec<ContractFinding>,
    /// Files that could not be read as Python, with the reason.
    pub unread: Vec<String>,
}
