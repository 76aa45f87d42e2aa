//! A trajectory as it is written: a step at a time, so that none is held.

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};

use infradev_model::atif::{ATIF_VERSION, FinalMetrics, Step, TrajectoryAgent};
use serde::Serialize;
use serde_json::{Map, Value};

/// What stands before the steps.
#[derive(Debug, Clone, Serialize)]
struct Head<'a> {
    schema_version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    trajectory_id: Option<&'a str>,
    agent: &'a TrajectoryAgent,
}

/// What stands after the steps.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Tail {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_metrics: Option<FinalMetrics>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

/// A document on its way into a file. After a failure nothing more is written, and its end tells of it.
pub(crate) struct Document {
    out: io::Result<BufWriter<File>>,
    steps: u64,
}

impl Document {
    /// Begins one; `name` is a subagent's.
    pub(crate) fn begin(file: io::Result<File>, agent: &TrajectoryAgent, name: Option<&str>) -> Document {
        let mut document = Document { out: file.map(BufWriter::new), steps: 0 };
        let head = Head { schema_version: ATIF_VERSION, trajectory_id: name, agent };
        document.try_to(|out| {
            let mut text = serde_json::to_vec(&head)?;
            text.pop();
            out.write_all(&text)?;
            out.write_all(b",\"steps\":[")
        });
        document
    }

    /// Steps so far.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    /// Appends a step, which gets its number.
    pub(crate) fn step(&mut self, mut step: Step) {
        self.steps += 1;
        step.step_id = self.steps;
        let comma: &[u8] = if self.steps > 1 { b",\n" } else { b"\n" };
        self.try_to(|out| {
            out.write_all(comma)?;
            Ok(serde_json::to_writer(out, &step)?)
        });
    }

    /// Ends it, with the documents of subagents, which have ended. Gives the file, written whole.
    pub(crate) fn finish(mut self, tail: &Tail, subagents: Vec<File>) -> io::Result<File> {
        self.try_to(|out| {
            out.write_all(b"\n]")?;
            let text = serde_json::to_vec(tail)?;
            let fields = &text[1..text.len() - 1];
            if !fields.is_empty() {
                out.write_all(b",")?;
                out.write_all(fields)?;
            }
            let several = !subagents.is_empty();
            for (index, mut file) in subagents.into_iter().enumerate() {
                out.write_all(if index == 0 { b",\"subagent_trajectories\":[\n" } else { b",\n" })?;
                file.rewind()?;
                io::copy(&mut file, out)?;
            }
            out.write_all(if several { b"\n]}" } else { b"}" })
        });
        self.out?.into_inner().map_err(|error| error.into_error())
    }

    fn try_to(&mut self, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) {
        if let Ok(out) = &mut self.out
            && let Err(error) = write(out)
        {
            self.out = Err(error);
        }
    }
}
