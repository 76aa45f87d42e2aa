//! How much a candidate promises as a task: a sum whose parts are shown.

use infradev_model::{Device, Facts, ScorePart};

/// The parts of a candidate's score.
pub fn parts(facts: &Facts) -> Vec<ScorePart> {
    let mut parts = Vec::new();
    let mut part = |name: &str, points: i32, why: String| {
        if points != 0 {
            parts.push(ScorePart { name: name.to_owned(), points, why });
        }
    };
    let tests = facts.tests_added + facts.tests_changed;
    let by_tests = (2 * facts.tests_added + facts.tests_changed).min(20) as i32;
    part("tests", by_tests, format!("{} added, {} changed", facts.tests_added, facts.tests_changed));
    // Docstrings, comments and files whose code is the same are no work.
    let lines = facts.substance.added + facts.substance.deleted;
    let of_all = facts.source.added + facts.source.deleted;
    let by_size = match lines {
        50..=1500 => 20,
        20..=49 | 1501..=4000 => 8,
        _ => 0,
    };
    part("size", by_size, format!("lines of code: {lines} of {of_all} changed"));
    let files = facts.substance.files;
    part("spread", 3 * files.min(5) as i32, format!("files whose code differs: {files}"));
    let needs = &facts.needs;
    if needs.world > 1 {
        part("ranks", 15, format!("ranks: {}", needs.world));
    } else if needs.distributed {
        part("ranks", 5, "a process group".into());
    }
    if !facts.checks.numbers.is_empty() {
        part("numbers", 10, "tests compare numbers".into());
    }
    if !facts.checks.resources.is_empty() {
        part("resources", 5, "tests look at memory, time or bytes".into());
    }
    if facts.hollow.functions > 0 {
        part("hollow", 10, format!("added functions: {}", facts.hollow.functions));
    }
    if needs.device == Device::Cpu {
        part("cpu", 5, "no test asks for CUDA".into());
    }
    if !facts.native.is_empty() {
        part("native", -15, format!("{} must be compiled", facts.native[0]));
    }
    if !facts.dependencies.is_empty() {
        part("packages", -5, format!("{} changed", facts.dependencies[0]));
    }
    if let Some(first) = facts.unparsed.first() {
        part("unparsed", -10, first.clone());
    }
    if tests == 0 {
        part("untested", -10, "no test function differs".into());
    }
    parts
}
