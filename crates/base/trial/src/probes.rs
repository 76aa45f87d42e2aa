//! The probes: observed inside, judged outside. The judge asks, this relays to the ranks, bounds what comes back, and reads the
//! meters around it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::fd::AsFd;
use std::time::Duration;

use infradev_model::{
    CaseId, CaseResult, Detail, DigestBuilder, Outcome, RankOutcome, Suite, Tampering, TamperingKind,
    Timeouts,
};
use infradev_sandbox::RankNetworks;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::calls::{Answer, Call, seconds_of, wrong};
use crate::events::{Events, TrialEvent};
use crate::judge::{Judge, JudgeError};
use crate::launcher::{LaunchRequest, Launcher, LauncherError, RankEvent, RankExit, WorldLogs};
use crate::messages::{
    FromJudge, FromRank, JudgeCase, JudgeReport, MESSAGE, ObserveRequest, Reached, ToJudge, ToRank, within,
};
use crate::meters::{Meters, Reading};
use crate::ranks::{Network, WorldSetup};
use crate::reach::ReachLog;

/// How long the judge may take to report once all that it waited for is over.
const REPORT: Duration = Duration::from_secs(30);

/// Why the probes could not be run to their end.
#[derive(Debug, thiserror::Error)]
pub enum ProbesError {
    /// The launcher's part.
    #[error(transparent)]
    Launcher(#[from] LauncherError),
    /// The judge's part.
    #[error(transparent)]
    Judge(#[from] JudgeError),
}

/// The suite as it is to be run.
pub struct ProbeSuite<'a> {
    /// Default size of a world.
    pub world: u32,
    /// Cases in the order in which they run.
    pub cases: Vec<JudgeCase>,
    /// Deadlines.
    pub timeouts: &'a Timeouts,
    /// Seed of the trial; each case's own follows from it and its id.
    pub seed: u64,
    /// A seed for every case, where one is replayed.
    pub case_seed: Option<u64>,
    /// Ends the suite after the first case for which it says so.
    pub stop: Option<&'a (dyn Fn(&CaseResult) -> bool + Send + Sync)>,
    /// When the whole trial's time is over.
    pub over: Instant,
    /// Whether golden is calibrated: then a lost judge is a fault.
    pub golden: bool,
}

/// What came of the suite.
#[derive(Debug, Default)]
pub struct ProbesOutcome {
    /// Every case, in order.
    pub cases: Vec<CaseResult>,
    /// Evidence.
    pub tampering: Vec<Tampering>,
    /// One sentence each.
    pub notes: Vec<String>,
    /// Names that resolve outside the tree.
    pub outside: BTreeSet<String>,
    /// What ranks wrote.
    pub logs: Vec<WorldLogs>,
    /// Whether ranks took the launcher or the judge with them: the trial ends there.
    pub lost: bool,
    /// Lines that ran, where ranks followed them.
    pub reach: ReachLog,
}

struct OpenWorld {
    size: u32,
    networks: Option<RankNetworks>,
}

struct ProbesRun<'a> {
    launcher: &'a mut Launcher,
    judge: &'a mut Judge,
    setup: &'a WorldSetup,
    suite: &'a ProbeSuite<'a>,
    events: &'a dyn Events,
    meters: &'a mut dyn Meters,
    outcome: ProbesOutcome,
    worlds: BTreeMap<u32, OpenWorld>,
    calls: HashMap<u32, Call>,
    folders: HashMap<String, String>,
    readings: HashMap<(u32, String), Reading>,
    /// Ranks whose answer to a call is waited for no longer: one that is on its way all the same is late, not forged.
    lapsed: BTreeSet<(u32, u32)>,
    /// Outcomes of ranks that went wrong during the current case.
    wrongs: Vec<RankOutcome>,
    /// When no call of the current case is waited for any longer.
    patience: Instant,
    /// The case that runs.
    current: String,
}

