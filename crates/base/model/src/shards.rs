//! Documents of the shards of one synthesis put together to that of the whole.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Class, Classified};
use crate::synthesis::{GoldenControl, SYNTHESIS_SCHEMA, Synthesis, SynthesisDocument};

/// Why documents are not the shards of one whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum ShardError {
    #[error("there is no document to merge")]
    Nothing,
    #[error("{file}: its schema is {found}, this program reads {SYNTHESIS_SCHEMA}")]
    Schema { file: String, found: u32 },
    #[error("{file}: task {task} is no shard: it has all mutants")]
    Whole { file: String, task: String },
    #[error(
        "{file}: task {task} does not say what it was made of: an older version of this program wrote it"
    )]
    Old { file: String, task: String },
    #[error("{file} holds {}, {first} holds {}", listed(found), listed(expected))]
    Tasks { file: String, found: Vec<String>, first: String, expected: Vec<String> },
    #[error("{file}: task {task} is shard {found}, where {first} has one of {of}")]
    Parts { file: String, task: String, found: String, first: String, of: u32 },
    #[error("{file} and {other} are both shard {shard} of task {task}")]
    Twice { file: String, other: String, task: String, shard: String },
    #[error("task {task}: {} missing", missing(shards))]
    Missing { task: String, shards: Vec<String> },
    #[error("{file}: task {task}, its environment, its mutants or the program differ from those of {first}")]
    Inputs { file: String, task: String, first: String },
    #[error("{file} and {other} both have the mutant {mutant} of task {task}")]
    Overlap { file: String, other: String, task: String, mutant: String },
}

impl Classified for ShardError {
    fn class(&self) -> Class {
        Class::BadInput
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            ShardError::Whole { .. } => "shards are made with --shard K/N",
            ShardError::Old { .. } | ShardError::Schema { .. } => "run the shard again",
            ShardError::Inputs { .. } => {
                "shards belong together where the same program tried the same task, with the same options, on the same kind of \
                 machine"
            }
            ShardError::Missing { .. } => "give the documents of all shards at once",
            _ => return None,
        };
        Some(hint.to_string())
    }
}

fn listed(tasks: &[String]) -> String {
    match tasks {
        [] => "no task".to_string(),
        [one] => format!("task {one}"),
        more => format!("tasks {}", more.join(", ")),
    }
}

fn missing(shards: &[String]) -> String {
    match shards {
        [one] => format!("shard {one} is"),
        more => format!("shards {} are", more.join(", ")),
    }
}

/// `2/4` as numbers.
fn numbers(shard: &str) -> Option<(u32, u32)> {
    let (k, n) = shard.split_once('/')?;
    Some((k.parse().ok()?, n.parse().ok()?))
}

impl SynthesisDocument {
    /// The whole whose shards these are, each with the file's name for messages.
    ///
    /// # Errors
    /// Where they overlap, where one is missing, and where they are shards of different wholes.
    pub fn merged(shards: &[(String, SynthesisDocument)]) -> Result<SynthesisDocument, ShardError> {
        let (first_file, first) = shards.first().ok_or(ShardError::Nothing)?;
        let ids = |document: &SynthesisDocument| -> Vec<String> {
            document.tasks.iter().map(|task| task.id.clone()).collect()
        };
        for (file, document) in shards {
            if document.schema != SYNTHESIS_SCHEMA {
                return Err(ShardError::Schema { file: file.clone(), found: document.schema });
            }
            let (found, expected) = (ids(document), ids(first));
            if found != expected {
                return Err(ShardError::Tasks {
                    file: file.clone(),
                    found,
                    first: first_file.clone(),
                    expected,
                });
            }
        }
        let task = |at: usize| {
            let parts: Vec<(&str, &Synthesis)> =
                shards.iter().map(|(file, document)| (file.as_str(), &document.tasks[at])).collect();
            whole(&parts)
        };
        let tasks = (0..first.tasks.len()).map(task).collect::<Result<_, _>>()?;
        let runs: Vec<&str> = shards.iter().map(|(_, document)| document.run.as_str()).collect();
        Ok(SynthesisDocument { schema: SYNTHESIS_SCHEMA, run: runs.join(", "), tasks })
    }
}

