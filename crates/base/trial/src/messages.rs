//! The messages of docs/src/protocol.md, version 1, as types.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the harness tells the launcher.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToLauncher<'a> {
    /// First of all; carries the channel's key.
    Hello { schema: u32, key: String, framework: &'a [String], uids: Option<LauncherUids>, gid: Option<u32> },
    /// Fork ranks.
    Launch {
        launch: u32,
        size: u32,
        slot: u32,
        keys: Vec<String>,
        env: &'a BTreeMap<String, String>,
        rank_env: Vec<BTreeMap<String, String>>,
        cwd: &'a str,
        netns: bool,
        args: Value,
    },
    /// Signal one rank, or all.
    Signal { launch: u32, rank: Option<u32>, signal: i32 },
    /// Kill the ranks and all that they left behind.
    End { launch: u32 },
    /// Create a directory.
    Mkdir { path: &'a str, mode: u32 },
    /// End.
    Shutdown {},
}

/// Host uids inside the sandbox.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct LauncherUids {
    /// The launcher's own.
    pub launcher: u32,
    /// The ranks' of slot 0; slot k adds k.
    pub ranks: u32,
}

/// What the launcher answers.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum FromLauncher {
    Ready {
        import_s: f64,
        #[serde(default)]
        threads: u32,
    },
    Fault {
        message: String,
    },
    Launched {
        launch: u32,
    },
    Exited {
        launch: u32,
        rank: u32,
        code: Option<i32>,
        signal: Option<i32>,
    },
    Ended {
        launch: u32,
    },
    Made {
        path: String,
    },
}

/// What the harness tells a rank.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum ToRank<'a> {
    Run { id: &'a str, next: Option<&'a str> },
    Observe { call: u32, observer: &'a str, inputs: &'a Value },
    Finish {},
}

/// Bytes kept of a name or message that a rank wrote: its kit writes 2,000 characters at most.
pub const MESSAGE: usize = 8_000;
/// Bytes kept of a traceback: its kit writes 16,000 characters at most.
pub const TRACE: usize = 64_000;

/// A text from a rank, cut where it is longer than its kit would have written, and without what would steer the terminal of
/// whoever reads it: control characters but line ends and tabs, and those that turn the direction of writing.
pub fn within(mut text: String, bytes: usize) -> String {
    if text.len() > bytes {
        text.truncate(text.floor_char_boundary(bytes));
        text.push('…');
    }
    let steers = |c: char| match c {
        '\n' | '\t' => false,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        other => other.is_control(),
    };
    if text.contains(steers) { text.replace(steers, "\u{fffd}") } else { text }
}

/// What a rank answers. Nothing in it is trusted.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum FromRank {
    Hello {
        #[serde(default)]
        outside: Vec<String>,
        /// Why a rank that was forked of a template is not this variant's.
        #[serde(default)]
        unfit: Option<String>,
    },
    Collecting {
        file: String,
    },
    Uncollectable {
        file: String,
        exception: String,
        message: String,
        #[serde(default)]
        line: Option<u32>,
    },
    Collected {
        ids: Vec<String>,
        more: bool,
    },
    Started {
        id: String,
    },
    Report {
        id: String,
        outcome: String,
        #[serde(default)]
        exception: Option<String>,
        #[serde(default)]
        message: Option<String>,
        #[serde(default)]
        file: Option<String>,
        #[serde(default)]
        line: Option<u32>,
        #[serde(default)]
        duration_s: f64,
        #[serde(default)]
        longrepr: Option<String>,
        #[serde(default)]
        rewritten: bool,
        #[serde(default)]
        reached: Option<Box<Reached>>,
    },
    Returned {
        call: u32,
        value: Value,
        #[serde(default)]
        reached: Option<Box<Reached>>,
    },
    Raised {
        call: u32,
        exception: String,
        #[serde(default)]
        mro: Vec<String>,
        message: String,
        #[serde(default)]
        file: Option<String>,
        #[serde(default)]
        line: Option<u32>,
        #[serde(default)]
        traceback: String,
        #[serde(default)]
        kind: String,
        #[serde(default)]
        reached: Option<Box<Reached>>,
    },
    Bye {
        /// What pytest's session ended with.
        #[serde(default)]
        exit: Option<i32>,
        /// Whether something beside pytest has a say in that after the last case.
        #[serde(default)]
        hooked: bool,
    },
}

