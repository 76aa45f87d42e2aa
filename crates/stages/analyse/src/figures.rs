//! Counts and rates of what was read.

use std::collections::{BTreeMap, BTreeSet};

use infradev_model::{
    AnalysedSubmission, CaseError, ClassCount, Digest, ErrorClass, ErrorCount, ErrorGroup, Figures,
    GateCount, Gates, Grouping, Label, Paired, PassAtK, Proportion, Rate, Standing, Suite, TaskFacts,
    TraitCount, TraitOf, Verdict,
};

use crate::people::agreement;
use crate::statistics::{bootstrap, mcnemar, pass_at_k, proportion};

/// What is counted.
pub(crate) struct Counted<'a> {
    pub submissions: &'a [AnalysedSubmission],
    pub cases: &'a [CaseError],
    pub tasks: &'a [TaskFacts],
    /// Traits of each task's probes.
    pub traits: &'a BTreeMap<String, BTreeSet<String>>,
}

impl Counted<'_> {
    pub fn figures(&self) -> Figures {
        Figures {
            rates: self.rates(),
            gates: self.gates(),
            pass_at_k: self.pass_at_k(),
            paired: self.paired(),
            classes: self.classes(),
            errors: self.errors(),
            likeness: self.likeness(),
            own_tests: self.own_tests(),
            resource_checks: self.resource_checks(),
            tried: self.tried(),
            traits: self.traits(),
            agreement: agreement(self.cases),
        }
    }

    fn rates(&self) -> Vec<Rate> {
        let mut rates = Vec::new();
        let groupings = [
            Grouping::All,
            Grouping::Arm,
            Grouping::Area,
            Grouping::Kind,
            Grouping::Repository,
            Grouping::ArmRepository,
            Grouping::Task,
        ];
        let repositories: BTreeSet<&str> = self.tasks.iter().map(|facts| facts.repository.as_str()).collect();
        for by in groupings {
            // Of one repository the rates by arm say it already.
            if by == Grouping::ArmRepository && repositories.len() < 2 {
                continue;
            }
            let mut groups: Vec<(String, Vec<&AnalysedSubmission>)> = Vec::new();
            for submission in self.submissions {
                let group = self.group(by, submission);
                match groups.iter_mut().find(|(known, _)| *known == group) {
                    Some((_, members)) => members.push(submission),
                    None => groups.push((group, vec![submission])),
                }
            }
            rates.extend(groups.into_iter().map(|(group, members)| rate(by, group, &members)));
        }
        rates
    }

    fn group(&self, by: Grouping, submission: &AnalysedSubmission) -> String {
        let facts = self.tasks.iter().find(|facts| facts.task == submission.task);
        let known = match by {
            Grouping::All => Some("all".to_owned()),
            Grouping::Arm => Some(submission.arm.clone()),
            Grouping::Task => Some(submission.task.clone()),
            Grouping::Area => facts.map(|facts| facts.area.word().to_owned()),
            Grouping::Kind => facts.map(|facts| facts.kind.word().to_owned()),
            Grouping::Repository => facts.map(|facts| facts.repository.clone()),
            Grouping::ArmRepository => facts.map(|facts| format!("{}, {}", submission.arm, facts.repository)),
        };
        known.unwrap_or_else(|| "unknown".to_owned())
    }

    fn scored(&self) -> impl Iterator<Item = &AnalysedSubmission> {
        self.submissions.iter().filter(|submission| submission.standing == Standing::Scored)
    }

    /// Arms in the order in which they come.
    pub(crate) fn arms(&self) -> Vec<&str> {
        let mut arms: Vec<&str> = Vec::new();
        for submission in self.submissions {
            if !arms.contains(&submission.arm.as_str()) {
                arms.push(&submission.arm);
            }
        }
        arms
    }

    fn gates(&self) -> Vec<GateCount> {
        let count = |arm: &str| {
            let passed: Vec<Gates> = self
                .scored()
                .filter(|submission| submission.arm == arm)
                .filter_map(|submission| submission.gates)
                .collect();
            let those = |is: &dyn Fn(&Gates) -> bool| number(passed.iter().filter(|gates| is(gates)).count());
            GateCount {
                arm: arm.to_owned(),
                scored: number(passed.len()),
                applies: those(&|gates| gates.applies),
                imports: those(&|gates| gates.imports),
                collects: those(&|gates| gates.collects),
                smallest_world: those(&|gates| gates.smallest_world == Some(true)),
                smallest_world_of: those(&|gates| gates.smallest_world.is_some()),
                official: those(&|gates| gates.official),
                resolved: those(&|gates| gates.resolved),
            }
        };
        self.arms().into_iter().map(count).filter(|count| count.scored > 0).collect()
    }

    fn pass_at_k(&self) -> Vec<PassAtK> {
        let mut all = Vec::new();
        for arm in self.arms() {
            let mut tasks: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
            for submission in self.scored().filter(|submission| submission.arm == arm) {
                let (n, c) = tasks.entry(&submission.task).or_default();
                *n += 1;
                *c += u32::from(resolved(submission));
            }
            let most = tasks.values().map(|(n, _)| *n).max().unwrap_or(0);
            for k in 1..=most {
                let of_tasks: Vec<f64> = tasks.values().filter_map(|(n, c)| pass_at_k(*n, *c, k)).collect();
                let estimate = bootstrap(&of_tasks, seed(&[arm, "pass@k"]));
                all.extend(estimate.map(|estimate| PassAtK { arm: arm.to_owned(), k, estimate }));
            }
        }
        all
    }

    fn paired(&self) -> Vec<Paired> {
        let arms = self.arms();
        let pairs = arms
            .iter()
            .enumerate()
            .flat_map(|(at, one)| arms[at + 1..].iter().filter_map(|other| self.pair(one, other)));
        pairs.collect()
    }

    fn pair(&self, one: &str, other: &str) -> Option<Paired> {
        let of = |arm: &str| -> BTreeMap<(&str, u32), bool> {
            let mine = self.scored().filter(|submission| submission.arm == arm);
            mine.map(|submission| ((submission.task.as_str(), submission.attempt), resolved(submission)))
                .collect()
        };
        let (ones, others) = (of(one), of(other));
        let mut tasks: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        let (mut both, mut one_only, mut other_only, mut pairs) = (0, 0, 0, 0);
        for (key, left) in &ones {
            let Some(right) = others.get(key) else { continue };
            pairs += 1;
            match (left, right) {
                (true, true) => both += 1,
                (true, false) => one_only += 1,
                (false, true) => other_only += 1,
                (false, false) => {}
            }
            tasks.entry(key.0).or_default().push(f64::from(*right) - f64::from(*left));
        }
        let of_tasks: Vec<f64> =
            tasks.values().map(|each| each.iter().sum::<f64>() / each.len() as f64).collect();
        let difference = bootstrap(&of_tasks, seed(&[one, other, "difference"]))?;
        let p = mcnemar(one_only, other_only);
        let (one, other) = (one.to_owned(), other.to_owned());
        Some(Paired { one, other, pairs, both, one_only, other_only, p, difference })
    }

    fn errors(&self) -> Vec<ErrorCount> {
        let labels = Label::ALL.into_iter().map(Some).chain([None]);
        let counts = labels.map(|label| {
            let caught = self.caught(&|case| case.label.label == label);
            let Caught { submissions, official_only, probe_only, both, cases } = caught;
            ErrorCount { label, submissions, official_only, probe_only, both, cases }
        });
        counts.filter(|count| count.cases > 0).collect()
    }

    fn classes(&self) -> Vec<ClassCount> {
        let classes = [ErrorClass::Structural, ErrorClass::Behavioural, ErrorClass::Numerical];
        let counts = classes.map(|class| {
            let caught = self.caught(&|case| case.label.label.map(Label::class) == Some(class));
            let Caught { submissions, official_only, probe_only, both, cases } = caught;
            ClassCount { class, submissions, official_only, probe_only, both, cases }
        });
        counts.into_iter().collect()
    }

    fn caught(&self, is_it: &dyn Fn(&CaseError) -> bool) -> Caught {
        let mut suites: BTreeMap<(&str, &str, &str), (bool, bool)> = BTreeMap::new();
        let mut cases = 0;
        for case in self.cases.iter().filter(|case| is_it(case)) {
            cases += 1;
            let (official, probe) = suites.entry((&case.task, &case.run, &case.submission)).or_default();
            match case.suite {
                Suite::Official => *official = true,
                Suite::Probe => *probe = true,
            }
        }
        let count = |wanted: (bool, bool)| number(suites.values().filter(|found| **found == wanted).count());
        Caught {
            submissions: proportion(number(suites.len()), number(self.scored().count())),
            official_only: count((true, false)),
            probe_only: count((false, true)),
            both: count((true, true)),
            cases,
        }
    }

    fn traits(&self) -> Vec<TraitCount> {
        let conditional: BTreeSet<(&str, &str, &str)> = self
            .cases
            .iter()
            .filter(|case| case.label.label.is_some_and(Label::is_conditional))
            .map(|case| (case.task.as_str(), case.run.as_str(), case.submission.as_str()))
            .collect();
        // Who has which: by task, as its file says; by task, as its probes do.
        let by_task = self.tasks.iter().map(|facts| (facts.task.as_str(), facts.traits.iter().collect()));
        let by_task: BTreeMap<&str, BTreeSet<&String>> = by_task.collect();
        let by_probe = self.traits.iter().map(|(task, traits)| (task.as_str(), traits.iter().collect()));
        let by_probe: BTreeMap<&str, BTreeSet<&String>> = by_probe.collect();
        let share = |having: &BTreeMap<&str, BTreeSet<&String>>, name: &String, wanted: bool| {
            let has = |task: &str| having.get(task).is_some_and(|traits| traits.contains(name));
            let of: Vec<_> = self.scored().filter(|submission| has(&submission.task) == wanted).collect();
            let is = |s: &&&AnalysedSubmission| {
                conditional.contains(&(s.task.as_str(), s.run.as_str(), s.submission.as_str()))
            };
            proportion(number(of.iter().filter(is).count()), number(of.len()))
        };
        let mut counts = Vec::new();
        for (of, having) in [(TraitOf::Task, &by_task), (TraitOf::Probe, &by_probe)] {
            let names: BTreeSet<&String> = having.values().flatten().copied().collect();
            counts.extend(names.into_iter().map(|name| TraitCount {
                of,
                name: name.clone(),
                with: share(having, name, true),
                without: share(having, name, false),
            }));
        }
        counts
    }
}