/// One task's shards put together.
fn whole(parts: &[(&str, &Synthesis)]) -> Result<Synthesis, ShardError> {
    check(parts)?;
    let (_, first) = parts[0];
    let mut whole = first.clone();
    whole.shard = None;
    let mut remarks = Vec::new();
    for (_, part) in parts {
        let counts = part.counts();
        for remark in part.remarks.iter().filter(|remark| !counts.contains(remark)) {
            if !remarks.contains(remark) {
                remarks.push(remark.clone());
            }
        }
    }
    for (_, part) in &parts[1..] {
        whole.mutants.extend(part.mutants.iter().cloned());
        whole.rewrites.extend(part.rewrites.iter().cloned());
        for golden in &part.golden {
            add_control(&mut whole.golden, golden);
        }
    }
    Ok(whole.counted(remarks))
}

/// What decided in each shard: the fewest cases, all that were left out in any, the longest time.
fn add_control(controls: &mut Vec<GoldenControl>, other: &GoldenControl) {
    let same = |known: &&mut GoldenControl| known.world == other.world && known.suite == other.suite;
    let Some(known) = controls.iter_mut().find(same) else { return controls.push(other.clone()) };
    known.cases = known.cases.min(other.cases);
    known.wall_s = known.wall_s.max(other.wall_s);
    for (ours, theirs) in [(&mut known.left_out, &other.left_out), (&mut known.flaky, &other.flaky)] {
        ours.extend(theirs.iter().cloned());
        ours.sort();
        ours.dedup();
    }
}

fn check(parts: &[(&str, &Synthesis)]) -> Result<(), ShardError> {
    let (first_file, first) = parts[0];
    let task = || first.id.clone();
    let mut of = None;
    let mut files: BTreeMap<u32, &str> = BTreeMap::new();
    for (name, part) in parts {
        let file = (*name).to_string();
        let shard = part.shard.clone().unwrap_or_default();
        let Some((k, n)) = numbers(&shard) else { return Err(ShardError::Whole { file, task: task() }) };
        if part.inputs.is_none() {
            return Err(ShardError::Old { file, task: task() });
        }
        let of = *of.get_or_insert(n);
        if n != of || k == 0 || k > n {
            let first = first_file.to_string();
            return Err(ShardError::Parts { file, task: task(), found: shard, first, of });
        }
        if part.inputs != first.inputs {
            return Err(ShardError::Inputs { file, task: task(), first: first_file.to_string() });
        }
        if let Some(other) = files.insert(k, *name) {
            return Err(ShardError::Twice { file, other: other.to_string(), task: task(), shard });
        }
    }
    let of = of.unwrap_or_default();
    let absent = (1..=of).filter(|k| !files.contains_key(k));
    let shards: Vec<String> = absent.map(|k| format!("{k}/{of}")).collect();
    if !shards.is_empty() {
        return Err(ShardError::Missing { task: task(), shards });
    }
    overlap(parts)
}

