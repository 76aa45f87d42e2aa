//! `infradev env doctor`: the store of environments and layers, its file system, the compilers of this machine.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use infradev_pyenv::{Environments, Layers, PyenvError, left_over};
use infradev_store::{Home, Shares, shares};
use infradev_trial::Toolchain;
use serde::Serialize;

use crate::cli::Global;
use crate::cli_env::EnvDoctorArgs;
use crate::commands::doctor::{self, Check};
use crate::progress::counted;
use crate::report::{self, Failure};

#[derive(Serialize)]
struct Document {
    schema: u32,
    whole: bool,
    checks: Vec<Check>,
}

/// Looks, and says what to do.
pub fn run(
    global: &Global,
    home: &Home,
    store: &Environments,
    args: &EnvDoctorArgs,
) -> Result<ExitCode, Failure> {
    let layers = Layers::new(home.layers());
    let toolchain = Toolchain::find();
    let checks = vec![
        doctor::home(global),
        environments(store)?,
        built(&layers)?,
        half_done(&[store.root(), layers.root()])?,
        linked(store),
        workspaces(home),
        compilers(&toolchain),
        ccache(&toolchain),
    ];
    let whole = checks.iter().all(|check| check.ok || !check.required);
    let document = Document { schema: 1, whole, checks };
    if args.json {
        report::print_json(&document)?;
    } else {
        let end =
            if whole { "The store is whole." } else { "Something in the store is not as it should be." };
        report::print(doctor::text(&document.checks, end))?;
    }
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn check(name: &str, detail: String) -> Check {
    Check { name: name.into(), ok: true, required: true, detail, hint: None }
}

/// The same where it is not as it should be.
fn ill(name: &str, required: bool, detail: String, hint: &str) -> Check {
    Check { name: name.into(), ok: false, required, detail, hint: Some(hint.into()) }
}

/// Whole ones counted, the others named.
fn told(whole: usize, noun: &str, damaged: &[(PathBuf, String)]) -> String {
    let mut words = format!("{} whole", counted(whole as u32, noun));
    for (folder, lack) in damaged {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let name: String = name.chars().take(12).collect();
        words.push_str(&format!("; {name}: {lack}"));
    }
    words
}

fn environments(store: &Environments) -> Result<Check, PyenvError> {
    let damaged: Vec<(PathBuf, String)> =
        store.damaged()?.into_iter().map(|(folder, lack)| (folder, lack.to_owned())).collect();
    let all = store.list()?;
    let whole =
        all.iter().filter(|stored| damaged.iter().all(|(folder, _)| *folder != stored.folder)).count();
    let detail = told(whole, "environment", &damaged);
    Ok(match damaged.is_empty() {
        true => check("environments", detail),
        false => {
            let hint =
                "built anew when it is next asked for; `infradev env verify` reads every file of the others";
            ill("environments", true, detail, hint)
        }
    })
}

fn built(layers: &Layers) -> Result<Check, PyenvError> {
    let damaged = layers.damaged()?;
    let all = layers.list()?;
    let whole =
        all.iter().filter(|stored| damaged.iter().all(|(folder, _)| *folder != stored.folder)).count();
    let detail = told(whole, "build layer", &damaged);
    Ok(match damaged.is_empty() {
        true => check("build layers", detail),
        false => {
            ill("build layers", true, detail, "remove its folder; it is built anew when it is next asked for")
        }
    })
}

fn half_done(roots: &[&Path]) -> Result<Check, PyenvError> {
    let mut left = 0;
    for root in roots {
        left += left_over(root)?.len();
    }
    Ok(check(
        "half done",
        match left {
            0 => "nothing".to_owned(),
            left => format!(
                "{} of builds or removals under way, or killed: the next one sweeps those",
                counted(left as u32, "folder")
            ),
        },
    ))
}

fn linked(store: &Environments) -> Check {
    let (cache, root) = (store.uv_cache().display(), store.root().display());
    match store.links() {
        Ok(true) => check("hard links", format!("environments share the files of {cache}")),
        Ok(false) => {
            let hint = "put both on one file system that has hard links: UV_CACHE_DIR, INFRADEV_HOME";
            ill("hard links", false, format!("none from {cache} into {root}: environments get copies"), hint)
        }
        Err(error) => ill("hard links", false, error.to_string(), "see that both folders can be written"),
    }
}

fn workspaces(home: &Home) -> Check {
    match shares(&home.builds().join("trees"), &home.runs()) {
        Ok(Shares::Reflinks) => check("workspaces", "reflinks of their trees".to_owned()),
        Ok(Shares::HardLinks) => {
            check("workspaces", "hard links of their trees; no reflinks here".to_owned())
        }
        Ok(Shares::Copies) => {
            let detail = format!(
                "copies of their trees: no links from {} into {}",
                home.builds().display(),
                home.runs().display()
            );
            ill("workspaces", false, detail, "keep both on one file system that has hard links or reflinks")
        }
        Err(error) => ill("workspaces", false, error.to_string(), "see that the store can be written"),
    }
}

fn compilers(toolchain: &Toolchain) -> Check {
    match toolchain.compiles() {
        true => check("compilers", toolchain.compilers.join(", ")),
        false => ill(
            "compilers",
            false,
            "no cc, no c++".to_owned(),
            "for tasks that build native code: apt-get install g++",
        ),
    }
}

fn ccache(toolchain: &Toolchain) -> Check {
    match &toolchain.ccache {
        Some(path) => check("ccache", path.display().to_string()),
        None => {
            let hint = "a patch of one source file then compiles that file alone: apt-get install ccache";
            ill("ccache", false, "not installed: what a patch touches is built whole".to_owned(), hint)
        }
    }
}
