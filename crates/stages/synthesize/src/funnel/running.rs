//! Runs the funnel over all slots, and goes on where a killed one stopped.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use futures_util::future::{try_join, try_join_all};
use infradev_executor::{ChangedFile, Executor, GoldenChange, ReadyTask, Slot};
use infradev_model::{
    Digest, Fate, GoldenControl, HunkAt, Mutant, MutantRecord, Operator, Strength, Suite, Synthesis,
};
use infradev_store::journal::Journal;
use infradev_store::{RunFolder, Staging, StoreError};
use infradev_trial::{Session, TrialError};
use serde::{Deserialize, Serialize};

use super::control::{Control, SuiteControl};
use super::trying::{Candidate, Trying};
use super::{FunnelError, Mutations, followed, lines_of};

/// Seed of the probes' inputs, of golden's control as of each mutant.
const SEED: u64 = 0x5eed;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct FunnelPlan {
    /// Mutants, in any order, and what is known of them beforehand.
    pub mutations: Mutations,
    /// `(k, n)`: the k-th of n shards of the mutants, from 1.
    pub shard: Option<(u32, u32)>,
    /// Whether cases that golden fails are left out, rather than refused.
    pub skip_failing: bool,
    /// Ids of official cases, without parameters or with; all of them where none is given.
    pub only: BTreeSet<String>,
}

/// Something that happened.
#[derive(Debug)]
pub enum Told<'a> {
    /// Golden was run under a suite.
    Golden(&'a GoldenControl),
    /// A mutant was tried, or its record was there already.
    Mutant {
        /// What became of it.
        record: &'a MutantRecord,
        /// Mutants finished, this one too.
        done: usize,
        /// All mutants of this shard.
        of: usize,
        /// Whether its record was there already.
        recorded: bool,
    },
}

/// A finished mutant in the run's journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Finished {
    key: Digest,
    record: MutantRecord,
}

/// Tries every mutant of a plan on a task.
pub async fn run(
    executor: &Executor,
    run: &RunFolder,
    ready: &ReadyTask,
    plan: &FunnelPlan,
    told: &dyn Fn(Told<'_>),
) -> Result<Synthesis, FunnelError> {
    let funnel = Funnel::new(executor, run, ready, plan, told)?;
    tokio::select! {
        biased;
        () = infradev_supervise::cancel_requested() => Err(TrialError::Cancelled.into()),
        found = funnel.go() => found,
    }
}

struct Funnel<'a> {
    executor: &'a Executor,
    run: &'a RunFolder,
    ready: &'a ReadyTask,
    plan: &'a FunnelPlan,
    told: &'a dyn Fn(Told<'_>),
    key: Digest,
    files: Vec<ChangedFile>,
    followed: Vec<String>,
}

/// A session with what it lives in: its slot, its GPUs, its folder.
struct Place {
    session: Session,
    held: (Slot, Staging),
}