/// Runs the suite. An error is the harness's, or an author's.
pub async fn run(
    launcher: &mut Launcher,
    judge: &mut Judge,
    setup: &WorldSetup,
    suite: &ProbeSuite<'_>,
    events: &dyn Events,
    meters: &mut dyn Meters,
) -> Result<ProbesOutcome, ProbesError> {
    events.emit(TrialEvent::Collected { suite: Suite::Probe, cases: suite.cases.len() });
    let mut run = ProbesRun {
        launcher,
        judge,
        setup,
        suite,
        events,
        meters,
        outcome: ProbesOutcome::default(),
        worlds: BTreeMap::new(),
        calls: HashMap::new(),
        folders: HashMap::new(),
        readings: HashMap::new(),
        lapsed: BTreeSet::new(),
        wrongs: Vec::new(),
        patience: suite.over,
        current: String::new(),
    };
    for (index, case) in suite.cases.iter().enumerate() {
        if Instant::now() >= suite.over {
            run.outcome.notes.push("the trial's time ran out before all probes ran".to_string());
            break;
        }
        match run.case(case).await {
            Err(ProbesError::Launcher(error)) if error.is_lost() && run.launcher.launched => {
                let detail = error.detail(run.meters.struck());
                run.lose(&detail, &suite.cases[index..]);
                break;
            }
            // The judge copes with what golden answers; what ends it is what these ranks answered, as a control run shows
            // where it was not.
            Err(ProbesError::Judge(error)) if !suite.golden && run.launcher.launched => {
                let message = format!("while it judged what this patch had answered: {error}");
                let detail = Detail { exception: "JudgeLost".into(), message, ..Detail::default() };
                run.lose(&detail, &suite.cases[index..]);
                break;
            }
            result => result?,
        }
        let stopped = suite.stop.zip(run.outcome.cases.last()).is_some_and(|(stop, case)| stop(case));
        if stopped || !run.outcome.tampering.is_empty() {
            break;
        }
    }
    Ok(run.outcome)
}

/// The seed of a case's inputs.
fn case_seed(seed: u64, id: &str) -> u64 {
    let mut digest = DigestBuilder::new("infradev case seed v1");
    digest.part("seed", &seed.to_le_bytes()).part("case", id.as_bytes());
    u64::from_str_radix(&digest.finish().as_str()[..16], 16).unwrap_or(seed)
}

