//! `infradev report`.

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

use infradev_analyse::{PeoplesLabels, Settings, analyse};
use infradev_executor::reference;
use infradev_model::{Analysis, TaskReference};
use infradev_report::{Extent, Site, Table, csv, markdown, plain, read_pack, tables, write_site};
use infradev_store::{NoHistory, RunView, Runs, load_pack};

use crate::cli::{Global, ReportArgs};
use crate::commands::run::complete;
use crate::files::write_whole;
use crate::report::{self, Failure};
use crate::session;
use crate::tables::{self as shown, middle};

/// Reports on runs.
pub fn run(global: &Global, args: ReportArgs) -> Result<ExitCode, Failure> {
    let labels = args.labels.as_deref().map(people).transpose()?;
    let views = views(global, &args.runs)?;
    let kept = args.site.is_some().then(|| views.clone());
    let references = references(args.pack.as_deref())?;
    let settings = Settings { labels: labels.as_ref(), sealed: args.sealed, references: &references };
    let analysis = analyse(views, settings)?;
    if let Some(folder) = &args.csv {
        write_csv(folder, &tables(&analysis, Extent::Whole))?;
    }
    if let Some(folder) = &args.site {
        write_pages(&args, &analysis, &kept.unwrap_or_default(), folder)?;
    }
    if args.json {
        report::print_json(&analysis)?;
    } else if args.markdown {
        report::print(markdown(&title(&analysis), &tables(&analysis, Extent::Short)))?;
    } else {
        report::print(text(&tables(&analysis, Extent::Short)))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn write_pages(
    args: &ReportArgs,
    analysis: &Analysis,
    views: &[RunView],
    folder: &Path,
) -> Result<(), Failure> {
    let packed = args.pack.as_deref().map(|pack| read_pack(pack, args.sealed)).transpose()?;
    let site = Site::new(analysis.clone(), views, packed.unwrap_or_default())?;
    write_site(&site, folder)?;
    report::note(format!("site: {}", folder.join("index.html").display()));
    Ok(())
}

/// Runs by their folders or ids.
pub fn views(global: &Global, runs: &[String]) -> Result<Vec<RunView>, Failure> {
    runs.iter().map(|given| view(global, given)).collect()
}

/// A run by its folder, or by its id in the store.
fn view(global: &Global, given: &str) -> Result<RunView, Failure> {
    let folder = Path::new(given);
    if !given.contains('/') {
        let runs = Runs::new(session::home(global)?.runs());
        let id = if given == "last" { last(&runs)? } else { None };
        let id = id.map_or_else(|| complete(&runs, given), Ok)?;
        return Ok(runs.view(&id)?);
    }
    let whole = folder
        .canonicalize()
        .map_err(|error| Failure::usage(format!("there is no run in {given}: {error}")))?;
    let name = whole.file_name().and_then(|name| name.to_str());
    let (Some(parent), Some(name)) = (whole.parent(), name) else {
        return Err(Failure::usage(format!("{given} is no run's folder")));
    };
    if !whole.join("run.json").is_file() {
        let failure = Failure::usage(format!("{given} is no run's folder: it holds no run.json"));
        return Err(failure.hint("`infradev run list` lists the runs of the store"));
    }
    Ok(Runs::new(parent).view(name)?)
}

/// The newest run that has submissions; none where no run has.
fn last(runs: &Runs) -> Result<Option<String>, Failure> {
    let has = |id: &String| ["grade-", "attempt-"].iter().any(|verb| id.starts_with(verb));
    Ok(runs.list()?.into_iter().rev().find(has))
}

/// Golden and official tests of a pack that bundles its tree, for runs that keep none. Nothing is run, and no history is read.
pub fn references(pack: Option<&Path>) -> Result<Vec<TaskReference>, Failure> {
    let Some(pack) = pack else { return Ok(Vec::new()) };
    // What is wrong with the pack itself is told.
    drop(infradev_store::load_public(pack)?);
    let Ok(loaded) = load_pack(pack, &NoHistory) else { return Ok(Vec::new()) };
    let Some(tree) = loaded.tree else { return Ok(Vec::new()) };
    let read = loaded.tasks.iter().map(|task| Ok(reference(&task.task, &tree)?));
    read.collect()
}

pub fn people(file: &Path) -> Result<PeoplesLabels, Failure> {
    let bytes = std::fs::read(file)
        .map_err(|error| Failure::bad_input(format!("cannot read {}: {error}", file.display())))?;
    Ok(PeoplesLabels::parse(&file.display().to_string(), &bytes)?)
}

fn title(analysis: &Analysis) -> String {
    let packs: std::collections::BTreeSet<&str> = analysis.runs.iter().map(|run| run.pack.as_str()).collect();
    format!("InfraDev: {}", Vec::from_iter(packs).join(", "))
}

fn write_csv(folder: &Path, tables: &[Table]) -> Result<(), Failure> {
    for table in tables {
        let path = folder.join(format!("{}.csv", table.name));
        let bytes = csv(table)
            .map_err(|error| Failure::fault(format!("cannot write {}: {error}", path.display())))?;
        write_whole(&path, &bytes)?;
    }
    Ok(())
}

/// Characters of a cell on a terminal; documents have all of it.
const CELL: usize = 100;

fn text(tables: &[Table]) -> String {
    let mut text = String::new();
    for (at, table) in tables.iter().enumerate() {
        let bold = anstyle::Style::new().bold();
        let before = if at > 0 { "\n" } else { "" };
        let _ = write!(text, "{before}{bold}{}{bold:#}\n\n", plain(&table.title));
        let header: Vec<&'static str> = table.columns.iter().map(|column| column.name).collect();
        let right: Vec<usize> =
            table.columns.iter().enumerate().filter(|(_, column)| column.right).map(|(at, _)| at).collect();
        let mut drawn = shown::Table::new(&header, &right);
        for row in &table.rows {
            drawn.row(row.iter().map(|cell| middle(&plain(cell), CELL).into()).collect());
        }
        text.push_str(&drawn.text());
        for note in &table.notes {
            let _ = writeln!(text, "  {}", plain(note));
        }
    }
    text
}
