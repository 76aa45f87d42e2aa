//! How far an agent tried its work, by the commands of its trajectory and what came of them.

use std::sync::LazyLock;

use infradev_model::atif::{Observation, Step, ToolCall, Trajectory};
use infradev_model::{Reached, Tried};
use regex::Regex;
use serde_json::Value;

/// Gates that an agent passed, with the first step at which it did. A later gate says that those before it are passed too, except that
/// several ranks say nothing of one.
pub(crate) fn tried(trajectory: &Trajectory) -> Vec<Reached> {
    let mut found: [Option<Reached>; 4] = [None; 4];
    let began = trajectory.steps.iter().find_map(|step| seconds(step.timestamp.as_deref()?));
    let mut tokens: Option<u64> = None;
    for step in &trajectory.steps {
        if let Some(used) = used(step) {
            tokens = Some(tokens.unwrap_or(0).saturating_add(used));
        }
        let now = step.timestamp.as_deref().and_then(seconds);
        let passed = step.tool_calls.iter().flatten().flat_map(|call| gates(call, step));
        for gate in passed {
            let reached = Reached {
                gate,
                step: step.step_id,
                tokens,
                seconds: began.zip(now).map(|(began, now)| (now - began).max(0.0)),
            };
            let at = Tried::ALL.iter().position(|one| *one == gate).unwrap_or(0);
            found[at].get_or_insert(reached);
        }
    }
    found.into_iter().flatten().collect()
}

fn used(step: &Step) -> Option<u64> {
    let metrics = step.metrics.as_ref()?;
    let parts = [metrics.prompt_tokens, metrics.completion_tokens];
    parts.iter().any(Option::is_some).then(|| parts.into_iter().flatten().fold(0, u64::saturating_add))
}

/// The gates that a call passes, by its command and its result.
fn gates(call: &ToolCall, step: &Step) -> Vec<Tried> {
    let command = command(call);
    let asked = asked(&command);
    if asked.is_empty() || !succeeded(call, step.observation.as_ref()) {
        return Vec::new();
    }
    asked
}

/// The texts of a call's command.
fn command(call: &ToolCall) -> String {
    let mut text = String::new();
    for name in ["command", "cmd", "script", "code", "commands", "keystrokes"] {
        match call.arguments.get(name) {
            Some(Value::String(command)) => text.push_str(command),
            Some(Value::Array(words)) => {
                for word in words.iter().filter_map(Value::as_str) {
                    text.push_str(word);
                    text.push(' ');
                }
            }
            _ => continue,
        }
        text.push('\n');
    }
    text
}

static PYTEST: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\bpytest\b|-m unittest\b").ok());
static COLLECT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"--collect-only|--co\b").ok());
static IMPORT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?s)\bpython[\d.]*\s[^\n]*?(?:-c|-\s*<<|<<).*?\bimport\b").ok());
static LAUNCHER: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\b(?:torchrun|torch\.distributed\.(?:run|launch))\b|\bmpirun\b").ok());
static RANKS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?:--nproc[-_]per[-_]node|mpirun\s+(?:-np?|--np))[=\s]+(\w+)").ok());
static NOT_PASSED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"\b[1-9]\d* (?:failed|errors?)\b|Traceback \(most recent call last\)|\bno tests ran\b|ChildFailedError").ok()
});

fn has(pattern: &LazyLock<Option<Regex>>, text: &str) -> bool {
    matches!(&**pattern, Some(pattern) if pattern.is_match(text))
}

/// What a command tries.
fn asked(command: &str) -> Vec<Tried> {
    if has(&LAUNCHER, command) {
        let ranks = RANKS.as_ref().and_then(|ranks| Some(ranks.captures(command)?.get(1)?.as_str()));
        // A word such as `gpu` asks for as many as there are.
        return match ranks.map_or(Ok(1), str::parse::<u32>) {
            Ok(0 | 1) => vec![Tried::Imports, Tried::Collects, Tried::OneRank],
            _ => vec![Tried::Imports, Tried::Collects, Tried::Ranks],
        };
    }
    match () {
        () if has(&PYTEST, command) && has(&COLLECT, command) => vec![Tried::Imports, Tried::Collects],
        () if has(&PYTEST, command) => vec![Tried::Imports, Tried::Collects, Tried::OneRank],
        () if has(&IMPORT, command) => vec![Tried::Imports],
        () => Vec::new(),
    }
}

