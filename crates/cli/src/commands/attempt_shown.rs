//! What people see of attempts.

use std::fmt::Write;
use std::path::Path;

use infradev_model::{AttemptDocument, AttemptPlanDocument, Ending, Foreseen, SkillBy, SubmissionRecord};

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
fn cost(record: &SubmissionRecord) -> String {
    match &record.cost {
        Some(cost) if cost.at_least => format!("≥ ${:.2}", cost.usd),
        Some(cost) => format!("${:.2}", cost.usd),
        None if record.metered.requests == 0 => "-".to_owned(),
        None => "unknown".to_owned(),
    }
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
            cost(record).into(),
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
        let lookups = record.lookups.iter().take(5);
        said.extend(
            lookups.map(|lookup| format!("refused: {} {} ({}×)", lookup.method, lookup.target, lookup.times)),
        );
        if !record.left_running.is_empty() {
            said.push(format!("left running, and killed: {}", record.left_running.join(", ")));
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
        if let Some(own) =
            record.own_tokens.filter(|own| (own.input, own.output) != (counted.input, counted.output))
        {
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
            said.push(format!("{} answers told no tokens", record.metered.unmetered));
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

/// Where it lies, and what comes next.
pub fn summary(document: &AttemptDocument, pack: &Path, folder: &Path) -> String {
    format!(
        "\ngrade them: infradev grade {} --patches {}\nrun {} ({})\n",
        pack.display(),
        document.predictions,
        document.run,
        folder.display()
    )
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
    let attempts: u32 = document.planned.iter().map(|row| row.attempts).sum();
    cells.push(attempts.to_string().into());
    cells.push((attempts - document.attempts).to_string().into());
    cells.extend(foreseen(&document.foreseen));
    table.row(cells);
    let mut text = table.text();
    let _ = write!(text, "\n{} to make", counted(document.attempts, "attempt"));
    if let Some(run) = &document.run {
        let _ = write!(text, ", going on with {run}");
    }
    text + "; hours are what the time limit allows at most\n"
}
