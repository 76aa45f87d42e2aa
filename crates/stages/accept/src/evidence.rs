//! From the trials of an acceptance to its record. Pure: the same trials give the same record.

use std::collections::{BTreeMap, BTreeSet};

use infradev_model::{
    ACCEPTANCE_SCHEMA, Acceptance, AdversarialFinding, Calibration, CaseId, ContractFinding, Digest, HunkAt,
    OfficialCount, ProbeCase, Rejection, RewriteCount, Role, SealedTask, Suite, TrialResult, Word,
    flake_bound, merge,
};
use infradev_store::CanaryBreach;

use crate::rewrites::{Fit, RewriteTrials};

/// What was tried at one world size.
pub(crate) struct WorldEvidence {
    pub world: u32,
    pub calibration: Calibration,
    pub golden: Vec<TrialResult>,
    pub base: TrialResult,
    pub hollow: Option<TrialResult>,
    pub keep_init: Option<TrialResult>,
    pub adversarial: BTreeMap<String, Vec<TrialResult>>,
    /// Adversarial patches that were tried again, since nothing but a deadline rejected them.
    pub late: Vec<String>,
    pub hunks: Vec<(HunkAt, TrialResult)>,
    pub rewrites: Vec<RewriteTrials>,
}

/// All that was tried of a task.
pub(crate) struct Evidence<'a> {
    pub task: &'a SealedTask,
    pub tree: Digest,
    pub environment: Digest,
    pub suites: Digest,
    pub device_class: String,
    pub runs: u32,
    pub shuffled: bool,
    pub worlds: Vec<WorldEvidence>,
    /// Rewrites of golden.
    pub rewrites: RewriteCount,
    /// What is wrong with the contract and with what an agent reads.
    pub contract: Vec<ContractFinding>,
    /// Files that lack the pack's canary, or have it and should not.
    pub canary: Vec<CanaryBreach>,
}

impl WorldEvidence {
    pub(crate) fn word(&self, trial: &TrialResult, case: &CaseId) -> Word {
        let golden = self.calibration.cases.iter().find(|known| known.case == *case);
        let found = trial.cases.iter().find(|found| found.case == *case);
        match (golden, found) {
            (Some(golden), Some(found)) => merge(&found.outcomes(), &golden.vector),
            _ => Word::Missing,
        }
    }

    /// How the patch was rejected. `None` where it passed, and where the judge failed by itself: an author's error tells no
    /// patch from another.
    fn rejection(trial: &TrialResult, case: &CaseId) -> Option<Rejection> {
        trial.cases.iter().find(|found| found.case == *case)?.judgement.as_ref()?.rejection
    }

    fn cases(&self, suite: Suite) -> impl Iterator<Item = &CaseId> {
        self.calibration.of(suite).map(|case| &case.case)
    }

    fn passes_all(&self, trial: &TrialResult, suite: Suite) -> bool {
        self.cases(suite).all(|case| self.word(trial, case) == Word::Passed)
    }

    /// Whether some test rejects what was tried. A hunk's trial ends at the first rejection: what it lacks was not reached, or is
    /// missing.
    pub(crate) fn notices(&self, trial: &TrialResult) -> bool {
        self.calibration.cases.iter().any(|case| self.word(trial, &case.case) != Word::Passed)
    }

    /// Every patch tried once over all cases, by name.
    fn patches(&self) -> Vec<(String, Vec<&TrialResult>)> {
        let mut patches = vec![("base".to_string(), vec![&self.base])];
        patches.extend(self.hollow.iter().map(|trial| ("hollow".to_string(), vec![trial])));
        patches.extend(self.keep_init.iter().map(|trial| ("hollow-keep-init".to_string(), vec![trial])));
        let adversarial = self.adversarial.iter();
        patches.extend(adversarial.map(|(name, trials)| (name.clone(), trials.iter().collect())));
        patches
    }

    fn probe_case(&self, case: &CaseId) -> ProbeCase {
        let mut words = BTreeMap::new();
        let mut rejections = BTreeMap::new();
        for (name, trials) in self.patches() {
            // A rejection counts where it is the same in every run.
            let mut seen: Vec<Word> = trials.iter().map(|trial| self.word(trial, case)).collect();
            let passed_once = seen.contains(&Word::Passed);
            seen.retain(|word| *word != Word::Passed);
            let word = if passed_once { Word::Passed } else { seen.first().copied().unwrap_or(Word::Passed) };
            words.insert(name.clone(), word);
            let rejection = trials.iter().filter_map(|trial| Self::rejection(trial, case)).min();
            if let Some(rejection) = rejection.filter(|_| word != Word::Passed) {
                rejections.insert(name, rejection);
            }
        }
        for (at, trial) in &self.hunks {
            if let Some(rejection) = Self::rejection(trial, case) {
                rejections.insert(format!("without {}:{}", at.file, at.line), rejection);
            }
        }
        let rejected = |name: &str| rejections.contains_key(name);
        let by_hunk = || self.hunks.iter().any(|(_, trial)| Self::rejection(trial, case).is_some());
        let hollow = if words.contains_key("hollow") { rejected("hollow") } else { by_hunk() };
        let role = if rejected("base") && hollow {
            Role::Promise
        } else if !rejected("base") && self.adversarial.keys().any(|name| rejected(name)) {
            Role::Guard
        } else {
            Role::Idle
        };
        ProbeCase { id: case.id.clone(), world: self.world, role, words, rejections }
    }
}

