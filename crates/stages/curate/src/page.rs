//! One page to browse candidates: all in one file, nothing fetched. Subjects come from strangers, so every text is escaped.

use std::collections::BTreeMap;

use askama::Template;
use infradev_model::{Candidate, CurationDocument, Device, Evidence, Lines, PackageLock, ScorePart};

use crate::error::CurateError;

/// The page of candidates. `name` says whose they are.
///
/// # Errors
/// [`CurateError::Page`].
pub fn page(name: &str, document: &CurationDocument) -> Result<String, CurateError> {
    let rows: Vec<Row<'_>> = document.candidates.iter().map(Row::of).collect();
    let page = Page {
        name,
        summary: summary(document),
        notes: document
            .missing
            .iter()
            .chain(document.pulls.iter().filter_map(|pulls| pulls.stopped.as_ref()))
            .collect(),
        filters: filters(&rows),
        columns: COLUMNS.iter().map(|(name, number)| Column { name, number: *number }).collect(),
        rows,
        style: include_str!("../templates/candidates.css"),
        script: include_str!("../templates/candidates.js"),
    };
    page.render().map_err(|error| CurateError::Page(error.to_string()))
}

/// The columns, and whether each holds numbers.
const COLUMNS: [(&str, bool); 10] = [
    ("score", true),
    ("number", false),
    ("date", false),
    ("area", false),
    ("kind", false),
    ("ranks", true),
    ("code", true),
    ("files", true),
    ("tests", true),
    ("title", false),
];

#[derive(Template)]
#[template(path = "candidates.html")]
struct Page<'a> {
    name: &'a str,
    summary: String,
    notes: Vec<&'a String>,
    filters: Vec<Filter>,
    columns: Vec<Column>,
    rows: Vec<Row<'a>>,
    style: &'static str,
    script: &'static str,
}

struct Column {
    name: &'static str,
    number: bool,
}

struct Filter {
    key: &'static str,
    values: Vec<Value>,
}

struct Value {
    name: String,
    count: u32,
}

struct Fact {
    name: &'static str,
    text: String,
}

struct Row<'a> {
    score: i32,
    number: &'a str,
    date: &'a str,
    area: String,
    kind: String,
    ranks: u32,
    ranks_word: &'static str,
    device: &'static str,
    lines: u32,
    added: u32,
    deleted: u32,
    files: u32,
    tests: u32,
    title: &'a str,
    commit: &'a str,
    base: &'a str,
    url: Option<&'a str>,
    facts: Vec<Fact>,
    parts: &'a [ScorePart],
}

