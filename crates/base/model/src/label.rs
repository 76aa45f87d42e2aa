//! Labels of errors: the paper's taxonomy (appendix D), and people's own labels in a file that is kept.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::format::{self, FormatError};

/// The schema version of a file of people's labels.
pub const LABELS_SCHEMA: u32 = 1;

/// The three classes of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// It does not fit the program around it.
    Structural,
    /// It runs and fits, and does not behave as promised.
    Behavioural,
    /// It runs and fits, and computes wrong values.
    Numerical,
}

impl ErrorClass {
    /// The word as it stands in tables.
    pub fn word(self) -> &'static str {
        match self {
            ErrorClass::Structural => "structural",
            ErrorClass::Behavioural => "behavioural",
            ErrorClass::Numerical => "numerical",
        }
    }
}

/// What is wrong, by the property that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Label {
    /// It does not run: an exception, a crash, a name or argument that is not there, a test file that is not collected.
    #[serde(rename = "structural/execution")]
    Execution,
    /// Shape, layout or type of a tensor.
    #[serde(rename = "structural/shape")]
    Shape,
    /// Persistent state, or the life of a CUDA graph.
    #[serde(rename = "structural/state")]
    State,
    /// It takes more memory than promised.
    #[serde(rename = "behavioural/memory")]
    Memory,
    /// It takes more time than promised.
    #[serde(rename = "behavioural/speed")]
    Speed,
    /// It moves more bytes than promised.
    #[serde(rename = "behavioural/traffic")]
    Traffic,
    /// It hangs.
    #[serde(rename = "behavioural/liveness")]
    Liveness,
    /// Wrong in one mode.
    #[serde(rename = "behavioural/mode")]
    Mode,
    /// Wrong at a boundary.
    #[serde(rename = "behavioural/boundary")]
    Boundary,
    /// Wrong where it should fall back.
    #[serde(rename = "behavioural/fallback")]
    Fallback,
    /// An error that should be raised is not, or another is.
    #[serde(rename = "behavioural/error_path")]
    ErrorPath,
    /// Wrong under some condition; which kind of condition is not told.
    #[serde(rename = "behavioural/condition")]
    Condition,
    /// A wrong algorithm.
    #[serde(rename = "numerical/wrong_algorithm")]
    WrongAlgorithm,
    /// Right logic, too little precision: given only where the case's exact inputs pass.
    #[serde(rename = "numerical/precision")]
    Precision,
    /// Wrong values; nothing tells a wrong algorithm from too little precision.
    #[serde(rename = "numerical/undetermined")]
    Undetermined,
}

impl Label {
    /// All of them, in the taxonomy's order.
    pub const ALL: [Label; 15] = [
        Label::Execution,
        Label::Shape,
        Label::State,
        Label::Memory,
        Label::Speed,
        Label::Traffic,
        Label::Liveness,
        Label::Mode,
        Label::Boundary,
        Label::Fallback,
        Label::ErrorPath,
        Label::Condition,
        Label::WrongAlgorithm,
        Label::Precision,
        Label::Undetermined,
    ];

    /// The label as files and tables have it.
    pub fn word(self) -> &'static str {
        match self {
            Label::Execution => "structural/execution",
            Label::Shape => "structural/shape",
            Label::State => "structural/state",
            Label::Memory => "behavioural/memory",
            Label::Speed => "behavioural/speed",
            Label::Traffic => "behavioural/traffic",
            Label::Liveness => "behavioural/liveness",
            Label::Mode => "behavioural/mode",
            Label::Boundary => "behavioural/boundary",
            Label::Fallback => "behavioural/fallback",
            Label::ErrorPath => "behavioural/error_path",
            Label::Condition => "behavioural/condition",
            Label::WrongAlgorithm => "numerical/wrong_algorithm",
            Label::Precision => "numerical/precision",
            Label::Undetermined => "numerical/undetermined",
        }
    }

    /// Its class.
    pub fn class(self) -> ErrorClass {
        match self {
            Label::Execution | Label::Shape | Label::State => ErrorClass::Structural,
            Label::WrongAlgorithm | Label::Precision | Label::Undetermined => ErrorClass::Numerical,
            _ => ErrorClass::Behavioural,
        }
    }

    /// Whether it is about a resource: memory, speed, traffic, liveness.
    pub fn is_resource(self) -> bool {
        matches!(self, Label::Memory | Label::Speed | Label::Traffic | Label::Liveness)
    }

    /// Whether it is about a condition: mode, boundary, fallback, error path.
    pub fn is_conditional(self) -> bool {
        self.class() == ErrorClass::Behavioural && !self.is_resource()
    }
}

