//! Canaries: small test files that look like any other and must fail. Their names and contents are random, so that code
//! which forges results can't tell them from real tests (design: Trust).

use rand::Rng;
use rand::seq::{IndexedRandom, SliceRandom};

/// A test file with one test, which must fail with an `AssertionError`, the same on every rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canary {
    /// Such as `test_merge_ledger.py`; two canaries or a canary and a real file may meet, the caller looks.
    pub file_name: String,
    /// Plain Python without imports.
    pub text: String,
    /// The one test in it.
    pub test_name: String,
}

const VERBS: [&str; 40] = [
    "apply",
    "balance",
    "build",
    "chunk",
    "collect",
    "combine",
    "compact",
    "count",
    "derive",
    "expand",
    "extract",
    "fill",
    "flatten",
    "fold",
    "gather",
    "group",
    "index",
    "interleave",
    "join",
    "layout",
    "merge",
    "normalize",
    "order",
    "pack",
    "pad",
    "partition",
    "plan",
    "rank",
    "reduce",
    "resolve",
    "rotate",
    "scale",
    "scan",
    "shift",
    "slice",
    "split",
    "stride",
    "tile",
    "trim",
    "unroll",
];
const NOUNS: [&str; 48] = [
    "axis",
    "batch",
    "bins",
    "blocks",
    "buckets",
    "buffer",
    "cells",
    "chain",
    "columns",
    "counts",
    "cursor",
    "edges",
    "entries",
    "extent",
    "fields",
    "frames",
    "grid",
    "groups",
    "heads",
    "history",
    "intervals",
    "keys",
    "labels",
    "lanes",
    "layers",
    "ledger",
    "lengths",
    "levels",
    "masks",
    "nodes",
    "offsets",
    "pages",
    "pairs",
    "positions",
    "queue",
    "ranges",
    "records",
    "rows",
    "samples",
    "scores",
    "segments",
    "shapes",
    "shards",
    "slots",
    "spans",
    "steps",
    "tokens",
    "weights",
];
const ADJECTIVES: [&str; 24] = [
    "adjacent",
    "aligned",
    "bounded",
    "cached",
    "dense",
    "empty_tail",
    "even",
    "first",
    "inner",
    "last",
    "local",
    "mixed",
    "nested",
    "outer",
    "padded",
    "partial",
    "repeated",
    "short",
    "single",
    "sorted",
    "sparse",
    "stable",
    "uneven",
    "wide",
];

/// The body of a function, the arguments of a call, and what that call does not return.
struct Exercise {
    parameters: &'static [&'static str],
    body: String,
    arguments: Vec<String>,
    wrong: String,
}

