//! The tables of an analysis.

use infradev_model::{Analysis, CaseError, ErrorGroup, Figures, Label, Standing};

use crate::table::Table;
use crate::text::{counts, estimate, percent};

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// What a person reads: the most frequent errors, no list of cases.
    Short,
    /// All of it.
    Whole,
}

/// Error groups in a short report.
const GROUPS: usize = 20;

/// All tables that have a row.
pub fn tables(analysis: &Analysis, extent: Extent) -> Vec<Table> {
    let figures = &analysis.figures;
    let mut all =
        vec![runs(analysis), rates(figures), gates(figures), pass_at_k(figures), paired(figures, extent)];
    all.extend([classes(figures), errors(figures), traits(figures), groups(analysis, extent)]);
    all.extend([matrix(analysis), agreement(figures)]);
    if extent == Extent::Whole {
        all.extend([submissions(analysis), cases(analysis)]);
    }
    all.retain(|table| !table.rows.is_empty());
    all
}

fn runs(analysis: &Analysis) -> Table {
    let columns = ["run", "pack", "state", ">trials", ">begun", ">submissions"];
    let mut table = Table::new("runs", "Runs", &columns);
    for run in &analysis.runs {
        let numbers = [run.finished, run.begun, run.submissions].map(|number| number.to_string());
        let words = [run.run.clone(), run.pack.clone(), run.state.word().to_owned()];
        table.rows.push(words.into_iter().chain(numbers).collect());
    }
    table.notes.clone_from(&analysis.notes);
    table
}

fn rates(figures: &Figures) -> Table {
    let columns = [
        "by",
        "group",
        ">tasks",
        ">resolved",
        "share",
        ">official only",
        "share",
        ">rejected",
        "share",
        ">faults",
        ">unreached",
        ">ungraded",
    ];
    let mut table = Table::new("rates", "Resolved, with probes and by official tests alone", &columns);
    for rate in &figures.rates {
        table.rows.push(vec![
            rate.by.word().to_owned(),
            rate.group.clone(),
            rate.tasks.to_string(),
            counts(rate.resolved),
            percent(rate.resolved),
            counts(rate.official),
            percent(rate.official),
            counts(rate.rejected),
            percent(rate.rejected),
            rate.faults.to_string(),
            rate.unreached.to_string(),
            rate.ungraded.to_string(),
        ]);
    }
    table.notes.push(
        "rejected: submissions that probes reject, of those that pass every official case of a task with probes; shares with \
         Wilson's interval at 95 %; faults, unreached and ungraded ones are in no rate"
            .to_owned(),
    );
    table
}

fn gates(figures: &Figures) -> Table {
    let columns =
        ["arm", ">scored", ">applies", ">imports", ">collects", ">smallest world", ">official", ">resolved"];
    let mut table = Table::new("gates", "Gates passed", &columns);
    for row in &figures.gates {
        let known = if row.smallest_world_of == row.scored {
            row.smallest_world.to_string()
        } else {
            format!("{}/{}", row.smallest_world, row.smallest_world_of)
        };
        let [scored, applies, imports, collects] =
            [row.scored, row.applies, row.imports, row.collects].map(|count| count.to_string());
        let arm = row.arm.clone();
        let (official, resolved) = (row.official.to_string(), row.resolved.to_string());
        table.rows.push(vec![arm, scored, applies, imports, collects, known, official, resolved]);
    }
    table.notes.push(
        "imports: some official case of golden's is collected; collects: each is; then each passes at the smallest world size, at \
         each size, and with probes"
            .to_owned(),
    );
    table
}

fn pass_at_k(figures: &Figures) -> Table {
    let mut table = Table::new("pass-at-k", "pass@k", &["arm", ">k", ">tasks", "estimate"]);
    for row in &figures.pass_at_k {
        let tasks = row.estimate.tasks.to_string();
        table.rows.push(vec![row.arm.clone(), row.k.to_string(), tasks, estimate(row.estimate)]);
    }
    table.notes.push(
        "unbiased, mean over tasks with at least k attempts; bootstrap over tasks at 95 %, of one task none"
            .to_owned(),
    );
    table
}

/// Pairs of arms in a short report.
const PAIRS: usize = 10;