impl ProbesRun<'_> {
    async fn case(&mut self, case: &JudgeCase) -> Result<(), ProbesError> {
        let id = CaseId { suite: Suite::Probe, id: case.id.clone() };
        self.events.emit(TrialEvent::CaseStarted { case: id.clone() });
        self.wrongs.clear();
        self.current.clone_from(&case.id);
        let seed = self.suite.case_seed.unwrap_or_else(|| case_seed(self.suite.seed, &case.id));
        let first_launch = self.launcher.launches;
        let begin = Instant::now();
        // A case may wait for its ranks several times; the judge itself gets the same again on top.
        self.patience = self.suite.over.min(begin + seconds_of(self.suite.timeouts.case * 4.0 + 30.0));
        let deadline_s = self.suite.timeouts.case;
        self.judge.send(&ToJudge::Run { id: &case.id, seed, deadline_s }, &[]).await?;
        let report = self.serve(case).await?;
        self.close_all().await?;
        let (vector, judgement) = report.judged(case, seed, std::mem::take(&mut self.wrongs));
        let result = CaseResult {
            case: id.clone(),
            vector: vec![vector],
            duration_s: begin.elapsed().as_secs_f64(),
            launch: first_launch,
            judgement: Some(Box::new(judgement)),
        };
        self.events.emit(TrialEvent::CaseEnded { case: id, outcomes: result.outcomes() });
        self.outcome.cases.push(result);
        Ok(())
    }

    /// Launcher or judge is lost: the case that ran, and those that were left, went with it.
    fn lose(&mut self, detail: &Detail, cases: &[JudgeCase]) {
        self.outcome.notes.push(format!("{}: {}", detail.exception, detail.message));
        self.outcome.lost = true;
        for case in cases {
            let id = CaseId { suite: Suite::Probe, id: case.id.clone() };
            let result = CaseResult {
                case: id.clone(),
                vector: vec![RankOutcome::with(Outcome::Crashed, detail.clone())],
                duration_s: 0.0,
                launch: self.launcher.launches.saturating_sub(1),
                judgement: None,
            };
            self.events.emit(TrialEvent::CaseEnded { case: id, outcomes: result.outcomes() });
            self.outcome.cases.push(result);
        }
    }

    /// Serves the judge until it reports.
    async fn serve(&mut self, case: &JudgeCase) -> Result<JudgeReport, ProbesError> {
        let last = self.patience + REPORT;
        loop {
            let wake = self.calls.values().map(|call| call.deadline).min().unwrap_or(last).min(last);
            tokio::select! {
                biased;
                request = self.judge.next() => {
                    let (message, payload) = request?;
                    if let FromJudge::Report(report) = message {
                        return Ok(*report);
                    }
                    self.request(message, payload).await?;
                }
                event = self.launcher.next_event(wake) => match event? {
                    Some((launch, rank, event)) => self.rank_event(launch, rank, event).await?,
                    None => {
                        if Instant::now() >= last {
                            let message = format!("gave no report of {} in time", case.id);
                            return Err(JudgeError::Gone(message).into());
                        }
                        self.expire().await?;
                    }
                }
            }
        }
    }

    async fn request(&mut self, message: FromJudge, payload: Vec<u8>) -> Result<(), ProbesError> {
        match message {
            FromJudge::Started {} => Ok(()),
            FromJudge::Open { call, size, tree, files, network } => {
                let size = size.unwrap_or(self.suite.world);
                let network = match network.as_str() {
                    "per_rank" => Network::PerRank,
                    _ => Network::Shared,
                };
                match self.open(size, &tree, files.as_deref(), network).await {
                    Ok(world) => {
                        let device = self.setup.device;
                        self.reply(json!({"type": "opened", "call": call, "world": world, "size": size, "device": device}))
                            .await
                    }
                    Err(OpenError::Refused(message)) => self.refuse(call, &message).await,
                    Err(OpenError::Launcher(error)) => Err(error.into()),
                }
            }
            FromJudge::Observe(request) => {
                let call = request.call;
                match self.begin_call(request, payload, true).await {
                    Ok(()) => self.settle(call).await,
                    Err(message) => self.refuse(call, &message).await,
                }
            }
            FromJudge::Start(request) => {
                let call = request.call;
                match self.begin_call(request, payload, false).await {
                    Ok(()) => self.reply(json!({"type": "started", "call": call})).await,
                    Err(message) => self.refuse(call, &message).await,
                }
            }
            FromJudge::Wait { call, of, deadline_s } => {
                let Some(entry) = self.calls.get_mut(&of) else {
                    return self.refuse(call, "no such call is under way").await;
                };
                entry.waiter = Some(call);
                if let Some(seconds) = deadline_s {
                    entry.deadline = self.patience.min(Instant::now() + seconds_of(seconds));
                }
                self.settle(of).await
            }
            FromJudge::Poll { call, of } => match self.calls.get_mut(&of) {
                Some(entry) if entry.complete() => {
                    entry.waiter = Some(call);
                    self.settle(of).await
                }
                Some(_) => self.reply(json!({"type": "pending", "call": call})).await,
                None => self.refuse(call, "no such call is under way").await,
            },
            FromJudge::Meter { call, world, what, op } => self.meter(call, world, &what, &op).await,
            FromJudge::Signal { call, world, rank, signal } => {
                self.launcher.signal(world, Some(rank), signal).await?;
                self.reply(json!({"type": "done", "call": call})).await
            }
            FromJudge::Close { call, world } => {
                self.close(world).await?;
                self.reply(json!({"type": "done", "call": call})).await
            }
            other => Err(JudgeError::Gone(format!("said {other:?} in the middle of a case")).into()),
        }
    }

    async fn reply(&mut self, message: Value) -> Result<(), ProbesError> {
        Ok(self.judge.send(&message, &[]).await?)
    }

    async fn refuse(&mut self, call: u32, message: &str) -> Result<(), ProbesError> {
        self.reply(json!({"type": "refused", "call": call, "message": message})).await
    }

    async fn open(
        &mut self,
        size: u32,
        tree: &str,
        files: Option<&str>,
        network: Network,
    ) -> Result<u32, OpenError> {
        if size == 0 || size > 64 {
            return Err(OpenError::Refused(format!("a world of {size} ranks is not run here (1 to 64)")));
        }
        let root = match tree {
            "patched" => self.setup.paths.workspace.clone(),
            "base" => self.setup.paths.base.clone(),
            other => {
                return Err(OpenError::Refused(format!("there is no tree {other:?}: `patched` or `base`")));
            }
        };
        let refused = |error: infradev_sandbox::SandboxError| OpenError::Refused(error.to_string());
        let networks = match network {
            Network::Shared => None,
            Network::PerRank => Some(RankNetworks::create(size as usize).map_err(refused)?),
        };
        let folder = match files {
            None => None,
            Some(name) if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') => {
                return Err(OpenError::Refused(format!("{name:?} does not name a shared folder")));
            }
            Some(name) => Some(match self.folders.get(name) {
                Some(folder) => folder.clone(),
                None => {
                    let folder = self.launcher.shared_folder(&self.setup.paths.scratch, name).await?;
                    self.folders.insert(name.to_string(), folder.clone());
                    folder
                }
            }),
        };
        let fds = networks.as_ref().map(RankNetworks::fds).transpose().map_err(refused)?.unwrap_or_default();
        let next = self.launcher.launches;
        let mut args = self.setup.common_args(&root);
        args["mode"] = json!("observe");
        args["probes"] = json!(self.setup.paths.probes);
        args["files"] = json!(folder);
        args["size"] = json!(size);
        let request = LaunchRequest {
            size,
            env: &self.setup.common_env(next, size, network),
            rank_env: self.setup.rank_env(size),
            cwd: &root,
            networks: fds.iter().map(AsFd::as_fd).collect(),
            args,
        };
        let launch = self.launcher.launch(request).await?;
        self.events.emit(TrialEvent::Launched { launch, size });
        self.worlds.insert(launch, OpenWorld { size, networks });
        Ok(launch)
    }

    /// Sends a call to its ranks; an error is for the judge.
    async fn begin_call(
        &mut self,
        request: ObserveRequest,
        payload: Vec<u8>,
        wait: bool,
    ) -> Result<(), String> {
        let world = self.worlds.get(&request.world).ok_or("that world is not open")?;
        let ranks: Vec<u32> = request.parts.iter().flat_map(|part| part.ranks.iter().copied()).collect();
        let distinct: BTreeSet<u32> = ranks.iter().copied().collect();
        if ranks.is_empty() || distinct.len() != ranks.len() || ranks.iter().any(|rank| *rank >= world.size) {
            return Err(format!("ranks {ranks:?} are not distinct ranks of a world of {}", world.size));
        }
        let total: u64 = request.parts.iter().map(|part| part.length).fold(0, u64::saturating_add);
        if total != payload.len() as u64 {
            return Err(format!("{total} bytes of arrays are announced and {} came", payload.len()));
        }
        let seconds = request.deadline_s.unwrap_or(self.suite.timeouts.case);
        let mut call = Call {
            launch: request.world,
            ranks,
            answers: BTreeMap::new(),
            deadline: self.patience.min(Instant::now() + seconds_of(seconds)),
            waiter: wait.then_some(request.call),
            failed: false,
        };
        let mut start = 0usize;
        for part in &request.parts {
            let bytes = &payload[start..start + part.length as usize];
            start += part.length as usize;
            for rank in &part.ranks {
                let gone = match self.launcher.world(request.world) {
                    Some(world) if !world.is_dead(*rank) => {
                        let message = ToRank::Observe {
                            call: request.call,
                            observer: &request.observer,
                            inputs: &part.inputs,
                        };
                        world.send(*rank, &message, bytes);
                        false
                    }
                    _ => true,
                };
                if gone {
                    let fields = json!({"message": "the rank had ended before this call"});
                    call.answers.insert(*rank, Answer::new("gone", fields));
                }
            }
        }
        self.calls.insert(request.call, call);
        Ok(())
    }

    /// Answers the judge where a call is complete and awaited.
    async fn settle(&mut self, of: u32) -> Result<(), ProbesError> {
        let Some(call) = self.calls.get(&of) else { return Ok(()) };
        let Some(waiter) = call.waiter.filter(|_| call.complete()) else { return Ok(()) };
        let Some(mut call) = self.calls.remove(&of) else { return Ok(()) };
        let mut ranks = Vec::new();
        let mut payloads = Vec::new();
        for rank in &call.ranks {
            let Some(answer) = call.answers.remove(rank) else { continue };
            let mut entry = answer.fields;
            entry["rank"] = json!(rank);
            entry["status"] = json!(answer.status);
            entry["length"] = json!(answer.payload.len());
            payloads.push(answer.payload);
            ranks.push(entry);
        }
        let message = json!({"type": "observed", "call": waiter, "ranks": ranks});
        let parts: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
        Ok(self.judge.send(&message, &parts).await?)
    }

    async fn rank_event(&mut self, launch: u32, rank: u32, event: RankEvent) -> Result<(), ProbesError> {
        match event {
            RankEvent::Message(FromRank::Hello { outside, .. }, _) => {
                self.outcome.outside.extend(outside);
                Ok(())
            }
            RankEvent::Message(FromRank::Returned { call, value, reached }, payload) => {
                self.reached(reached);
                let answer = Answer::returned(value, payload);
                self.answer(launch, rank, call, answer).await
            }
            RankEvent::Message(
                FromRank::Raised { call, exception, mro, message, file, line, traceback, kind, reached },
                _,
            ) => {
                self.reached(reached);
                let fields = json!({
                    "exception": exception, "mro": mro, "message": message, "file": file, "line": line,
                    "traceback": traceback, "kind": kind,
                });
                self.answer(launch, rank, call, Answer::new("raised", fields)).await
            }
            RankEvent::Message(FromRank::Bye { .. }, _) => Ok(()),
            RankEvent::Message(other, _) => {
                self.forged(rank, &format!("a message out of place in a probe: {other:?}"));
                self.fail_rank(launch, rank, "forged").await
            }
            RankEvent::Forged(evidence) => {
                self.forged(rank, &evidence);
                self.fail_rank(launch, rank, "forged").await
            }
            RankEvent::Dead(exit) => {
                // What it ran since its last answer is not known.
                self.outcome.reach.add_wide(&self.current);
                let stack = self.launcher.world(launch).map(|world| world.stack(rank)).unwrap_or_default();
                let (code, signal) = match exit {
                    RankExit::Code(code) => (Some(code), None),
                    RankExit::Signal(signal) => (None, Some(signal)),
                    RankExit::ClosedChannel => (None, None),
                };
                let mut name = exit.name();
                if exit == RankExit::Signal(9) && self.meters.struck() {
                    name = "OutOfMemory".to_string();
                }
                let fields = json!({"code": code, "signal": signal, "exception": name, "stack": stack,
                    "message": format!("the rank's process ended ({name})")});
                self.fail_open_calls(launch, rank, "crashed", &fields).await
            }
        }
    }

    /// Takes note of the lines that ran in a call of the current case.
    fn reached(&mut self, reached: Option<Box<Reached>>) {
        if let Some(reached) = reached {
            self.outcome.reach.add_whole(&self.current, *reached);
        }
    }

    async fn fail_rank(&mut self, launch: u32, rank: u32, why: &str) -> Result<(), ProbesError> {
        let fields = json!({"message": why, "exception": why});
        self.fail_open_calls(launch, rank, "crashed", &fields).await
    }

    async fn fail_open_calls(
        &mut self,
        launch: u32,
        rank: u32,
        status: &'static str,
        fields: &Value,
    ) -> Result<(), ProbesError> {
        let open: Vec<u32> = self
            .calls
            .iter()
            .filter(|(_, call)| call.launch == launch && call.ranks.contains(&rank))
            .filter(|(_, call)| !call.answers.contains_key(&rank))
            .map(|(id, _)| *id)
            .collect();
        for call in open {
            let answer = Answer::new(status, fields.clone());
            self.answer(launch, rank, call, answer).await?;
        }
        Ok(())
    }

    async fn answer(&mut self, launch: u32, rank: u32, of: u32, answer: Answer) -> Result<(), ProbesError> {
        let grace = Duration::from_secs_f64(self.suite.timeouts.grace);
        let fits = self.calls.get(&of).is_some_and(|call| {
            call.launch == launch && call.ranks.contains(&rank) && !call.answers.contains_key(&rank)
        });
        if self.lapsed.remove(&(of, rank)) {
            return Ok(());
        }
        if !fits {
            self.forged(rank, &format!("an answer to call {of}, which it was not asked"));
            return Ok(());
        }
        if let Some(call) = self.calls.get_mut(&of) {
            let answer = call.bounded(answer);
            if answer.status != "returned" && !call.failed {
                call.failed = true;
                call.deadline = call.deadline.min(Instant::now() + grace);
            }
            if answer.status != "returned" {
                self.wrongs.push(wrong(&answer));
            }
            call.answers.insert(rank, answer);
        }
        self.settle(of).await
    }

    /// Ends the calls whose time is over: what has not answered hangs, or could only hang.
    async fn expire(&mut self) -> Result<(), ProbesError> {
        let now = Instant::now();
        let late: Vec<u32> = self
            .calls
            .iter()
            .filter(|(_, call)| call.deadline <= now && !call.complete())
            .map(|(id, _)| *id)
            .collect();
        for id in late {
            let Some(call) = self.calls.get(&id) else { continue };
            let (launch, failed) = (call.launch, call.failed);
            let silent: Vec<u32> =
                call.ranks.iter().copied().filter(|rank| !call.answers.contains_key(rank)).collect();
            self.launcher.dump_stacks(launch, &silent).await?;
            for rank in &silent {
                let stack = self.launcher.world(launch).map(|world| world.stack(*rank)).unwrap_or_default();
                let (status, message) = if failed {
                    ("peer_abort", "another rank failed first and this one did not come back")
                } else {
                    ("timeout", "no answer within the call's time")
                };
                let fields = json!({"message": message, "stack": stack, "exception": "Timeout"});
                let answer = Answer::new(status, fields);
                self.wrongs.push(wrong(&answer));
                if let Some(call) = self.calls.get_mut(&id) {
                    call.answers.insert(*rank, answer);
                }
                self.lapsed.insert((id, *rank));
                self.outcome.reach.add_wide(&self.current);
                // What hangs does not come back; a later call finds it gone.
                self.launcher.signal(launch, Some(*rank), 9).await?;
            }
            if let Some(call) = self.calls.get_mut(&id) {
                call.deadline = now + Duration::from_secs(3600);
            }
            self.settle(id).await?;
        }
        // A complete call that nobody waits for has no deadline any more.
        for call in self.calls.values_mut() {
            if call.deadline <= now {
                call.deadline = now + Duration::from_secs(3600);
            }
        }
        Ok(())
    }

    async fn meter(&mut self, call: u32, world: u32, what: &str, op: &str) -> Result<(), ProbesError> {
        let Some(open) = self.worlds.get(&world) else {
            return self.refuse(call, "that world is not open").await;
        };
        let reading = match what {
            "traffic" => self.meters.traffic(open.networks.as_ref()),
            "memory" if op == "start" => self.meters.memory_baseline(),
            "memory" => self.meters.memory_peak(),
            other => Err(format!("there is no meter {other:?}: `traffic` or `memory`")),
        };
        let reading = match reading {
            Ok(reading) => reading,
            Err(message) => return self.refuse(call, &message).await,
        };
        let key = (world, what.to_string());
        if op == "start" {
            self.readings.insert(key, reading);
            return self.reply(json!({"type": "metered", "call": call})).await;
        }
        let Some(start) = self.readings.remove(&key) else {
            return self.refuse(call, "that meter was not started").await;
        };
        let mut message = reading.since(&start);
        message["type"] = json!("metered");
        message["call"] = json!(call);
        self.reply(message).await
    }

    async fn close(&mut self, world: u32) -> Result<(), ProbesError> {
        self.calls.retain(|_, call| call.launch != world);
        self.worlds.remove(&world);
        if let Some(logs) = self.launcher.end(world).await? {
            self.outcome.logs.push(logs);
        }
        Ok(())
    }

    async fn close_all(&mut self) -> Result<(), ProbesError> {
        for world in self.worlds.keys().copied().collect::<Vec<_>>() {
            self.close(world).await?;
        }
        self.calls.clear();
        self.lapsed.clear();
        self.folders.clear();
        self.readings.clear();
        Ok(())
    }

    fn forged(&mut self, rank: u32, evidence: &str) {
        self.outcome.tampering.push(Tampering {
            kind: TamperingKind::ForgedRecord,
            rank: Some(rank),
            evidence: within(format!("rank {rank}'s result channel carried {evidence}"), MESSAGE),
        });
    }
}

enum OpenError {
    Refused(String),
    Launcher(LauncherError),
}

impl From<LauncherError> for OpenError {
    fn from(error: LauncherError) -> OpenError {
        OpenError::Launcher(error)
    }
}
