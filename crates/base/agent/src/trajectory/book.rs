//! What is made of a log while it is read: steps, the agent's own words, and an account of what no step shows.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use infradev_model::atif::{ObservationResult, StepSource, SubagentRef, TrajectoryAgent};
use infradev_model::{Metered, TrajectoryReport};
use serde_json::{Map, Value, json};

use super::chain::{Chain, totals};
use super::document::Tail;
use crate::output::Said;

/// Kinds of events that are told apart in the account.
const KINDS: usize = 100;
/// Subagents that have a trajectory of their own.
const SUBAGENTS: usize = 256;

/// A trajectory in the making.
pub(crate) struct Book {
    folder: PathBuf,
    agent: TrajectoryAgent,
    root: Chain,
    subagents: BTreeMap<String, Chain>,
    /// What the agent says of its end and its tokens.
    pub said: Said,
    /// Its last event of an error.
    pub error: Option<String>,
    /// The account.
    pub report: TrajectoryReport,
    /// What the agent calls its run.
    pub session_id: Option<String>,
    /// What else it told of its run.
    pub extra: Map<String, Value>,
    /// What else it told of its sums.
    pub sums: Map<String, Value>,
}

impl Book {
    /// Begins `trajectory.json` in a folder, which holds what is written aside too.
    pub(crate) fn begin(folder: &Path, agent: TrajectoryAgent) -> Book {
        let root = Chain::begin(File::create(folder.join("trajectory.json")), &agent, None);
        Book {
            folder: folder.to_owned(),
            agent,
            root,
            subagents: BTreeMap::new(),
            said: Said::default(),
            error: None,
            report: TrajectoryReport::default(),
            session_id: None,
            extra: Map::new(),
            sums: Map::new(),
        }
    }

    /// The model of steps that name none.
    pub(crate) fn model(&self) -> Option<&str> {
        self.agent.model_name.as_deref()
    }

    /// The agent's own steps.
    pub(crate) fn root(&mut self) -> &mut Chain {
        &mut self.root
    }

    /// The steps of the subagent that a call started; the agent's own where `call` is none, or one of too many.
    pub(crate) fn chain(&mut self, call: Option<&str>) -> &mut Chain {
        let Some(call) = call else { return &mut self.root };
        if !self.subagents.contains_key(call) {
            if self.subagents.len() >= SUBAGENTS {
                self.not_shown("a subagent's event in its own trajectory");
                return &mut self.root;
            }
            let file = tempfile::tempfile_in(&self.folder);
            self.subagents.insert(call.to_owned(), Chain::begin(file, &self.agent, Some(call)));
        }
        self.subagents.get_mut(call).unwrap_or(&mut self.root)
    }

    /// What a call gave, of the agent or, where `parent` is one, of the subagent that `parent` started.
    pub(crate) fn result(&mut self, parent: Option<&str>, call: &str, mut result: ObservationResult) {
        if self.subagents.contains_key(call) {
            result.subagent_trajectory_ref = Some(vec![SubagentRef { trajectory_id: call.to_owned() }]);
        }
        self.chain(parent).result(call, result);
    }

    /// Counts an event that no step shows.
    pub(crate) fn not_shown(&mut self, kind: &str) {
        let mut kind: String = kind.chars().take(80).collect();
        let known = &mut self.report.not_shown;
        if known.len() >= KINDS && !known.contains_key(&kind) {
            kind = "others".to_owned();
        }
        *known.entry(kind).or_default() += 1;
    }

    /// Ends the document. `prompt` is its only step where there is no other; `metered` what the proxy counted.
    pub(crate) fn finish(mut self, prompt: &str, metered: &Metered) -> (Said, TrajectoryReport) {
        self.root.close();
        if self.root.steps() == 0 {
            self.root.aside(StepSource::User, prompt.to_owned(), None);
        }
        let (mut files, mut failed) = (Vec::new(), None);
        let (mut steps, mut sum) = (0, self.root.sum());
        for (_, mut chain) in std::mem::take(&mut self.subagents) {
            chain.close();
            if chain.steps() == 0 {
                chain.aside(StepSource::System, "Nothing was told of this subagent.".to_owned(), None);
            }
            steps += chain.steps();
            if let Some(tokens) = chain.sum() {
                *sum.get_or_insert_default() += tokens;
            }
            let tail = Tail { final_metrics: Some(totals(chain.sum(), chain.steps())), ..Tail::default() };
            match chain.finish(&tail, Vec::new()) {
                Ok(file) => files.push(file),
                Err(error) => failed = Some(error),
            }
        }
        let mut sums = totals(self.said.tokens.or(sum), self.root.steps());
        let Metered { requests, unmetered, tokens, .. } = metered;
        let proxy =
            json!({"requests": requests, "failed": metered.failed, "unmetered": unmetered, "tokens": tokens});
        self.sums.insert("proxy".into(), proxy);
        sums.extra.get_or_insert_default().append(&mut self.sums);
        self.report.steps = steps + self.root.steps();
        let tail = Tail {
            session_id: self.session_id.take(),
            notes: notes(&self.report),
            final_metrics: Some(sums),
            extra: std::mem::take(&mut self.extra),
        };
        let written = self.root.finish(&tail, files).err();
        if let Some(error) = written.or(failed) {
            self.report.error = Some(format!("trajectory.json could not be written: {error}"));
            // Half a document is none.
            let _ = std::fs::remove_file(self.folder.join("trajectory.json"));
        }
        (self.said, self.report)
    }
}

/// What of the log stands in no step, in words.
fn notes(report: &TrajectoryReport) -> Option<String> {
    let mut said = Vec::new();
    let count = |count: u64, one: &str, more: &str| {
        (count > 0).then(|| if count == 1 { format!("1 {one}") } else { format!("{count} {more}") })
    };
    said.extend(count(report.malformed, "line of the log is no event", "lines of the log are no events"));
    said.extend(count(
        report.too_long,
        "event was passed over for its length",
        "events were passed over for their length",
    ));
    if report.cut_off {
        said.push("the log ends in the middle of an event".to_owned());
    }
    if !report.not_shown.is_empty() {
        let kinds = report.not_shown.iter().map(|(kind, count)| format!("{kind} ({count})"));
        said.push(format!("in no step: {}", kinds.collect::<Vec<_>>().join(", ")));
    }
    (!said.is_empty()).then(|| said.join("; "))
}