fn paired(figures: &Figures, extent: Extent) -> Table {
    let columns =
        ["one", "other", ">pairs", ">both", ">one only", ">other only", ">McNemar p", "other less one"];
    let mut table = Table::new("paired", "Arms in pairs", &columns);
    let mut rows: Vec<&infradev_model::Paired> = figures.paired.iter().collect();
    let most = if extent == Extent::Short { PAIRS } else { usize::MAX };
    if rows.len() > most {
        rows.sort_by(|one, other| one.p.total_cmp(&other.p));
        table.notes.push(format!("those of the smallest p; {} more in --csv and --json", rows.len() - most));
    }
    for row in rows.into_iter().take(most) {
        let numbers = [row.pairs, row.both, row.one_only, row.other_only].map(|number| number.to_string());
        let mut cells = vec![row.one.clone(), row.other.clone()];
        cells.extend(numbers);
        cells.extend([format!("{:.4}", row.p), estimate(row.difference)]);
        table.rows.push(cells);
    }
    table.notes.push(
        "pairs: the same task, the attempt of the same number; exact test, two-sided; difference of rates with a bootstrap over \
         tasks at 95 %"
            .to_owned(),
    );
    table
}

const CAUGHT: [&str; 7] =
    ["error", ">submissions", "share", ">official only", ">probes only", ">both", ">cases"];

fn classes(figures: &Figures) -> Table {
    let mut table = Table::new("classes", "Errors by class, and the suite that caught them", &CAUGHT);
    for row in &figures.classes {
        let numbers =
            [row.official_only, row.probe_only, row.both, row.cases].map(|number| number.to_string());
        let mut cells = vec![row.class.word().to_owned(), counts(row.submissions), percent(row.submissions)];
        cells.extend(numbers);
        table.rows.push(cells);
    }
    table
        .notes
        .push("of the scored submissions; one with errors of several kinds counts for each".to_owned());
    table
}

fn errors(figures: &Figures) -> Table {
    let mut table = Table::new("errors", "Errors by label", &CAUGHT);
    for row in &figures.errors {
        let numbers =
            [row.official_only, row.probe_only, row.both, row.cases].map(|number| number.to_string());
        let mut cells = vec![label(row.label), counts(row.submissions), percent(row.submissions)];
        cells.extend(numbers);
        table.rows.push(cells);
    }
    table
}

fn traits(figures: &Figures) -> Table {
    let columns = ["trait", ">with it", "share", ">without", "share"];
    let mut table = Table::new("traits", "Conditional errors by trait of the task's probes", &columns);
    for row in &figures.traits {
        let cells = [
            row.name.clone(),
            counts(row.with),
            percent(row.with),
            counts(row.without),
            percent(row.without),
        ];
        table.rows.push(cells.to_vec());
    }
    table
}

fn groups(analysis: &Analysis, extent: Extent) -> Table {
    let columns = ["task", "suite", "label", ">submissions", ">cases", "signature"];
    let mut table = Table::new("failures", "Failing cases by signature", &columns);
    let most = if extent == Extent::Short { GROUPS } else { usize::MAX };
    let row = |group: &ErrorGroup| {
        vec![
            group.task.clone(),
            group.suite.to_string(),
            label(group.label),
            group.submissions.to_string(),
            group.cases.to_string(),
            group.signature.clone(),
        ]
    };
    table.rows.extend(analysis.groups.iter().take(most).map(row));
    let left = analysis.groups.len().saturating_sub(most);
    if left > 0 {
        table.notes.push(format!("and {left} more; --csv and --json have all of them"));
    }
    if !analysis.sealed && !analysis.groups.is_empty() {
        table.notes.push(
            "what probes say is left out; their signatures are digests (--sealed shows them)".to_owned(),
        );
    }
    table
}

/// Tasks by arms: resolved of scored, and what is apart.
fn matrix(analysis: &Analysis) -> Table {
    let mut table =
        Table::new("matrix", "Tasks by arms", &["task", "arm", ">resolved", ">official only", "verdicts"]);
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for submission in &analysis.submissions {
        let key = (submission.task.as_str(), submission.arm.as_str());
        if !seen.contains(&key) {
            seen.push(key);
        }
    }
    for (task, arm) in seen {
        let mine: Vec<_> = analysis
            .submissions
            .iter()
            .filter(|submission| (submission.task.as_str(), submission.arm.as_str()) == (task, arm))
            .collect();
        let scored = mine.iter().filter(|submission| submission.standing == Standing::Scored).count();
        let resolved = mine.iter().filter(|submission| word(submission) == "resolved").count();
        let official = mine.iter().filter(|submission| submission.official).count();
        let words: Vec<&str> = mine.iter().map(|submission| word(submission)).collect();
        table.rows.push(vec![
            task.to_owned(),
            arm.to_owned(),
            format!("{resolved}/{scored}"),
            format!("{official}/{scored}"),
            words.join(" "),
        ]);
    }
    table
}