struct Caught {
    submissions: Proportion,
    official_only: u32,
    probe_only: u32,
    both: u32,
    cases: u32,
}

fn rate(by: Grouping, group: String, members: &[&AnalysedSubmission]) -> Rate {
    let scored: Vec<&AnalysedSubmission> =
        members.iter().filter(|member| member.standing == Standing::Scored).copied().collect();
    let all = number(scored.len());
    let count =
        |is: &dyn Fn(&AnalysedSubmission) -> bool| number(scored.iter().filter(|member| is(member)).count());
    let apart =
        |standing: Standing| number(members.iter().filter(|member| member.standing == standing).count());
    let probed = |member: &AnalysedSubmission| member.official && member.suites.probe.of > 0;
    let tasks: BTreeSet<&str> = members.iter().map(|member| member.task.as_str()).collect();
    Rate {
        by,
        group,
        tasks: number(tasks.len()),
        resolved: proportion(count(&resolved), all),
        official: proportion(count(&|member| member.official), all),
        rejected: proportion(count(&|member| probed(member) && !resolved(member)), count(&probed)),
        faults: apart(Standing::Fault),
        unreached: apart(Standing::Unreached),
        ungraded: apart(Standing::Ungraded),
    }
}

fn resolved(submission: &AnalysedSubmission) -> bool {
    submission.verdict == Some(Verdict::Resolved)
}