impl Evidence<'_> {
    pub(crate) fn record(&self) -> Acceptance {
        let probes = |world: &WorldEvidence| -> Vec<ProbeCase> {
            world.cases(Suite::Probe).map(|case| world.probe_case(case)).collect()
        };
        let cases: Vec<ProbeCase> = self.worlds.iter().flat_map(probes).collect();
        let mut reasons = self.golden_reasons();
        reasons.extend(self.contract.iter().map(ToString::to_string));
        reasons.extend(self.canary.iter().map(ToString::to_string));
        let mut remarks = Vec::new();
        let rejected = self.rejected(&cases, &mut reasons);
        let (adversarial, unstable) = self.adversarial(&mut reasons);
        let existence_only = existence_only(&cases);
        self.roles(&cases, &existence_only, &mut reasons);
        let fit = Fit::of(&self.worlds);
        reasons.extend(fit.reasons);
        remarks.extend(fit.remarks);
        let unprobed_hunks = self.unprobed();
        if !unprobed_hunks.is_empty() {
            remarks.push(format!(
                "{} hunks of golden can be taken back without any test noticing",
                unprobed_hunks.len()
            ));
        }
        for allowed in &self.task.public.contract.allowed {
            let (rule, why) =
                (allowed.rule.name(), allowed.why.split_whitespace().collect::<Vec<_>>().join(" "));
            remarks.push(format!(
                "contract.toml lets `{}` stand, which golden has, too ({rule}), because: {why}",
                allowed.shortened()
            ));
        }
        if self.task.canary.is_none() {
            remarks.push("the pack has no canary (`infradev canary PACK --write` makes one)".to_string());
        }
        for world in &self.worlds {
            for name in &world.late {
                remarks.push(format!(
                    "at world size {} {name} missed a deadline of the official tests, and was tried again",
                    world.world
                ));
            }
            if !world
                .calibration
                .cases
                .iter()
                .any(|case| case.case.suite == Suite::Official && case.fail_to_pass())
            {
                remarks.push(format!(
                    "no official test at world size {} fails on base and passes on golden",
                    world.world
                ));
            }
        }
        let fools_official =
            adversarial.iter().map(|(name, found)| (name.clone(), found.fools_official)).collect();
        let official =
            self.worlds.iter().map(|world| (world.world.to_string(), official_count(&world.calibration)));
        let official = official.collect();
        let sandbox = self.worlds.first().map(|world| world.base.sandbox.clone()).unwrap_or_default();
        Acceptance {
            schema: ACCEPTANCE_SCHEMA,
            id: self.task.id().to_string(),
            canary: self.task.canary.as_ref().map(|canary| canary.guid().to_string()),
            accepted: reasons.is_empty(),
            golden_runs: self.runs,
            flake_bound: flake_bound(self.runs),
            shuffled: self.shuffled,
            rejected,
            fools_official,
            unstable,
            existence_only,
            unprobed_hunks,
            rewrites: self.rewrites,
            over_fitted: fit.over_fitted,
            reasons,
            remarks,
            cases,
            adversarial,
            official,
            suites: self.suites.clone(),
            tree: self.tree.clone(),
            environment: self.environment.clone(),
            device_class: self.device_class.clone(),
            sandbox,
        }
    }

    fn golden_reasons(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        if self.task.probes.is_empty() {
            reasons.push(
                "the task has no probes: nothing checks what its official tests leave open".to_string(),
            );
        }
        for world in &self.worlds {
            for case in world.calibration.quarantined.iter().filter(|case| case.case.suite == Suite::Probe) {
                reasons.push(format!("probe {} does not pass on golden: {}", case.case.id, case.reason));
                let text = world
                    .golden
                    .iter()
                    .flat_map(|trial| &trial.cases)
                    .filter(|found| found.case == case.case);
                let detail = text.filter_map(|found| found.vector.first()?.detail.as_ref()).next();
                if let Some(detail) = detail {
                    let line = detail.message.lines().next().unwrap_or_default();
                    reasons.push(format!("  {}: {line}", detail.exception));
                }
            }
        }
        reasons
    }

    fn rejected(&self, cases: &[ProbeCase], reasons: &mut Vec<String>) -> BTreeMap<String, Option<bool>> {
        let mut rejected = BTreeMap::new();
        let by_probes = |name: &str| cases.iter().any(|case| case.rejections.contains_key(name));
        rejected.insert("base".to_string(), Some(by_probes("base")));
        let hollow = self.worlds.iter().any(|world| world.hollow.is_some());
        rejected.insert("hollow".to_string(), hollow.then(|| by_probes("hollow")));
        for adversarial in &self.task.adversarial {
            rejected.insert(adversarial.name.clone(), Some(by_probes(&adversarial.name)));
        }
        if !self.task.probes.is_empty() {
            for (name, verdict) in &rejected {
                if *verdict == Some(false) {
                    reasons.push(format!("no probe rejects {name}"));
                }
            }
        }
        if !hollow && !self.task.probes.is_empty() {
            let substantive = self.worlds.iter().flat_map(|world| &world.hunks).any(|(_, trial)| {
                let mut judgements = trial.cases.iter().filter_map(|case| case.judgement.as_ref());
                judgements.any(|judgement| judgement.rejection == Some(Rejection::Substantive))
            });
            if !substantive {
                reasons.push(
                    "hollow is not applicable (golden adds no function), and no hunk taken back is rejected by a \
                     judge's assertion"
                        .to_string(),
                );
            }
        }
        rejected
    }

    fn adversarial(&self, reasons: &mut Vec<String>) -> (BTreeMap<String, AdversarialFinding>, Vec<String>) {
        let mut findings = BTreeMap::new();
        let mut unstable = Vec::new();
        for adversarial in &self.task.adversarial {
            let name = &adversarial.name;
            let mut fools: Vec<bool> = Vec::new();
            let mut caught: Vec<BTreeSet<String>> = Vec::new();
            for world in &self.worlds {
                for (run, trial) in world.adversarial.get(name).into_iter().flatten().enumerate() {
                    if run >= fools.len() {
                        fools.push(true);
                        caught.push(BTreeSet::new());
                    }
                    let clean = trial.tampering.is_empty() && world.passes_all(trial, Suite::Official);
                    fools[run] &= clean;
                    let rejecting = world
                        .cases(Suite::Probe)
                        .filter(|case| WorldEvidence::rejection(trial, case).is_some());
                    caught[run].extend(rejecting.map(|case| case.id.clone()));
                }
            }
            let always =
                caught.iter().skip(1).fold(caught.first().cloned().unwrap_or_default(), |always, run| {
                    always.intersection(run).cloned().collect()
                });
            let fools_always = !fools.is_empty() && fools.iter().all(|fooled| *fooled);
            let differs = fools.iter().any(|fooled| *fooled) && !fools_always;
            let sometimes = always.is_empty() && caught.iter().any(|run| !run.is_empty());
            if differs || sometimes {
                unstable.push(name.clone());
                reasons.push(format!("{name} is unstable: its runs differ"));
            } else if !fools_always {
                reasons
                    .push(format!("{name} does not fool the official tests: {}", self.official_catch(name)));
            }
            findings.insert(
                name.clone(),
                AdversarialFinding {
                    promise: adversarial.spec.promise.clone(),
                    fools_official: fools_always,
                    rejected: !always.is_empty(),
                    by: always.into_iter().next(),
                },
            );
        }
        (findings, unstable)
    }

    fn official_catch(&self, name: &str) -> String {
        for world in &self.worlds {
            for trial in world.adversarial.get(name).into_iter().flatten() {
                if let Some(found) = trial.tampering.first() {
                    return found.evidence.clone();
                }
                let catch = world.cases(Suite::Official).find(|case| world.word(trial, case) != Word::Passed);
                if let Some(case) = catch {
                    return format!(
                        "{} {} at world size {}",
                        case.id,
                        world.word(trial, case).word(),
                        world.world
                    );
                }
            }
        }
        "no run of it is on record".to_string()
    }

    fn roles(&self, cases: &[ProbeCase], existence_only: &[String], reasons: &mut Vec<String>) {
        if self.task.probes.is_empty() {
            return;
        }
        for case in cases.iter().filter(|case| case.role == Role::Idle) {
            reasons.push(format!(
                "probe {} is neither a promise nor a guard: it tells no patch from another",
                case.id
            ));
        }
        if !cases.iter().any(|case| case.role == Role::Promise && !existence_only.contains(&case.id)) {
            reasons.push("no probe is a promise with a substantive rejection".to_string());
        }
    }

    fn unprobed(&self) -> Vec<HunkAt> {
        let mut noticed: BTreeMap<&HunkAt, bool> = BTreeMap::new();
        for world in &self.worlds {
            for (at, trial) in &world.hunks {
                *noticed.entry(at).or_default() |= world.notices(trial);
            }
        }
        noticed.into_iter().filter(|(_, noticed)| !noticed).map(|(at, _)| at.clone()).collect()
    }
}

fn existence_only(cases: &[ProbeCase]) -> Vec<String> {
    let without =
        cases.iter().filter(|case| !case.rejections.values().any(|kind| *kind == Rejection::Substantive));
    without.map(|case| case.id.clone()).collect()
}

fn official_count(calibration: &Calibration) -> OfficialCount {
    let official = calibration.of(Suite::Official);
    let (mut fail_to_pass, mut pass_to_pass) = (0, 0);
    for case in official {
        if case.fail_to_pass() { fail_to_pass += 1 } else { pass_to_pass += 1 }
    }
    let quarantined =
        calibration.quarantined.iter().filter(|case| case.case.suite == Suite::Official).count() as u32;
    OfficialCount { fail_to_pass, pass_to_pass, quarantined }
}
