//! Runs the funnel over all slots, and goes on where a killed one stopped.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;

use futures_util::future::{try_join, try_join_all};
use infradev_executor::{ChangedFile, Executor, GoldenChange, ReadyTask, Rewritten, Slot};
use infradev_model::{
    Digest, DigestBuilder, Fate, GoldenControl, Mutant, MutantRecord, RewriteRecord, Strength, Suite,
    Synthesis,
};
use infradev_store::{RunFolder, Staging};
use infradev_trial::{Session, TrialError};

use super::control::{Control, SuiteControl};
use super::done::{Done, Finished, FinishedRewrite};
use super::leaning::Believed;
use super::rejecting::Rule;
use super::rewriting::Anew;
use super::trying::{Candidate, Trying};
use super::{FunnelError, Mutations, followed, lines_of};

/// Seed of the probes' inputs, of golden's control as of each mutant.
const SEED: u64 = 0x5eed;

/// Names how a mutant comes to its verdict: what another way found is not gone on with, nor merged with what this one finds.
const WAY: &str = "infradev funnel v4";

/// What is asked for.
#[derive(Debug, Clone)]
pub struct FunnelPlan {
    /// Mutants, in any order, and what is known of them beforehand.
    pub mutations: Mutations,
    /// Behaviour-preserving rewrites of golden, which every test should pass.
    pub rewrites: Vec<Rewritten>,
    /// `(k, n)`: the k-th of n shards of the mutants and rewrites, from 1.
    pub shard: Option<(u32, u32)>,
    /// Whether cases that golden fails are left out, rather than refused.
    pub skip_failing: bool,
    /// Ids of official cases, without parameters or with; all of them where none is given.
    pub only: BTreeSet<String>,
    /// When a mutant passes an official case.
    pub rule: Rule,
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
    /// A rewrite of golden was tried.
    Rewrite(&'a RewriteRecord),
}

/// One thing to try.
enum Open<'a> {
    Mutant(&'a Candidate),
    Rewrite(&'a Anew<'a>),
}

/// Tries every mutant and rewrite of a plan on a task.
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
        let mut key = DigestBuilder::new(WAY);
        key.part("session", executor.session_key(ready).as_str().as_bytes());
        let key = key.finish();
        Ok(Funnel { executor, run, ready, plan, told, key, files, followed })
    }

    async fn go(&self) -> Result<Synthesis, FunnelError> {
        let candidates = self.candidates();
        let rewrites = self.rewrites();
        let digests = candidates.iter().map(|candidate| candidate.mutant.digest.clone()).collect();
        let mutants = Done::<Finished>::open(&self.file("mutants"), &self.key, &digests)?;
        let digests = rewrites.iter().map(|anew| anew.digest.clone()).collect();
        let anew = Done::<FinishedRewrite>::open(&self.file("rewrites"), &self.key, &digests)?;
        let open =
            candidates.iter().filter(|candidate| !mutants.records.contains_key(&candidate.mutant.digest));
        let again = rewrites.iter().filter(|rewrite| !anew.records.contains_key(&rewrite.digest));
        let open: VecDeque<Open<'_>> = open.map(Open::Mutant).chain(again.map(Open::Rewrite)).collect();
        let of = candidates.len();
        let (control, places) = self.start(open.len()).await?;
        for (done, record) in mutants.records.values().enumerate() {
            let record = self.with_listing(record.clone());
            (self.told)(Told::Mutant { record: &record, done: done + 1, of, recorded: true });
        }
        let (mutants, anew, queue) = (RefCell::new(mutants), RefCell::new(anew), RefCell::new(open));
        let believed = Believed::default();
        let trying = Trying {
            task: &self.ready.task,
            control: &control,
            believed: &believed,
            seed: SEED,
            rule: self.plan.rule,
        };
        let work = async |place: Place| {
            // As a whole: slot, GPUs and folder stay until the session is closed.
            let Place { mut session, held } = place;
            if queue.borrow().iter().any(|open| matches!(open, Open::Mutant(_))) {
                self.warm(&mut session).await?;
                trying.vouch(&mut session).await?;
            }
            loop {
                let Some(next) = queue.borrow_mut().pop_front() else { break };
                let key = self.key.clone();
                match next {
                    Open::Mutant(candidate) => {
                        self.warm(&mut session).await?;
                        let record = trying.mutant(&mut session, candidate).await?;
                        mutants.borrow_mut().add(Finished { key, record: record.clone() })?;
                        let done = mutants.borrow().records.len();
                        let record = self.with_listing(record);
                        (self.told)(Told::Mutant { record: &record, done, of, recorded: false });
                    }
                    Open::Rewrite(rewrite) => {
                        let record = trying.anew(&mut session, rewrite).await?;
                        let digest = rewrite.digest.clone();
                        anew.borrow_mut().add(FinishedRewrite { key, digest, record: record.clone() })?;
                        (self.told)(Told::Rewrite(&record));
                    }
                }
            }
            session.close().await;
            drop(held);
            Ok::<_, FunnelError>(())
        };
        try_join_all(places.into_iter().map(work)).await?;
        let (mutants, anew) = (mutants.into_inner(), anew.into_inner());
        Ok(self.synthesis(
            &control,
            mutants.records.into_values().map(|record| self.with_listing(record)).collect(),
            anew.records.into_values().collect(),
        ))
    }

    /// A record with what the task says of its mutant. The journal has it without: a listing may change, what a test made of the
    /// mutant does not.
    fn with_listing(&self, record: MutantRecord) -> MutantRecord {
        match self.plan.mutations.listed.get(&record.mutant.digest) {
            Some(why) => record.listed(why),
            None => record,
        }
    }

    /// A journal of the run that belongs to this task.
    fn file(&self, what: &str) -> PathBuf {
        self.run.path().join(format!("{what}-{}.jsonl", self.ready.task.id()))
    }

    /// This shard's rewrites.
    fn rewrites(&self) -> Vec<Anew<'_>> {
        let all = self.plan.rewrites.iter().map(|rewritten| Anew::of(rewritten, &self.files, &self.followed));
        all.filter(|anew| self.in_shard(&anew.digest)).collect()
    }

    /// This shard's mutants, in the order of files and lines.
    fn candidates(&self) -> Vec<Candidate> {
        let mut mutants: Vec<&Mutant> =
            self.plan.mutations.mutants.iter().filter(|mutant| self.in_shard(&mutant.digest)).collect();
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
            let listed = self.plan.mutations.listed.contains_key(&mutant.digest);
            Candidate { mutant: mutant.clone(), golden, lines, listed }
        };
        mutants.into_iter().map(candidate).collect()
    }

    fn in_shard(&self, digest: &Digest) -> bool {
        let Some((shard, of)) = self.plan.shard else { return true };
        let number = u64::from_str_radix(&digest.as_str()[..8], 16).unwrap_or(0);
        number % u64::from(of.max(1)) == u64::from(shard - 1)
    }

    /// Names all that was to be tried, and under which conditions: shards of one whole have the same.
    fn inputs(&self) -> Digest {
        let mut inputs = DigestBuilder::new("infradev synthesis v1");
        inputs.part("session", self.key.as_str().as_bytes()).part("golden", &self.ready.task.golden);
        let words = [self.plan.skip_failing, self.plan.rule == Rule::NothingFails].map(u8::from);
        inputs.part("skip failing", &words);
        let mut digests: Vec<&str> =
            self.plan.mutations.mutants.iter().map(|mutant| mutant.digest.as_str()).collect();
        digests.sort_unstable();
        digests.into_iter().for_each(|digest| {
            inputs.part("mutant", digest.as_bytes());
        });
        for rewritten in &self.plan.rewrites {
            let anew = Anew::of(rewritten, &self.files, &self.followed);
            inputs.part("rewrite", anew.digest.as_str().as_bytes());
        }
        inputs.finish()
    }

    /// Golden's control, stored or new, and a session for each slot that has something to do.
    async fn start(&self, open: usize) -> Result<(Control, Vec<Place>), FunnelError> {
        let name = format!("control-{}.json", self.ready.task.id());
        let stored: Option<Control> = std::fs::read(self.run.path().join(&name))
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .filter(|control: &Control| control.key.as_ref() == Some(&self.key));
        let sessions = self.executor.slot_count().min(open.max(1));
        // While the first tells what golden does, the others come to where mutants begin.
        let others = try_join_all((1..sessions).map(async |number| {
            let mut place = self.place(number).await?;
            self.warm(&mut place.session).await?;
            Ok::<_, FunnelError>(place)
        }));
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
        if let Some(refusal) = control.refusal(self.ready.task.id(), self.plan.skip_failing, &self.plan.only)
        {
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

    /// Has a template for every world size of the task, where its tests allow one.
    async fn warm(&self, session: &mut Session) -> Result<(), TrialError> {
        let spec = &self.ready.task.public.spec;
        session.warm(&spec.worlds, &self.followed, &spec.timeouts).await
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

    fn synthesis(
        &self,
        control: &Control,
        mutants: Vec<MutantRecord>,
        rewrites: Vec<RewriteRecord>,
    ) -> Synthesis {
        let mut remarks = Vec::new();
        for suite in &control.suites {
            let failing: Vec<&str> = suite.failing.keys().map(String::as_str).collect();
            let flaky: Vec<&str> = suite.flaky.iter().map(String::as_str).collect();
            for (names, why) in [
                (failing, "golden fails them"),
                (flaky, "they answer differently from one run of golden to the next"),
            ] {
                if !names.is_empty() {
                    let names = names.join(", ");
                    remarks.push(format!("left out at world size {}, since {why}: {names}", suite.world));
                }
            }
        }
        remarks.extend(control.suites.iter().filter_map(|suite| ending(suite, self.plan.rule)));
        if !mutants.is_empty() && mutants.iter().all(|record| record.fate == Fate::Unreached) {
            remarks.push(
                "no line of the change ran in any test: what the tests import may be another copy of it"
                    .to_string(),
            );
        }
        let synthesis = Synthesis {
            id: self.ready.task.id().to_string(),
            shard: self.plan.shard.map(|(k, n)| format!("{k}/{n}")),
            inputs: Some(self.inputs()),
            golden: control.suites.iter().map(SuiteControl::summary).collect(),
            mutants,
            strength: Strength::default(),
            unprobed_hunks: Vec::new(),
            rewrites,
            passed_over: self.plan.mutations.passed_over.clone(),
            remarks: Vec::new(),
            trying_s: 0.0,
        };
        synthesis.counted(remarks)
    }
}

/// What is said where something decides after the last case how pytest ends, and that says nothing of mutants.
fn ending(suite: &SuiteControl, rule: Rule) -> Option<String> {
    if !suite.hooked {
        return None;
    }
    let world = suite.world;
    match (&suite.ends_badly, rule) {
        (Some(how), _) => Some(format!(
            "at world size {world} a conftest or a plugin ends golden's own pytest with {how}, after the last test: a mutant \
             that nothing else notices passes"
        )),
        (None, Rule::LikeGolden) => Some(format!(
            "at world size {world} a conftest or a plugin has a say in how pytest ends, after the last test: a task's verdict \
             is of cases alone, so a mutant that nothing else notices passes"
        )),
        (None, Rule::NothingFails) => None,
    }
}
