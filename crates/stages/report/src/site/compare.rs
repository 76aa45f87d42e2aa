//! Two runs of the same submissions side by side.

use std::collections::BTreeMap;

use askama::Template;
use infradev_model::{AnalysedSubmission, Analysis, Figures, Paired};

use super::frame::{Frame, verdict};
use super::{Site, SiteError, submission_page, task_page};
use crate::table::Table;

#[derive(Template)]
#[template(path = "site/compare.html")]
struct Compare {
    frame: Frame,
    told: String,
    parts: Vec<Part>,
    paired: Vec<Table>,
}

/// Submissions that changed, or those that did not.
struct Part {
    title: &'static str,
    open: bool,
    rows: Vec<Row>,
}

struct Row {
    submission: String,
    task: String,
    task_page: String,
    first: Linked,
    second: Linked,
    change: &'static str,
    tone: &'static str,
}

/// A verdict with the page that says why.
struct Linked {
    page: String,
    verdict: &'static str,
    tone: &'static str,
}

fn linked(submission: &AnalysedSubmission) -> Linked {
    let (verdict, tone) = verdict(submission);
    Linked { page: submission_page(submission), verdict, tone }
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

/// Each arm of the first run with the same of the second.
fn between(analysis: &Analysis, first: &str, second: &str) -> Figures {
    let (first, second) = (format!(" @ {first}"), format!(" @ {second}"));
    let same = |pair: &&Paired| {
        let one = pair.one.strip_suffix(&first);
        one.is_some() && one == pair.other.strip_suffix(&second)
    };
    let named = |pair: &Paired| Paired {
        one: pair.one.replace(&first, " (first)"),
        other: pair.other.replace(&second, " (second)"),
        ..pair.clone()
    };
    let paired = analysis.figures.paired.iter().filter(same).map(named).collect();
    Figures { paired, ..Figures::default() }
}

impl Site {
    pub(super) fn compare(&self) -> Result<String, SiteError> {
        let shared = shared(&self.analysis);
        let (one, other) =
            shared.first().map(|(one, other)| (one.run.as_str(), other.run.as_str())).unwrap_or_default();
        let resolved = |submission: &AnalysedSubmission| verdict(submission).0 == "resolved";
        let mut counts = [0_u32; 4];
        let (mut changed, mut same) = (Vec::new(), Vec::new());
        for (first, second) in &shared {
            let (at, change, tone) = match (resolved(first), resolved(second)) {
                (true, true) => (0, "same", "apart"),
                (true, false) => (1, "lost", "bad"),
                (false, true) => (2, "gained", "good"),
                (false, false) if verdict(first).0 == verdict(second).0 => (3, "same", "apart"),
                (false, false) => (3, "otherwise", "apart"),
            };
            if let Some(count) = counts.get_mut(at) {
                *count += 1;
            }
            let row = Row {
                submission: first.submission.clone(),
                task: first.task.clone(),
                task_page: task_page(&first.task),
                first: linked(first),
                second: linked(second),
                change,
                tone,
            };
            if change == "same" { same.push(row) } else { changed.push(row) }
        }
        changed.sort_by_key(|row| row.change);
        let parts = vec![
            Part { title: "Submissions with another verdict", open: true, rows: changed },
            Part { title: "Submissions with the same verdict", open: false, rows: same },
        ];
        let [both, lost, gained, neither] = counts;
        let paired =
            crate::tables::paired(&between(&self.analysis, one, other), crate::tables::Extent::Whole);
        let paired = Some(paired).filter(|table| !table.rows.is_empty()).into_iter().collect();
        let told = format!(
            "First: {one}. Second: {other}. Of {} submissions in both, {both} are resolved in both, {lost} in the first alone, \
             {gained} in the second alone, {neither} in neither.",
            shared.len()
        );
        Ok(Compare { frame: self.frame("Runs compared", ""), told, parts, paired }.render()?)
    }
}
