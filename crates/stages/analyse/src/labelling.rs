//! Rules that label a failing case by the paper's taxonomy (appendix D): exceptions, crashes and what is not collected are
//! structural, what hangs is a question of liveness, all else goes by the property that the failing assertion checks.

use infradev_model::{
    Detail, Judgement, Label, Labelled, LabelledBy, Outcome, Property, RankOutcome, Rejection, Word,
};

use crate::messages::{self, About};

/// What is known of a failing case.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// The case's id.
    pub case: &'a str,
    /// The merged word.
    pub word: Word,
    /// The entry of the rank at fault: of a probe, the rank of the world that failed, where one did.
    pub culprit: Option<&'a RankOutcome>,
    /// What the judge kept, of a probe whose trial's record is there.
    pub judgement: Option<&'a Judgement>,
    /// What the failing official assertion checks, where its syntax tree was read.
    pub asserted: Option<Property>,
    /// Whether the same case passes on inputs on which the right algorithm is exact, where that was tried.
    pub exact_passes: Option<bool>,
}

impl Seen<'_> {
    /// The label, with the rule that gave it and what it rests on.
    pub fn label(&self) -> Labelled {
        let (rule, label, evidence) = match (self.judgement, self.word) {
            (Some(judgement), _) => self.judged(judgement),
            (None, Word::Missing) => {
                let what = "golden's run has the case and this one does not collect it";
                ("collection", Some(Label::Execution), what.to_owned())
            }
            (None, Word::Skipped) => ("skipped", None, "a rank skips what golden runs".to_owned()),
            (None, _) => self.raised(),
        };
        Labelled { label, by: LabelledBy::Rule, rule: rule.to_owned(), evidence, ruled: None }
    }

    fn judged(&self, judgement: &Judgement) -> Ruled {
        match judgement.rejection {
            Some(Rejection::Substantive) => self.declared(judgement),
            Some(Rejection::Trivial | Rejection::Broken) => self.raised(),
            None => {
                let what = self.detail().map_or(self.word.word(), |detail| detail.exception.as_str());
                ("judge", None, format!("the judge ended by itself: {what}"))
            }
        }
    }

    /// A probe whose assertion failed: by the property that it declares.
    fn declared(&self, judgement: &Judgement) -> Ruled {
        let failed = judgement.expectations.iter().rev().find(|made| !made.ok);
        let kind = failed.map_or("", |made| made.kind.as_str());
        let said = format!("the probe checks {}, and its expectation `{kind}` failed", judgement.checks);
        match failed.and_then(|made| messages::expectation(made, &judgement.checks)) {
            Some((About::Label(label), why)) => {
                return ("probe-expects", Some(label), format!("{said}: {why}"));
            }
            Some((About::Numbers, why)) => {
                return self.numerical("probe-expects", false, format!("{said}: {why}"));
            }
            None => {}
        }
        let label = match judgement.checks.as_str() {
            "numbers" | "precision" => {
                let whole = failed.is_some_and(|made| messages::whole(&made.expected));
                return self.numerical("probe-declares", kind == "equal" && whole, said);
            }
            "shape" => Label::Shape,
            "state" => Label::State,
            "memory" => Label::Memory,
            "traffic" => Label::Traffic,
            "time" => Label::Speed,
            "liveness" => Label::Liveness,
            "error" => Label::ErrorPath,
            "condition" => condition(&judgement.traits),
            _ => return ("probe-declares", None, said),
        };
        ("probe-declares", Some(label), said)
    }

    /// Wrong values: too little precision only where exact inputs pass, a wrong algorithm where they fail.
    fn numerical(&self, rule: &'static str, exactly: bool, said: String) -> Ruled {
        let (label, more) = match (self.exact_passes, exactly) {
            (Some(true), _) => (Label::Precision, "; the case's exact inputs pass"),
            (Some(false), _) => (Label::WrongAlgorithm, "; the case's exact inputs fail too"),
            (None, true) => (Label::WrongAlgorithm, "; what it compares is exact"),
            (None, false) => (Label::Undetermined, "; no exact inputs were tried"),
        };
        (rule, Some(label), said + more)
    }

    /// What a rank raised, or what ended it.
    fn raised(&self) -> Ruled {
        let Some(culprit) = self.culprit else {
            return ("none", None, format!("{}, and no rank says more", self.word.word()));
        };
        let empty = Detail::default();
        let detail = culprit.detail.as_deref().unwrap_or(&empty);
        match culprit.outcome {
            Outcome::Crashed => (
                "crash",
                Some(Label::Execution),
                format!("the process ended by {}", named(&detail.exception)),
            ),
            Outcome::Timeout => {
                ("hang", Some(Label::Liveness), "no answer within the case's time".to_owned())
            }
            Outcome::NotCollected => {
                ("collection", Some(Label::Execution), format!("not collected: {}", named(&detail.exception)))
            }
            Outcome::Xpassed | Outcome::Xfailed => {
                ("none", None, format!("it {} where golden passes", culprit.outcome.word()))
            }
            _ if self.is_assertion(detail) => self.asserted(detail),
            _ => messages::exception(detail),
        }
    }

    /// Whether what stopped the case is an assertion of its test.
    pub fn stopped_by_assertion(&self) -> bool {
        self.detail().is_some_and(|detail| self.is_assertion(detail))
    }

    /// An assertion of the test's. One of the repository's own code is an exception like any other.
    fn is_assertion(&self, detail: &Detail) -> bool {
        let name = detail.exception.rsplit('.').next().unwrap_or_default();
        let by_test = detail.file.as_deref().is_none_or(|file| self.is_test(file));
        by_test && matches!(name, "AssertionError" | "Failed" | "ExpectationFailed")
    }

    fn is_test(&self, file: &str) -> bool {
        let folder = |path: &str| path.split('/').next().unwrap_or_default().to_owned();
        let own = self.case.split("::").next().unwrap_or_default();
        let name = file.rsplit('/').next().unwrap_or_default();
        file == own || folder(file) == folder(own) || name.starts_with("test_") || name == "conftest.py"
    }

    fn asserted(&self, detail: &Detail) -> Ruled {
        let message = messages::assertion(detail);
        let Some(property) = self.asserted else {
            return match message {
                Some((Label::Undetermined, said)) => self.numerical("assertion-message", false, said),
                Some((label, said)) => ("assertion-message", Some(label), said),
                None => ("assertion-message", None, "its message does not say what it checks".to_owned()),
            };
        };
        let said = format!("the failing assertion checks {}", checked(property));
        match (property, message) {
            // A comparison of tensors looks at their shapes first, and only its message tells where it stopped.
            (Property::Value, Some((Label::Shape, told))) => {
                ("assertion-property", Some(Label::Shape), format!("{said}, and {told}"))
            }
            (Property::Value, _) => self.numerical("assertion-property", messages::is_exact(detail), said),
            (property, _) => ("assertion-property", label_of(property), said),
        }
    }

    fn detail(&self) -> Option<&Detail> {
        self.culprit.and_then(|culprit| culprit.detail.as_deref())
    }
}