fn agreement(figures: &Figures) -> Table {
    let columns = [">cases", ">same label", "Cohen's kappa"];
    let mut table = Table::new("agreement", "Rules against people's labels", &columns);
    if let Some(found) = &figures.agreement {
        let kappa = found.kappa.map_or("not defined".to_owned(), |kappa| format!("{kappa:.3}"));
        table.rows.push(vec![found.cases.to_string(), found.same.to_string(), kappa]);
    }
    table
}

fn submissions(analysis: &Analysis) -> Table {
    let columns = [
        "task",
        "submission",
        "arm",
        ">attempt",
        "verdict",
        ">official passed",
        ">official of",
        ">probes passed",
        ">probes of",
        ">failing",
        "ending",
        ">input tokens",
        ">output tokens",
        ">agent s",
        ">usd",
        ">refused look-ups",
        "skill opened",
        ">graded s",
        "run",
    ];
    let mut table = Table::new("submissions", "Submissions", &columns);
    for submission in &analysis.submissions {
        let (official, probe) = (submission.suites.official, submission.suites.probe);
        let tokens = |of: fn(&infradev_model::Tokens) -> u64| {
            submission.tokens.as_ref().map(|tokens| of(tokens).to_string()).unwrap_or_default()
        };
        table.rows.push(vec![
            submission.task.clone(),
            submission.submission.clone(),
            submission.arm.clone(),
            submission.attempt.to_string(),
            word(submission).to_owned(),
            official.passed.to_string(),
            official.of.to_string(),
            probe.passed.to_string(),
            probe.of.to_string(),
            submission.failing.to_string(),
            submission.ending.map(|ending| ending.word().to_owned()).unwrap_or_default(),
            tokens(|tokens| tokens.input),
            tokens(|tokens| tokens.output),
            submission.agent_s.map(|seconds| format!("{seconds:.1}")).unwrap_or_default(),
            submission.usd.map(|usd| format!("{usd:.4}")).unwrap_or_default(),
            submission.lookups.map(|times| times.to_string()).unwrap_or_default(),
            submission.skill_opened.map(|opened| opened.to_string()).unwrap_or_default(),
            format!("{:.1}", submission.graded_s),
            submission.run.clone(),
        ]);
    }
    table
}

fn cases(analysis: &Analysis) -> Table {
    let columns = [
        "task",
        "submission",
        "suite",
        "case",
        ">world",
        "word",
        "label",
        "by",
        "rule",
        "evidence",
        "checks",
        "exception",
        "message",
        "at",
        "signature",
        "run",
    ];
    let mut table = Table::new("cases", "Failing cases", &columns);
    table.rows.extend(analysis.cases.iter().map(case));
    table
}

fn case(case: &CaseError) -> Vec<String> {
    let by = match case.label.by {
        infradev_model::LabelledBy::Rule => "rule",
        infradev_model::LabelledBy::Person => "person",
    };
    vec![
        case.task.clone(),
        case.submission.clone(),
        case.suite.to_string(),
        case.case.clone(),
        case.world.to_string(),
        case.word.word().to_owned(),
        label(case.label.label),
        by.to_owned(),
        case.label.rule.clone(),
        case.label.evidence.clone(),
        case.checks.clone().unwrap_or_default(),
        case.exception.clone(),
        case.message.clone(),
        case.at.clone().unwrap_or_default(),
        case.signature.clone(),
        case.run.clone(),
    ]
}

fn label(label: Option<Label>) -> String {
    label.map_or("unlabelled", Label::word).to_owned()
}

/// What a table says of a submission.
pub(crate) fn word(submission: &infradev_model::AnalysedSubmission) -> &'static str {
    match (submission.standing, submission.verdict) {
        (Standing::Unreached, _) => "unreached",
        (Standing::Ungraded, _) | (_, None) => "ungraded",
        (_, Some(verdict)) => verdict.word(),
    }
}
