//! How far runs are, by their journals.

use std::collections::BTreeMap;

use askama::Template;
use infradev_store::{RunEvent, RunView};

use super::frame::Frame;
use super::{Site, SiteError};
use crate::table::Table;

#[derive(Template)]
#[template(path = "site/progress.html")]
struct Progress<'a> {
    frame: Frame,
    runs: &'a [RunProgress],
}

/// How far a run is.
#[derive(Debug)]
pub(crate) struct RunProgress {
    id: String,
    state: &'static str,
    told: String,
    begun: usize,
    finished: usize,
    /// Trials or attempts that were begun and left no record.
    under_way: Table,
    running: bool,
}

impl RunProgress {
    pub fn running(&self) -> bool {
        self.running
    }

    pub fn of(view: &RunView) -> RunProgress {
        let mut open: BTreeMap<&str, (&str, &str, u32)> = BTreeMap::new();
        let (mut begun, mut finished, mut faults, mut seconds) = (0_usize, 0_usize, 0_usize, 0.0);
        for (_, event) in &view.journal.events {
            match event {
                RunEvent::TrialStarted { trial, task, what, world } => {
                    open.insert(trial.as_str(), (task, what, *world));
                    begun += 1;
                }
                RunEvent::TrialFinished { trial, wall_s } => {
                    open.remove(trial.as_str());
                    finished += 1;
                    seconds += wall_s;
                }
                RunEvent::TrialFault { trial, .. } => {
                    open.remove(trial.as_str());
                    faults += 1;
                }
                _ => {}
            }
        }
        let mut under_way = Table::new("under-way", "Under way", &["task", "what", ">ranks"]);
        let running = view.in_use && !view.finished;
        for (task, what, world) in open.values().filter(|_| running) {
            under_way.rows.push(vec![(*task).to_owned(), (*what).to_owned(), world.to_string()]);
        }
        let state = match (view.finished, view.in_use) {
            (true, _) => "finished",
            (false, true) => "running",
            (false, false) => "unfinished",
        };
        RunProgress {
            id: view.run.id.clone(),
            state,
            told: format!(
                "{finished} of {begun} begun have a record, {faults} ended in a fault; {seconds:.0} s"
            ),
            begun: begun.max(1),
            finished,
            under_way,
            running,
        }
    }
}

impl Site {
    pub(super) fn progress_page(&self) -> Result<String, SiteError> {
        let mut frame = self.frame("Progress", "");
        frame.refresh = self.under_way();
        Ok(Progress { frame, runs: &self.progress }.render()?)
    }
}