/// A new canary. The same state of `rng` gives the same canary.
pub fn canary<R: Rng + ?Sized>(rng: &mut R) -> Canary {
    let exercise = match rng.random_range(0..8) {
        0 => running_totals(rng),
        1 => rotated(rng),
        2 => window_sums(rng),
        3 => interleaved(rng),
        4 => joined(rng),
        5 => counted(rng),
        6 => clamped(rng),
        _ => chunked(rng),
    };
    let (verb, noun) = (pick(rng, &VERBS), pick(rng, &NOUNS));
    let function = format!("{}{verb}_{noun}", if rng.random_bool(0.5) { "_" } else { "" });
    let test_name = match rng.random_range(0..4) {
        0 => format!("test_{verb}_{noun}"),
        1 => format!("test_{}_{noun}", pick(rng, &ADJECTIVES)),
        2 => format!("test_{noun}_{}_{}", pick(rng, &VERBS), pick(rng, &NOUNS)),
        _ => format!("test_{verb}_{}_{noun}", pick(rng, &ADJECTIVES)),
    };
    let file_name = match rng.random_range(0..4) {
        0 => format!("test_{noun}_{}.py", pick(rng, &NOUNS)),
        1 => format!("test_{}_{noun}.py", pick(rng, &VERBS)),
        2 => format!("test_{}_{}_{noun}.py", pick(rng, &ADJECTIVES), pick(rng, &VERBS)),
        _ => format!("test_{verb}_{}_{}.py", pick(rng, &ADJECTIVES), pick(rng, &NOUNS)),
    };
    let parameters = exercise.parameters.join(", ");
    let mut text = String::new();
    if rng.random_bool(0.3) {
        text.push_str(&format!("\"\"\"{} of {noun}.\"\"\"\n\n\n", capitalised(verb)));
    }
    text.push_str(&format!("def {function}({parameters}):\n{}\n\ndef {test_name}():\n", exercise.body));
    let call = format!("{function}({})", exercise.arguments.join(", "));
    let wrong = exercise.wrong;
    match rng.random_range(0..4) {
        0 => text.push_str(&format!("    assert {call} == {wrong}\n")),
        1 => {
            let local = pick(rng, &["result", "got", "out", "actual", "found"]);
            text.push_str(&format!("    {local} = {call}\n    assert {local} == {wrong}\n"));
        }
        2 => {
            let local = pick(rng, &["expected", "want", "target", "reference"]);
            text.push_str(&format!("    {local} = {wrong}\n    assert {call} == {local}\n"));
        }
        _ => {
            for (name, value) in exercise.parameters.iter().zip(&exercise.arguments) {
                text.push_str(&format!("    {name} = {value}\n"));
            }
            text.push_str(&format!("    assert {function}({parameters}) == {wrong}\n"));
        }
    }
    Canary { file_name, text, test_name }
}

fn running_totals(rng: &mut (impl Rng + ?Sized)) -> Exercise {
    let values = numbers(rng, 4..8);
    let totals = values.iter().scan(0, |sum, value| {
        *sum += value;
        Some(*sum)
    });
    let body = "    total = 0\n    out = []\n    for value in values:\n        total += value\n        out.append(total)\n    return out\n";
    let wrong = spoiled(rng, totals.collect());
    Exercise { parameters: &["values"], body: body.to_owned(), arguments: vec![list(&values)], wrong }
}

fn rotated(rng: &mut (impl Rng + ?Sized)) -> Exercise {
    let values = numbers(rng, 4..8);
    let by = rng.random_range(1..values.len());
    let mut turned = values.clone();
    turned.rotate_left(by);
    Exercise {
        parameters: &["items", "by"],
        body: "    by = by % len(items)\n    return items[by:] + items[:by]\n".to_owned(),
        arguments: vec![list(&values), by.to_string()],
        wrong: spoiled(rng, turned),
    }
}

fn window_sums(rng: &mut (impl Rng + ?Sized)) -> Exercise {
    let values = numbers(rng, 5..9);
    let width = rng.random_range(2..4);
    let sums = values.windows(width).map(|window| window.iter().sum()).collect();
    Exercise {
        parameters: &["data", "width"],
        body: "    return [sum(data[i : i + width]) for i in range(len(data) - width + 1)]\n".to_owned(),
        arguments: vec![list(&values), width.to_string()],
        wrong: spoiled(rng, sums),
    }
}

fn interleaved(rng: &mut (impl Rng + ?Sized)) -> Exercise {
    let left = numbers(rng, 3..6);
    let right: Vec<i64> = left.iter().map(|_| rng.random_range(1..90)).collect();
    let woven = left.iter().zip(&right).flat_map(|(a, b)| [*a, *b]).collect();
    let body =
        "    out = []\n    for a, b in zip(left, right):\n        out.extend((a, b))\n    return out\n";
    Exercise {
        parameters: &["left", "right"],
        body: body.to_owned(),
        arguments: vec![list(&left), list(&right)],
        wrong: spoiled(rng, woven),
    }
}