/// A property in the words of evidence.
fn checked(property: Property) -> &'static str {
    match property {
        Property::Value => "values",
        Property::ShapeOrDtype => "shape or type",
        Property::Exception => "an exception",
        Property::Condition => "a condition",
        Property::None => "nothing",
        Property::State | Property::Memory | Property::Time | Property::Traffic => property.word(),
    }
}

/// The label of what fails an assertion of this property; none for values, where precision decides.
fn label_of(property: Property) -> Option<Label> {
    match property {
        Property::Value | Property::None => None,
        Property::ShapeOrDtype => Some(Label::Shape),
        Property::Exception => Some(Label::ErrorPath),
        Property::State => Some(Label::State),
        Property::Condition => Some(Label::Condition),
        Property::Memory => Some(Label::Memory),
        Property::Time => Some(Label::Speed),
        Property::Traffic => Some(Label::Traffic),
    }
}

/// The rule, its label and what it rests on.
pub type Ruled = (&'static str, Option<Label>, String);

fn condition(traits: &[String]) -> Label {
    let has = |word: &str| traits.iter().any(|given| given.contains(word));
    match () {
        () if has("fallback") => Label::Fallback,
        () if has("boundary") => Label::Boundary,
        () if has("error") => Label::ErrorPath,
        () if has("mode") => Label::Mode,
        () => Label::Condition,
    }
}

fn named(exception: &str) -> &str {
    if exception.is_empty() { "something that no record names" } else { exception }
}
