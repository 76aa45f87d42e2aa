//! What people see of attempts.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use infradev_model::{
    AllTries, AttemptDocument, AttemptPlanDocument, Cost, Ending, Foreseen, Metered, PlannedAttempts,
    SkillBy, SubmissionRecord,
};

use crate::progress::counted;
use crate::report::visible;
use crate::tables::{Cell, Table};

fn word(ending: Ending) -> Cell {
    match ending {
        Ending::Finished => Cell::good(ending.word()),
        Ending::EndpointUnreachable => Cell::odd(ending.word()),
        _ => Cell::bad(ending.word()),
    }
}

/// In dollars; what used no model costs nothing.
fn dollars(cost: Option<&Cost>, metered: &Metered) -> String {
    match cost {
        Some(cost) if cost.at_least => format!("≥ ${:.2}", cost.usd),
        Some(cost) => format!("${:.2}", cost.usd),
        None if metered.requests == 0 => "-".to_owned(),
        None => "unknown".to_owned(),
    }
}

/// What all tries used, where one was not all.
fn all_tries(record: &SubmissionRecord) -> Option<String> {
    let AllTries { metered, cost } = record.all_tries.as_ref()?;
    let (tokens, cost) = (metered.tokens, dollars(cost.as_ref(), metered));
    let requests = counted(u32::try_from(metered.requests).unwrap_or(u32::MAX), "request");
    let used = format!("{requests}, {}+{} tokens, cost {cost}", tokens.input, tokens.output);
    Some(format!("all {} tries together: {used}", record.tries))
}

/// The table.
pub fn table(document: &AttemptDocument) -> String {
    let header = ["task", "submission", "ending", "agent", "requests", "tokens", "cost", "lookups", "patch"];
    let mut table = Table::new(&header, &[3, 4, 5, 6, 7, 8]);
    for record in &document.submissions {
        let tokens = record.metered.tokens;
        let lookups: u64 = record.lookups.iter().map(|lookup| lookup.times).sum();
        table.row(vec![
            record.task.as_str().into(),
            record.submission.as_str().into(),
            word(record.ending),
            format!("{:.1} s", record.agent_s).into(),
            record.metered.requests.to_string().into(),
            format!("{}+{}", tokens.input, tokens.output).into(),
            dollars(record.cost.as_ref(), &record.metered).into(),
            lookups.to_string().into(),
            format!("{} B", record.patch_bytes).into(),
        ]);
    }
    table.text()
}

/// What is worth knowing beyond the table.
pub fn details(document: &AttemptDocument) -> String {
    let mut text = String::new();
    for record in &document.submissions {
        let mut said: Vec<String> = record.detail.iter().cloned().collect();
        said.extend(all_tries(record));
        let lookups = record.lookups.iter().take(5);
        said.extend(
            lookups.map(|lookup| format!("refused: {} {} ({}×)", lookup.method, lookup.target, lookup.times)),
        );
        if let Some(left) = record.left_running.as_ref().filter(|left| !left.is_empty()) {
            said.push(format!("left running, and killed: {}", left.join(", ")));
        }
        said.extend(
            record
                .skipped
                .iter()
                .take(5)
                .map(|file| format!("not in the patch: {} ({})", file.path, file.reason)),
        );
        if !record.test_edits.is_empty() {
            said.push(format!("edits tests, which grading lays over: {}", record.test_edits.join(", ")));
        }
        let counted = record.metered.tokens;
        if let Some(own) = record.own_tokens.filter(|_| record.own_tokens_off.is_some()) {
            said.push(format!(
                "the agent counts {}+{} tokens, the proxy {}+{}",
                own.input, own.output, counted.input, counted.output
            ));
        }
        if let Some(trajectory) = &record.trajectory {
            said.extend(trajectory.error.clone());
            match trajectory.malformed + trajectory.too_long {
                0 => {}
                1 => said.push("1 line of its log is no event".to_owned()),
                lines => said.push(format!("{lines} lines of its log are no events")),
            }
        }
        if let Some(skill) = &record.skill {
            said.push(match (skill.by, skill.opened) {
                (SkillBy::Appended, _) => format!("skill {}: part of the prompt", skill.name),
                (SkillBy::Mounted, Some(true)) => {
                    format!("skill {}: opened after {:.1} s", skill.name, skill.opened_s.unwrap_or(0.0))
                }
                (SkillBy::Mounted, Some(false)) => format!("skill {}: not opened", skill.name),
                (SkillBy::Mounted, None) => format!("skill {}: not known whether it was opened", skill.name),
            });
        }
        if record.metered.unmetered > 0 {
            let (requests, estimated) = (record.metered.unmetered, record.metered.estimated);
            said.push(format!(
                "{requests} requests told no tokens, or not all; by their bytes about {estimated}"
            ));
        }
        if !said.is_empty() {
            let _ = write!(text, "\n{} · {}: {}\n", record.task, record.submission, record.ending.word());
            for line in said {
                let _ = writeln!(text, "  {}", visible(&line).replace('\n', "\n    "));
            }
        }
    }
    text
}

/// Where it lies, and what comes next. `chosen` says that not every task of the pack was asked for.
pub fn summary(document: &AttemptDocument, pack: &Path, chosen: bool, folder: &Path) -> String {
    let next = grading(document, pack, chosen, folder);
    let next = next.map_or_else(String::new, |command| format!("\ngrade them: {command}"));
    format!("{next}\nrun {} ({})\n", document.run, folder.display())
}