/// Failing cases of one task, suite, signature and label.
#[derive(Default)]
struct Alike<'a> {
    submissions: BTreeSet<(&'a str, &'a str)>,
    cases: u32,
    file: Option<&'a str>,
}

/// Failing cases of one task, suite, signature and label together, those of most submissions first.
pub(crate) fn groups(cases: &[CaseError]) -> Vec<ErrorGroup> {
    let mut found: BTreeMap<(&str, Suite, &str, Option<Label>), Alike<'_>> = BTreeMap::new();
    for case in cases {
        let key = (case.task.as_str(), case.suite, case.signature.as_str(), case.label.label);
        let alike = found.entry(key).or_default();
        alike.submissions.insert((&case.run, &case.submission));
        alike.cases += 1;
        let file = case.at.as_deref().map(|at| at.rsplit_once(':').map_or(at, |(file, _)| file));
        alike.file = alike.file.or(file);
    }
    let mut groups: Vec<ErrorGroup> = Vec::with_capacity(found.len());
    for ((task, suite, signature, label), alike) in found {
        groups.push(ErrorGroup {
            task: task.to_owned(),
            suite,
            file: alike.file.map(str::to_owned),
            signature: signature.to_owned(),
            label,
            submissions: number(alike.submissions.len()),
            cases: alike.cases,
        });
    }
    groups.sort_by_key(|group| std::cmp::Reverse((group.submissions, group.cases)));
    groups
}

/// A seed that is the same for the same question.
fn seed(words: &[&str]) -> u64 {
    let digest = Digest::of(words.join("\0").as_bytes());
    u64::from_str_radix(&digest.as_str()[..16], 16).unwrap_or_default()
}

pub(crate) fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
