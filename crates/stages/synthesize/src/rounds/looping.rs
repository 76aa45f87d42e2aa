//! Whether an agent went round in a circle: the same calls of tools again and again.

use std::fs;
use std::path::Path;

use infradev_model::Repeated;
use infradev_model::atif::{ToolCall, Trajectory};

use super::checking::shown;

/// Made so often in a row, a call is told.
const OFTEN: usize = 5;
/// Calls of one turn of a circle at most.
const TURN: usize = 3;
/// Bytes of a trajectory that is read.
const TRAJECTORY: u64 = 256 << 20;
/// Characters of a call that are told.
const WIDTH: usize = 160;

/// What the trajectory of a step shows of it; nothing where there is none.
pub(super) fn repeated(trajectory: &Path) -> Option<Repeated> {
    fs::metadata(trajectory).ok().filter(|data| data.len() <= TRAJECTORY)?;
    let bytes = fs::read(trajectory).ok()?;
    let trajectory = Trajectory::parse("trajectory.json", &bytes).ok()?;
    let calls = trajectory.steps.iter().flat_map(|step| step.tool_calls.iter().flatten());
    let calls: Vec<String> = calls.map(spelled).collect();
    let (turn, times) = longest(&calls)?;
    Some(Repeated { call: turn.iter().map(|call| short(call)).collect::<Vec<_>>().join(", then "), times })
}

fn spelled(call: &ToolCall) -> String {
    let arguments = serde_json::to_string(&call.arguments).unwrap_or_default();
    shown(&format!("{} {arguments}", call.function_name))
}

fn short(call: &str) -> String {
    match call.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}…", &call[..end]),
        None => call.to_string(),
    }
}

/// The turn that was made most often in a row, the shortest of equals, and how often.
fn longest<T: PartialEq>(calls: &[T]) -> Option<(&[T], u32)> {
    let mut found: Option<(&[T], usize)> = None;
    for turn in 1..=TURN {
        let mut alike = 0;
        for at in turn..calls.len() {
            alike = if calls[at] == calls[at - turn] { alike + 1 } else { 0 };
            let times = alike / turn + 1;
            if times >= OFTEN && found.is_none_or(|(_, most)| times > most) {
                found = Some((&calls[at + 1 - turn..=at], times));
            }
        }
    }
    found.map(|(turn, times)| (turn, u32::try_from(times).unwrap_or(u32::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(calls: &str) -> Option<(String, u32)> {
        let calls: Vec<char> = calls.chars().collect();
        longest(&calls).map(|(turn, times)| (turn.iter().collect(), times))
    }

    #[test]
    fn the_same_call_or_the_same_few_in_turn_are_told_from_five_times_on() {
        assert_eq!(told("abcaaaab"), None, "four times");
        assert_eq!(told("abaaaaac"), Some(("a".to_string(), 5)));
        assert_eq!(told("xababababab"), Some(("ab".to_string(), 5)));
        assert_eq!(told("abcabcabcabcabc").map(|(_, times)| times), Some(5));
        assert_eq!(told("aaaaaaaaaa"), Some(("a".to_string(), 10)));
        assert_eq!(told("abcdabcdabcdabcdabcd"), None, "a turn of four is no circle");
        assert_eq!(told(""), None);
    }
}
