//! The names that tell what an assertion checks, beside those of meters.

/// Attributes and calls that tell what a thing is.
pub(super) const SHAPES: &[&str] = &[
    "shape",
    "dtype",
    "device",
    "ndim",
    "layout",
    "itemsize",
    "batch_size",
    "is_cuda",
    "is_sparse",
    "is_contiguous",
    "stride",
    "dim",
    "numel",
    "element_size",
    "size",
    "get_device",
    "is_floating_point",
    "storage_offset",
    "placements",
    "device_type",
    "is_cpu",
    "is_meta",
    "memory_format",
];

/// Functions that tell what a thing is.
pub(super) const KINDS: &[&str] = &["isinstance", "issubclass", "callable", "is_tensor", "type"];

/// What a mock recorded.
pub(super) const RECORDS: &[&str] = &[
    "call_count",
    "call_args",
    "call_args_list",
    "called",
    "mock_calls",
    "method_calls",
    "await_count",
    "await_args",
    "await_args_list",
];

/// Attributes whose words tell of something that outlives a call.
pub(super) fn is_state(name: &str) -> bool {
    let words = words(name);
    words.iter().any(|word| STATE.contains(&word.as_str()))
        || words.last().is_some_and(|last| last == "status")
}

const STATE: &[&str] = &[
    "cache",
    "caches",
    "cached",
    "registry",
    "counter",
    "counters",
    "count",
    "counts",
    "cnt",
    "free",
    "hits",
    "misses",
    "pending",
    "queue",
    "waiting",
    "pool",
    "initialized",
    "registered",
    "captured",
    "alive",
    "closed",
    "grad",
    "evictor",
    "stats",
    "active",
    "paused",
    "inflight",
    "state",
];

/// Words of what is compared within a tolerance.
pub(super) fn is_tolerance(name: &str) -> bool {
    words(name).iter().any(|word| TOLERANCE.contains(&word.as_str()))
}

const TOLERANCE: &[&str] = &[
    "abs",
    "diff",
    "diffs",
    "difference",
    "err",
    "error",
    "errors",
    "tol",
    "tolerance",
    "atol",
    "rtol",
    "eps",
    "norm",
    "deviation",
    "similarity",
    "mismatch",
    "cosine",
    "delta",
    "mse",
    "rmse",
    "snr",
    "psnr",
    "fabs",
];

/// Calls whose truth is that contents agree, or of what kind they are.
pub(super) fn compares_content(name: &str) -> bool {
    matches!(
        name,
        "isfinite"
            | "isnan"
            | "isinf"
            | "startswith"
            | "endswith"
            | "search"
            | "fullmatch"
            | "findall"
            | "issubset"
            | "issuperset"
            | "isdisjoint"
            | "eq"
            | "ne"
            | "all"
            | "any"
            | "count_nonzero"
    ) || words(name).iter().any(|word| {
        matches!(
            word.as_str(),
            "allclose"
                | "isclose"
                | "close"
                | "equal"
                | "equals"
                | "match"
                | "matches"
                | "same"
                | "identical"
        )
    })
}

/// Calls whose truth is about files.
pub(super) fn asks_the_disk(name: &str) -> bool {
    matches!(name, "exists" | "isfile" | "isdir" | "is_file" | "is_dir" | "islink" | "lexists" | "is_symlink")
}

/// Calls that give a part or a reading of their receiver.
pub(super) fn is_accessor(name: &str) -> bool {
    matches!(
        name,
        "item"
            | "max"
            | "min"
            | "mean"
            | "sum"
            | "abs"
            | "total"
            | "get"
            | "values"
            | "items"
            | "keys"
            | "tolist"
            | "cpu"
            | "float"
            | "double"
            | "median"
            | "amax"
            | "norm"
            | "numpy"
            | "detach"
            | "to"
            | "int"
            | "long"
            | "strip"
            | "lower"
            | "index"
            | "copy"
            | "memory_info"
            | "view"
            | "flatten"
            | "readouterr"
            | "nbytes"
    )
}

/// Functions that give a reading of their arguments.
pub(super) fn is_wrapper(name: &str) -> bool {
    matches!(
        name,
        "max"
            | "min"
            | "sum"
            | "abs"
            | "int"
            | "float"
            | "round"
            | "sorted"
            | "list"
            | "tuple"
            | "set"
            | "str"
            | "repr"
            | "mean"
            | "median"
            | "tensor"
            | "len"
            | "bool"
            | "next"
            | "iter"
            | "dict"
            | "reversed"
            | "all"
            | "any"
            | "isnan"
            | "norm"
            | "unpackb"
            | "loads"
            | "fabs"
            | "sqrt"
            | "frozenset"
    )
}

/// The words of a name, in lower case: `peakMemory_mb` is `peak`, `memory`, `mb`.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    for part in name.split(|c: char| !c.is_alphanumeric()) {
        let mut word = String::new();
        let mut lower_before = false;
        for c in part.chars() {
            if c.is_uppercase() && lower_before {
                words.push(std::mem::take(&mut word));
            }
            lower_before = c.is_lowercase();
            word.extend(c.to_lowercase());
        }
        if !word.is_empty() {
            words.push(word);
        }
    }
    words
}
