//! `infradev env`: the store of environments.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use infradev_pyenv::{
    Definition, Environments, Event, Layers, PyenvError, Stored, StoredLayer, Verification,
};
use infradev_store::PackFiles;
use serde::Serialize;

use crate::cli::Global;
use crate::cli_env::{
    EnvBuildArgs, EnvCommand, EnvDuArgs, EnvExportArgs, EnvGcArgs, EnvListArgs, EnvShowArgs, EnvVerifyArgs,
};
use crate::commands::env_doctor;
use crate::commands::env_layers::{self, LayerEntry, VerifiedLayer};
use crate::progress::{Shown, counted};
use crate::report::{self, Failure};
use crate::session;
use crate::tables::{Cell, Table};

/// The schema version of all documents.
const SCHEMA: u32 = 1;

/// One environment, as all documents have it. Times are seconds since 1970.
#[derive(Serialize)]
struct Entry {
    key: String,
    folder: PathBuf,
    python: String,
    packages: usize,
    built: u64,
    used: u64,
    in_use: bool,
}

impl Entry {
    fn of(stored: &Stored) -> Entry {
        Entry {
            key: stored.key.to_string(),
            folder: stored.folder.clone(),
            python: stored.python_version.clone(),
            packages: stored.packages.len(),
            built: seconds(stored.built),
            used: seconds(stored.used),
            in_use: stored.in_use,
        }
    }
}

/// Does what is asked.
pub fn run(global: &Global, command: EnvCommand) -> Result<ExitCode, Failure> {
    let home = session::home(global)?;
    let _room = session::room(&home)?;
    let store = Environments::new(home.envs());
    let layers = Layers::new(home.layers());
    match command {
        EnvCommand::Build(args) => build(global, &store, &args),
        EnvCommand::List(args) => list(&store, &layers, &args),
        EnvCommand::Show(args) => show(&store, &args),
        EnvCommand::Du(args) => du(&store, &layers, &args),
        EnvCommand::Gc(args) => gc(&store, &layers, &args),
        EnvCommand::Verify(args) => verify(&store, &layers, &args),
        EnvCommand::Export(args) => export(&store, &args),
        EnvCommand::Doctor(args) => env_doctor::run(global, &home, &store, &args),
    }
}