/// Lines that ran on a rank, as (index of the file that was asked about, line from 1).
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Reached {
    /// While this case ran.
    pub own: Vec<(u32, u32)>,
    /// While modules were imported and wider fixtures set up, not told before.
    pub shared: Vec<(u32, u32)>,
    /// The case started processes, whose lines are not seen.
    #[serde(default)]
    pub wide: bool,
}

/// What the harness tells the judge; replies go as plain JSON values.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum ToJudge<'a> {
    Hello { schema: u32, key: String, probes: &'a str, world: u32, device: &'a str },
    Run { id: &'a str, seed: u64, deadline_s: f64 },
    Finish {},
}

/// What the judge says and asks.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum FromJudge {
    Ready {},
    Fault {
        message: String,
    },
    Uncollectable {
        file: String,
        exception: String,
        message: String,
        #[serde(default)]
        line: Option<u32>,
    },
    Collected {
        cases: Vec<JudgeCase>,
        #[serde(default)]
        more: bool,
    },
    Started {},
    Report(Box<JudgeReport>),
    Open {
        call: u32,
        #[serde(default)]
        size: Option<u32>,
        tree: String,
        #[serde(default)]
        files: Option<String>,
        network: String,
    },
    Observe(ObserveRequest),
    Start(ObserveRequest),
    Wait {
        call: u32,
        of: u32,
        #[serde(default)]
        deadline_s: Option<f64>,
    },
    Poll {
        call: u32,
        of: u32,
    },
    Meter {
        call: u32,
        world: u32,
        what: String,
        op: String,
    },
    Signal {
        call: u32,
        world: u32,
        rank: u32,
        signal: i32,
    },
    Close {
        call: u32,
        world: u32,
    },
    Bye {},
}

/// A case that the judge collected for this world size.
#[derive(Debug, Clone, Deserialize)]
pub struct JudgeCase {
    /// `probes/judge_x.py::name[world=2]`.
    pub id: String,
    /// The property that it checks.
    #[serde(default)]
    pub checks: String,
    /// Free words.
    #[serde(default)]
    pub traits: Vec<String>,
    /// The id of the case with its exact inputs.
    #[serde(default)]
    pub exact: Option<String>,
}

/// A call of an observer on some ranks; the payload holds each part's inputs, one after the other.
#[derive(Debug, Clone, Deserialize)]
pub struct ObserveRequest {
    /// The judge's number of the call.
    pub call: u32,
    /// The world.
    pub world: u32,
    /// `file.function`.
    pub observer: String,
    /// Seconds; the task's case timeout where absent.
    #[serde(default)]
    pub deadline_s: Option<f64>,
    /// Inputs by rank.
    pub parts: Vec<ObservePart>,
}

/// Inputs for some ranks.
#[derive(Debug, Clone, Deserialize)]
pub struct ObservePart {
    /// These ranks get it.
    pub ranks: Vec<u32>,
    /// A typed tree.
    pub inputs: Value,
    /// Bytes of its arrays in the payload.
    pub length: u64,
}

/// A case's end, as the judge saw it.
#[derive(Debug, Clone, Deserialize)]
pub struct JudgeReport {
    /// `passed`, `failed`, `error`.
    pub outcome: String,
    /// `expectation`, `world`, `judge`.
    #[serde(default)]
    pub cause: Option<String>,
    /// Type of the exception.
    #[serde(default)]
    pub exception: Option<String>,
    /// Its message.
    #[serde(default)]
    pub message: Option<String>,
    /// Judge's file.
    #[serde(default)]
    pub file: Option<String>,
    /// Line in it.
    #[serde(default)]
    pub line: Option<u32>,
    /// Traceback, bounded.
    #[serde(default)]
    pub longrepr: Option<String>,
    /// Comparisons.
    #[serde(default)]
    pub expectations: Vec<infradev_model::Expectation>,
    /// Entries of the failing world.
    #[serde(default)]
    pub ranks: Option<Vec<Value>>,
}
