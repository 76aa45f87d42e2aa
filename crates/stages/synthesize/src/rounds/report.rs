//! The failure report of a round: what the next one is told.

use std::fmt::Write;

use infradev_model::{Acceptance, AgentRole, Ending, Round, Step, Word};

use super::Draft;
use super::checking::shown;

/// Lines of one kind in a report.
const LINES: usize = 60;

/// What the first round is told.
pub(super) fn first(draft: &Draft) -> String {
    let count = |role: AgentRole| draft.files().keys().filter(|path| role.may_write(path)).count();
    format!(
        "# Report\n\nNothing has been tried yet. The task has {} files of adversarial patches and {} of probes.\n",
        count(AgentRole::Adversary),
        count(AgentRole::Prober)
    )
}

/// What a round came to.
pub(super) fn after(round: &Round, said: Result<&Acceptance, &String>) -> String {
    let mut text = format!("# Report on round {}\n", round.number);
    let record = match said {
        Ok(record) => record,
        Err(why) => {
            let _ = writeln!(text, "\nThe task could not be tried:\n\n    {}", why.replace('\n', "\n    "));
            steps(&mut text, round);
            return text;
        }
    };
    let word = if record.accepted { "The task is accepted." } else { "The task is not accepted:" };
    let _ = writeln!(text, "\n{word}");
    list(&mut text, record.reasons.iter().map(String::clone));
    if !record.remarks.is_empty() {
        let _ = writeln!(text, "\nBesides:");
        list(&mut text, record.remarks.iter().map(String::clone));
    }
    if !record.adversarial.is_empty() {
        let _ = writeln!(text, "\n## Adversarial patches");
        list(
            &mut text,
            record.adversarial.iter().map(|(name, found)| {
                let official = if found.fools_official {
                    "passes the official tests"
                } else {
                    "does NOT pass the official tests, so it shows nothing"
                };
                let probes = match (&found.by, found.rejected) {
                    (Some(by), true) => format!("rejected by {by}"),
                    _ => "no probe rejects it in every run".to_string(),
                };
                format!("{name}: {official}; {probes}")
            }),
        );
    }
    if !record.cases.is_empty() {
        let _ = writeln!(text, "\n## Probe cases");
        list(
            &mut text,
            record.cases.iter().map(|case| {
                let rejects: Vec<&str> = case
                    .words
                    .iter()
                    .filter(|(_, word)| **word != Word::Passed)
                    .map(|(name, _)| name.as_str())
                    .collect();
                let against = if rejects.is_empty() { "nothing".to_string() } else { rejects.join(", ") };
                format!("{} (world {}): rejects {against}", case.id, case.world)
            }),
        );
    }
    if !record.existence_only.is_empty() {
        let _ = writeln!(text, "\n## Cases that only see that a name exists");
        list(&mut text, record.existence_only.iter().cloned());
    }
    if !record.unprobed_hunks.is_empty() {
        let _ = writeln!(text, "\n## Hunks of golden that can be taken back unnoticed");
        list(&mut text, record.unprobed_hunks.iter().map(|hunk| format!("{}:{}", hunk.file, hunk.line)));
    }
    steps(&mut text, round);
    text
}

/// What was odd about the steps themselves.
fn steps(text: &mut String, round: &Round) {
    let mut odd = Vec::new();
    for step in &round.steps {
        let who = step.role.word();
        let nothing = step.written.is_empty();
        match ended(step) {
            Some(how) if nothing => odd.push(format!("the {who} {how}; it changed none of its files")),
            Some(how) => odd.push(format!("the {who} {how}; what it had written by then counts")),
            None if nothing => odd.push(format!("the {who} changed none of its files")),
            None => {}
        }
        odd.extend(step.repeated.as_ref().map(|repeated| {
            format!("the {who} went round in a circle: {} times in a row {}", repeated.times, repeated.call)
        }));
        odd.extend(step.ignored.iter().map(|file| format!("the {who} wrote {}: {}", file.path, file.why)));
    }
    if !odd.is_empty() {
        let _ = writeln!(text, "\n## The steps");
        list(text, odd.into_iter());
    }
}

/// How an agent ended that did not say that it is done.
fn ended(step: &Step) -> Option<String> {
    let how = match step.ending {
        Ending::Finished => return None,
        Ending::TimedOut => "was ended, since its time was over",
        Ending::Budget => "was ended, since its tokens were used up",
        Ending::DiskBudget => "was ended, since it put more on the disk than it may",
        Ending::AgentCrashed => "crashed",
        Ending::Refused => "did nothing: the model refused, or the prompt could not be given",
        Ending::EndpointUnreachable => "did not reach its model",
    };
    let detail = step.detail.as_deref().and_then(|detail| detail.lines().next());
    let detail = detail.map(|line| format!(" ({})", shown(line))).unwrap_or_default();
    Some(format!("{how}{detail}"))
}

fn list(text: &mut String, lines: impl Iterator<Item = String>) {
    let lines: Vec<String> = lines.collect();
    for line in lines.iter().take(LINES) {
        let _ = writeln!(text, "- {}", line.replace('\n', "\n  "));
    }
    if lines.len() > LINES {
        let _ = writeln!(text, "- and {} more", lines.len() - LINES);
    }
}