/// Whether a call came back, and nothing that it says tells of a failure: its exit code, what its agent says, or the output of pytest and
/// Python, since a pipe into `tail` hides an exit code.
fn succeeded(call: &ToolCall, observation: Option<&Observation>) -> bool {
    let results = observation.map(|observation| observation.results.as_slice()).unwrap_or_default();
    let own = |id: Option<&str>| id.is_none_or(|id| id == call.tool_call_id);
    let mut results = results.iter().filter(|result| own(result.source_call_id.as_deref())).peekable();
    results.peek().is_some()
        && results.all(|result| {
            let told = |name: &str| result.extra.as_ref().and_then(|extra| extra.get(name));
            let code = told("exit_code").and_then(Value::as_i64).unwrap_or(0);
            let error = told("is_error").and_then(Value::as_bool).unwrap_or(false);
            code == 0 && !error && !has(&NOT_PASSED, result.content.as_deref().unwrap_or_default())
        })
}

/// Seconds since the epoch of an ISO 8601 time in UTC: `2026-12-01T10:00:00.5Z`.
fn seconds(time: &str) -> Option<f64> {
    let (date, clock) = time.trim_end_matches('Z').trim_end_matches("+00:00").split_once(['T', ' '])?;
    let mut parts = date.splitn(3, '-').map(str::parse::<i64>);
    let (year, month, day) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    let mut parts = clock.splitn(3, ':').map(str::parse::<f64>);
    let (hours, minutes, rest) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    // Days of the civil calendar, counted from March so that a leap day is a year's last (H. Hinnant's algorithm).
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * month + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    Some(days as f64 * 86_400.0 + hours * 3_600.0 + minutes * 60.0 + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_seconds() {
        assert_eq!(seconds("1970-01-01T00:00:00Z"), Some(0.0));
        assert_eq!(seconds("2024-02-29T12:30:01.5Z"), Some(1_709_209_801.5));
        assert_eq!(seconds("2026-12-01T10:00:00+00:00"), Some(1_796_119_200.0));
        assert_eq!(seconds("yesterday"), None);
    }

    #[test]
    fn a_command_says_which_gate_it_tries() {
        let told = [
            "ls tests",
            "python -c 'import ministack; print(1)'",
            "python - <<'EOF'\nimport ministack\nEOF",
            "python -m pytest --collect-only -q tests",
            "cd repo && pytest -q tests/test_a.py | tail -3",
            "torchrun --nproc-per-node=1 -m pytest tests",
            "torchrun --standalone --nproc_per_node 4 -m pytest tests",
            "torchrun --nproc-per-node gpu check.py",
        ]
        .map(|command| {
            let words: Vec<&str> = asked(command).into_iter().map(Tried::word).collect();
            format!("{}: {}", command.lines().next().unwrap(), words.join(", "))
        });
        insta::assert_snapshot!(told.join("\n"));
    }

    fn step(id: u64, command: &str, content: &str, code: i64) -> Value {
        serde_json::json!({
            "step_id": id, "source": "agent", "message": "", "timestamp": format!("2026-12-01T10:00:{id:02}Z"),
            "metrics": {"prompt_tokens": 100, "completion_tokens": 10},
            "tool_calls": [{"tool_call_id": "c", "function_name": "shell", "arguments": {"command": ["bash", "-lc", command]}}],
            "observation": {"results": [{"source_call_id": "c", "content": content, "extra": {"exit_code": code}}]},
        })
    }

    #[test]
    fn a_gate_is_passed_by_the_first_trial_that_nothing_calls_failed() {
        let steps = [
            step(1, "pytest -q", "1 failed, 3 passed", 0),
            step(2, "pytest -q --collect-only", "4 tests collected", 0),
            step(3, "pytest -q", "4 passed", 1),
            step(4, "torchrun --nproc-per-node=2 -m pytest", "4 passed", 0),
            step(5, "pytest -q", "4 passed", 0),
        ];
        let text = serde_json::json!({
            "schema_version": "ATIF-v1.8", "agent": {"name": "mine", "version": "1"}, "steps": steps,
        });
        let trajectory = Trajectory::parse("t.json", text.to_string().as_bytes()).unwrap();
        let found: Vec<_> = tried(&trajectory)
            .into_iter()
            .map(|one| (one.gate.word(), one.step, one.tokens.unwrap(), one.seconds.unwrap()))
            .collect();
        let wanted = [
            ("imports", 2, 220, 1.0),
            ("collects", 2, 220, 1.0),
            ("one rank", 5, 550, 4.0),
            ("several ranks", 4, 440, 3.0),
        ];
        assert_eq!(found, wanted);
    }
}
