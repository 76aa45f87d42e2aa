//! Cases that lean on cases before them: what is run so that a mutant's verdict is the one of the whole, and which runs of golden
//! say that a part of a suite may be believed.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use infradev_model::CaseResult;
use infradev_trial::Tried;

use super::control::SuiteControl;

/// About what ranks of a template take to be forked and to end, in seconds.
const LAUNCH_S: f64 = 0.03;
/// About what a case takes beside its own duration, in seconds.
const CASE_S: f64 = 0.002;
/// A mutant runs whole files at once where they take no longer than so many times the cases that reach it: most mutants run once
/// then, and golden need not be asked what a part of a file gives.
const AT_ONCE: f64 = 2.0;

/// Stands behind a sequence whose last case was followed by none, by one of another file, or by one of another class: fixtures
/// that cases share were torn down in it.
const NONE_FOLLOWS: u32 = u32::MAX;
const OTHER_FILE: u32 = u32::MAX - 1;
const OTHER_CLASS: u32 = u32::MAX - 2;
/// Stands last where the session ended, too.
pub(super) const SESSION_ENDS: u32 = u32::MAX - 3;

/// What is asked for: some cases, and whether they are whole files.
pub(super) struct Scope {
    pub asked: BTreeSet<String>,
    pub whole: bool,
}

fn file(id: &str) -> &str {
    id.split("::").next().unwrap_or(id)
}

/// The class or file of a case.
fn class(id: &str) -> &str {
    let function = id.split('[').next().unwrap_or(id);
    function.rsplit_once("::").map_or(function, |(class, _)| class)
}

impl SuiteControl {
    /// All that golden ran of the files of these cases: what comes before a case is there with it.
    pub(super) fn whole_files(&self, cases: &BTreeSet<String>) -> BTreeSet<String> {
        let files: BTreeSet<&str> = cases.iter().map(|id| file(id)).collect();
        let ids = self.order.iter().map(|(id, _)| id);
        ids.filter(|id| files.contains(file(id))).cloned().collect()
    }

    /// What a mutant that these cases reach is run on, one after the other while its verdict is open: the cases, their files, the
    /// suite. The same is not run twice.
    pub(super) fn scopes(&self, reached: &BTreeSet<String>) -> Vec<Scope> {
        let files = self.whole_files(reached);
        let suite: BTreeSet<String> = self.order.iter().map(|(id, _)| id.clone()).collect();
        let mut scopes = Vec::new();
        if *reached != files && self.seconds(&files) > AT_ONCE * self.seconds(reached) {
            scopes.push(Scope { asked: reached.clone(), whole: false });
        }
        let further = suite != files;
        scopes.push(Scope { asked: files, whole: true });
        if further {
            scopes.push(Scope { asked: suite, whole: true });
        }
        scopes
    }

    /// About how long it takes to run these cases.
    fn seconds(&self, cases: &BTreeSet<String>) -> f64 {
        let asked = self.order.iter().filter(|(id, _)| cases.contains(id));
        LAUNCH_S + asked.map(|(_, seconds)| seconds + CASE_S).sum::<f64>()
    }
}

/// Sequences of cases, by their places in golden's order, and whether golden answered in them as it does in the whole.
type Sequences = BTreeMap<Vec<u32>, bool>;

/// What runs of golden on parts of a suite gave.
#[derive(Default)]
pub struct Believed {
    /// By world size, and whether ranks of a template ran them.
    known: RefCell<BTreeMap<(u32, bool), Sequences>>,
}

impl Believed {
    /// Whether golden answers in this sequence as in the whole, if that is known: a longer run that begins so tells, too.
    pub(super) fn known(&self, world: u32, resumed: bool, sequence: &[u32]) -> Option<bool> {
        let known = self.known.borrow();
        let (found, agrees) = known.get(&(world, resumed))?.range(sequence.to_vec()..).next()?;
        let told = found == sequence || (*agrees && found.starts_with(sequence));
        told.then_some(*agrees)
    }

    /// Keeps what golden answered in a sequence.
    pub(super) fn keep(&self, world: u32, resumed: bool, sequence: Vec<u32>, agrees: bool) {
        self.known.borrow_mut().entry((world, resumed)).or_default().insert(sequence, agrees);
    }
}

/// The cases of a run up to its last, by their places in golden's order, with what followed the last one of those asked for. Where
/// the run ended without a case that rejects, all that was asked for.
pub(super) fn sequence(
    control: &SuiteControl,
    asked: &BTreeSet<String>,
    tried: &Tried,
    last: Option<&CaseResult>,
) -> Vec<u32> {
    let places: Vec<(u32, &str)> = control
        .order
        .iter()
        .enumerate()
        .filter(|(_, (id, _))| asked.contains(id))
        .map(|(place, (id, _))| (place as u32, id.as_str()))
        .collect();
    let ran: BTreeSet<&str> = tried.cases.iter().map(|case| case.case.id.as_str()).collect();
    let mut sequence: Vec<u32> = Vec::new();
    let mut places = places.into_iter().peekable();
    while let Some((place, id)) = places.next() {
        let is_last = last.is_some_and(|last| last.case.id == id);
        if last.is_none() || ran.contains(id) {
            sequence.push(place);
        }
        if is_last || places.peek().is_none() {
            sequence.extend(follows(id, places.peek().map(|(_, next)| *next)));
            break;
        }
    }
    sequence
}

fn follows(id: &str, next: Option<&str>) -> Option<u32> {
    match next {
        None => Some(NONE_FOLLOWS),
        Some(next) if file(next) != file(id) => Some(OTHER_FILE),
        Some(next) if class(next) != class(id) => Some(OTHER_CLASS),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_run_of_golden_tells_of_its_beginning_and_a_shorter_one_of_nothing_more() {
        let believed = Believed::default();
        believed.keep(1, true, vec![0, 1, 4, NONE_FOLLOWS], true);
        believed.keep(1, true, vec![2, 3], false);
        assert_eq!(believed.known(1, true, &[0, 1]), Some(true));
        assert_eq!(believed.known(1, true, &[0, 1, 4]), Some(true));
        assert_eq!(believed.known(1, true, &[0, 4]), None);
        assert_eq!(believed.known(1, true, &[0, 1, OTHER_FILE]), None);
        assert_eq!(believed.known(1, true, &[2, 3]), Some(false));
        assert_eq!(believed.known(1, true, &[2]), None);
        assert_eq!(believed.known(1, false, &[0, 1]), None);
        assert_eq!(believed.known(2, true, &[0, 1]), None);
    }

    #[test]
    fn what_follows_a_case_says_which_fixtures_it_tore_down() {
        assert_eq!(follows("a.py::K::f[x::y]", Some("a.py::K::g")), None);
        assert_eq!(follows("a.py::K::f", Some("a.py::g")), Some(OTHER_CLASS));
        assert_eq!(follows("a.py::f", Some("b.py::f")), Some(OTHER_FILE));
        assert_eq!(follows("a.py::f", None), Some(NONE_FOLLOWS));
    }
}
