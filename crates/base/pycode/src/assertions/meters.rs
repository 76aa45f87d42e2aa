//! The names of meters and of what they measured.

use infradev_model::Property;

use super::words::words;

/// Calls and attributes that read a meter, whatever they are compared with.
pub(super) fn meter(name: &str) -> Option<Property> {
    Some(match name {
        "max_memory_allocated"
        | "max_memory_reserved"
        | "memory_allocated"
        | "memory_reserved"
        | "max_memory_cached"
        | "memory_cached"
        | "mem_get_info"
        | "memory_stats"
        | "memory_snapshot"
        | "memory_summary"
        | "get_traced_memory"
        | "rss"
        | "ru_maxrss"
        | "vms"
        | "uss"
        | "memory_usage"
        | "virtual_memory"
        | "getsizeof"
        | "device_memory_used"
        | "get_mem_info" => Property::Memory,
        "perf_counter" | "perf_counter_ns" | "monotonic" | "monotonic_ns" | "process_time"
        | "thread_time" | "time_ns" | "elapsed_time" | "default_timer" | "do_bench"
        | "do_bench_cudagraph" | "total_seconds" | "timeit" => Property::Time,
        "get_total_counts" | "get_comm_counts" | "comm_counts" | "comm_bytes" | "bytes_sent"
        | "sent_bytes" | "bytes_received" | "received_bytes" | "transferred_bytes" | "bytes_transferred"
        | "wire_bytes" | "bytes_on_wire" | "traffic_bytes" | "num_collectives" | "collective_calls"
        | "collective_count" | "bytes_communicated" | "communicated_bytes" => Property::Traffic,
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
    "utilization",
    "timeout",
    "config",
    "budget",
    "limit",
    "args",
    "expected",
    "factor",
    "compute",
    "estimate",
    "estimated",
    "theoretical",
    "chunk",
];

const MEMORY: &[&str] = &[
    "memory",
    "mem",
    "peak",
    "rss",
    "vram",
    "bytes",
    "allocated",
    "leaked",
    "footprint",
    "mb",
    "gb",
    "mib",
    "gib",
];

const TIME: &[&str] = &[
    "elapsed",
    "duration",
    "latency",
    "took",
    "seconds",
    "secs",
    "ms",
    "millis",
    "speedup",
    "throughput",
    "tflops",
    "runtime",
    "walltime",
    "slowdown",
    "ttft",
    "tpot",
];

const SENDING: &[&str] = &[
    "comm",
    "comms",
    "communication",
    "sent",
    "send",
    "sends",
    "received",
    "recv",
    "wire",
    "transferred",
    "network",
];

const AMOUNT: &[&str] = &["bytes", "volume", "calls", "count", "counts", "mb", "total"];

/// Whether a text tells of sending between ranks.
pub(super) fn tells_of_sending(name: &str) -> bool {
    words(name).iter().any(|word| {
        SENDING.contains(&word.as_str())
            || matches!(
                word.as_str(),
                "gather"
                    | "reduce"
                    | "scatter"
                    | "broadcast"
                    | "broadcasts"
                    | "collective"
                    | "moves"
                    | "hook"
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
        "all_reduce"
            | "allreduce"
            | "all_gather"
            | "allgather"
            | "all_gather_into_tensor"
            | "reduce_scatter"
            | "reduce_scatter_tensor"
            | "all_to_all"
            | "all_to_all_single"
            | "alltoall"
            | "isend"
            | "irecv"
            | "batch_isend_irecv"
            | "all_gather_object"
            | "broadcast_object_list"
            | "collective"
    )
}
