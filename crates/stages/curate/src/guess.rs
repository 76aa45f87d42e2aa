//! Guesses of area and kind from words and paths, each with what speaks for it. The one place for both: `infradev new` uses them
//! too.

use infradev_model::{Area, Definitions, Evidence, Guess, Kind};

use crate::message::without_tags;

/// Words of a path or title that speak for reinforcement learning.
const RL: &[&str] = &[
    "rl",
    "grpo",
    "ppo",
    "dapo",
    "rlhf",
    "rollout",
    "rollouts",
    "reward",
    "rewards",
    "reinforce",
    "gae",
    "actor",
    "critic",
    "sglang",
    "trtllm",
    "agentic",
];
/// And for inference.
const INFERENCE: &[&str] = &[
    "inference",
    "serving",
    "decode",
    "decoding",
    "prefill",
    "kv",
    "sampling",
    "generation",
    "engines",
    "speculative",
    "paged",
    "vllm",
    "prefix",
    "tokens_per_step",
];
/// And for training, where another area is not named.
const TRAINING: &[&str] = &[
    "training",
    "train",
    "optimizer",
    "optimizers",
    "distributed",
    "checkpointing",
    "checkpoint",
    "ckpt",
    "fsdp",
    "ddp",
    "pipeline",
    "pretrain",
    "gradient",
    "grad",
    "dataset",
    "datasets",
    "sft",
    "backward",
];

/// What a package is for, where nothing else of a path speaks; by place among the areas.
const PACKAGES: [(&str, usize); 5] = [("verl", 0), ("openrlhf", 0), ("trl", 0), ("vllm", 1), ("megatron", 2)];

const FIX: &[&str] = &[
    "fix",
    "fixes",
    "fixed",
    "fixing",
    "bugfix",
    "hotfix",
    "bug",
    "bugs",
    "correct",
    "corrects",
    "prevent",
    "avoid",
    "resolve",
    "repair",
    "guard",
    "restore",
    "missing",
    "crash",
    "hang",
    "wrong",
    "incorrect",
    "broken",
    "workaround",
    "ensure",
];
const REFACTOR: &[&str] = &[
    "refactor",
    "refactoring",
    "refactors",
    "refactored",
    "move",
    "moves",
    "moving",
    "rename",
    "renaming",
    "clean",
    "cleanup",
    "remove",
    "removing",
    "deprecate",
    "simplify",
    "split",
    "unify",
    "consolidate",
    "extract",
    "migrate",
    "reorganize",
    "decouple",
    "deduplicate",
    "restructure",
    "replace",
    "drop",
    "delete",
    "separate",
    "modernize",
];
const PERFORMANCE: &[&str] = &[
    "perf",
    "performance",
    "speed",
    "speedup",
    "optimize",
    "optimization",
    "optimizations",
    "optimized",
    "optimise",
    "faster",
    "accelerate",
    "reduce",
    "overlap",
    "overlapping",
    "fuse",
    "fused",
    "fusion",
    "efficient",
    "throughput",
    "latency",
    "offload",
    "offloading",
    "reuse",
    "lazy",
    "improve",
    "cache",
    "caching",
];
const FEATURE: &[&str] = &[
    "add",
    "adds",
    "adding",
    "support",
    "supports",
    "enable",
    "enables",
    "implement",
    "implementation",
    "introduce",
    "allow",
    "allows",
    "port",
    "feature",
    "new",
    "expose",
    "integrate",
    "extend",
    "make",
    "feat",
];

/// Words of a text: `CamelCase` and `snake_case` apart.
fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    lower
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

fn evidence(what: &str, place: &str) -> Evidence {
    Evidence { what: what.to_owned(), place: place.to_owned() }
}

/// A guess of the area: words of the title and of the paths, all paths together weighing little more than one word. Of a path
/// one word counts, that of the narrower area where there are several.
pub fn area(title: &str, paths: &[String]) -> Guess<Area> {
    let mut votes: [(Area, f64, Vec<Evidence>); 3] =
        [(Area::Rl, 0.0, Vec::new()), (Area::Inference, 0.0, Vec::new()), (Area::Training, 0.0, Vec::new())];
    let known = [RL, INFERENCE, TRAINING];
    let mut vote = |at: usize, weight: f64, what: &str, place: &str| {
        votes[at].1 += weight;
        votes[at].2.push(evidence(what, place));
    };
    let share = 3.0 / paths.len().max(1) as f64;
    for (at, known) in known.iter().enumerate() {
        for word in words(title).iter().filter(|word| known.contains(&word.as_str())) {
            vote(at, if at == 2 { 1.0 } else { 2.5 }, word, "subject");
        }
    }
    for path in paths {
        let parts = words(path);
        let first = known.iter().enumerate().find_map(|(at, known)| {
            parts.iter().find(|word| known.contains(&word.as_str())).map(|word| (at, word.clone()))
        });
        match first {
            Some((at, word)) => vote(at, share, &word, path),
            None => {
                let package =
                    PACKAGES.iter().find(|(package, _)| parts.first().is_some_and(|first| first == package));
                if let Some((package, at)) = package {
                    vote(*at, share * 0.5, package, path);
                }
            }
        }
    }
    // Of equal weights the narrower area, as it stands first.
    let mut best = 2;
    for at in [1, 0] {
        if votes[at].1 > 0.0 && votes[at].1 >= votes[best].1 {
            best = at;
        }
    }
    let (is, _, evidence) = Vec::from(votes).swap_remove(best);
    Guess { is, evidence: few(evidence) }
}

