//! The names that tell what an assertion checks.

use infradev_model::Property;

/// Calls and attributes that read a meter, whatever they are compared with.
pub(super) fn meter(name: &str) -> Option<Property> {
    Some(match name {
        "max_memory_allocated" | "max_memory_reserved" | "memory_allocated" | "memory_reserved"
        | "max_memory_cached" | "memory_cached" | "mem_get_info" | "memory_stats" | "memory_snapshot"
        | "memory_summary" | "get_traced_memory" | "rss" | "ru_maxrss" | "vms" | "uss" | "memory_usage"
        | "virtual_memory" | "getsizeof" | "device_memory_used" | "get_mem_info" => Property::Memory,
        "perf_counter" | "perf_counter_ns" | "monotonic" | "monotonic_ns" | "process_time" | "thread_time"
        | "time_ns" | "elapsed_time" | "default_timer" | "do_bench" | "do_bench_cudagraph"
        | "total_seconds" | "timeit" => Property::Time,
        "get_total_counts" | "get_comm_counts" | "comm_counts" | "comm_bytes" | "bytes_sent" | "sent_bytes"
        | "bytes_received" | "received_bytes" | "transferred_bytes" | "bytes_transferred" | "wire_bytes"
        | "bytes_on_wire" | "traffic_bytes" | "num_collectives" | "collective_calls" | "collective_count"
        | "bytes_communicated" | "communicated_bytes" => Property::Traffic,
        _ => return None,
    })
}

/// Attributes that count the bytes of a tensor: memory, or traffic where the text around tells of sending.
pub(super) const BYTES: &[&str] = &["nbytes", "storage", "untyped_storage", "storage_size"];

/// What a name stands for by its words: read only where it is ordered against something.
pub(super) fn by_words(name: &str) -> Option<Property> {
    let words: Vec<String> = words(name);
    let has = |set: &[&str]| words.iter().any(|word| set.contains(&word.as_str()));
    let bounds = has(&["max", "min"]) && !has(&["allocated", "reserved", "peak", "used"]);
    if has(SETTINGS) || bounds {
        return None;
    }
    if has(&["traffic"]) || (has(SENDING) && has(AMOUNT)) {
        return Some(Property::Traffic);
    }
    if has(MEMORY) && !has(&["key", "keys", "dim", "per"]) {
        return Some(Property::Memory);
    }
    if has(TIME) || words.last().is_some_and(|last| last == "time") && words.len() > 1 {
        return Some(Property::Time);
    }
    None
}

/// Words of settings and of estimates that are named after a resource.
const SETTINGS: &[&str] = &[
    "utilization", "timeout", "config", "budget", "limit", "args", "expected", "factor", "compute", "estimate", "estimated",
    "theoretical", "chunk",
];

const MEMORY: &[&str] = &[
    "memory", "mem", "peak", "rss", "vram", "bytes", "allocated", "leaked", "footprint", "mb", "gb", "mib", "gib",
];

const TIME: &[&str] = &[
    "elapsed", "duration", "latency", "took", "seconds", "secs", "ms", "millis", "speedup", "throughput", "tflops",
    "runtime", "walltime", "slowdown", "ttft", "tpot",
];

const SENDING: &[&str] = &[
    "comm", "comms", "communication", "sent", "send", "sends", "received", "recv", "wire", "transferred", "network",
];

const AMOUNT: &[&str] = &["bytes", "volume", "calls", "count", "counts", "mb", "total"];

/// Whether a text tells of sending between ranks.
pub(super) fn tells_of_sending(name: &str) -> bool {
    words(name).iter().any(|word| {
        SENDING.contains(&word.as_str())
            || matches!(
                word.as_str(),
                "gather" | "reduce" | "scatter" | "broadcast" | "broadcasts" | "collective" | "moves" | "hook"
                    | "traffic"
            )
    })
}

