//! The unmutated control: golden under each suite, what its cases answer, how long they take, and which lines they reach.

use std::collections::{BTreeMap, BTreeSet};

use infradev_model::{Digest, GoldenControl, Outcome, SealedTask, Suite, Timeouts, countable};
use infradev_trial::{Ask, Line, Session, TrialError, Tried};
use serde::{Deserialize, Serialize};

use super::FunnelError;

/// How much longer than golden a mutant may take, and seconds on top.
const SLACK: (f64, f64) = (5.0, 3.0);

/// Further runs of cases that answered differently while their lines were followed.
const AGAIN: usize = 2;

/// Golden under both suites at all world sizes of a task.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Control {
    /// What it is valid for.
    pub key: Option<Digest>,
    /// One entry a suite and world size.
    pub suites: Vec<SuiteControl>,
}

/// Golden under one suite at one world size.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SuiteControl {
    /// The suite.
    pub suite: Suite,
    /// World size.
    pub world: u32,
    /// Cases that golden passes.
    pub cases: BTreeMap<String, ControlCase>,
    /// Cases that golden does not pass, with what was said.
    pub failing: BTreeMap<String, String>,
    /// Cases that answer differently from one run of golden to the next: they would reject mutants at random.
    pub flaky: Vec<String>,
    /// Cases that golden skips, or that are expected to fail and do.
    pub skipped: Vec<String>,
    /// All that golden ran, in order, with the seconds that each took: cases lean on those before them, whatever these answer.
    pub order: Vec<(String, f64)>,
    /// Lines that every case depends on.
    pub shared: BTreeSet<Line>,
    /// Seconds until the first case.
    pub set_up_s: f64,
    /// Seconds of the whole suite.
    pub wall_s: f64,
    /// Files that could not be collected, and the like.
    pub notes: Vec<String>,
    /// Whether a conftest or a plugin has a say in how pytest ends, after the last case.
    #[serde(default)]
    pub hooked: bool,
    /// How golden's own session ends, where that is not well.
    #[serde(default)]
    pub ends_badly: Option<String>,
}

/// One case that golden passes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ControlCase {
    /// Golden's vector.
    pub vector: Vec<Outcome>,
    /// Seconds that it took.
    pub duration_s: f64,
    /// Lines that ran while it ran.
    pub lines: BTreeSet<Line>,
    /// It may reach more than was seen.
    pub wide: bool,
}

/// Vectors of one run, by id.
type Vectors = BTreeMap<String, Vec<Outcome>>;

fn vectors(tried: &Tried) -> Vectors {
    tried.cases.iter().map(|case| (case.case.id.clone(), case.outcomes())).collect()
}

impl SuiteControl {
    /// Runs golden twice: once as it is, once with its lines followed (`files`, by index). Cases that answer differently then run
    /// twice more as they are, since following lines alone may tell: it takes time and memory.
    pub async fn take(
        session: &mut Session,
        task: &SealedTask,
        suite: Suite,
        world: u32,
        files: &[String],
        seed: u64,
    ) -> Result<SuiteControl, TrialError> {
        let timeouts = &task.public.spec.timeouts;
        let nothing = BTreeMap::new();
        let mut ask = Ask::all(world, timeouts, &nothing, seed);
        let plain = run(session, suite, &ask).await?;
        ask.reach = files;
        // Following lines slows cases down: what only times them would fail for that.
        let patient = Timeouts { case: timeouts.case * 4.0, ..timeouts.clone() };
        ask.timeouts = &patient;
        let followed = run(session, suite, &ask).await?;
        let (first, second) = (vectors(&plain), vectors(&followed));
        let apart: BTreeSet<String> = first
            .iter()
            .filter(|(id, vector)| second.get(*id) != Some(*vector))
            .map(|(id, _)| id.clone())
            .collect();
        let mut again = Vec::new();
        if !apart.is_empty() {
            (ask.reach, ask.timeouts, ask.cases) = (&[], timeouts, Some(&apart));
            for _ in 0..AGAIN {
                again.push(vectors(&run(session, suite, &ask).await?));
            }
        }
        Ok(SuiteControl::of(suite, world, plain, &followed, &again, task.public.spec.gpus > 0))
    }

