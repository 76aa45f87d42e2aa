//! The official suite: pytest inside, on every rank, driven case by case from here. A case starts on all ranks or on none,
//! so that ranks can't slip against each other, and a failure costs its own case only.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use infradev_model::{
    CaseId, CaseResult, Detail, Outcome, RankOutcome, Suite, Tampering, TamperingKind, Timeouts,
};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use serde_json::json;
use tokio::time::Instant;

use crate::events::{Events, TrialEvent};
use crate::launcher::{LaunchRequest, Launcher, LauncherError, RankEvent, RankExit, WorldLogs};
use crate::messages::{FromRank, MESSAGE, TRACE, ToRank, within};
use crate::ranks::{Network, WorldSetup};
use crate::reach::ReachLog;

/// Launches in a row that may end without a finished case or a finding before the suite is given up.
const FRUITLESS: u32 = 2;

/// Bytes of ids that the ranks of one launch may tell: a hundred times the largest suite known.
const COLLECTED: usize = 256 << 20;
/// Notes on files that are kept.
const NOTES: usize = 1_000;

/// What a rank's outcome looks like that was killed by the memory limit.
pub trait OutOfMemory {
    /// Whether the limit has killed a process since the last call.
    fn struck(&mut self) -> bool;
}

/// The suite as it is to be run.
pub struct OfficialSuite<'a> {
    /// Ranks.
    pub world: u32,
    /// Test files in order, canaries and twins among them.
    pub files: Vec<String>,
    /// Plugins by name.
    pub plugins: &'a [String],
    /// Top-level names that must resolve inside the tree.
    pub top_level: &'a [String],
    /// Ids to run of what is collected: a filter by id.
    pub wanted: &'a (dyn Fn(&str) -> bool + Send + Sync),
    /// Deadlines.
    pub timeouts: &'a Timeouts,
    /// Seed of the order of cases, where it is shuffled.
    pub shuffle: Option<u64>,
    /// Ends the suite after the first case for which it says so.
    pub stop: Option<&'a (dyn Fn(&CaseResult) -> bool + Send + Sync)>,
    /// When the whole trial's time is over.
    pub over: Instant,
    /// Whether a case is decided by the first rank that fails: nobody waits for the others, nor for their stacks.
    pub eager: bool,
    /// Whether the end of pytest's session counts: it is waited for even then, as long as for a case.
    pub ends: bool,
    /// Deadlines of single cases in seconds, where they are shorter than `timeouts.case`.
    pub deadlines: &'a BTreeMap<String, f64>,
    /// Where the launcher is a template: the files whose functions its ranks replace. Else none.
    pub replaced: Option<&'a [String]>,
}

/// What came of the suite.
#[derive(Debug, Default)]
pub struct OfficialOutcome {
    /// Every case that some rank collected, canaries and twins among them, in order.
    pub cases: Vec<CaseResult>,
    /// Evidence.
    pub tampering: Vec<Tampering>,
    /// Files that could not be collected, and the like: one sentence each.
    pub notes: Vec<String>,
    /// Top-level names that resolve outside the tree.
    pub outside: BTreeSet<String>,
    /// What ranks wrote.
    pub logs: Vec<WorldLogs>,
    /// When the first case started.
    pub first_case: Option<Instant>,
    /// Whether ranks took the launcher with them: the trial ends there.
    pub lost: bool,
    /// Lines that ran, where ranks followed them.
    pub reach: ReachLog,
    /// Why ranks of a template are not this variant's: nothing of it ran.
    pub unfit: Option<String>,
    /// How pytest's sessions ended.
    pub end: SessionEnd,
}

/// How pytest's sessions ended on the ranks that ran their last case, as far as that was waited for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionEnd {
    /// Whether a conftest, or a plugin that is not pytest's own, has a say in it after the last case.
    pub hooked: bool,
    /// How the first did that did not end well: its rank, and its status in words.
    pub failed: Option<(u32, String)>,
}

impl OfficialOutcome {
    /// Adds what came of a further run on the same tree; a sentence that is there already is not said twice.
    pub fn append(&mut self, further: OfficialOutcome) {
        self.cases.extend(further.cases);
        self.tampering.extend(further.tampering);
        let new = further.notes.into_iter().filter(|note| !self.notes.contains(note)).collect::<Vec<_>>();
        self.notes.extend(new);
        self.outside.extend(further.outside);
        self.logs.extend(further.logs);
        self.lost |= further.lost;
    }
}

