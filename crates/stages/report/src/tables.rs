//! The tables of an analysis.

use std::collections::BTreeMap;

use infradev_model::{AnalysedSubmission, Analysis, ErrorGroup, Figures, Label, Standing};

use crate::listed;
use crate::readings;
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
    all.extend([classes(figures), errors(figures), traits(figures), groups(analysis, extent, &|_| true)]);
    all.extend([readings::own_tests(figures), readings::resource_checks(figures)]);
    all.extend([readings::likeness(figures), readings::tried(figures)]);
    all.extend([matrix(analysis), agreement(figures)]);
    if extent == Extent::Whole {
        all.extend([listed::submissions(analysis), listed::cases(analysis)]);
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

/// Each two arms that share tasks.
pub(crate) fn paired(figures: &Figures, extent: Extent) -> Table {
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
    let columns = ["of", "trait", ">with it", "share", ">without", "share"];
    let mut table = Table::new("traits", "Conditional errors by trait of tasks and probes", &columns);
    for row in &figures.traits {
        let cells = [
            row.of.word().to_owned(),
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

/// Failing cases of one task in groups, all of them.
pub(crate) fn groups_of(analysis: &Analysis, task: &str) -> Table {
    groups(analysis, Extent::Whole, &|group| group.task == task)
}

fn groups(analysis: &Analysis, extent: Extent, is_shown: &dyn Fn(&ErrorGroup) -> bool) -> Table {
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
    let shown: Vec<&ErrorGroup> = analysis.groups.iter().filter(|group| is_shown(group)).collect();
    table.rows.extend(shown.iter().take(most).map(|group| row(group)));
    let left = shown.len().saturating_sub(most);
    if left > 0 {
        table.notes.push(format!("and {left} more; --csv and --json have all of them"));
    }
    if !analysis.sealed && !shown.is_empty() {
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
    // In the order in which they come.
    let mut places: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut cells: Vec<Vec<&AnalysedSubmission>> = Vec::new();
    for submission in &analysis.submissions {
        let key = (submission.task.as_str(), submission.arm.as_str());
        let at = *places.entry(key).or_insert(cells.len());
        match cells.get_mut(at) {
            Some(cell) => cell.push(submission),
            None => cells.push(vec![submission]),
        }
    }
    for mine in cells {
        let Some(first) = mine.first() else { continue };
        let (task, arm) = (&first.task, &first.arm);
        let scored = mine.iter().filter(|submission| submission.standing == Standing::Scored).count();
        let resolved = mine.iter().filter(|submission| word(submission) == "resolved").count();
        let official = mine.iter().filter(|submission| submission.official).count();
        let words: Vec<&str> = mine.iter().map(|submission| word(submission)).collect();
        table.rows.push(vec![
            task.clone(),
            arm.clone(),
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

pub(crate) fn label(label: Option<Label>) -> String {
    label.map_or("unlabelled", Label::word).to_owned()
}

/// What a table says of a submission.
pub(crate) fn word(submission: &AnalysedSubmission) -> &'static str {
    match (submission.standing, submission.verdict) {
        (Standing::Unreached, _) => "unreached",
        (Standing::Ungraded, _) | (_, None) => "ungraded",
        (_, Some(verdict)) => verdict.word(),
    }
}
