//! A task's page.

use std::collections::BTreeSet;

use askama::Template;
use infradev_model::{Acceptance, ProbeCase, Rejection, Role};

use super::diff::{Diff, diff};
use super::frame::{Frame, verdict};
use super::pack::TaskText;
use super::{Site, SiteError, submission_page};
use crate::table::Table;
use crate::tables::groups_of;

#[derive(Template)]
#[template(path = "site/task.html")]
struct Page<'a> {
    frame: Frame,
    facts: Vec<(&'static str, String)>,
    submissions: Vec<Row<'a>>,
    groups: Vec<Table>,
    spec: Option<&'a str>,
    contract: Vec<Table>,
    accepted: String,
    kills: Option<Kills<'a>>,
    golden: Option<Diff>,
    unprobed: String,
}

struct Row<'a> {
    page: String,
    name: &'a str,
    verdict: &'static str,
    tone: &'static str,
    official: String,
    probe: String,
    failing: u32,
    run: &'a str,
}

impl Site {
    pub(super) fn task(&self, task: &str) -> Result<String, SiteError> {
        let packed = self.packed.get(task);
        let acceptance = packed.and_then(|packed| packed.acceptance.as_ref());
        let unprobed = acceptance.map(|record| record.unprobed_hunks.as_slice()).unwrap_or_default();
        let golden = packed.and_then(|packed| packed.golden.as_deref());
        let page = Page {
            frame: self.frame(task, "../"),
            facts: self.facts(task, packed),
            submissions: self.rows(task),
            groups: self.groups(task),
            spec: packed.map(|packed| packed.public.description.as_str()),
            contract: packed.map(contract).into_iter().filter(|table| !table.rows.is_empty()).collect(),
            accepted: acceptance.map(accepted).unwrap_or_default(),
            kills: acceptance.map(kills),
            golden: golden.map(|golden| diff(golden, unprobed)),
            unprobed: match acceptance {
                Some(_) => format!("{} hunks that no test notices.", unprobed.len()),
                None => String::new(),
            },
        };
        Ok(page.render()?)
    }

    fn facts(&self, task: &str, packed: Option<&TaskText>) -> Vec<(&'static str, String)> {
        let mut facts = Vec::new();
        if let Some(packed) = packed {
            facts.push(("title", packed.public.spec.title.clone()));
        }
        if let Some(known) = self.analysis.tasks.iter().find(|facts| facts.task == task) {
            facts.push(("area", known.area.word().to_owned()));
            facts.push(("kind", known.kind.word().to_owned()));
            facts.push(("repository", known.repository.clone()));
        }
        facts
    }

    fn rows(&self, task: &str) -> Vec<Row<'_>> {
        let mine = self.analysis.submissions.iter().filter(|submission| submission.task == task);
        mine.map(|submission| {
            let (verdict, tone) = verdict(submission);
            let score = |score: infradev_model::Score| format!("{}/{}", score.passed, score.of);
            Row {
                page: format!("../{}", submission_page(submission)),
                name: &submission.submission,
                verdict,
                tone,
                official: score(submission.suites.official),
                probe: score(submission.suites.probe),
                failing: submission.failing,
                run: &submission.run,
            }
        })
        .collect()
    }

    fn groups(&self, task: &str) -> Vec<Table> {
        let table = groups_of(&self.analysis, task);
        if table.rows.is_empty() { Vec::new() } else { vec![table] }
    }
}

fn contract(packed: &TaskText) -> Table {
    let mut table = Table::new("contract", "Contract", &["name", "kind", "signature", "about"]);
    for name in &packed.public.contract.names {
        let kind = serde_json::to_value(name.kind).ok();
        let kind = kind.and_then(|kind| kind.as_str().map(str::to_owned)).unwrap_or_default();
        let signature = name.signature.clone().unwrap_or_default();
        table.rows.push(vec![name.name.clone(), kind, signature, name.about.clone()]);
    }
    table
}

fn accepted(record: &Acceptance) -> String {
    let word = if record.accepted { "Accepted" } else { "Not accepted" };
    let runs = if record.golden_runs == 1 { "run" } else { "runs" };
    let mut told = format!(
        "{word}: golden passed every probe in {} {runs} (flake rate below {:.0} % at 95 %).",
        record.golden_runs,
        record.flake_bound * 100.0
    );
    for reason in &record.reasons {
        told.push(' ');
        told.push_str(reason);
    }
    told
}

/// Probe cases by patches: what each made of each.
struct Kills<'a> {
    patches: Vec<&'a str>,
    rows: Vec<KillRow<'a>>,
}

struct KillRow<'a> {
    case: &'a str,
    world: u32,
    role: &'static str,
    words: Vec<String>,
}

fn kills(record: &Acceptance) -> Kills<'_> {
    let patches: BTreeSet<&str> =
        record.cases.iter().flat_map(|case| case.words.keys()).map(String::as_str).collect();
    let patches = Vec::from_iter(patches);
    let rows = record.cases.iter().map(|case| KillRow {
        case: &case.id,
        world: case.world,
        role: match case.role {
            Role::Promise => "promise",
            Role::Guard => "guard",
            Role::Idle => "idle",
        },
        words: patches.iter().map(|patch| made_of(case, patch)).collect(),
    });
    Kills { rows: rows.collect(), patches }
}

fn made_of(case: &ProbeCase, patch: &str) -> String {
    let Some(word) = case.words.get(patch) else { return "–".to_owned() };
    match case.rejections.get(patch) {
        Some(Rejection::Substantive) => format!("{}, substantive", word.word()),
        _ => word.word().to_owned(),
    }
}