fn build(global: &Global, store: &Environments, args: &EnvBuildArgs) -> Result<ExitCode, Failure> {
    #[derive(Serialize)]
    struct Built {
        of: String,
        key: String,
        python: PathBuf,
        packages: usize,
        mounts: Vec<PathBuf>,
    }
    #[derive(Serialize)]
    struct Document {
        schema: u32,
        environments: Vec<Built>,
    }
    let progress = Shown::new(global.quiet);
    let mut document = Document { schema: SCHEMA, environments: Vec::new() };
    for path in &args.of {
        for (of, definition) in definitions(path, args.python.as_deref())? {
            let told = |event: Event<'_>| match event {
                Event::Building { packages, .. } => {
                    progress.line(&format!("{of}: building ({})", counted(packages as u32, "package")));
                }
                Event::Waiting { .. } => progress.line(&format!("{of}: another process builds it; waiting")),
                Event::Built { took, .. } => {
                    progress.line(&format!("{of}: built ({:.1} s)", took.as_secs_f64()));
                }
                Event::Copying { cache, root } => progress.line(&format!(
                    "no hard links from {} into {}: environments get copies of their files",
                    cache.display(),
                    root.display()
                )),
                Event::Swept { .. } => {}
            };
            let environment = store.ensure(&definition, &told)?;
            document.environments.push(Built {
                of,
                key: environment.key.to_string(),
                python: environment.python,
                packages: environment.packages.len(),
                mounts: environment.mounts,
            });
        }
    }
    if args.json {
        report::print_json(&document)?;
    } else {
        report::print(
            document.environments.iter().map(|built| format!("{}\n", built.key)).collect::<String>(),
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What environments a pack or a lock asks for, each with what it is called in words.
fn definitions(path: &Path, python: Option<&str>) -> Result<Vec<(String, Definition)>, Failure> {
    let read = |path: &Path| {
        std::fs::read(path).map_err(|error| Failure::bad_input(format!("{}: {error}", path.display())))
    };
    if path.is_file() {
        let python = python.ok_or_else(|| {
            Failure::usage(format!("{}: a lock alone does not say for which Python", path.display()))
                .hint("give its version, such as --python 3.12")
        })?;
        let definition =
            Definition::Lock { lock: read(path)?, lock_path: path.to_owned(), python: python.to_owned() };
        return Ok(vec![(path.display().to_string(), definition)]);
    }
    let files = PackFiles::open(path)?;
    let mut all = Vec::new();
    for (name, spec) in &files.pack.environments {
        let definition = match (&spec.interpreter, &spec.lock, &spec.python) {
            (Some(interpreter), ..) => Definition::Interpreter { path: PathBuf::from(interpreter) },
            (None, Some(lock), Some(python)) => {
                let lock_path = files.root.join(lock);
                Definition::Lock { lock: read(&lock_path)?, lock_path, python: python.clone() }
            }
            // Packs are refused that have neither.
            _ => continue,
        };
        all.push((name.clone(), definition));
    }
    Ok(all)
}

fn list(store: &Environments, layers: &Layers, args: &EnvListArgs) -> Result<ExitCode, Failure> {
    #[derive(Serialize)]
    struct Document {
        schema: u32,
        environments: Vec<Entry>,
        layers: Vec<LayerEntry>,
    }
    let (all, built) = (store.list()?, layers.list()?);
    if args.json {
        let environments = all.iter().map(Entry::of).collect();
        let layers = built.iter().map(LayerEntry::of).collect();
        report::print_json(&Document { schema: SCHEMA, environments, layers })?;
        return Ok(ExitCode::SUCCESS);
    }
    if all.is_empty() {
        let none = format!("no environment lies in {}\n", store.root().display());
        report::print(none + &env_layers::listed(&built))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(&["key", "python", "packages", "last used", ""], &[2]);
    for stored in &all {
        table.row(vec![
            short(stored).into(),
            stored.python_version.clone().into(),
            stored.packages.len().to_string().into(),
            ago(stored.used).into(),
            if stored.in_use { Cell::good("in use") } else { Cell::default() },
        ]);
    }
    report::print(table.text() + &env_layers::listed(&built))?;
    Ok(ExitCode::SUCCESS)
}

fn show(store: &Environments, args: &EnvShowArgs) -> Result<ExitCode, Failure> {
    #[derive(Serialize)]
    struct Document<'a> {
        schema: u32,
        #[serde(flatten)]
        entry: Entry,
        versions: &'a BTreeMap<String, String>,
    }
    let stored = store.find(&args.key)?;
    if args.json {
        let document = Document { schema: SCHEMA, entry: Entry::of(&stored), versions: &stored.packages };
        report::print_json(&document)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!("{}\n", stored.key);
    let _ = writeln!(text, "  folder     {}", stored.folder.display());
    let _ = writeln!(text, "  python     {}", stored.python_version);
    let _ =
        writeln!(text, "  last used  {}{}", ago(stored.used), if stored.in_use { ", in use" } else { "" });
    for (name, version) in &stored.packages {
        let _ = writeln!(text, "  {name}=={version}");
    }
    report::print(text)?;
    Ok(ExitCode::SUCCESS)
}

fn du(store: &Environments, layers: &Layers, args: &EnvDuArgs) -> Result<ExitCode, Failure> {
    #[derive(Serialize)]
    struct Used {
        key: String,
        apparent: u64,
        own: u64,
    }
    #[derive(Serialize)]
    struct Document {
        schema: u32,
        environments: Vec<Used>,
        apparent: u64,
        unique: u64,
        saved: u64,
        cache: u64,
        /// Bytes of build layers.
        layers: u64,
    }
    let usage = store.usage()?;
    let document = Document {
        schema: SCHEMA,
        environments: usage
            .environments
            .iter()
            .map(|(key, share)| Used { key: key.to_string(), apparent: share.apparent, own: share.own })
            .collect(),
        apparent: usage.apparent,
        unique: usage.unique,
        saved: usage.saved(),
        cache: usage.cache,
        layers: layers.list()?.iter().map(StoredLayer::bytes).sum(),
    };
    if args.json {
        report::print_json(&document)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(&["environment", "apparent", "its own"], &[1, 2]);
    for used in &document.environments {
        table.row(vec![used.key[..12].into(), mib(used.apparent).into(), mib(used.own).into()]);
    }
    let mut text = table.text();
    let _ = writeln!(
        text,
        "{} apparent, {} unique, {} saved by sharing; uv's cache has {} besides",
        mib(document.apparent),
        mib(document.unique),
        mib(document.saved),
        mib(document.cache)
    );
    if document.layers > 0 {
        let _ = writeln!(text, "build layers take {}", mib(document.layers));
    }
    report::print(text)?;
    Ok(ExitCode::SUCCESS)
}

fn gc(store: &Environments, layers: &Layers, args: &EnvGcArgs) -> Result<ExitCode, Failure> {
    #[derive(Serialize)]
    struct Document {
        schema: u32,
        dry_run: bool,
        removed: Vec<Entry>,
        /// Asked for by its key, and left since a process uses it.
        in_use: Vec<Entry>,
        kept: usize,
        layers: Vec<LayerEntry>,
        layers_in_use: Vec<LayerEntry>,
        layers_kept: usize,
    }
    let (asked, asked_layers) = asked_for(store, layers, &args.keys)?;
    let all = args.keys.is_empty();
    let unused_for = if all { args.unused_for } else { Duration::ZERO };
    let mut would = Vec::new();
    let gone = store.collect(unused_for, &mut |stored| {
        if !all && asked.iter().all(|asked| asked.key != stored.key) {
            return false;
        }
        would.push(stored.clone());
        !args.dry_run
    })?;
    let in_use: Vec<Stored> =
        asked.into_iter().filter(|asked| would.iter().all(|would| would.key != asked.key)).collect();
    let removed = if args.dry_run { would } else { gone };
    let of_layers = env_layers::collect(layers, (!all).then_some(asked_layers), unused_for, args.dry_run)?;
    let code =
        if in_use.is_empty() && of_layers.in_use.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) };
    let mut kept = store.list()?.len();
    if args.dry_run {
        kept -= removed.len();
    }
    if args.json {
        let entries = |all: &[Stored]| all.iter().map(Entry::of).collect();
        let (removed, in_use) = (entries(&removed), entries(&in_use));
        let entries = |all: &[StoredLayer]| all.iter().map(LayerEntry::of).collect();
        report::print_json(&Document {
            schema: SCHEMA,
            dry_run: args.dry_run,
            removed,
            in_use,
            kept,
            layers: entries(&of_layers.layers),
            layers_in_use: entries(&of_layers.in_use),
            layers_kept: of_layers.kept,
        })?;
        return Ok(code);
    }
    for stored in &in_use {
        report::warn(format!("{} is in use and stays", short(stored)));
    }
    let verb = if args.dry_run { "would remove" } else { "removed" };
    let mut text = String::new();
    for stored in &removed {
        let _ = writeln!(text, "{verb} {} (last used {})", short(stored), ago(stored.used));
    }
    let _ = writeln!(text, "{verb} {}, {kept} kept", counted(removed.len() as u32, "environment"));
    text.push_str(&of_layers.text(verb));
    report::print(text)?;
    Ok(code)
}

/// Environments and layers by the beginnings of their keys.
fn asked_for(
    store: &Environments,
    layers: &Layers,
    keys: &[String],
) -> Result<(Vec<Stored>, Vec<StoredLayer>), PyenvError> {
    let (mut environments, mut built) = (Vec::new(), Vec::new());
    for key in keys {
        let mut found =
            layers.list()?.into_iter().filter(|layer| layer.key.as_str().starts_with(key.as_str()));
        match (store.find(key), found.next(), found.next()) {
            (Ok(_), Some(_), _) | (Err(_), Some(_), Some(_)) => {
                return Err(PyenvError::Ambiguous { beginning: key.clone() });
            }
            (Err(_), Some(layer), None) => built.push(layer),
            (found, None, _) => environments.push(found?),
        }
    }
    Ok((environments, built))
}

fn verify(store: &Environments, layers: &Layers, args: &EnvVerifyArgs) -> Result<ExitCode, Failure> {
    #[derive(Serialize)]
    struct Verified {
        key: String,
        whole: bool,
        intact: usize,
        unstated: usize,
        differing: Vec<PathBuf>,
        missing: Vec<PathBuf>,
        unrecorded: Vec<String>,
    }
    #[derive(Serialize)]
    struct Document {
        schema: u32,
        environments: Vec<Verified>,
        layers: Vec<VerifiedLayer>,
    }
    let (asked, built) = match args.keys.is_empty() {
        true => (store.list()?, layers.list()?),
        false => asked_for(store, layers, &args.keys)?,
    };
    let layers = env_layers::verified(layers, &built)?;
    let mut document = Document { schema: SCHEMA, environments: Vec::new(), layers };
    for stored in &asked {
        let found = store.verify(stored)?;
        let whole = found.is_whole();
        let Verification { intact, unstated, differing, missing, unrecorded } = found;
        let key = stored.key.to_string();
        document.environments.push(Verified { key, whole, intact, unstated, differing, missing, unrecorded });
    }
    let whole = document.environments.iter().all(|verified| verified.whole)
        && document.layers.iter().all(|verified| verified.whole);
    let code = if whole { ExitCode::SUCCESS } else { ExitCode::from(1) };
    if args.json {
        report::print_json(&document)?;
        return Ok(code);
    }
    let mut text = String::new();
    for verified in &document.environments {
        let files = counted(verified.intact as u32, "file");
        let _ = match verified.whole {
            true => writeln!(text, "{}: whole, {files} as stated", &verified.key[..12]),
            false => writeln!(text, "{}: damaged, {files} as stated", &verified.key[..12]),
        };
        let odd = |text: &mut String, what: &str, paths: &[PathBuf]| {
            for path in paths {
                let _ = writeln!(text, "  {what} {}", path.display());
            }
        };
        odd(&mut text, "differs", &verified.differing);
        odd(&mut text, "missing", &verified.missing);
        for package in &verified.unrecorded {
            let _ = writeln!(text, "  no record of {package}");
        }
    }
    text.extend(document.layers.iter().map(VerifiedLayer::text));
    if !whole {
        text.push_str("`infradev env gc KEY` removes one; it is built anew when it is next asked for\n");
    }
    report::print(text)?;
    Ok(code)
}

fn export(store: &Environments, args: &EnvExportArgs) -> Result<ExitCode, Failure> {
    #[derive(Serialize)]
    struct Document<'a> {
        schema: u32,
        key: String,
        file: &'a Path,
        bytes: u64,
        folders: Vec<PathBuf>,
    }
    let stored = store.find(&args.key)?;
    let folders = store.export(&stored, &args.to)?;
    let bytes = std::fs::metadata(&args.to).map(|data| data.len()).unwrap_or_default();
    if args.json {
        let key = stored.key.to_string();
        report::print_json(&Document { schema: SCHEMA, key, file: &args.to, bytes, folders })?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!("{}: {}\n", args.to.display(), mib(bytes));
    for folder in folders {
        let _ = writeln!(text, "  {}", folder.display());
    }
    let _ = writeln!(text, "on the other machine: tar -xf {} -C /", args.to.display());
    report::print(text)?;
    Ok(ExitCode::SUCCESS)
}

fn short(stored: &Stored) -> String {
    stored.key.as_str()[..12].to_owned()
}

pub(super) fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// How long ago, in the largest unit that fits.
pub(super) fn ago(time: SystemTime) -> String {
    let seconds = SystemTime::now().duration_since(time).unwrap_or_default().as_secs();
    match seconds {
        0..60 => "just now".to_owned(),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..86400 => format!("{} h ago", seconds / 3600),
        _ => format!("{} ago", counted((seconds / 86400) as u32, "day")),
    }
}

pub(super) fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