/// Ids are shared: a suite may have 100,000 of them.
struct Collection {
    order: Vec<Arc<str>>,
    by_rank: Vec<HashSet<Arc<str>>>,
}

enum CaseEnd {
    /// All ranks have an entry; `apart` says that they are no longer in step.
    Done { vector: Vec<RankOutcome>, duration_s: f64, apart: bool },
    /// A rank died before it could start the case.
    NotStarted,
    /// Bytes were forged: nothing more is learnt from this trial.
    Forged,
}

/// The ids of all ranks, each once: rank 0's in its order, what a further rank alone has after the id that it follows
/// there. Which rank told first plays no part.
fn in_one_order(ranks: &[Vec<Arc<str>>]) -> Vec<Arc<str>> {
    let mut order = ranks.first().cloned().unwrap_or_default();
    for rank in ranks.iter().skip(1) {
        let known: HashSet<&Arc<str>> = order.iter().collect();
        let mut after: HashMap<Option<&Arc<str>>, Vec<&Arc<str>>> = HashMap::new();
        let mut last = None;
        for id in rank {
            if known.contains(id) {
                last = Some(id);
            } else {
                after.entry(last).or_default().push(id);
            }
        }
        if after.is_empty() {
            continue;
        }
        let mut merged: Vec<Arc<str>> = Vec::new();
        merged.extend(after.remove(&None).into_iter().flatten().cloned());
        for id in &order {
            merged.push(Arc::clone(id));
            merged.extend(after.remove(&Some(id)).into_iter().flatten().cloned());
        }
        order = merged;
    }
    order
}

struct OfficialRun<'a> {
    launcher: &'a mut Launcher,
    setup: &'a WorldSetup,
    suite: &'a OfficialSuite<'a>,
    events: &'a dyn Events,
    memory: &'a mut (dyn OutOfMemory + Send),
    outcome: OfficialOutcome,
    /// Cases in the order in which they run, once known.
    plan: Option<Vec<Arc<str>>>,
    done: HashSet<Arc<str>>,
    /// Files left out because their collection crashed or hung a rank.
    excluded: BTreeSet<String>,
    file_notes: BTreeMap<(String, String), BTreeSet<u32>>,
}

/// Runs the suite. An error is the harness's own.
pub async fn run(
    launcher: &mut Launcher,
    setup: &WorldSetup,
    suite: &OfficialSuite<'_>,
    events: &dyn Events,
    memory: &mut (dyn OutOfMemory + Send),
) -> Result<OfficialOutcome, LauncherError> {
    let mut run = OfficialRun {
        launcher,
        setup,
        suite,
        events,
        memory,
        outcome: OfficialOutcome::default(),
        plan: None,
        done: HashSet::new(),
        excluded: BTreeSet::new(),
        file_notes: BTreeMap::new(),
    };
    let ran_before = run.launcher.launched;
    match run.all().await {
        Err(error) if error.is_lost() && (ran_before || run.launcher.launched) => run.lose(&error),
        result => result?,
    }
    Ok(run.finish())
}