fn overlap(parts: &[(&str, &Synthesis)]) -> Result<(), ShardError> {
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    for (file, part) in parts {
        let digests: BTreeSet<&str> =
            part.mutants.iter().map(|record| record.mutant.digest.as_str()).collect();
        for digest in digests {
            if let Some(other) = seen.insert(digest, file) {
                return Err(ShardError::Overlap {
                    file: (*file).to_string(),
                    other: other.to_string(),
                    task: part.id.clone(),
                    mutant: digest.to_string(),
                });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Suite;
    use crate::digest::Digest;
    use crate::mutant::{Mutant, Operator};
    use crate::synthesis::{Fate, MutantRecord, RewriteRecord, Strength};

    type Shard = (String, SynthesisDocument);

    fn record(line: u32, fate: Fate) -> MutantRecord {
        let replacement = Some(String::new());
        MutantRecord {
            equivalent: None,
            mutant: Mutant {
                file: "a.py".into(),
                line,
                start: line as usize,
                end: line as usize + 1,
                digest: Digest::of(&line.to_le_bytes()),
                replacement,
                operator: Operator::TakeBackHunk,
                function: None,
            },
            fate,
            was: String::new(),
            becomes: String::new(),
            promise: "it".into(),
            by: None,
            official_reach: 0,
            probe_reach: 0,
            probes: BTreeMap::new(),
            wall_s: 1.0,
        }
    }

    fn shard(k: u32, n: u32, mutants: Vec<MutantRecord>) -> (String, SynthesisDocument) {
        let control = |flaky: &str| GoldenControl {
            world: 1,
            suite: Suite::Official,
            cases: 10 - k,
            left_out: Vec::new(),
            flaky: vec![flaky.to_string()],
            wall_s: f64::from(k),
        };
        let rewrite = RewriteRecord {
            rewrite: format!("moved-function of a.py::f{k}"),
            official_reach: 1,
            probe_reach: 0,
            failed: Vec::new(),
            flaky: Vec::new(),
            wall_s: 0.5,
        };
        let synthesis = Synthesis {
            id: "t".into(),
            shard: Some(format!("{k}/{n}")),
            inputs: Some(Digest::of(b"inputs")),
            golden: vec![control(&format!("case{k}"))],
            mutants,
            strength: Strength::default(),
            unprobed_hunks: Vec::new(),
            rewrites: vec![rewrite],
            passed_over: Vec::new(),
            remarks: Vec::new(),
            trying_s: 0.0,
        };
        let document = SynthesisDocument {
            schema: SYNTHESIS_SCHEMA,
            run: format!("run{k}"),
            tasks: vec![synthesis.counted(vec!["left out".into()])],
        };
        (format!("{k}.json"), document)
    }

    fn both() -> Vec<(String, SynthesisDocument)> {
        let unreached = |line| record(line, Fate::Unreached);
        vec![shard(2, 2, vec![record(3, Fate::Official)]), shard(1, 2, vec![unreached(5), unreached(1)])]
    }

    #[test]
    fn shards_make_the_whole_with_its_strength_counted_anew() {
        let merged = SynthesisDocument::merged(&both()).expect("a whole");
        let task = &merged.tasks[0];
        assert_eq!((merged.run.as_str(), &task.shard), ("run2, run1", &None));
        let lines: Vec<u32> = task.mutants.iter().map(|record| record.mutant.line).collect();
        assert_eq!(lines, [1, 3, 5]);
        assert_eq!((task.strength.hunks.of, task.strength.hunks.official), (3, 1));
        assert_eq!(task.unprobed_hunks.iter().map(|hunk| hunk.line).collect::<Vec<_>>(), [1, 5]);
        assert_eq!(task.remarks, ["left out", "2 of the mutants stand in lines that no test runs"]);
        assert_eq!(task.rewrites.len(), 2);
        let golden = &task.golden[..];
        assert_eq!((golden.len(), golden[0].cases, golden[0].wall_s), (1, 8, 2.0));
        assert_eq!(golden[0].flaky, ["case1", "case2"]);
        assert!((task.trying_s - 3.0).abs() < 1e-9);
    }

    #[test]
    fn what_is_not_the_shards_of_one_whole_is_refused_with_the_reason() {
        let said = |change: &dyn Fn(&mut Vec<Shard>)| {
            let mut shards = both();
            change(&mut shards);
            SynthesisDocument::merged(&shards).expect_err("refused").to_string()
        };
        assert_eq!(said(&|shards| shards.clear()), "there is no document to merge");
        assert_eq!(said(&|shards| drop(shards.pop())), "task t: shard 1/2 is missing");
        let twice = said(&|shards| {
            shards.pop();
            let (_, same) = shards[0].clone();
            shards.push(("again.json".into(), same));
        });
        assert_eq!(twice, "again.json and 2.json are both shard 2/2 of task t");
        let overlap = said(&|shards| {
            let more = shards[0].1.tasks[0].mutants[0].clone();
            shards[1].1.tasks[0].mutants.push(more);
        });
        assert!(overlap.starts_with("1.json and 2.json both have the mutant "), "{overlap}");
        assert_eq!(
            said(&|shards| shards[1].1.tasks[0].shard = Some("1/3".into())),
            "1.json: task t is shard 1/3, where 2.json has one of 2"
        );
        assert_eq!(
            said(&|shards| shards[1].1.tasks[0].shard = None),
            "1.json: task t is no shard: it has all mutants"
        );
        assert_eq!(
            said(&|shards| shards[1].1.tasks[0].id = "u".into()),
            "1.json holds task u, 2.json holds task t"
        );
        let inputs = said(&|shards| shards[1].1.tasks[0].inputs = Some(Digest::of(b"others")));
        assert!(inputs.contains("differ from those of 2.json"), "{inputs}");
        let old = said(&|shards| shards[1].1.tasks[0].inputs = None);
        assert!(old.starts_with("1.json: task t does not say what it was made of"), "{old}");
        assert!(said(&|shards| shards[1].1.schema = 7).starts_with("1.json: its schema is 7"));
    }
}