fn joined(rng: &mut (impl Rng + ?Sized)) -> Exercise {
    let words: Vec<&str> = (0..rng.random_range(3..6)).map(|_| pick(rng, &NOUNS)).collect();
    let separator = pick(rng, &[".", "/", "-", ":"]);
    let other = pick(rng, &["_", "+", "|"]);
    let mut parts: Vec<String> = words.iter().map(|word| word[..3].to_owned()).collect();
    let wrong = match rng.random_bool(0.5) {
        true => parts.join(other),
        false => {
            parts.push(parts[0].clone());
            parts.join(separator)
        }
    };
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    Exercise {
        parameters: &["parts", "sep"],
        body: "    return sep.join(part[:3] for part in parts)\n".to_owned(),
        arguments: vec![format!("[{}]", quoted.join(", ")), format!("\"{separator}\"")],
        wrong: format!("\"{wrong}\""),
    }
}

fn counted(rng: &mut (impl Rng + ?Sized)) -> Exercise {
    let bound = rng.random_range(20..60);
    let values = numbers(rng, 5..10);
    let below = values.iter().filter(|value| **value < bound).count();
    let off = if below > 0 && rng.random_bool(0.5) { below - 1 } else { below + 1 };
    Exercise {
        parameters: &["values", "bound"],
        body: "    return sum(1 for value in values if value < bound)\n".to_owned(),
        arguments: vec![list(&values), bound.to_string()],
        wrong: off.to_string(),
    }
}

fn clamped(rng: &mut (impl Rng + ?Sized)) -> Exercise {
    let (low, high) = (rng.random_range(5..30), rng.random_range(40..80));
    let values = numbers(rng, 4..8);
    let inside = values.iter().map(|value| *value.max(&low).min(&high)).collect();
    Exercise {
        parameters: &["values", "low", "high"],
        body: "    return [min(max(value, low), high) for value in values]\n".to_owned(),
        arguments: vec![list(&values), low.to_string(), high.to_string()],
        wrong: spoiled(rng, inside),
    }
}

fn chunked(rng: &mut (impl Rng + ?Sized)) -> Exercise {
    let values = numbers(rng, 5..10);
    let size = rng.random_range(2..4);
    let maxima = values.chunks(size).map(|chunk| chunk.iter().copied().max().unwrap_or(0)).collect();
    let body = "    out = []\n    for start in range(0, len(items), size):\n        out.append(max(items[start : start + size]))\n    return out\n";
    Exercise {
        parameters: &["items", "size"],
        body: body.to_owned(),
        arguments: vec![list(&values), size.to_string()],
        wrong: spoiled(rng, maxima),
    }
}

fn numbers(rng: &mut (impl Rng + ?Sized), count: std::ops::Range<usize>) -> Vec<i64> {
    (0..rng.random_range(count)).map(|_| rng.random_range(1..90)).collect()
}

/// A list that is surely another one: an element off, an element missing, or two that differ swapped.
fn spoiled(rng: &mut (impl Rng + ?Sized), mut values: Vec<i64>) -> String {
    let at = rng.random_range(0..values.len());
    match rng.random_range(0..3) {
        0 => {
            values.remove(at);
        }
        1 if values.iter().any(|value| *value != values[at]) => {
            let right = values.clone();
            while values == right {
                values.shuffle(rng);
            }
        }
        _ => values[at] += pick(rng, &[-2, -1, 1, 2, 10]),
    }
    list(&values)
}

fn list(values: &[i64]) -> String {
    let values: Vec<String> = values.iter().map(i64::to_string).collect();
    format!("[{}]", values.join(", "))
}

/// A word as names in tests are made of, for values drawn elsewhere.
pub(crate) fn word(rng: &mut (impl Rng + ?Sized)) -> &'static str {
    if rng.random_bool(0.3) { pick(rng, &ADJECTIVES) } else { pick(rng, &NOUNS) }
}

fn pick<T: Copy>(rng: &mut (impl Rng + ?Sized), from: &[T]) -> T {
    *from.choose(rng).unwrap_or(&from[0])
}

fn capitalised(word: &str) -> String {
    word.chars().next().map(|first| first.to_uppercase().collect::<String>() + &word[1..]).unwrap_or_default()
}