/// Enough to see why.
const SHOWN: usize = 4;

fn few(mut evidence: Vec<Evidence>) -> Vec<Evidence> {
    evidence.truncate(SHOWN);
    evidence
}

/// A guess of the kind: the type of a conventional commit, else the title's first word, else any of its words. One whose
/// title names no kind is a feature, with what it adds for evidence.
pub fn kind(title: &str, made_of: Option<&Definitions>) -> Guess<Kind> {
    let by = |is: Kind, what: &str| Guess { is, evidence: vec![evidence(what, "subject")] };
    let bare = without_tags(title);
    let tags = words(&title[..title.len() - bare.len()]);
    let conventional = [
        (&["fix", "bugfix", "hotfix"][..], Kind::Fix),
        (&["perf"][..], Kind::Performance),
        (&["refactor"][..], Kind::Refactor),
    ];
    for (known, is) in conventional {
        if let Some(tag) = tags.iter().find(|tag| known.contains(&tag.as_str())) {
            return by(is, tag);
        }
    }
    let said = words(bare);
    let lists = [
        (FIX, Kind::Fix),
        (PERFORMANCE, Kind::Performance),
        (REFACTOR, Kind::Refactor),
        (FEATURE, Kind::Feature),
    ];
    let kind_of = |word: &str| lists.iter().find(|(known, _)| known.contains(&word)).map(|(_, is)| *is);
    if let Some(first) = said.first()
        && let Some(is) = kind_of(first)
    {
        // "Add a fix for …", "Make x faster".
        let more = said.iter().skip(1).find(|word| match is {
            Kind::Feature => {
                matches!(word.as_str(), "fix" | "bug" | "bugfix" | "faster" | "speedup" | "refactor")
            }
            _ => false,
        });
        return match more {
            Some(word) => by(kind_of(word).unwrap_or(is), word),
            None => by(is, first),
        };
    }
    if tags.iter().any(|tag| tag == "feat") {
        return by(Kind::Feature, "feat");
    }
    let strong = [
        (&["fix", "fixes", "fixed", "bug", "bugs", "bugfix", "hotfix"][..], Kind::Fix),
        (&["refactor", "refactoring", "cleanup", "deprecate"][..], Kind::Refactor),
        (
            &[
                "perf",
                "speedup",
                "faster",
                "optimize",
                "optimization",
                "optimizations",
                "performance",
                "overlap",
            ][..],
            Kind::Performance,
        ),
    ];
    for (known, is) in strong {
        if let Some(word) = said.iter().find(|word| known.contains(&word.as_str())) {
            return by(is, word);
        }
    }
    if let Some(word) = said.iter().find(|word| FEATURE.contains(&word.as_str())) {
        return by(Kind::Feature, word);
    }
    match made_of {
        Some(made) => {
            let what = format!("{} functions and {} classes added", made.functions_added, made.classes_added);
            Guess { is: Kind::Feature, evidence: vec![evidence(&what, "source")] }
        }
        None => Guess { is: Kind::Feature, evidence: Vec::new() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_by_types_then_by_first_words_then_by_any() {
        for (title, is) in [
            ("Fix a race", Kind::Fix),
            ("[rollout] fix: add the missing field", Kind::Fix),
            ("perf(moe): add a kernel", Kind::Performance),
            ("Overlap all-gather", Kind::Performance),
            ("Add a scheduler", Kind::Feature),
            ("Add a fix for the scheduler", Kind::Fix),
            ("[moe] Move the router", Kind::Refactor),
            ("Hidden state mixing", Kind::Feature),
            ("Attention bug on long inputs", Kind::Fix),
        ] {
            let guess = kind(title, None);
            assert_eq!(guess.is, is, "{title}: {guess:?}");
        }
    }

    #[test]
    fn areas_are_told_from_words_not_from_parts_of_them() {
        let path = |path: &str| vec![path.to_owned()];
        assert_eq!(area("Add early exit", &path("pkg/world.py")).is, Area::Training);
        assert_eq!(area("Add a thing", &path("pkg/rl/x.py")).is, Area::Rl);
        assert_eq!(area("Evict blocks", &path("megatron/core/inference/x.py")).is, Area::Inference);
        let guess = area("Add a thing", &path("pkg/rl/x.py"));
        assert_eq!(guess.evidence, [evidence("rl", "pkg/rl/x.py")]);
    }
}
