//! Labels of a file: people's, which win over rules, with how far both agree, and agents', where rules left a case open.

use infradev_model::{Agreement, CaseError, FormatError, GivenLabel, Label, LabelFile, Labelled, LabelledBy};

use crate::shown::public_name;
use crate::statistics::kappa;

/// A file of labels as it was read.
#[derive(Debug, Clone)]
pub struct PeoplesLabels {
    file: String,
    text: String,
    labels: LabelFile,
}

impl PeoplesLabels {
    /// Parses and checks a file of labels, named as the person named it.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<PeoplesLabels, FormatError> {
        let labels = LabelFile::parse(file, bytes)?;
        Ok(PeoplesLabels { file: file.to_owned(), text: String::from_utf8_lossy(bytes).into_owned(), labels })
    }

    /// Puts each label on its cases: a person's on whatever stands there, an agent's where neither a person nor a rule knows.
    ///
    /// # Errors
    /// A label whose case does not fail, or is not there.
    pub(crate) fn apply(&self, cases: &mut [CaseError]) -> Result<(), FormatError> {
        for (at, given) in self.labels.labels.iter().enumerate() {
            let mut meant = cases.iter_mut().filter(|case| is_meant(given, case)).peekable();
            if meant.peek().is_none() {
                let world = given.world.map(|world| format!(" at world size {world}")).unwrap_or_default();
                let what = format!(
                    "`{}` of {} on {}{world} is no failing case of these runs",
                    given.case, given.submission, given.task
                );
                return Err(LabelFile::refuse(&self.file, &self.text, at, what));
            }
            for case in meant {
                if !given.agent {
                    put(case, given, LabelledBy::Person);
                } else if case.label.refuses(given.label).is_none() {
                    put(case, given, LabelledBy::Agent);
                }
            }
        }
        Ok(())
    }
}

fn put(case: &mut CaseError, given: &GivenLabel, by: LabelledBy) {
    let ruled = if case.label.by == LabelledBy::Rule { case.label.label } else { case.label.ruled };
    case.label =
        Labelled { label: Some(given.label), by, rule: given.by.clone(), evidence: given.why.clone(), ruled };
}

fn is_meant(given: &GivenLabel, case: &CaseError) -> bool {
    (&given.task, &given.submission) == (&case.task, &case.submission)
        && given.world.is_none_or(|world| world == case.world)
        && (given.case == case.case || given.case == public_name(case))
}

/// How far rules and people agree, where people gave labels.
pub(crate) fn agreement(cases: &[CaseError]) -> Option<Agreement> {
    let by_person = cases.iter().filter(|case| case.label.by == LabelledBy::Person);
    let pairs: Vec<(Label, Label)> =
        by_person.filter_map(|case| Some((case.label.ruled?, case.label.label?))).collect();
    let same = pairs.iter().filter(|(rule, person)| rule == person).count();
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    (!pairs.is_empty()).then(|| Agreement {
        cases: number(pairs.len()),
        same: number(same),
        kappa: kappa(&pairs),
    })
}