    fn of(
        suite: Suite,
        world: u32,
        plain: Tried,
        followed: &Tried,
        again: &[Vectors],
        on_gpus: bool,
    ) -> SuiteControl {
        let mut control = SuiteControl {
            suite,
            world,
            cases: BTreeMap::new(),
            failing: BTreeMap::new(),
            flaky: Vec::new(),
            skipped: Vec::new(),
            order: plain.cases.iter().map(|case| (case.case.id.clone(), case.duration_s)).collect(),
            shared: followed.reach.shared.clone(),
            set_up_s: plain.set_up_s,
            wall_s: plain.wall_s,
            notes: plain.notes,
            hooked: plain.end.hooked,
            ends_badly: plain.end.failed.or_else(|| followed.end.failed.clone()).map(|(_, how)| how),
        };
        let while_followed = vectors(followed);
        for case in &plain.cases {
            let (id, vector) = (case.case.id.clone(), case.outcomes());
            let alike = while_followed.get(&id) == Some(&vector);
            if !alike && again.iter().any(|run| run.get(&id) != Some(&vector)) {
                control.flaky.push(id);
            } else if vector.iter().all(|outcome| matches!(outcome, Outcome::Skipped | Outcome::Xfailed)) {
                control.skipped.push(id);
            } else if !countable(&vector) {
                control.failing.insert(id, case.said());
            } else {
                let reach = followed.reach.cases.get(&case.case.id).cloned().unwrap_or_default();
                let told = followed.reach.cases.contains_key(&case.case.id);
                // Autograd's threads for a device are followed from Python 3.12 on only.
                let wide = reach.wide || !alike || !told || on_gpus;
                let duration_s = case.duration_s;
                control.cases.insert(id, ControlCase { vector, duration_s, lines: reach.lines, wide });
            }
        }
        control
    }

    /// Leaves out official cases that were not asked for. They still run before those that lean on them.
    pub fn keep_only(&mut self, only: &BTreeSet<String>) {
        if only.is_empty() || self.suite != Suite::Official {
            return;
        }
        let asked = |id: &str| only.iter().any(|asked| names(asked, id));
        self.cases.retain(|id, _| asked(id));
        self.failing.retain(|id, _| asked(id));
        self.skipped.retain(|id| asked(id));
        self.flaky.retain(|id| asked(id));
    }

    /// Its line in the document.
    pub fn summary(&self) -> GoldenControl {
        GoldenControl {
            world: self.world,
            suite: self.suite,
            cases: self.cases.len() as u32,
            left_out: self.failing.keys().chain(&self.skipped).cloned().collect(),
            flaky: self.flaky.clone(),
            wall_s: self.wall_s,
        }
    }

    /// Whether what decides after the last case says anything of a mutant: golden ends well by it.
    pub fn ends(&self) -> bool {
        self.hooked && self.ends_badly.is_none()
    }

    /// Cases that reach one of these lines; all of them where the lines are not known.
    pub fn reaching(&self, lines: Option<&BTreeSet<Line>>) -> BTreeSet<String> {
        let all = || self.cases.keys().cloned().collect();
        let Some(lines) = lines else { return all() };
        if lines.iter().any(|line| self.shared.contains(line)) {
            return all();
        }
        let reaches = |case: &ControlCase| case.wide || lines.iter().any(|line| case.lines.contains(line));
        self.cases.iter().filter(|(_, case)| reaches(case)).map(|(id, _)| id.clone()).collect()
    }

    /// How long a mutant may take, by golden's own times; never longer than the task allows.
    pub fn timeouts(&self, task: &Timeouts, cases: &BTreeSet<String>) -> (Timeouts, BTreeMap<String, f64>) {
        let slack = |seconds: f64| seconds * SLACK.0 + SLACK.1;
        let deadlines: BTreeMap<String, f64> = self
            .order
            .iter()
            .filter(|(id, _)| cases.contains(id))
            .map(|(id, seconds)| (id.clone(), slack(*seconds).min(task.case)))
            .collect();
        let case = deadlines.values().copied().fold(0.0, f64::max).max(SLACK.1).min(task.case);
        let collect = slack(self.set_up_s).min(task.collect);
        let all: f64 = deadlines.values().sum::<f64>() + collect + SLACK.1;
        let timeouts =
            Timeouts { collect, case, grace: task.grace.min(1.0), trial: (all * 2.0).min(task.trial) };
        (timeouts, deadlines)
    }
}

/// Whether an id that was asked for is a case's, with its parameters or without.
fn names(asked: &str, id: &str) -> bool {
    asked == id || id.split_once('[').is_some_and(|(function, _)| asked == function)
}