/// Who gave a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LabelledBy {
    /// A rule.
    Rule,
    /// An agent, where rules left the case open, in a file of labels.
    Agent,
    /// A person, in a file of labels.
    Person,
}

impl LabelledBy {
    /// The word as it stands in tables.
    pub fn word(self) -> &'static str {
        match self {
            LabelledBy::Rule => "rule",
            LabelledBy::Agent => "agent",
            LabelledBy::Person => "person",
        }
    }
}

/// A label with what it rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Labelled {
    /// The label; none where no rule fits.
    pub label: Option<Label>,
    /// Who gave it.
    pub by: LabelledBy,
    /// The rule's name, the agent's or the person's.
    pub rule: String,
    /// What it rests on, in a sentence.
    pub evidence: String,
    /// The rules' own label, where an agent or a person gave another or the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ruled: Option<Label>,
}

impl Labelled {
    /// Whether rules left it open: no label, or wrong values of which nothing tells more.
    pub fn is_open(&self) -> bool {
        self.by == LabelledBy::Rule && matches!(self.label, None | Some(Label::Undetermined))
    }

    /// Why an agent may not give a case this label; none where it may. What rules know stays: of wrong values that they are
    /// values, and that exact inputs alone show too little precision.
    pub fn refuses(&self, label: Label) -> Option<&'static str> {
        match (self.label, label) {
            _ if !self.is_open() => Some("rules or a person gave it a label"),
            (_, Label::Precision) => {
                Some("`numerical/precision` is given only where the case's exact inputs pass")
            }
            (Some(Label::Undetermined), Label::WrongAlgorithm) | (None, _) => None,
            _ => Some("its values are wrong: `numerical/wrong_algorithm`, or no answer"),
        }
    }
}

/// A file of labels, `labels.toml`: people's, which win over rules, and agents', which stand where rules left a case open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LabelFile {
    /// Version of this file's format.
    pub schema: u32,
    /// The labels.
    #[serde(default, rename = "label")]
    pub labels: Vec<GivenLabel>,
}

/// A person's or an agent's label of one failing case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GivenLabel {
    /// The task's id.
    pub task: String,
    /// The submission's name.
    pub submission: String,
    /// The case: its id, or for a probe the name that a public report gives it.
    pub case: String,
    /// The world size; all at which it fails where left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub world: Option<u32>,
    /// The label.
    pub label: Label,
    /// Why.
    pub why: String,
    /// Who says so.
    pub by: String,
    /// Whether that is an agent: its label is below one that a rule is sure of, and below each person's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub agent: bool,
}

impl LabelFile {
    /// Parses and checks a file of labels.
    ///
    /// # Errors
    /// What names file, line and key: an unknown key or label, a label without a reason or a name, two of one case by people, or
    /// by agents.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<LabelFile, FormatError> {
        let labels: LabelFile = format::toml(file, bytes)?;
        let text = format::utf8(file, bytes)?;
        format::schema(file, labels.schema, LABELS_SCHEMA).map_err(|error| error.locate(text))?;
        for (at, label) in labels.labels.iter().enumerate() {
            let refuse = |key: &str, what: String| {
                let error = FormatError::new(file, Some(&format!("label.{key}")), what);
                Err(FormatError { line: line_of(text, at), ..error })
            };
            for (key, value) in [("why", &label.why), ("by", &label.by)] {
                if value.trim().is_empty() {
                    return refuse(key, "is empty: a label says why, and who says so".into());
                }
            }
            let same = |other: &&GivenLabel| {
                let worlds = other.world.is_none() || label.world.is_none() || other.world == label.world;
                (&other.task, &other.submission, &other.case) == (&label.task, &label.submission, &label.case)
                    && worlds
                    && other.agent == label.agent
            };
            if labels.labels[..at].iter().any(|other| same(&other)) {
                return refuse("case", format!("`{}` has a label above already", label.case));
            }
        }
        Ok(labels)
    }

    /// The text of a file with more labels at its end: what stands in it stays as it was written. An empty text is a new file.
    ///
    /// # Errors
    /// A label that TOML cannot hold.
    pub fn appended(text: &str, more: &[GivenLabel]) -> Result<String, toml::ser::Error> {
        let mut text = match text.trim().is_empty() {
            true => format!("schema = {LABELS_SCHEMA}\n"),
            false => text.to_owned(),
        };
        for label in more {
            let end = if text.ends_with('\n') { "" } else { "\n" };
            text = format!("{text}{end}\n[[label]]\n{}", toml::to_string(label)?);
        }
        Ok(text)
    }

    /// Refuses the entry at this place of the file that was read.
    pub fn refuse(file: &str, text: &str, at: usize, what: String) -> FormatError {
        let error = FormatError::new(file, Some("label.case"), what);
        FormatError { line: line_of(text, at), ..error }
            .advise("take the label out, or give the run that has the case")
    }
}

