//! A task's page.

use askama::Template;
use infradev_model::Acceptance;

use super::diff::{Diff, diff};
use super::frame::{Frame, verdict};
use super::pack::TaskText;
use super::{Site, SiteError, submission_page};
use crate::table::Table;
use crate::tables::{Extent, tables};

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
    kills: Vec<Table>,
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
            kills: acceptance.map(kills).into_iter().collect(),
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
        let mut all = tables(&self.analysis, Extent::Whole);
        all.retain(|table| table.name == "failures");
        for table in &mut all {
            table.rows.retain(|row| row.first().is_some_and(|of| of == task));
        }
        all.retain(|table| !table.rows.is_empty());
        all
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
    let mut told = format!(
        "{word}: golden passed every probe in {} runs (flake rate below {:.0} % at 95 %).",
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
fn kills(record: &Acceptance) -> Table {
    let mut table =
        Table::new("kills", "Kill matrix", &["case", ">world", "role", "patch", "result", "rejection"]);
    for case in &record.cases {
        let json = |value: serde_json::Value| value.as_str().map(str::to_owned).unwrap_or_default();
        let role = serde_json::to_value(case.role).map(json).unwrap_or_default();
        for (patch, word) in &case.words {
            let how = case.rejections.get(patch).and_then(|how| serde_json::to_value(how).ok()).map(json);
            let (case_id, world) = (case.id.clone(), case.world.to_string());
            let word = word.word().to_owned();
            table.rows.push(vec![case_id, world, role.clone(), patch.clone(), word, how.unwrap_or_default()]);
        }
    }
    table
}
