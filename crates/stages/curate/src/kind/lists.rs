//! Words and phrases by the kind that they speak for. General English of commits, nothing of one project.

use infradev_model::Kind;

use Kind::{Feature, Fix, Performance, Refactor};

/// Words with the kind and weight that they speak for.
pub type List = &'static [(Kind, f64, &'static [&'static str])];

/// The type of a conventional commit, or a tag in brackets. `feat` is written over changes of every kind, so it weighs little.
pub const TAGS: List = &[
    (Fix, 5.0, &["fix", "fixes", "bugfix", "bug", "hotfix"]),
    (Performance, 6.0, &["perf", "performance", "optimization", "optimisation"]),
    (Refactor, 5.0, &["refactor", "refactoring", "cleanup", "deprecation", "tidy"]),
    (Refactor, 2.0, &["chore", "style", "breaking"]),
    (Feature, 2.0, &["feat", "feature"]),
];

/// The first word after the tags: what the author says that the change does.
pub const VERBS: List = &[
    (
        Fix,
        5.0,
        &["fix", "fixes", "fixed", "fixing", "bugfix", "hotfix", "correct", "corrects", "repair", "resolve"],
    ),
    (Fix, 4.5, &["prevent", "prevents", "workaround"]),
    (
        Fix,
        3.0,
        &[
            "avoid", "guard", "restore", "ensure", "handle", "preserve", "respect", "honor", "honour",
            "tolerate",
        ],
    ),
    (Fix, 3.0, &["dont", "disallow", "stop", "skip", "reject", "account"]),
    (Fix, 4.0, &["typo", "correctly"]),
    (Fix, 3.0, &["address", "missing"]),
    (Fix, 2.5, &["disable", "align", "patch", "reset", "enforce", "force"]),
    (Fix, 1.5, &["mark", "also", "take", "re", "always", "only", "do", "set", "retry"]),
    (Fix, 1.0, &["change"]),
    (
        Performance,
        5.0,
        &["optimize", "optimizes", "optimise", "optimized", "speed", "speedup", "accelerate", "faster"],
    ),
    (Performance, 5.0, &["overlap", "overlapping", "fuse", "perf", "vectorize", "parallelize"]),
    (Performance, 3.5, &["reduce", "reduces", "cache", "caching", "reuse", "lazy", "lazily", "prefetch"]),
    (Performance, 1.5, &["efficient", "async"]),
    (
        Refactor,
        5.0,
        &["refactor", "refactors", "refactored", "refactoring", "move", "moves", "moving", "rename"],
    ),
    (
        Refactor,
        5.0,
        &["renames", "renaming", "clean", "cleanup", "simplify", "simplifies", "deprecate", "remove"],
    ),
    (
        Refactor,
        5.0,
        &["removes", "removing", "delete", "deletes", "drop", "unify", "consolidate", "extract", "migrate"],
    ),
    (
        Refactor,
        5.0,
        &["reorganize", "decouple", "deduplicate", "dedupe", "restructure", "split", "modernize"],
    ),
    (
        Refactor,
        4.0,
        &[
            "replace",
            "replaces",
            "thread",
            "standardize",
            "rework",
            "inline",
            "factor",
            "tidy",
            "polish",
            "simplification",
        ],
    ),
    (
        Refactor,
        3.0,
        &[
            "prep", "prepare", "graduate", "rewrite", "unified", "switch", "convert", "merge", "hoist",
            "separate",
        ],
    ),
    (Refactor, 2.0, &["pass", "require", "propagate", "use", "retrieve"]),
    (
        Feature,
        4.0,
        &["add", "adds", "added", "adding", "support", "supports", "supporting", "enable", "enables"],
    ),
    (
        Feature,
        4.0,
        &["implement", "implements", "introduce", "introduces", "allow", "allows", "port", "feature", "new"],
    ),
    (
        Feature,
        4.0,
        &["expose", "exposes", "integrate", "extend", "extends", "feat", "initial", "create", "provide"],
    ),
    (Feature, 2.5, &["let", "configurable", "bring", "register", "define", "accept", "include"]),
    (Feature, 1.0, &["update", "flexible", "first", "begin"]),
];

/// What is added with these is no feature, whatever the rest of the change is.
pub const TESTS: &[&str] = &["test", "tests", "unittest", "unittests"];

/// Any other word of the title.
pub const TITLE: List = &[
    (
        Fix,
        2.5,
        &[
            "bug",
            "bugs",
            "bugfix",
            "crash",
            "crashes",
            "hang",
            "hangs",
            "deadlock",
            "leak",
            "race",
            "corruption",
        ],
    ),
    (
        Fix,
        2.0,
        &[
            "wrong",
            "incorrect",
            "incorrectly",
            "broken",
            "missing",
            "failure",
            "failures",
            "mismatch",
            "regression",
        ],
    ),
    (
        Fix,
        2.0,
        &[
            "error",
            "errors",
            "nan",
            "nans",
            "inf",
            "oom",
            "overflow",
            "issue",
            "issues",
            "workaround",
            "guard",
        ],
    ),
    (Fix, 1.5, &["correctly", "properly", "ensure", "prevent", "avoid", "safe", "accidentally"]),
    (Fix, 1.0, &["when"]),
    (
        Performance,
        2.5,
        &["speedup", "faster", "slowdown", "throughput", "latency", "perf", "optimization", "optimizations"],
    ),
    (
        Performance,
        2.0,
        &["optimize", "optimized", "performance", "overlap", "overlapped", "overhead", "fusion", "fused"],
    ),
    (
        Performance,
        1.0,
        &["cached", "caching", "cache", "memory", "efficient", "lazy", "async", "graphs", "prefetch"],
    ),
    (Performance, 1.5, &["tuning", "unnecessary"]),
    (
        Refactor,
        2.5,
        &["refactor", "refactoring", "refactored", "cleanup", "deprecate", "deprecated", "simplification"],
    ),
    (
        Refactor,
        1.5,
        &["unused", "legacy", "redundant", "duplicate", "duplicated", "rename", "remove", "move", "unify"],
    ),
    (Refactor, 1.0, &["into"]),
    (
        Feature,
        1.5,
        &["support", "supports", "enable", "add", "adds", "adding", "allow", "introduce", "implementation"],
    ),
    (Feature, 1.5, &["configurable", "option", "options", "optional", "feature", "custom", "flag", "user"]),
];

/// Most that words of the title weigh for one kind, the first one apart.
pub const MOST_OF_TITLE: f64 = 3.5;

/// Words and phrases of the description.
pub const BODY: List = &[
    (
        Fix,
        0.7,
        &[
            "bug",
            "incorrect",
            "incorrectly",
            "wrong",
            "wrongly",
            "fails",
            "failed",
            "failing",
            "crash",
            "crashes",
        ],
    ),
    (
        Fix,
        0.7,
        &["broken", "raises", "exception", "regression", "deadlock", "hangs", "nan", "root cause", "bug fix"],
    ),
    (
        Fix,
        0.7,
        &["this fixes", "bug fixes", "error when", "valueerror", "typeerror", "runtimeerror", "keyerror"],
    ),
    (
        Performance,
        0.7,
        &[
            "speedup",
            "speedups",
            "speed up",
            "faster",
            "slower",
            "throughput",
            "latency",
            "tok s",
            "tokens s",
            "overhead",
        ],
    ),
    (
        Performance,
        0.7,
        &["peak memory", "memory usage", "bandwidth", "benchmark", "benchmarks", "reduces memory", "reduce"],
    ),
    (
        Refactor,
        0.7,
        &[
            "refactor",
            "refactors",
            "refactoring",
            "clean up",
            "cleanup",
            "tech debt",
            "dead code",
            "deprecated",
        ],
    ),
    (
        Refactor,
        0.7,
        &["no functional change", "no behavior change", "no behaviour change", "simplify", "simplifies"],
    ),
    (
        Refactor,
        0.7,
        &["duplicated", "duplication", "moved", "renamed", "no longer needed", "unused", "bit identical"],
    ),
    (
        Feature,
        0.5,
        &["adds support", "add support", "support for", "new feature", "introduces", "introduce", "allows"],
    ),
    (
        Feature,
        0.5,
        &["enables", "users can", "opt in", "new option", "configurable", "implements", "this pr adds"],
    ),
];

/// Most that the description weighs for one kind, the verb of its `This PR …` apart.
pub const MOST_OF_BODY: f64 = 2.0;

/// Labels of a pull request.
pub const LABELS: List = &[
    (Fix, 4.0, &["bug", "bugfix", "fix", "hotfix"]),
    (Performance, 4.0, &["performance", "perf", "optimization"]),
    (Refactor, 3.0, &["refactor", "refactoring", "cleanup", "deprecation"]),
    (Feature, 2.5, &["enhancement", "feature"]),
];

/// What takes less of something …
pub const LESSENING: &[&str] = &[
    "reduce",
    "reduces",
    "reducing",
    "improve",
    "improves",
    "improving",
    "lower",
    "save",
    "saves",
    "cut",
    "minimize",
    "optimize",
    "optimise",
    "optimizing",
    "decrease",
    "shrink",
];
/// … where it is one of these, makes it cheaper.
pub const COSTS: &[&str] = &[
    "latency",
    "throughput",
    "memory",
    "overhead",
    "time",
    "performance",
    "perf",
    "speed",
    "footprint",
    "usage",
    "efficiency",
    "cost",
    "startup",
    "bandwidth",
    "allocations",
    "syncs",
    "launches",
    "traffic",
];
/// … also as a noun.
pub const LESSENED: &[&str] = &["improvement", "improvements", "reduction", "savings", "saving"];
/// … and where it is one of these, reads better and does the same.
pub const LEGIBILITY: &[&str] =
    &["readability", "clarity", "naming", "structure", "typing", "style", "maintainability"];
/// … and where what is taken away is one of these, the code is taken apart better.
pub const TANGLES: &[&str] = &["dependency", "dependencies", "coupling", "duplication", "boilerplate"];
/// Headings of a description under which it says what was wrong, and what it measured.
pub const HEADINGS: List = &[
    (Fix, 1.5, &["problem", "bug", "symptom", "symptoms", "reproduce", "repro", "cause", "issue"]),
    (Performance, 1.0, &["performance", "benchmark", "benchmarks", "perf", "speedup", "throughput"]),
];
/// What takes something away …
pub const SPARING: &[&str] =
    &["avoid", "avoids", "remove", "removes", "eliminate", "eliminates", "skip", "skips"];
/// … where it is work that needn't be done, makes it cheaper too.
pub const WORK: &[&str] = &[
    "copy",
    "copies",
    "sync",
    "syncs",
    "synchronization",
    "overhead",
    "allocation",
    "allocations",
    "recompute",
    "recomputation",
    "recomputing",
    "materialization",
    "materializing",
    "transfer",
    "transfers",
    "d2h",
    "h2d",
];
/// What is slow can be fixed as what is wrong can.
pub const SLOW: &[&str] =
    &["slowdown", "slow", "slowness", "latency", "throughput", "overhead", "speed", "performance"];
