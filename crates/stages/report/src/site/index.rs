//! The first page: tasks by arms, figures, tables.

use std::collections::{BTreeMap, BTreeSet};

use askama::Template;
use infradev_model::{AnalysedSubmission, Standing};

use super::chart::{Chart, charts};
use super::frame::{Frame, verdict};
use super::{Site, SiteError, submission_page, task_page};
use crate::table::Table;
use crate::tables::{Extent, tables};

#[derive(Template)]
#[template(path = "site/index.html")]
struct Index<'a> {
    frame: Frame,
    arms: Vec<&'a str>,
    matrix: Vec<Row<'a>>,
    charts: Vec<Chart>,
    tables: Vec<Table>,
}

struct Row<'a> {
    task: &'a str,
    page: String,
    cells: Vec<Cell>,
}

#[derive(Default)]
struct Cell {
    counts: String,
    links: Vec<Link>,
}

struct Link {
    page: String,
    text: String,
    tone: &'static str,
}

impl Site {
    pub(super) fn index(&self) -> Result<String, SiteError> {
        let mut tables = tables(&self.analysis, Extent::Short);
        tables.retain(|table| table.name != "matrix");
        let arms: BTreeSet<&str> =
            self.analysis.submissions.iter().map(|submission| submission.arm.as_str()).collect();
        let arms: Vec<&str> = arms.into_iter().collect();
        let title =
            if self.analysis.submissions.is_empty() { "No submissions yet" } else { "What runs show" };
        let page = Index {
            frame: self.frame(title, ""),
            matrix: self.matrix(&arms),
            charts: charts(&self.analysis),
            tables,
            arms,
        };
        Ok(page.render()?)
    }

    fn matrix<'a>(&'a self, arms: &[&'a str]) -> Vec<Row<'a>> {
        let mut of: BTreeMap<(&str, &str), Vec<&AnalysedSubmission>> = BTreeMap::new();
        for submission in &self.analysis.submissions {
            of.entry((&submission.task, &submission.arm)).or_default().push(submission);
        }
        let cell = |task: &str, arm: &str| of.get(&(task, arm)).map(|mine| cell(mine)).unwrap_or_default();
        self.tasks
            .values()
            .map(|task| Row {
                task,
                page: task_page(task),
                cells: arms.iter().map(|arm| cell(task, arm)).collect(),
            })
            .collect()
    }
}

fn cell(mine: &[&AnalysedSubmission]) -> Cell {
    let scored = mine.iter().filter(|submission| submission.standing == Standing::Scored).count();
    let resolved = mine.iter().filter(|submission| verdict(submission).0 == "resolved").count();
    let link = |submission: &&AnalysedSubmission| {
        let (word, tone) = verdict(submission);
        let number = if mine.len() > 1 { format!("#{} ", submission.attempt) } else { String::new() };
        Link { page: submission_page(submission), text: format!("{number}{word}"), tone }
    };
    Cell { counts: format!("{resolved}/{scored}"), links: mine.iter().map(link).collect() }
}
