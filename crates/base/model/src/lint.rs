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
    /// A statement of a body of golden's stands in the text, however it is spelled.
    BodyLine,
    /// A number or a message of a body of golden's stands in the text, however it is spelled.
    Constant,
    /// A name that golden chose for itself stands in the text.
    PrivateName,
    /// So many tokens of golden's code stand in the text in a row.
    LongNgram,
    /// So many words of golden's comments or docstrings stand in the text in a row.
    Prose,
    /// An algorithm, a data structure or a protocol that golden uses is named in the text.
    Algorithm,
    /// An `[[allow]]` of the contract allows nothing that stands in the text, or more than one passage.
    Allowance,
    /// An official test or a probe is not valid Python, so that what it touches is not known.
    Unread,
}

impl ContractRule {
    /// All of them.
    pub const ALL: [ContractRule; 12] = [
        ContractRule::Missing,
        ContractRule::Untouched,
        ContractRule::Unknown,
        ContractRule::Signature,
        ContractRule::BodyLine,
        ContractRule::Constant,
        ContractRule::PrivateName,
        ContractRule::LongNgram,
        ContractRule::Prose,
        ContractRule::Algorithm,
        ContractRule::Allowance,
        ContractRule::Unread,
    ];

    /// Its name as files and `--json` have it.
    pub fn name(self) -> &'static str {
        match self {
            ContractRule::Missing => "missing",
            ContractRule::Untouched => "untouched",
            ContractRule::Unknown => "unknown",
            ContractRule::Signature => "signature",
            ContractRule::BodyLine => "body-line",
            ContractRule::Constant => "constant",
            ContractRule::PrivateName => "private-name",
            ContractRule::LongNgram => "long-ngram",
            ContractRule::Prose => "prose",
            ContractRule::Algorithm => "algorithm",
            ContractRule::Allowance => "allowance",
            ContractRule::Unread => "unread",
        }
    }

    /// Whether it looks for golden in the text that an agent reads, so that an author may allow what it finds.
    pub fn is_leak(self) -> bool {
        self.advice().is_some()
    }

    /// What an author does about golden's own in the text.
    fn advice(self) -> Option<&'static str> {
        match self {
            ContractRule::BodyLine | ContractRule::LongNgram => {
                Some("say what has to come out, not how golden computes it")
            }
            ContractRule::Constant => Some("say what it is for, and leave it to the reader"),
            ContractRule::PrivateName => Some("say what it is in other words, or list it if tests touch it"),
            ContractRule::Prose => Some("say what a caller has to know in words of your own"),
            ContractRule::Algorithm => Some("say what has to come out, not by which method"),
            _ => None,
        }
    }
}

/// A line of golden's tree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct GoldenLine {
    /// Path in golden's tree.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

impl std::fmt::Display for GoldenLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
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
    /// What stands in the text, as it is spelled there; only of what repeats golden.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passage: Option<String>,
    /// Where golden has it; only of what repeats golden.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub golden: Option<GoldenLine>,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl ContractFinding {
    /// A finding on the contract itself.
    pub fn new(file: &str, line: u32, rule: ContractRule, what: String) -> ContractFinding {
        ContractFinding { file: file.to_owned(), line, rule, what, passage: None, golden: None, hint: None }
    }

    /// A finding on a passage that repeats golden; `is` says what of golden's it is, such as `a number of golden's code`.
    pub fn leak(
        file: &str,
        line: u32,
        rule: ContractRule,
        is: &str,
        passage: &str,
        golden: GoldenLine,
    ) -> ContractFinding {
        let hint = rule.advice().map(|advice| {
            format!(
                "{advice}; or let it stand with an [[allow]] of rule = \"{}\" in contract.toml",
                rule.name()
            )
        });
        ContractFinding {
            what: format!("{is}: `{passage}` ({golden})"),
            passage: Some(passage.to_owned()),
            golden: Some(golden),
            hint,
            ..ContractFinding::new(file, line, rule, String::new())
        }
    }
}

impl std::fmt::Display for ContractFinding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.what)
    }
}

/// A passage of golden's that the contract lets stand.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct AllowedPassage {
    /// A file of the task.
    pub file: String,
    /// Its line, from 1.
    pub line: u32,
    /// The rule that finds it.
    pub rule: ContractRule,
    /// What stands there.
    pub text: String,
    /// Why a reader may have it.
    pub why: String,
}

impl std::fmt::Display for AllowedPassage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let AllowedPassage { file, line, rule, text, why } = self;
        write!(f, "{file}:{line}: allowed of the rule {}: `{text}`, because: {why}", rule.name())
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
    /// What of golden's the contract lets stand.
    #[serde(default)]
    pub allowed: Vec<AllowedPassage>,
    /// What is wrong.
    pub findings: Vec<ContractFinding>,
    /// Files that could not be read as Python, with the reason; of the official tests and the probes each is a finding, too.
    pub unread: Vec<String>,
}