/// The command that grades what was submitted and counts nothing else as empty; none where nothing was.
fn grading(document: &AttemptDocument, pack: &Path, chosen: bool, folder: &Path) -> Option<String> {
    let reached = |record: &&SubmissionRecord| record.ending != Ending::EndpointUnreachable;
    let reached: Vec<&SubmissionRecord> = document.submissions.iter().filter(reached).collect();
    let tasks: BTreeSet<&str> = reached.iter().map(|record| record.task.as_str()).collect();
    let names: BTreeSet<&str> = reached.iter().map(|record| record.submission.as_str()).collect();
    if tasks.is_empty() {
        return None;
    }
    // What a file of predictions lacks of a task is graded as empty; what a folder of patches lacks is not.
    let patches = match reached.len() == tasks.len() * names.len() {
        true => document.predictions.clone(),
        false => folder.join("patches").display().to_string(),
    };
    let mut command = format!("infradev grade {} --patches {patches}", pack.display());
    if chosen || document.submissions.iter().any(|record| !tasks.contains(record.task.as_str())) {
        for task in tasks {
            let _ = write!(command, " --task {task}");
        }
    }
    Some(command)
}

/// The table of a plan.
pub fn plan(document: &AttemptPlanDocument) -> String {
    let header = ["task", "arm", "attempts", "done", "hours", "GPU-hours", "tokens likely", "tokens at most"];
    let mut table = Table::new(&header, &[2, 3, 4, 5, 6, 7]);
    let foreseen = |foreseen: &Foreseen| -> Vec<Cell> {
        let tokens =
            |count: Option<u64>| Cell::from(count.map_or("unknown".to_owned(), |count| count.to_string()));
        vec![
            format!("{:.2}", foreseen.hours).into(),
            format!("{:.2}", foreseen.gpu_hours).into(),
            tokens(foreseen.tokens_likely),
            tokens(foreseen.tokens_at_most),
        ]
    };
    for row in &document.planned {
        let mut cells: Vec<Cell> = vec![
            row.task.as_str().into(),
            row.submission.as_str().into(),
            row.attempts.to_string().into(),
            row.done.to_string().into(),
        ];
        cells.extend(foreseen(&row.foreseen));
        table.row(cells);
    }
    let mut cells: Vec<Cell> = vec!["all".into(), "".into()];
    let sum = |of: fn(&PlannedAttempts) -> u32| document.planned.iter().map(of).fold(0, u32::saturating_add);
    cells.push(sum(|row| row.attempts).to_string().into());
    cells.push(sum(|row| row.done).to_string().into());
    cells.extend(foreseen(&document.foreseen));
    table.row(cells);
    let mut text = table.text();
    let _ = write!(text, "\n{} to make", counted(document.attempts, "attempt"));
    if let Some(run) = &document.run {
        let _ = write!(text, ", going on with {run}");
    }
    text += "; hours are what the time limit allows at most\n";
    text += &priced(document);
    for row in &document.planned {
        if let Some(why) = &row.refused {
            let _ = writeln!(text, "\n{} · {}: refused: {}", row.task, row.submission, visible(why));
        }
    }
    text
}

/// By which prices each model's cost will be reckoned, a line each.
fn priced(document: &AttemptPlanDocument) -> String {
    let mut told = BTreeSet::new();
    let mut text = String::new();
    for row in &document.planned {
        let Some(model) = row.model.as_deref().filter(|model| told.insert(*model)) else { continue };
        let said = match &row.prices {
            Some(prices) => format!("prices of {} ({})", prices.date, prices.source),
            None => "no price is known at this endpoint, its cost will be unknown; --prices FILE gives one"
                .to_owned(),
        };
        let _ = writeln!(text, "{}: {}", visible(model), visible(&said));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    use infradev_model::{Digest, SandboxReport};
    use serde_json::json;

    /// The next step of attempts, each of a task, a name and whether the model was reached.
    fn next(attempts: &[(&str, &str, bool)], chosen: bool) -> Option<String> {
        let record = |(task, name, reached): &(&str, &str, bool)| {
            let ending = if *reached { "finished" } else { "endpoint_unreachable" };
            json!({"schema": 1, "task": task, "submission": name, "attempt": 1, "agent": {"name": "a", "version": "1"},
                "prompt": Digest::of(b"x"), "ending": ending, "agent_s": 1.0, "wall_s": 1.0, "metered": Metered::default(),
                "lookups": [], "left_running": [], "patch": Digest::of(b"x"), "patch_bytes": 0, "test_edits": [],
                "skipped": [], "sandbox": SandboxReport::default(), "folder": "trials/x"})
        };
        let submissions: Vec<_> = attempts.iter().map(record).collect();
        let document = json!({"schema": 1, "run": "r", "predictions": "r/predictions.jsonl", "submissions": submissions});
        let document: AttemptDocument = serde_json::from_value(document).unwrap();
        grading(&document, Path::new("pack"), chosen, Path::new("r"))
    }

    #[test]
    fn the_next_step_grades_what_was_submitted_and_counts_nothing_else_as_empty() {
        let by_file = "infradev grade pack --patches r/predictions.jsonl";
        assert_eq!(next(&[("a", "x", true), ("b", "x", true)], false).unwrap(), by_file);
        assert_eq!(next(&[("a", "x", true)], true).unwrap(), format!("{by_file} --task a"));
        let unreached = [("a", "x", true), ("b", "x", false)];
        assert_eq!(next(&unreached, false).unwrap(), format!("{by_file} --task a"));
        let in_part = [("a", "x", true), ("b", "x", true), ("a", "y", true), ("b", "y", false)];
        assert_eq!(next(&in_part, false).unwrap(), "infradev grade pack --patches r/patches");
        assert_eq!(next(&[("a", "x", false)], true), None);
    }
}
