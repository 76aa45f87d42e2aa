//! What a public report shows of a probe: neither its name nor its words.

use infradev_model::{Analysis, CaseError, Digest, LabelledBy, Suite, TraitOf};

/// Digits of a digest that stands for a name.
const DIGITS: usize = 8;

/// The name that a public report gives a case: an official one's own; of a probe's id the digest, the same in each run. One that
/// has this name already keeps it.
pub fn public_name(case: &CaseError) -> String {
    // An id of a probe has its file and function.
    if case.suite == Suite::Official || !case.case.contains("::") {
        return case.case.clone();
    }
    format!("probe-{}", digest(&case.case))
}

fn digest(text: &str) -> String {
    Digest::of(text.as_bytes()).as_str()[..DIGITS].to_owned()
}

/// The analysis without what would tell of probes: names, messages, frames and traits of their cases. What is shown of official
/// tests, of verdicts and of labels is the same.
pub(crate) fn public(mut analysis: Analysis) -> Analysis {
    analysis.sealed = false;
    for case in &mut analysis.cases {
        // The text of official tests is sealed; what they say when they fail is not.
        case.assertion = None;
        if case.suite != Suite::Probe {
            continue;
        }
        case.case = public_name(case);
        case.signature = digest(&case.signature);
        (case.exception, case.message, case.at) = (String::new(), String::new(), None);
        case.traits = Vec::new();
        case.label.evidence = match case.label.by {
            LabelledBy::Rule => format!("by the rule {}", case.label.rule),
            LabelledBy::Agent => "by an agent".to_owned(),
            LabelledBy::Person => "by a person".to_owned(),
        };
    }
    for group in analysis.groups.iter_mut().filter(|group| group.suite == Suite::Probe) {
        group.signature = digest(&group.signature);
        group.file = None;
    }
    analysis.figures.traits.retain(|row| row.of == TraitOf::Task);
    analysis
}