impl OfficialRun<'_> {
    async fn all(&mut self) -> Result<(), LauncherError> {
        let mut stumbled: HashMap<Arc<str>, u32> = HashMap::new();
        let mut fruitless = 0;
        loop {
            let files = self.files_left();
            if files.is_empty() || fruitless >= FRUITLESS {
                break;
            }
            if Instant::now() >= self.suite.over {
                self.outcome.notes.push("the trial's time ran out".to_string());
                break;
            }
            let before = (self.done.len(), self.excluded.len());
            let launch = self.launch(&files).await?;
            let collection = self.collect(launch, &files).await?;
            if let Some(collection) = collection {
                let wanted = |id: &&Arc<str>| (self.suite.wanted)(id);
                let order = self.plan.get_or_insert_with(|| {
                    let mut order: Vec<Arc<str>> = collection.order.iter().filter(wanted).cloned().collect();
                    if let Some(seed) = self.suite.shuffle {
                        order.shuffle(&mut StdRng::seed_from_u64(seed));
                    }
                    order
                });
                let known: HashSet<Arc<str>> = order.iter().cloned().collect();
                let further = collection.order.iter().filter(wanted).filter(|id| !known.contains(*id));
                order.extend(further.cloned());
                if before == (0, 0) && fruitless == 0 {
                    let cases = order.len();
                    self.events.emit(TrialEvent::Collected { suite: Suite::Official, cases });
                }
                let order = order.clone();
                let stop = self.cases(launch, &order, &collection, &mut stumbled).await?;
                self.close(launch).await?;
                if stop {
                    break;
                }
                // What the plan holds and these ranks did not collect cannot be run by further ranks either.
                if self.done.len() == before.0 {
                    fruitless += 1;
                } else {
                    fruitless = 0;
                }
            } else {
                self.close(launch).await?;
                if !self.outcome.tampering.is_empty() || self.outcome.unfit.is_some() {
                    break;
                }
                fruitless = if self.excluded.len() > before.1 { 0 } else { fruitless + 1 };
            }
        }
        Ok(())
    }

    fn files_left(&self) -> Vec<String> {
        let open: Option<HashSet<&str>> = self.plan.as_ref().map(|plan| {
            plan.iter().filter(|id| !self.done.contains(*id)).filter_map(|id| id.split("::").next()).collect()
        });
        self.suite
            .files
            .iter()
            .filter(|file| !self.excluded.contains(*file))
            .filter(|file| open.as_ref().is_none_or(|open| open.contains(file.as_str())))
            .cloned()
            .collect()
    }

    async fn launch(&mut self, files: &[String]) -> Result<u32, LauncherError> {
        let setup = self.setup;
        let world = self.suite.world;
        let next = self.launcher.launches;
        let mut args = setup.common_args(&setup.paths.workspace);
        args["mode"] = json!(if self.suite.replaced.is_some() { "resumed" } else { "official" });
        args["replaced"] = json!(self.suite.replaced.unwrap_or_default());
        args["files"] = json!(files);
        args["plugins"] = json!(self.suite.plugins);
        args["top_level"] = json!(self.suite.top_level);
        args["size"] = json!(world);
        args["timeout_s"] = json!(self.suite.timeouts.case);
        let request = LaunchRequest {
            size: world,
            env: &setup.common_env(next, world, Network::Shared),
            rank_env: setup.rank_env(world),
            cwd: &setup.paths.workspace,
            networks: Vec::new(),
            args,
        };
        let launch = self.launcher.launch(request).await?;
        self.events.emit(TrialEvent::Launched { launch, size: world });
        Ok(launch)
    }

    /// Waits until every rank has collected. `None` where a rank could not: the file at fault is excluded, or it is noted that
    /// none is known.
    async fn collect(&mut self, launch: u32, files: &[String]) -> Result<Option<Collection>, LauncherError> {
        let size = self.suite.world as usize;
        let patience = Duration::from_secs_f64(self.suite.timeouts.collect);
        let mut told_order: Vec<Vec<Arc<str>>> = vec![Vec::new(); size];
        let mut seen: HashSet<Arc<str>> = HashSet::new();
        let mut by_rank: Vec<HashSet<Arc<str>>> = vec![HashSet::new(); size];
        let mut told = 0;
        let mut begun: BTreeSet<(u32, String)> = BTreeSet::new();
        let mut current: Vec<Option<String>> = vec![None; size];
        let mut waiting: BTreeSet<u32> = (0..self.suite.world).collect();
        let mut deadline = Instant::now() + patience;
        while !waiting.is_empty() {
            let Some((_, rank, event)) = self.launcher.next_event(deadline.min(self.suite.over)).await?
            else {
                let stuck: Vec<u32> = waiting.iter().copied().collect();
                self.launcher.dump_stacks(launch, &stuck).await?;
                let seconds = self.suite.timeouts.collect;
                for rank in stuck {
                    let file = current[rank as usize].clone();
                    self.uncollectable(
                        file,
                        rank,
                        &format!("timeout: its collection took longer than {seconds} s"),
                    );
                }
                return Ok(None);
            };
            match event {
                RankEvent::Message(FromRank::Hello { outside, unfit }, _) => {
                    self.outcome.outside.extend(outside);
                    if unfit.is_some() && self.suite.replaced.is_some() {
                        self.outcome.unfit = unfit;
                        return Ok(None);
                    }
                }
                RankEvent::Message(FromRank::Collecting { file }, _) => {
                    if files.contains(&file) {
                        current[rank as usize] = Some(file.clone());
                        // A file begins once on a rank: who says so again gains no time.
                        if begun.insert((rank, file)) {
                            deadline = Instant::now() + patience;
                        }
                    }
                }
                RankEvent::Message(FromRank::Uncollectable { file, exception, message, line }, _) => {
                    let at = line.map(|line| format!(" (line {line})")).unwrap_or_default();
                    self.note(&file, rank, &format!("{exception}: {message}{at}"));
                }
                RankEvent::Message(FromRank::Collected { ids, more }, _) => {
                    // An id takes more than its own length, here and in what is kept of the trial.
                    told += ids.iter().map(|id| id.len() + 64).sum::<usize>();
                    if told > COLLECTED {
                        let why = format!("it collected more than {} MiB of ids", COLLECTED >> 20);
                        let file = current[rank as usize].clone();
                        self.uncollectable(file, rank, &why);
                        return Ok(None);
                    }
                    for id in ids {
                        let id = match seen.get(id.as_str()) {
                            Some(known) => Arc::clone(known),
                            None => {
                                let id: Arc<str> = id.into();
                                seen.insert(Arc::clone(&id));
                                id
                            }
                        };
                        if by_rank[rank as usize].insert(Arc::clone(&id)) {
                            told_order[rank as usize].push(id);
                        }
                    }
                    if !more {
                        waiting.remove(&rank);
                    }
                }
                RankEvent::Message(other, _) => {
                    self.forged(rank, &format!("a message out of place during collection: {other:?}"));
                    return Ok(None);
                }
                RankEvent::Forged(evidence) => {
                    self.forged(rank, &evidence);
                    return Ok(None);
                }
                RankEvent::Dead(exit) => {
                    let file = current[rank as usize].clone();
                    let why = format!("crashed: {} during its collection", exit.name());
                    self.uncollectable(file, rank, &why);
                    return Ok(None);
                }
            }
        }
        Ok(Some(Collection { order: in_one_order(&told_order), by_rank }))
    }

    fn uncollectable(&mut self, file: Option<String>, rank: u32, why: &str) {
        match file {
            Some(file) => {
                self.note(&file, rank, why);
                self.excluded.insert(file);
            }
            None => self.outcome.notes.push(format!("rank {rank}, before any test file: {why}")),
        }
    }

    fn note(&mut self, file: &str, rank: u32, why: &str) {
        if self.file_notes.len() >= NOTES {
            return;
        }
        let (file, why) = (within(file.to_string(), MESSAGE), within(why.to_string(), MESSAGE));
        self.file_notes.entry((file, why)).or_default().insert(rank);
    }

    /// Runs what is left of the plan on these ranks; true where the suite ends here.
    async fn cases(
        &mut self,
        launch: u32,
        order: &[Arc<str>],
        collection: &Collection,
        stumbled: &mut HashMap<Arc<str>, u32>,
    ) -> Result<bool, LauncherError> {
        let open: Vec<&Arc<str>> = order
            .iter()
            .filter(|id| !self.done.contains(*id) && collection.by_rank.iter().any(|ids| ids.contains(*id)))
            .collect();
        for (index, id) in open.iter().enumerate() {
            if Instant::now() >= self.suite.over {
                return Ok(false);
            }
            let next = open.get(index + 1).map(|id| &***id);
            let ranks: Vec<u32> = (0..self.suite.world)
                .filter(|rank| collection.by_rank[*rank as usize].contains(*id))
                .collect();
            self.outcome.first_case.get_or_insert_with(Instant::now);
            match self.case(launch, id, next, &ranks).await? {
                CaseEnd::Done { vector, duration_s, apart } => {
                    self.done.insert((*id).clone());
                    self.record(launch, id, vector, duration_s);
                    if self.is_stopped() {
                        return Ok(true);
                    }
                    if apart {
                        return Ok(false);
                    }
                }
                CaseEnd::NotStarted => {
                    let times = stumbled.entry((*id).clone()).or_default();
                    *times += 1;
                    if *times >= 2 {
                        let detail = Detail {
                            exception: "NotStarted".into(),
                            message: "twice a rank ended before it could start this case".into(),
                            ..Detail::default()
                        };
                        let vector =
                            vec![RankOutcome::with(Outcome::Crashed, detail); self.suite.world as usize];
                        self.done.insert((*id).clone());
                        self.record(launch, id, vector, 0.0);
                    }
                    return Ok(false);
                }
                CaseEnd::Forged => return Ok(true),
            }
        }
        if !self.suite.eager || self.suite.ends {
            self.say_goodbye(launch).await?;
        }
        Ok(false)
    }

    /// The launcher is lost: the case that ran, and those that were left, went with it.
    fn lose(&mut self, error: &LauncherError) {
        let detail = error.detail(self.memory.struck());
        self.outcome.notes.push(format!("{}: {}", detail.exception, detail.message));
        self.outcome.lost = true;
        let launch = self.launcher.launches.saturating_sub(1);
        for id in self.plan.take().unwrap_or_default() {
            if self.done.insert(id.clone()) {
                let entry = RankOutcome::with(Outcome::Crashed, detail.clone());
                self.record(launch, &id, vec![entry; self.suite.world as usize], 0.0);
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.suite.stop.zip(self.outcome.cases.last()).is_some_and(|(stop, case)| stop(case))
    }

    fn record(&mut self, launch: u32, id: &str, vector: Vec<RankOutcome>, duration_s: f64) {
        let case = CaseId { suite: Suite::Official, id: id.to_string() };
        let result = CaseResult { case: case.clone(), vector, duration_s, launch, judgement: None };
        self.events.emit(TrialEvent::CaseEnded { case, outcomes: result.outcomes() });
        self.outcome.cases.push(result);
    }

    async fn case(
        &mut self,
        launch: u32,
        id: &str,
        next: Option<&str>,
        ranks: &[u32],
    ) -> Result<CaseEnd, LauncherError> {
        let begin = Instant::now();
        let grace = Duration::from_secs_f64(self.suite.timeouts.grace);
        let limit = self.suite.deadlines.get(id).copied().unwrap_or(self.suite.timeouts.case);
        let mut deadline =
            (begin + Duration::from_secs_f64(limit.min(self.suite.timeouts.case))).min(self.suite.over);
        let mut entries: BTreeMap<u32, RankOutcome> = BTreeMap::new();
        let mut started: BTreeSet<u32> = BTreeSet::new();
        let mut failed = false;
        let mut duration_s: f64 = 0.0;
        let Some(world) = self.launcher.world(launch) else { return Ok(CaseEnd::NotStarted) };
        let dead: BTreeSet<u32> = ranks.iter().copied().filter(|rank| world.is_dead(*rank)).collect();
        if !dead.is_empty() {
            let entry = |rank: u32| match ranks.contains(&rank) {
                true => ended_early(dead.contains(&rank).then_some("RankEnded")),
                false => RankOutcome::plain(Outcome::NotCollected),
            };
            let vector = (0..self.suite.world).map(entry).collect();
            return Ok(CaseEnd::Done { vector, duration_s: 0.0, apart: true });
        }
        for rank in ranks {
            world.send(*rank, &ToRank::Run { id, next }, &[]);
        }
        self.events
            .emit(TrialEvent::CaseStarted { case: CaseId { suite: Suite::Official, id: id.to_string() } });
        while entries.len() < ranks.len() {
            let Some((_, rank, event)) = self.launcher.next_event(deadline).await? else {
                let silent: Vec<u32> =
                    ranks.iter().copied().filter(|rank| !entries.contains_key(rank)).collect();
                if !self.suite.eager {
                    self.launcher.dump_stacks(launch, &silent).await?;
                }
                for rank in silent {
                    entries.insert(rank, self.silent(launch, rank, failed));
                }
                duration_s = duration_s.max(begin.elapsed().as_secs_f64());
                break;
            };
            let mut fails = false;
            match event {
                RankEvent::Message(FromRank::Started { id: started_id }, _) if started_id == id => {
                    started.insert(rank);
                }
                RankEvent::Message(message @ FromRank::Report { .. }, _) => {
                    let Some((entry, seconds)) = self.report(rank, id, message) else {
                        return Ok(CaseEnd::Forged);
                    };
                    fails = !matches!(entry.outcome, Outcome::Passed | Outcome::Skipped | Outcome::Xfailed);
                    duration_s = duration_s.max(seconds);
                    entries.insert(rank, entry);
                }
                RankEvent::Message(other, _) => {
                    self.forged(rank, &format!("a message out of place while {id} ran: {other:?}"));
                    return Ok(CaseEnd::Forged);
                }
                RankEvent::Forged(evidence) => {
                    self.forged(rank, &evidence);
                    return Ok(CaseEnd::Forged);
                }
                // Whatever it reported: the case is not over before it is over on all ranks.
                RankEvent::Dead(exit) if started.contains(&rank) => {
                    entries.insert(rank, self.crashed(launch, rank, &exit));
                    fails = true;
                }
                RankEvent::Dead(exit) => {
                    entries.insert(rank, ended_early(Some(&exit.name())));
                    fails = true;
                }
            }
            if fails && !failed {
                failed = true;
                deadline = deadline.min(if self.suite.eager { begin } else { Instant::now() + grace });
            }
        }
        let vector: Vec<RankOutcome> = (0..self.suite.world)
            .map(|rank| entries.remove(&rank).unwrap_or_else(|| RankOutcome::plain(Outcome::NotCollected)))
            .collect();
        let first = vector[0].outcome;
        let alike = matches!(
            first,
            Outcome::Passed
                | Outcome::Failed
                | Outcome::Error
                | Outcome::Skipped
                | Outcome::Xfailed
                | Outcome::Xpassed
        ) && vector.iter().all(|entry| entry.outcome == first);
        Ok(CaseEnd::Done { vector, duration_s, apart: !alike })
    }

    fn silent(&mut self, launch: u32, rank: u32, failed: bool) -> RankOutcome {
        let stack = self.launcher.world(launch).map(|world| world.stack(rank)).unwrap_or_default();
        let (outcome, exception, message) = if failed {
            (
                Outcome::PeerAbort,
                "PeerAbort",
                "another rank failed first and this one did not come back".to_string(),
            )
        } else {
            (Outcome::Timeout, "Timeout", format!("no result within {} s", self.suite.timeouts.case))
        };
        let message = if stack.is_empty() { message } else { format!("{message}; last stack:\n{stack}") };
        RankOutcome::with(outcome, Detail { exception: exception.into(), message, ..Detail::default() })
    }

    fn crashed(&mut self, launch: u32, rank: u32, exit: &RankExit) -> RankOutcome {
        let killed = *exit == RankExit::Signal(nix::sys::signal::Signal::SIGKILL as i32);
        let (exception, message) = if killed && self.memory.struck() {
            ("OutOfMemory".to_string(), "the sandbox's memory limit killed this rank".to_string())
        } else {
            let world = self.launcher.world(launch);
            let stack = world.map(|world| world.stack(rank)).unwrap_or_default();
            (
                exit.name(),
                format!("the rank's process ended before its report. {stack}").trim_end().to_string(),
            )
        };
        RankOutcome::with(Outcome::Crashed, Detail { exception, message, ..Detail::default() })
    }

    /// Reads a report; `None` where it is not for the case that runs, or makes no sense.
    fn report(&mut self, rank: u32, id: &str, message: FromRank) -> Option<(RankOutcome, f64)> {
        let FromRank::Report {
            id: reported,
            outcome,
            exception,
            message,
            file,
            line,
            duration_s,
            longrepr,
            rewritten,
            reached,
        } = message
        else {
            return None;
        };
        if reported != id {
            self.forged(rank, &format!("a report for {reported} while {id} ran"));
            return None;
        }
        let Some(outcome) = Outcome::parse(&outcome) else {
            self.forged(rank, &format!("a report with the outcome {outcome:?}"));
            return None;
        };
        if let Some(reached) = reached {
            self.outcome.reach.add(id, *reached);
        }
        if rewritten {
            self.outcome.tampering.push(Tampering {
                kind: TamperingKind::RewrittenReport,
                rank: Some(rank),
                evidence: format!(
                    "{id} raised {}, and a hook turned its report into a pass",
                    exception.as_deref().unwrap_or("an exception")
                ),
            });
        }
        let detail = exception.map(|exception| {
            let message = within(message.unwrap_or_default(), MESSAGE);
            let longrepr = longrepr.map(|text| within(text, TRACE));
            let message = told(&message, longrepr.as_deref());
            let exception = within(exception, MESSAGE);
            Box::new(Detail { exception, message, file: file.map(|file| within(file, MESSAGE)), line })
        });
        Some((RankOutcome { outcome, detail }, duration_s))
    }

    fn forged(&mut self, rank: u32, evidence: &str) {
        self.outcome.tampering.push(Tampering {
            kind: TamperingKind::ForgedRecord,
            rank: Some(rank),
            evidence: within(format!("rank {rank}'s result channel carried {evidence}"), MESSAGE),
        });
    }

    async fn say_goodbye(&mut self, launch: u32) -> Result<(), LauncherError> {
        let mut waiting: BTreeSet<u32> = BTreeSet::new();
        if let Some(world) = self.launcher.world(launch) {
            for rank in 0..world.size {
                if !world.is_dead(rank) {
                    world.send(rank, &ToRank::Finish {}, &[]);
                    waiting.insert(rank);
                }
            }
        }
        let timeouts = self.suite.timeouts;
        let patience = if self.suite.ends { timeouts.case.max(timeouts.grace) } else { timeouts.grace };
        let deadline = Instant::now() + Duration::from_secs_f64(patience);
        while !waiting.is_empty() {
            match self.launcher.next_event(deadline).await? {
                None => break,
                Some((_, rank, RankEvent::Message(FromRank::Bye { exit, hooked }, _))) => {
                    self.outcome.end.hooked |= hooked;
                    let failed = exit.filter(|exit| *exit != 0).map(|exit| format!("exit {exit}"));
                    self.ended_badly(rank, failed);
                    waiting.remove(&rank);
                }
                Some((_, rank, RankEvent::Dead(exit))) => {
                    if waiting.remove(&rank) {
                        let well = matches!(exit, RankExit::Code(0));
                        self.ended_badly(rank, (!well).then(|| exit.name()));
                    }
                }
                Some((_, rank, RankEvent::Forged(evidence))) => {
                    self.forged(rank, &evidence);
                    break;
                }
                Some((_, _, RankEvent::Message(..))) => {}
            }
        }
        Ok(())
    }

    fn ended_badly(&mut self, rank: u32, how: Option<String>) {
        if let Some(how) = how {
            self.outcome.end.failed.get_or_insert((rank, how));
        }
    }

    async fn close(&mut self, launch: u32) -> Result<(), LauncherError> {
        if let Some(logs) = self.launcher.end(launch).await? {
            self.outcome.logs.push(logs);
        }
        Ok(())
    }

    fn finish(mut self) -> OfficialOutcome {
        for ((file, why), ranks) in &self.file_notes {
            let on = if ranks.len() == self.suite.world as usize {
                "on every rank".to_string()
            } else {
                let ranks: Vec<String> = ranks.iter().map(u32::to_string).collect();
                format!("on rank {}", ranks.join(", "))
            };
            self.outcome.notes.push(format!("{file} could not be collected {on}: {why}"));
        }
        self.outcome
    }
}

/// The message, then pytest's own account of it: whoever shows one line shows the message.
fn told(message: &str, longrepr: Option<&str>) -> String {
    match (message.trim().is_empty(), longrepr) {
        (false, Some(longrepr)) if !longrepr.trim().is_empty() && longrepr != message => {
            format!("{message}\n{longrepr}")
        }
        (true, Some(longrepr)) => longrepr.to_string(),
        _ => message.to_string(),
    }
}

/// What becomes of a case before which a rank ended by itself, as a thread that an earlier case left may have it: no case's own
/// doing for certain, and no accident that another try may pass over.
fn ended_early(exit: Option<&str>) -> RankOutcome {
    let (outcome, exception, message) = match exit {
        Some(exit) => (Outcome::Crashed, exit, "the rank's process ended by itself before this case began"),
        None => (Outcome::PeerAbort, "PeerAbort", "another rank's process had ended before this case began"),
    };
    RankOutcome::with(
        outcome,
        Detail { exception: exception.into(), message: message.into(), ..Detail::default() },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &str) -> Vec<Arc<str>> {
        text.split_whitespace().map(Arc::from).collect()
    }

    #[test]
    fn what_one_rank_alone_collects_stands_where_that_rank_has_it() {
        for (ranks, expected) in [
            (vec!["a b c", "a b c"], "a b c"),
            (vec!["a c", "a b c"], "a b c"),
            (vec!["a b c", "a c"], "a b c"),
            (vec!["b", "a b", "b c", "c d"], "a b c d"),
            (vec!["", "a b"], "a b"),
            (vec!["a", "b c"], "b c a"),
        ] {
            let ranks: Vec<Vec<Arc<str>>> = ranks.into_iter().map(ids).collect();
            assert_eq!(in_one_order(&ranks), ids(expected), "{ranks:?}");
        }
    }
}