impl<'a> Row<'a> {
    fn of(candidate: &'a Candidate) -> Row<'a> {
        let facts = &candidate.facts;
        let pull = candidate.pull.as_ref();
        Row {
            score: candidate.score,
            number: candidate.number.as_deref().unwrap_or_default(),
            date: candidate.date.get(..10).unwrap_or(&candidate.date),
            area: word(&facts.area.is),
            kind: word(&facts.kind.is),
            ranks: facts.needs.world,
            ranks_word: match facts.needs.world {
                0 | 1 => "1",
                2 | 3 => "2–3",
                4..=7 => "4–7",
                _ => "8+",
            },
            device: match facts.needs.device {
                Device::Cpu => "cpu",
                Device::Cuda => "cuda",
            },
            lines: facts.substance.added + facts.substance.deleted,
            added: facts.substance.added,
            deleted: facts.substance.deleted,
            files: facts.substance.files,
            tests: facts.tests_added + facts.tests_changed,
            title: &candidate.title,
            commit: &candidate.commit,
            base: &candidate.base,
            // What the forge says is linked only where it leads to the web.
            url: pull.map(|pull| pull.url.as_str()).filter(|url| url.starts_with("https://")),
            facts: told(candidate),
            parts: &candidate.parts,
        }
    }
}

/// What is known of a candidate beside its row.
fn told(candidate: &Candidate) -> Vec<Fact> {
    let facts = &candidate.facts;
    let lines = |lines: &Lines| format!("{} files, +{} −{}", lines.files, lines.added, lines.deleted);
    let d = &facts.definitions;
    let defined = format!(
        "functions {} added, {} changed; classes {} added, {} changed; {} public, {} settings; {} moved, {} renamed, {} gone",
        d.functions_added,
        d.functions_changed,
        d.classes_added,
        d.classes_changed,
        d.public_added,
        d.settings,
        d.moved,
        d.renamed,
        d.removed
    );
    let mut told = vec![
        Fact { name: "lines of code", text: lines(&facts.substance) },
        Fact { name: "all source lines", text: lines(&facts.source) },
        Fact {
            name: "tests",
            text: format!(
                "{}; {} added, {} changed",
                lines(&facts.tests),
                facts.tests_added,
                facts.tests_changed
            ),
        },
        Fact { name: "other files", text: lines(&facts.other) },
        Fact { name: "definitions", text: defined },
        Fact { name: "area", text: because(&facts.area.evidence) },
        Fact { name: "kind", text: because(&facts.kind.evidence) },
        Fact { name: "needs", text: because(&facts.needs.evidence) },
        Fact { name: "numbers checked", text: because(&facts.checks.numbers) },
        Fact { name: "resources checked", text: because(&facts.checks.resources) },
        Fact {
            name: "hollow",
            text: format!("{} would raise, {} kept", facts.hollow.functions, facts.hollow.kept),
        },
        Fact { name: "native code", text: facts.native.join(", ") },
        Fact { name: "packages changed", text: facts.dependencies.join(", ") },
        Fact { name: "packages locked by", text: locks(&facts.locks) },
        Fact { name: "not parsed", text: facts.unparsed.join("; ") },
    ];
    if let Some(pull) = &candidate.pull {
        told.push(Fact { name: "labels", text: pull.labels.join(", ") });
    }
    let also = candidate.also.iter().map(|also| format!("{} ({})", also.commit, word(&also.by)));
    told.push(Fact { name: "also at", text: also.collect::<Vec<_>>().join(", ") });
    told.retain(|fact| !fact.text.is_empty());
    told
}

fn locks(locks: &[PackageLock]) -> String {
    let short = |lock: &PackageLock| lock.blob.chars().take(10).collect::<String>();
    locks.iter().map(|lock| format!("{} ({})", lock.path, short(lock))).collect::<Vec<_>>().join(", ")
}

fn because(evidence: &[Evidence]) -> String {
    let each = evidence.iter().map(|evidence| format!("“{}” in {}", evidence.what, evidence.place));
    each.collect::<Vec<_>>().join("; ")
}

fn filters(rows: &[Row<'_>]) -> Vec<Filter> {
    let counted = |key: &'static str, of: &dyn Fn(&Row<'_>) -> String| {
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        for row in rows {
            *counts.entry(of(row)).or_default() += 1;
        }
        let values = counts.into_iter().map(|(name, count)| Value { name, count }).collect();
        Filter { key, values }
    };
    vec![
        counted("area", &|row| row.area.clone()),
        counted("kind", &|row| row.kind.clone()),
        counted("ranks", &|row| row.ranks_word.to_owned()),
        counted("device", &|row| row.device.to_owned()),
    ]
}

fn summary(document: &CurationDocument) -> String {
    let left: Vec<String> =
        document.left_out.iter().map(|(because, count)| format!("{} {count}", word(because))).collect();
    let at: Vec<String> = document
        .revisions
        .iter()
        .map(|(revision, commit)| format!("{revision} at {}", commit.get(..10).unwrap_or(commit)))
        .collect();
    let left = if left.is_empty() { "none".to_owned() } else { left.join(", ") };
    format!(
        "{}: {} candidates of {} commits ({} numbers). Left out: {left}.",
        at.join(", "),
        document.candidates.len(),
        document.commits,
        document.numbers
    )
}

fn word(value: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).ok();
    value.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
