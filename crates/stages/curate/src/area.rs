//! A guess of the area, from words of titles, labels and paths.

use infradev_model::{Area, Evidence, Guess};

use crate::told::Told;
use crate::words::{Votes, evidence, words};

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
    "prefix",
    "tokens_per_step",
];
/// Engines that serve models. Where a package is made for reinforcement learning they are what its rollouts run on.
const ENGINES: &[&str] = &["vllm", "sglang", "trtllm"];
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

/// What a package is for, where nothing else of a path speaks.
const PACKAGES: &[(&str, Area)] = &[
    ("verl", Area::Rl),
    ("openrlhf", Area::Rl),
    ("trl", Area::Rl),
    ("vllm", Area::Inference),
    ("sglang", Area::Inference),
    ("megatron", Area::Training),
    ("torchtitan", Area::Training),
];

/// The narrower area first: it is taken where two weigh the same.
const AREAS: [Area; 3] = [Area::Rl, Area::Inference, Area::Training];

/// What a word of a title weighs. Much of what serves or rolls out has to do with training too.
fn weight(area: Area) -> f64 {
    if area == Area::Training { 1.0 } else { 2.5 }
}

fn area_of(word: &str, in_rl: bool) -> Option<Area> {
    let lists = [(RL, Area::Rl), (INFERENCE, Area::Inference), (TRAINING, Area::Training)];
    let listed = lists.iter().find(|(known, _)| known.contains(&word)).map(|(_, area)| *area);
    let engine = if in_rl { Area::Rl } else { Area::Inference };
    listed.or_else(|| ENGINES.contains(&word).then_some(engine))
}

/// The package that most paths are of, and what it is for.
fn package(paths: &[String]) -> Option<Area> {
    let of = |path: &String| {
        let first = words(path).into_iter().next()?;
        PACKAGES.iter().find(|(package, _)| *package == first).map(|(_, area)| *area)
    };
    let found: Vec<Area> = paths.iter().filter_map(of).collect();
    let count = |area: Area| found.iter().filter(|other| **other == area).count();
    found.iter().copied().max_by_key(|area| count(*area))
}

/// A guess of the area: words of the title, the labels and the paths, all paths together weighing little more than one word.
/// Of a path one word counts, that of the narrower area where there are several.
pub fn area(told: &Told<'_>, paths: &[String]) -> Guess<Area> {
    let mut votes = Votes::among(&AREAS);
    let in_rl = package(paths) == Some(Area::Rl);
    for (texts, place) in [(&[told.title.to_owned()][..], "subject"), (told.labels, "label")] {
        for word in texts.iter().flat_map(|text| words(text)) {
            if let Some(area) = area_of(&word, in_rl) {
                votes.add(area, weight(area), evidence(word, place));
            }
        }
    }
    let share = 3.0 / paths.len().max(1) as f64;
    for path in paths {
        let parts = words(path);
        let (package, inner) = match parts.split_first() {
            Some((first, rest)) => (PACKAGES.iter().find(|(known, _)| known == first), rest),
            None => (None, &parts[..]),
        };
        let within = if package.is_some() { inner } else { &parts[..] };
        let narrowest = AREAS.iter().find_map(|area| {
            within.iter().find(|word| area_of(word, in_rl) == Some(*area)).map(|word| (*area, word))
        });
        match (narrowest, package) {
            // What serves models does not train them, whatever its folders are called.
            (Some((Area::Training, _)), Some((name, Area::Inference))) => {
                votes.add(Area::Inference, share, evidence(*name, path));
            }
            (Some((area, word)), _) => votes.add(area, share, evidence(word.clone(), path)),
            (None, Some((name, area))) => votes.add(*area, share * 0.5, evidence(*name, path)),
            (None, None) => {}
        }
    }
    let none = Guess { is: Area::Training, evidence: Vec::<Evidence>::new() };
    let spoken = AREAS.iter().any(|area| votes.of(*area) > 0.0);
    votes.best().filter(|_| spoken).map_or(none, |(is, evidence)| Guess { is, evidence })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(title: &str) -> Told<'_> {
        Told { title, body: "", labels: &[] }
    }

    #[test]
    fn areas_are_told_from_words_not_from_parts_of_them() {
        let path = |path: &str| vec![path.to_owned()];
        assert_eq!(area(&told("Add early exit"), &path("pkg/world.py")).is, Area::Training);
        assert_eq!(area(&told("Add a thing"), &path("pkg/rl/x.py")).is, Area::Rl);
        assert_eq!(area(&told("Evict blocks"), &path("megatron/core/inference/x.py")).is, Area::Inference);
        let guess = area(&told("Add a thing"), &path("pkg/rl/x.py"));
        assert_eq!(guess.evidence, [evidence("rl", "pkg/rl/x.py")]);
    }

    #[test]
    fn an_engine_s_name_speaks_for_what_its_package_is_for() {
        let paths = |path: &str| vec![path.to_owned()];
        assert_eq!(area(&told("[sglang] Add a thing"), &paths("verl/workers/x.py")).is, Area::Rl);
        assert_eq!(area(&told("Use trtllm kernels"), &paths("vllm/attention/x.py")).is, Area::Inference);
        assert_eq!(area(&told("Shard weights"), &paths("vllm/distributed/x.py")).is, Area::Inference);
    }
}