/// Runs a suite.
pub async fn run(session: &mut Session, suite: Suite, ask: &Ask<'_>) -> Result<Tried, TrialError> {
    match suite {
        Suite::Official => session.official(ask).await,
        Suite::Probe => session.probes(ask).await,
    }
}

impl Control {
    /// What golden does not pass, if anything, or which of the cases that were asked for it does not have.
    pub fn refusal(&self, task: &str, skip_failing: bool, only: &BTreeSet<String>) -> Option<FunnelError> {
        let broken = |control: &SuiteControl| FunnelError::GoldenFails {
            task: task.to_string(),
            suite: control.suite,
            world: control.world,
            failing: control.failing.iter().map(|(id, said)| format!("{id} ({said})")).collect(),
        };
        let failing = |control: &&SuiteControl| !control.failing.is_empty();
        if !skip_failing && let Some(control) = self.suites.iter().find(failing) {
            return Some(broken(control));
        }
        let official = || self.suites.iter().filter(|control| control.suite == Suite::Official);
        let ran =
            |asked: &&String| official().any(|control| control.order.iter().any(|(id, _)| names(asked, id)));
        let unknown: Vec<String> = only.iter().filter(|asked| !ran(asked)).cloned().collect();
        // What could not be collected may have had it.
        if !unknown.is_empty() && official().all(|control| control.notes.is_empty()) {
            return Some(FunnelError::NoSuchCase { ids: unknown });
        }
        if official().all(|control| control.cases.is_empty()) {
            let flaky = official().flat_map(|control| &control.flaky);
            let flaky = flaky.map(|id| format!("{id} answers differently from run to run"));
            let notes = official().flat_map(|control| &control.notes).cloned().chain(flaky).collect();
            return Some(FunnelError::NoTests { task: task.to_string(), notes });
        }
        // A file that cannot be collected is a failure of golden that has no case's name.
        let noted = |control: &&SuiteControl| !control.notes.is_empty();
        if !skip_failing && let Some(control) = official().find(noted) {
            return Some(FunnelError::GoldenFails {
                task: task.to_string(),
                suite: control.suite,
                world: control.world,
                failing: control.notes.clone(),
            });
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use infradev_model::{CaseId, CaseResult, RankOutcome};

    use super::*;

    fn case(id: &str, outcome: Outcome) -> CaseResult {
        CaseResult {
            case: CaseId { suite: Suite::Official, id: id.to_string() },
            vector: vec![RankOutcome { outcome, detail: None }],
            duration_s: 0.1,
            launch: 0,
            judgement: None,
        }
    }

    #[test]
    fn a_case_that_differs_without_being_followed_is_flaky_and_one_that_differs_for_it_is_kept() {
        use Outcome::{Failed, Passed};
        let run = |outcomes: &[(&str, Outcome)]| Tried {
            cases: outcomes.iter().map(|(id, outcome)| case(id, *outcome)).collect(),
            ..Tried::default()
        };
        let plain = run(&[
            ("alike", Passed),
            ("slow", Passed),
            ("chance", Passed),
            ("late", Failed),
            ("bad", Failed),
            ("known", Outcome::Xfailed),
        ]);
        let mut followed = run(&[
            ("alike", Passed),
            ("slow", Failed),
            ("chance", Failed),
            ("late", Passed),
            ("bad", Failed),
            ("known", Outcome::Xfailed),
        ]);
        for known in ["alike", "slow"] {
            followed.reach.cases.insert(known.to_string(), Default::default());
        }
        let again = [
            vectors(&run(&[("slow", Passed), ("chance", Passed), ("late", Passed)])),
            vectors(&run(&[("slow", Passed), ("chance", Failed), ("late", Failed)])),
        ];
        let control = SuiteControl::of(Suite::Official, 1, plain, &followed, &again, false);
        assert_eq!(control.flaky, ["chance", "late"]);
        assert_eq!(control.cases.keys().collect::<Vec<_>>(), ["alike", "slow"]);
        assert!(control.cases["slow"].wide && !control.cases["alike"].wide);
        assert_eq!(control.failing.keys().collect::<Vec<_>>(), ["bad"]);
        assert_eq!(control.skipped, ["known"]);
        assert_eq!(control.order.len(), 6);
        assert_eq!(control.summary().flaky, ["chance", "late"]);
    }
}
