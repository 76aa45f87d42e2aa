//! An analysis as pages: the same in a folder that opens from disk and from a server on this machine. A page asks for nothing
//! outside itself and runs no script; what a log, a patch or a trajectory says is text in it.

mod chart;
mod compare;
mod diff;
mod error;
mod evidence;
mod excerpt;
mod folder;
mod frame;
mod index;
mod pack;
mod progress;
mod reading_charts;
mod submission;
mod task;

use std::collections::{BTreeMap, BTreeSet};

use infradev_model::{AnalysedSubmission, Analysis, Digest};
use infradev_store::RunView;

pub use error::SiteError;
pub use folder::write_site;
pub(crate) use frame::policy;
pub use pack::{TaskText, read_pack};
pub use submission::Material;

use evidence::Evidence;
use frame::Frame;
use progress::RunProgress;

/// All that pages are drawn from. A page is drawn when it is asked for; logs and trajectories are read then.
#[derive(Debug)]
pub struct Site {
    analysis: Analysis,
    evidence: Evidence,
    packed: BTreeMap<String, TaskText>,
    progress: Vec<RunProgress>,
    /// Submissions by the name of their page.
    pages: BTreeMap<String, usize>,
    /// Tasks by the name of their page.
    tasks: BTreeMap<String, String>,
    /// Whether two runs share a task and a submission's name.
    compared: bool,
    live: bool,
}

impl Site {
    /// The site of an analysis and the runs that it was made of. `packed` may be empty. Whether it shows sealed things is as the
    /// analysis has it.
    ///
    /// # Errors
    /// A document of another schema version, or one that is damaged.
    pub fn new(analysis: Analysis, views: &[RunView], packed: Vec<TaskText>) -> Result<Site, SiteError> {
        let named = |(at, submission): (usize, &AnalysedSubmission)| (submission_page(submission), at);
        let pages = analysis.submissions.iter().enumerate().map(named).collect();
        let tasks: BTreeSet<&str> =
            analysis.submissions.iter().map(|submission| submission.task.as_str()).collect();
        let tasks = tasks.into_iter().map(|task| (task_page(task), task.to_owned())).collect();
        Ok(Site {
            compared: !compare::shared(&analysis).is_empty(),
            evidence: Evidence::of(views)?,
            progress: views.iter().map(RunProgress::of).collect(),
            packed: packed.into_iter().map(|task| (task.public.spec.id.clone(), task)).collect(),
            pages,
            tasks,
            analysis,
            live: false,
        })
    }

    /// The same with a page of the runs' progress.
    #[must_use]
    pub fn live(self) -> Site {
        Site { live: true, ..self }
    }

    /// Whether a process works on one of the runs.
    pub(crate) fn under_way(&self) -> bool {
        self.progress.iter().any(RunProgress::running)
    }

    /// Paths of all pages below the site's root.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = vec!["index.html".to_owned()];
        if self.compared {
            paths.push("compare.html".to_owned());
        }
        if self.live {
            paths.push("progress.html".to_owned());
        }
        paths.extend(self.tasks.keys().chain(self.pages.keys()).cloned());
        paths
    }

    /// A page, or none where there is no such one.
    ///
    /// # Errors
    /// [`SiteError::Page`].
    pub fn page(&self, path: &str) -> Result<Option<String>, SiteError> {
        let page = match path {
            "index.html" => self.index()?,
            "compare.html" if self.compared => self.compare()?,
            "progress.html" if self.live => self.progress_page()?,
            path => match (self.tasks.get(path), self.pages.get(path)) {
                (Some(task), _) => self.task(task)?,
                (None, Some(at)) => match self.analysis.submissions.get(*at) {
                    Some(submission) => self.submission(submission)?,
                    None => return Ok(None),
                },
                (None, None) => return Ok(None),
            },
        };
        Ok(Some(frame::visible(&page)))
    }

    fn frame(&self, title: impl Into<String>, up: &'static str) -> Frame {
        let packs: BTreeSet<&str> = self.analysis.runs.iter().map(|run| run.pack.as_str()).collect();
        Frame {
            title: title.into(),
            site: format!("InfraDev: {}", Vec::from_iter(packs).join(", ")),
            up,
            compared: self.compared,
            live: self.live,
            sealed: self.analysis.sealed,
            refresh: false,
        }
    }
}

/// The page of a task, below the site's root.
fn task_page(task: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !task.is_empty() && task.len() <= 80 && task.chars().all(plain) {
        return format!("tasks/{task}.html");
    }
    format!("tasks/{}.html", digits(task))
}

/// The page of a submission, below the site's root.
fn submission_page(submission: &AnalysedSubmission) -> String {
    let name = [submission.run.as_str(), &submission.task, &submission.submission].join("\0");
    let again = submission.agent_s.map(|seconds| seconds.to_bits().to_string()).unwrap_or_default();
    format!("submissions/{}.html", digits(&format!("{name}\0{again}")))
}

fn digits(text: &str) -> String {
    Digest::of(text.as_bytes()).as_str().chars().take(16).collect()
}