/// The line on which the entry at this place begins, counted from 1.
fn line_of(text: &str, at: usize) -> Option<usize> {
    let starts = text.lines().enumerate().filter(|(_, line)| {
        let line: String = line.chars().filter(|c| !c.is_whitespace()).collect();
        line.starts_with("[[label]]")
    });
    starts.map(|(line, _)| line + 1).nth(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = "[[label]]\ntask = 't'\nsubmission = 's'\ncase = 'c'\nlabel = 'structural/state'\nwhy = 'w'\nby = 'b'\n";

    fn refusal(text: &str) -> String {
        let error = LabelFile::parse("labels.toml", text.as_bytes()).unwrap_err();
        format!("{error} [{}]", error.hint.clone().unwrap_or_default())
    }

    #[test]
    fn each_label_is_written_as_it_is_said_and_all_are_listed() {
        for label in Label::ALL {
            assert_eq!(serde_json::to_value(label).unwrap(), label.word());
            assert!(label.word().starts_with(label.class().word()));
        }
        assert_eq!(Label::ALL.iter().filter(|label| label.is_resource()).count(), 4);
        assert_eq!(Label::ALL.iter().filter(|label| label.is_conditional()).count(), 5);
    }

    fn labelled(by: LabelledBy, label: Option<Label>) -> Labelled {
        Labelled { label, by, rule: String::new(), evidence: String::new(), ruled: None }
    }

    #[test]
    fn an_agent_may_label_what_rules_left_open_and_never_precision() {
        let rule = |label| labelled(LabelledBy::Rule, label);
        let may = |labelled: &Labelled| -> Vec<Label> {
            Label::ALL.into_iter().filter(|label| labelled.refuses(*label).is_none()).collect()
        };
        let all_but_precision: Vec<Label> =
            Label::ALL.into_iter().filter(|label| *label != Label::Precision).collect();
        assert_eq!(may(&rule(None)), all_but_precision);
        assert_eq!(may(&rule(Some(Label::Undetermined))), [Label::WrongAlgorithm]);
        assert_eq!(may(&rule(Some(Label::State))), []);
        assert_eq!(may(&labelled(LabelledBy::Person, Some(Label::Undetermined))), []);
        assert_eq!(may(&labelled(LabelledBy::Agent, Some(Label::Undetermined))), []);
    }

    #[test]
    fn what_is_appended_is_read_back_and_leaves_what_stands_as_it_was_written() {
        let given = |case: &str| GivenLabel {
            task: "t".into(),
            submission: "s".into(),
            case: case.into(),
            world: Some(2),
            label: Label::State,
            why: "it says \"no\"\\ \u{1b}[2J ''' \"\"\" = [x]".into(),
            by: "command 1".into(),
            agent: true,
        };
        let new = LabelFile::appended("", &[given("a"), given("[[label]]")]).unwrap();
        let read = LabelFile::parse("labels.toml", new.as_bytes()).unwrap();
        assert_eq!(read.labels, [given("a"), given("[[label]]")]);
        // Of one case a person and an agent may each say something, and the file need not end with a line's end.
        let mine = format!("# mine\nschema = 1\n{}", ENTRY.trim_end());
        let both = LabelFile::appended(&mine, &[GivenLabel { world: None, ..given("c") }]).unwrap();
        assert!(both.starts_with(&mine), "{both}");
        let read = LabelFile::parse("labels.toml", both.as_bytes()).unwrap();
        assert_eq!(read.labels.iter().map(|label| label.agent).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn what_is_wrong_with_a_file_of_labels_is_named_by_line_and_key() {
        let file = format!("schema = 1\n{ENTRY}");
        assert_eq!(LabelFile::parse("labels.toml", file.as_bytes()).unwrap().labels.len(), 1);
        insta::assert_snapshot!(
            [
                file.replace("schema = 1", "schema = 2"),
                file.replace("structural/state", "structural/stat"),
                file.replace("why = 'w'", "why = ''"),
                file.replace("by = 'b'", "who = 'b'"),
                format!("{file}\n{ENTRY}"),
            ]
            .map(|text| refusal(&text))
            .join("\n")
        );
    }
}