impl<'a> Funnel<'a> {
    fn new(
        executor: &'a Executor,
        run: &'a RunFolder,
        ready: &'a ReadyTask,
        plan: &'a FunnelPlan,
        told: &'a dyn Fn(Told<'_>),
    ) -> Result<Funnel<'a>, FunnelError> {
        let files = GoldenChange::of(ready)?.files();
        let followed = followed(&files);
        let key = executor.session_key(ready);
        Ok(Funnel { executor, run, ready, plan, told, key, files, followed })
    }

    async fn go(&self) -> Result<Synthesis, FunnelError> {
        let candidates = self.candidates();
        let (mut journal, mut records) = self.journal()?;
        records.retain(|digest, _| candidates.iter().any(|candidate| candidate.mutant.digest == *digest));
        let open: Vec<&Candidate> =
            candidates.iter().filter(|candidate| !records.contains_key(&candidate.mutant.digest)).collect();
        let of = candidates.len();
        let (control, places) = self.start(open.len()).await?;
        for (done, record) in records.values().enumerate() {
            (self.told)(Told::Mutant { record, done: done + 1, of, recorded: true });
        }
        let finished = RefCell::new((&mut journal, &mut records));
        let queue = RefCell::new(open.into_iter().collect::<VecDeque<_>>());
        let trying = Trying { task: &self.ready.task, control: &control, seed: SEED };
        let work = async |place: Place| {
            // As a whole: slot, GPUs and folder stay until the session is closed.
            let Place { mut session, held } = place;
            loop {
                let Some(candidate) = queue.borrow_mut().pop_front() else { break };
                let record = trying.mutant(&mut session, candidate).await?;
                let mut finished = finished.borrow_mut();
                let (journal, records) = &mut *finished;
                journal.append(&Finished { key: self.key.clone(), record: record.clone() })?;
                records.insert(record.mutant.digest.clone(), record.clone());
                let done = records.len();
                let record = self.with_listing(record);
                (self.told)(Told::Mutant { record: &record, done, of, recorded: false });
            }
            session.close().await;
            drop(held);
            Ok::<_, FunnelError>(())
        };
        try_join_all(places.into_iter().map(work)).await?;
        let records = records.into_values().map(|record| self.with_listing(record)).collect();
        Ok(self.synthesis(&control, records))
    }

    /// A record with what the task says of its mutant. The journal has it without: a listing may change, what a test made of the
    /// mutant does not.
    fn with_listing(&self, record: MutantRecord) -> MutantRecord {
        match self.plan.mutations.listed.get(&record.mutant.digest) {
            Some(why) => record.listed(why),
            None => record,
        }
    }

    /// This shard's mutants, in the order of files and lines.
    fn candidates(&self) -> Vec<Candidate> {
        let mut mutants: Vec<&Mutant> =
            self.plan.mutations.mutants.iter().filter(|mutant| self.in_shard(mutant)).collect();
        mutants.sort_by_key(|mutant| (&mutant.file, mutant.start, mutant.end, mutant.operator));
        let golden: BTreeMap<&str, (u32, &str)> = self
            .followed
            .iter()
            .enumerate()
            .filter_map(|(index, path)| {
                let file = self.files.iter().find(|file| file.path == *path)?;
                Some((path.as_str(), (index as u32, file.golden.as_deref()?)))
            })
            .collect();
        let candidate = |mutant: &Mutant| {
            let (lines, golden) = match golden.get(mutant.file.as_str()) {
                Some((index, golden)) => (lines_of(mutant, *index, golden), (*golden).to_string()),
                None => (None, String::new()),
            };
            Candidate { mutant: mutant.clone(), golden, lines }
        };
        mutants.into_iter().map(candidate).collect()
    }

    fn in_shard(&self, mutant: &Mutant) -> bool {
        let Some((shard, of)) = self.plan.shard else { return true };
        let number = u64::from_str_radix(&mutant.digest.as_str()[..8], 16).unwrap_or(0);
        number % u64::from(of.max(1)) == u64::from(shard - 1)
    }

    /// What earlier processes of this run finished, under the same conditions.
    fn journal(&self) -> Result<(Journal<Finished>, BTreeMap<Digest, MutantRecord>), StoreError> {
        let path = self.run.path().join(format!("mutants-{}.jsonl", self.ready.task.id()));
        let (journal, contents) = Journal::<Finished>::open(&path)?;
        let of_key = contents.events.into_iter().filter(|(_, finished)| finished.key == self.key);
        let records =
            of_key.map(|(_, finished)| (finished.record.mutant.digest.clone(), finished.record)).collect();
        Ok((journal, records))
    }

    /// Golden's control, stored or new, and a session for each slot that has something to do.
    async fn start(&self, open: usize) -> Result<(Control, Vec<Place>), FunnelError> {
        let name = format!("control-{}.json", self.ready.task.id());
        let stored: Option<Control> = std::fs::read(self.run.path().join(&name))
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .filter(|control: &Control| control.key.as_ref() == Some(&self.key));
        let sessions = self.executor.slot_count().min(open.max(1));
        let others = try_join_all((1..sessions).map(|number| self.place(number)));
        let first = async {
            if let Some(control) = stored {
                let place = if open > 0 { Some(self.place(0).await?) } else { None };
                return Ok::<_, FunnelError>((control, place));
            }
            let mut place = self.place(0).await?;
            let control = self.control(&mut place).await?;
            self.run.write_document(&name, &control)?;
            Ok((control, Some(place)))
        };
        let ((control, first), mut places) = try_join(first, others).await?;
        places.extend(first);
        if let Some(refusal) = control.refusal(self.ready.task.id(), self.plan.skip_failing) {
            return Err(refusal);
        }
        for suite in &control.suites {
            (self.told)(Told::Golden(&suite.summary()));
        }
        Ok((control, places))
    }

    async fn place(&self, number: usize) -> Result<Place, FunnelError> {
        let staging = self.run.stage(&Digest::of(format!("session {number}").as_bytes()))?;
        let scratch = staging.scratch().to_path_buf();
        let (mut session, slot) = self.executor.session(self.ready, &scratch).await?;
        let spec = &self.ready.task.public.spec;
        let world = spec.worlds.first().copied().unwrap_or(1);
        session.prime(world, &spec.timeouts).await?;
        Ok(Place { session, held: (slot, staging) })
    }

    async fn control(&self, place: &mut Place) -> Result<Control, FunnelError> {
        let task = &self.ready.task;
        let mut control = Control { key: Some(self.key.clone()), suites: Vec::new() };
        for suite in [Suite::Official, Suite::Probe] {
            if suite == Suite::Probe && task.probes.is_empty() {
                continue;
            }
            for world in &task.public.spec.worlds {
                let session = &mut place.session;
                let mut taken =
                    SuiteControl::take(session, task, suite, *world, &self.followed, SEED).await?;
                taken.keep_only(&self.plan.only);
                control.suites.push(taken);
            }
        }
        Ok(control)
    }

    fn synthesis(&self, control: &Control, mut records: Vec<MutantRecord>) -> Synthesis {
        records.sort_by(|a, b| {
            let key = |record: &MutantRecord| {
                (record.mutant.file.clone(), record.mutant.start, record.mutant.end, record.mutant.operator)
            };
            key(a).cmp(&key(b))
        });
        let unprobed = records
            .iter()
            .filter(|record| record.mutant.operator == Operator::TakeBackHunk && record.fate.survives());
        let unprobed_hunks = unprobed
            .map(|record| HunkAt { file: record.mutant.file.clone(), line: record.mutant.line })
            .collect();
        let mut remarks = Vec::new();
        for suite in control.suites.iter().filter(|suite| !suite.failing.is_empty()) {
            let names: Vec<&str> = suite.failing.keys().map(String::as_str).collect();
            remarks.push(format!(
                "left out at world size {}, since golden fails them: {}",
                suite.world,
                names.join(", ")
            ));
        }
        if records.is_empty() {
            remarks.push("no mutant can be made of this change".to_string());
        }
        let unreached = records.iter().filter(|record| record.fate == Fate::Unreached).count();
        if unreached > 0 {
            remarks.push(format!("{unreached} of the mutants stand in lines that no test runs"));
        }
        Synthesis {
            id: self.ready.task.id().to_string(),
            shard: self.plan.shard.map(|(k, n)| format!("{k}/{n}")),
            golden: control.suites.iter().map(SuiteControl::summary).collect(),
            strength: Strength::of(&records),
            unprobed_hunks,
            passed_over: self.plan.mutations.passed_over.clone(),
            remarks,
            trying_s: records.iter().map(|record| record.wall_s).sum(),
            mutants: records,
        }
    }
}