/// Collectives and sends, by whole name.
pub(super) fn is_collective(name: &str) -> bool {
    let name = name.trim_start_matches("mock_").trim_start_matches('_').trim_end_matches("_mock");
    let stem = name.trim_end_matches("_calls").trim_end_matches("_count").trim_end_matches("_counts");
    let stem = stem.trim_end_matches('s');
    matches!(
        stem,
        "all_reduce" | "allreduce" | "all_gather" | "allgather" | "all_gather_into_tensor" | "reduce_scatter"
            | "reduce_scatter_tensor" | "all_to_all" | "all_to_all_single" | "alltoall" | "isend" | "irecv"
            | "batch_isend_irecv" | "all_gather_object" | "broadcast_object_list" | "collective"
    )
}

/// Attributes and calls that tell what a thing is.
pub(super) const SHAPES: &[&str] = &[
    "shape", "dtype", "device", "ndim", "layout", "itemsize", "batch_size", "is_cuda", "is_sparse", "is_contiguous",
    "stride", "dim", "numel", "element_size", "size", "get_device", "is_floating_point", "storage_offset",
    "placements", "device_type", "is_cpu", "is_meta", "memory_format",
];

/// Functions that tell what a thing is.
pub(super) const KINDS: &[&str] = &["isinstance", "issubclass", "callable", "is_tensor", "type"];

/// What a mock recorded.
pub(super) const RECORDS: &[&str] = &[
    "call_count", "call_args", "call_args_list", "called", "mock_calls", "method_calls", "await_count", "await_args",
    "await_args_list",
];

/// Attributes whose words tell of something that outlives a call.
pub(super) fn is_state(name: &str) -> bool {
    let words = words(name);
    words.iter().any(|word| STATE.contains(&word.as_str())) || words.last().is_some_and(|last| last == "status")
}

const STATE: &[&str] = &[
    "cache", "caches", "cached", "registry", "counter", "counters", "count", "counts", "cnt", "free", "hits",
    "misses", "pending", "queue", "waiting", "pool", "initialized", "registered", "captured", "alive", "closed",
    "grad", "evictor", "stats", "active", "paused", "inflight", "state",
];

/// Words of what is compared within a tolerance.
pub(super) fn is_tolerance(name: &str) -> bool {
    words(name).iter().any(|word| TOLERANCE.contains(&word.as_str()))
}

const TOLERANCE: &[&str] = &[
    "abs", "diff", "diffs", "difference", "err", "error", "errors", "tol", "tolerance", "atol", "rtol", "eps", "norm",
    "deviation", "similarity", "mismatch", "cosine", "delta", "mse", "rmse", "snr", "psnr", "fabs",
];

/// Calls whose truth is that contents agree, or of what kind they are.
pub(super) fn compares_content(name: &str) -> bool {
    matches!(
        name,
        "isfinite" | "isnan" | "isinf" | "startswith" | "endswith" | "search" | "fullmatch" | "findall" | "issubset"
            | "issuperset" | "isdisjoint" | "eq" | "ne" | "all" | "any" | "count_nonzero"
    ) || words(name).iter().any(|word| {
        matches!(word.as_str(), "allclose" | "isclose" | "close" | "equal" | "equals" | "match" | "matches" | "same" | "identical")
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
        "item" | "max" | "min" | "mean" | "sum" | "abs" | "total" | "get" | "values" | "items" | "keys" | "tolist"
            | "cpu" | "float" | "double" | "median" | "amax" | "norm" | "numpy" | "detach" | "to" | "int" | "long"
            | "strip" | "lower" | "index" | "copy" | "memory_info" | "view" | "flatten" | "readouterr" | "nbytes"
    )
}

/// Functions that give a reading of their arguments.
pub(super) fn is_wrapper(name: &str) -> bool {
    matches!(
        name,
        "max" | "min" | "sum" | "abs" | "int" | "float" | "round" | "sorted" | "list" | "tuple" | "set" | "str"
            | "repr" | "mean" | "median" | "tensor" | "len" | "bool" | "next" | "iter" | "dict" | "reversed"
            | "all" | "any" | "isnan" | "norm" | "unpackb" | "loads" | "fabs" | "sqrt" | "frozenset"
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
