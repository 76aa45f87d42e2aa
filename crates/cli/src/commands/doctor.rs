//! `infradev doctor`.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use infradev_sandbox::Kind;
use infradev_supervise::{Invocation, find_program};
use serde::Serialize;

use crate::cli::{DoctorArgs, Global};
use crate::report::{self, Failure};
use crate::session::{self, Session};
use crate::tables::{Cell, Table};

/// Less free space than this is worth a word: a framework's environment takes about as much.
const ROOM: u64 = 10 << 30;

#[derive(Serialize)]
pub(super) struct Check {
    pub name: String,
    pub ok: bool,
    /// Whether nothing works without it.
    pub required: bool,
    pub detail: String,
    pub hint: Option<String>,
}

#[derive(Serialize)]
struct Document {
    schema: u32,
    usable: bool,
    checks: Vec<Check>,
}

/// Looks, and says what to do.
pub async fn run(global: &Global, args: DoctorArgs) -> Result<ExitCode, Failure> {
    let mut checks = vec![
        tool("uv", "https://docs.astral.sh/uv: `pip install uv` is enough"),
        tool("git", "apt-get install git"),
    ];
    for name in ["node", "npm"] {
        // Only agents that come from npm need them.
        let found = tool(name, "for Claude Code and Codex: apt-get install nodejs npm");
        checks.push(Check { required: false, ..found });
    }
    checks.push(home(global));
    checks.push(judge(global));
    for found in infradev_sandbox::examine().await {
        let infradev_sandbox::Check { name, ok, required, detail, hint } = found;
        checks.push(Check { name: name.into(), ok, required, detail, hint });
    }
    let usable = checks.iter().all(|check| check.ok || !check.required);
    let document = Document { schema: 1, usable, checks };
    if args.json {
        report::print_json(&document)?;
    } else {
        let end = match usable {
            true => "Tasks can be run here.",
            false => "Tasks cannot be run here until what is missing is there.",
        };
        report::print(text(&document.checks, end))?;
    }
    Ok(if usable { ExitCode::SUCCESS } else { ExitCode::from(3) })
}

fn tool(name: &'static str, hint: &str) -> Check {
    let check = |ok, detail: String| Check {
        name: name.into(),
        ok,
        required: true,
        detail,
        hint: (!ok).then(|| hint.into()),
    };
    let Some(path) = find_program(name) else { return check(false, format!("{name} is not on PATH")) };
    match Invocation::new(name).arg("--version").deadline(Duration::from_secs(20)).run() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout);
            check(true, format!("{} ({})", said.lines().next().unwrap_or_default(), path.display()))
        }
        Err(error) => check(false, format!("{}: {error}", path.display())),
    }
}

/// Whether the store can be written, and how much room it has.
pub(super) fn home(global: &Global) -> Check {
    let check = |ok, detail: String, hint: Option<&str>| Check {
        name: "home".into(),
        ok,
        required: true,
        detail,
        hint: hint.map(Into::into),
    };
    let home = match session::home(global) {
        Ok(home) => home,
        Err(_) => {
            return check(
                false,
                "no folder: INFRADEV_HOME, XDG_DATA_HOME and HOME are unset".into(),
                Some("set INFRADEV_HOME"),
            );
        }
    };
    let root = home.root().to_path_buf();
    let shown = root.display();
    let tried = std::fs::create_dir_all(&root).and_then(|()| tempfile::tempfile_in(&root));
    if let Err(error) = tried {
        let hint = "set INFRADEV_HOME, or give --home, to a folder that can be written";
        return check(false, format!("cannot write in {shown}: {error}"), Some(hint));
    }
    match free(&root) {
        Some(bytes) => {
            let gib = bytes as f64 / f64::from(1 << 30);
            let hint = (bytes < ROOM).then_some("an environment with a framework takes 5 GiB or more");
            // Little room is a warning, not the end.
            let ok = bytes > 0;
            check(ok, format!("{shown}, {gib:.1} GiB free"), hint)
        }
        None => check(true, shown.to_string(), None),
    }
}

fn free(folder: &Path) -> Option<u64> {
    let found = nix::sys::statvfs::statvfs(folder).ok()?;
    Some(found.blocks_available() * found.fragment_size())
}

/// Whether the judge's environment is there or can be built.
fn judge(global: &Global) -> Check {
    let set_up = Session::new(global, Kind::Namespaces, 1).and_then(|session| session.executor());
    let (ok, detail, hint) = match set_up {
        Ok(executor) => {
            let judge = executor.judge();
            (true, format!("Python {} in {}", judge.python_version, judge.python.display()), None)
        }
        Err(failure) => {
            let (message, hint) = failure.into_parts();
            (false, message, hint)
        }
    };
    Check { name: "judge environment".into(), ok, required: true, detail, hint }
}

/// All checks as a table, and a last line.
pub(super) fn text(checks: &[Check], end: &str) -> String {
    let mut table = Table::new(&["", "what", "found"], &[]);
    for check in checks {
        let mark = match (check.ok, check.required) {
            (true, _) => Cell::good("ok"),
            (false, true) => Cell::bad("missing"),
            (false, false) => Cell::odd("limited"),
        };
        table.row(vec![mark, check.name.as_str().into(), check.detail.replace('\n', " ").into()]);
        if let Some(hint) = &check.hint {
            table.row(vec!["".into(), "".into(), format!("→ {hint}").into()]);
        }
    }
    format!("{}\n{end}\n", table.text())
}
