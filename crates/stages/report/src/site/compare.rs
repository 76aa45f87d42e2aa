//! Two runs of the same submissions side by side.

use std::collections::BTreeMap;

use askama::Template;
use infradev_model::{AnalysedSubmission, Analysis};

use super::frame::{Frame, verdict};
use super::{Site, SiteError};
use crate::table::Table;

#[derive(Template)]
#[template(path = "site/compare.html")]
struct Compare {
    frame: Frame,
    told: String,
    tables: Vec<Table>,
}

pub(super) type Both<'a> = (&'a AnalysedSubmission, &'a AnalysedSubmission);

/// Submissions that the first two runs that share any have in common.
pub(super) fn shared(analysis: &Analysis) -> Vec<Both<'_>> {
    let mut seen: BTreeMap<(&str, &str), &AnalysedSubmission> = BTreeMap::new();
    let mut shared: Vec<Both<'_>> = Vec::new();
    for submission in &analysis.submissions {
        let key = (submission.task.as_str(), submission.submission.as_str());
        match seen.get(&key) {
            None => drop(seen.insert(key, submission)),
            Some(first) if first.run != submission.run => shared.push((first, submission)),
            Some(_) => {}
        }
    }
    let runs = shared.first().map(|(one, other)| (one.run.clone(), other.run.clone()));
    shared.retain(|(one, other)| {
        runs.as_ref().is_some_and(|runs| (&one.run, &other.run) == (&runs.0, &runs.1))
    });
    shared
}

impl Site {
    pub(super) fn compare(&self) -> Result<String, SiteError> {
        let shared = shared(&self.analysis);
        let (one, other) =
            shared.first().map(|(one, other)| (one.run.as_str(), other.run.as_str())).unwrap_or_default();
        let resolved = |submission: &AnalysedSubmission| verdict(submission).0 == "resolved";
        let mut counts = [0_u32; 4];
        let columns = ["submission", "task", "in the first", "in the second", "change"];
        let mut table = Table::new("compared", "Each submission in both runs", &columns);
        for (first, second) in &shared {
            let (at, change) = match (resolved(first), resolved(second)) {
                (true, true) => (0, "same"),
                (true, false) => (1, "lost"),
                (false, true) => (2, "gained"),
                (false, false) if verdict(first).0 == verdict(second).0 => (3, "same"),
                (false, false) => (3, "otherwise"),
            };
            if let Some(count) = counts.get_mut(at) {
                *count += 1;
            }
            let cells = [&first.submission, &first.task, verdict(first).0, verdict(second).0, change]
                .map(str::to_owned);
            table.rows.push(cells.to_vec());
        }
        let [both, lost, gained, neither] = counts;
        let paired = crate::tables::paired(&self.analysis.figures, crate::tables::Extent::Whole);
        let tables = [table, paired].into_iter().filter(|table| !table.rows.is_empty()).collect();
        let told = format!(
            "First: {one}. Second: {other}. Of {} submissions in both, {both} are resolved in both, {lost} in the first alone, \
             {gained} in the second alone, {neither} in neither.",
            shared.len()
        );
        Ok(Compare { frame: self.frame("Runs compared", ""), told, tables }.render()?)
    }
}
