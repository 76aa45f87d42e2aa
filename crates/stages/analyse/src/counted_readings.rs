//! Counts of what was read of patches and trajectories.

use std::collections::{BTreeMap, BTreeSet};

use infradev_model::{
    AnalysedSubmission, Label, Likeness, LikenessCount, OwnTestCount, Property, Reached, ResourceChecks,
    Standing, Tried, TriedCount,
};

use crate::figures::{Counted, number};
use crate::statistics::{median, proportion};

impl Counted<'_> {
    pub(crate) fn likeness(&self) -> Vec<LikenessCount> {
        let count = |arm: &str| {
            let mine: Vec<Likeness> = self.of_arm(arm).filter_map(|submission| submission.likeness).collect();
            let share = |part: u32, of: u32| if of == 0 { 0.0 } else { f64::from(part) / f64::from(of) };
            let telling = mine.iter().filter(|one| one.lines > 0);
            let lines: Vec<f64> = telling.map(|one| share(one.shared_lines, one.lines)).collect();
            let changing = mine.iter().filter(|one| one.own_files > 0);
            let precision: Vec<f64> = changing.map(|one| share(one.shared_files, one.own_files)).collect();
            let recall: Vec<f64> = mine.iter().map(|one| share(one.shared_files, one.files)).collect();
            Some(LikenessCount {
                arm: arm.to_owned(),
                submissions: number(mine.len()),
                most_lines: lines.iter().copied().reduce(f64::max),
                lines: median(lines),
                shingles: median(mine.iter().map(|one| one.shingles).collect())?,
                precision: mean(&precision),
                recall: mean(&recall),
            })
        };
        self.arms().into_iter().filter_map(count).collect()
    }

    pub(crate) fn own_tests(&self) -> Vec<OwnTestCount> {
        let all = own_tests("all", self.submissions.iter());
        let arms = self.arms().into_iter().filter_map(|arm| own_tests(arm, self.of_arm(arm)));
        all.into_iter().chain(arms).collect()
    }

    /// None where no scored submission's own tests were read.
    pub(crate) fn resource_checks(&self) -> Option<ResourceChecks> {
        let failed: BTreeSet<(&str, &str, &str)> = self
            .cases
            .iter()
            .filter(|case| case.label.label.is_some_and(Label::is_resource))
            .map(|case| (case.task.as_str(), case.run.as_str(), case.submission.as_str()))
            .collect();
        // By whether it fails such a check: those that check a resource themselves, and all.
        let mut found = [(0, 0); 2];
        for submission in self.submissions.iter().filter(|one| one.standing == Standing::Scored) {
            let Some(tests) = &submission.own_tests else { continue };
            let key = (submission.task.as_str(), submission.run.as_str(), submission.submission.as_str());
            let (own, of) = &mut found[usize::from(failed.contains(&key))];
            *own += u32::from(tests.resources().1 > 0);
            *of += 1;
        }
        let [others, failed] = found.map(|(own, of)| proportion(own, of));
        (failed.of + others.of > 0).then_some(ResourceChecks { failed, others })
    }

    pub(crate) fn tried(&self) -> Vec<TriedCount> {
        let mut counts = Vec::new();
        for arm in self.arms() {
            let traced: Vec<&Vec<Reached>> =
                self.of_arm(arm).filter_map(|submission| submission.tried.as_ref()).collect();
            if traced.is_empty() {
                continue;
            }
            counts.extend(Tried::ALL.map(|gate| {
                let reached: Vec<&Reached> =
                    traced.iter().filter_map(|all| all.iter().find(|one| one.gate == gate)).collect();
                TriedCount {
                    arm: arm.to_owned(),
                    gate,
                    reached: proportion(number(reached.len()), number(traced.len())),
                    tokens: median(reached.iter().filter_map(|one| Some(one.tokens? as f64)).collect()),
                    seconds: median(reached.iter().filter_map(|one| one.seconds).collect()),
                }
            }));
        }
        counts
    }

    fn of_arm(&self, arm: &str) -> impl Iterator<Item = &AnalysedSubmission> {
        self.submissions.iter().filter(move |submission| submission.arm == arm)
    }
}

fn own_tests<'a>(arm: &str, of: impl Iterator<Item = &'a AnalysedSubmission>) -> Option<OwnTestCount> {
    let mut counts: BTreeMap<Property, u64> = BTreeMap::new();
    let (mut submissions, mut with_tests, mut all, mut resources) = (0, 0, 0, 0);
    for tests in of.filter_map(|submission| submission.own_tests.as_ref()) {
        let (own, checking) = tests.resources();
        submissions += 1;
        with_tests += u32::from(own > 0);
        (all, resources) = (all + own, resources + checking);
        for (property, count) in tests.counted() {
            *counts.entry(*property).or_default() += count;
        }
    }
    let bounded = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    (submissions > 0).then(|| OwnTestCount {
        arm: arm.to_owned(),
        submissions,
        with_tests,
        counts,
        resources: proportion(bounded(resources), bounded(all)),
    })
}

fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}
