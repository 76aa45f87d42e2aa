//! Filters, and a choice that has of each area and kind.

use std::collections::{BTreeMap, BTreeSet};

use infradev_model::{Area, Candidate, Kind};

/// Which candidates are asked for.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Areas; all where none is named.
    pub areas: Vec<Area>,
    /// Kinds; all where none is named.
    pub kinds: Vec<Kind>,
    /// Not before this day, `2026-03-01`.
    pub since: Option<String>,
    /// The smallest score.
    pub min_score: Option<i32>,
    /// The smallest number of test functions added or changed.
    pub min_tests: u32,
    /// The largest number of source lines added and deleted.
    pub max_lines: Option<u32>,
    /// The largest number of source files.
    pub max_files: Option<u32>,
    /// Only those whose tests need no CUDA.
    pub cpu: bool,
    /// Only those without native code.
    pub pure: bool,
}

impl Filter {
    /// Whether a candidate passes, as far as what it is made of goes.
    pub fn takes_by_facts(&self, candidate: &Candidate) -> bool {
        let facts = &candidate.facts;
        self.since.as_deref().is_none_or(|since| candidate.date.as_str() >= since)
            && self.min_score.is_none_or(|least| candidate.score >= least)
            && facts.tests_added + facts.tests_changed >= self.min_tests
            && self.max_lines.is_none_or(|most| facts.source.added + facts.source.deleted <= most)
            && self.max_files.is_none_or(|most| facts.source.files <= most)
            && (!self.cpu || facts.needs.gpus == 0)
            && (!self.pure || facts.native.is_empty())
    }

    /// Whether its area and kind are asked for.
    pub fn takes_by_guesses(&self, candidate: &Candidate) -> bool {
        let facts = &candidate.facts;
        (self.areas.is_empty() || self.areas.contains(&facts.area.is))
            && (self.kinds.is_empty() || self.kinds.contains(&facts.kind.is))
    }
}

/// How many are wanted.
#[derive(Debug, Clone, Copy)]
pub struct Want {
    /// In all.
    pub all: usize,
    /// Of these, those whose tests need two ranks or more.
    pub multi: usize,
}

/// The wanted candidates, the best first, and what the history does not have. Areas and kinds take turns, each with its best.
pub fn choose(candidates: Vec<Candidate>, want: Want) -> (Vec<Candidate>, Vec<String>) {
    let mut taken: BTreeSet<usize> = BTreeSet::new();
    let is_multi = |candidate: &Candidate| candidate.facts.needs.world > 1;
    let multi = take_turns(&candidates, want.multi.min(want.all), &mut taken, is_multi);
    let rest = take_turns(&candidates, want.all - taken.len().min(want.all), &mut taken, |_| true);
    let mut missing = Vec::new();
    if multi < want.multi {
        missing.push(format!("{} with two ranks or more were wanted, there are {multi}", want.multi));
    }
    if multi + rest < want.all {
        missing.push(format!("{} were wanted, there are {}", want.all, multi + rest));
    }
    let chosen = candidates.into_iter().enumerate().filter(|(at, _)| taken.contains(at)).map(|(_, c)| c);
    (chosen.collect(), missing)
}

fn take_turns(
    candidates: &[Candidate],
    wanted: usize,
    taken: &mut BTreeSet<usize>,
    fits: impl Fn(&Candidate) -> bool,
) -> usize {
    let mut strata: BTreeMap<(u8, u8), Vec<usize>> = BTreeMap::new();
    for (at, candidate) in candidates.iter().enumerate().rev() {
        if fits(candidate) && !taken.contains(&at) {
            let facts = &candidate.facts;
            strata.entry((facts.area.is as u8, facts.kind.is as u8)).or_default().push(at);
        }
    }
    let mut found = 0;
    while found < wanted && !strata.is_empty() {
        for stratum in strata.values_mut() {
            if found < wanted
                && let Some(best) = stratum.pop()
            {
                taken.insert(best);
                found += 1;
            }
        }
        strata.retain(|_, stratum| !stratum.is_empty());
    }
    found
}
