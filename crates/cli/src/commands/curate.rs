//! `infradev curate`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::ExitCode;

use infradev_curate::{Endpoint, Filter, Forge, Request, Want, curate, github_name, is_repository, page};
use infradev_git::Repo;
use infradev_model::{Candidate, CurationDocument, Device, LeftOutBecause};

use crate::cli::{CurateArgs, Global};
use crate::files::write_whole;
use crate::progress::{Shown, counted};
use crate::report::{self, Failure, visible};
use crate::session;
use crate::tables::{Cell, Table, short};

/// Finds candidates.
pub fn run(global: &Global, args: CurateArgs) -> Result<ExitCode, Failure> {
    let home = session::home(global)?;
    let _scratch = session::scratch(&home)?;
    let progress = Shown::new(global.quiet);
    let multi = args.multi_gpu.unwrap_or_default();
    if args.want.is_some_and(|all| multi > all) {
        return Err(Failure::usage(format!("--multi-gpu {multi} is more than --want"))
            .hint("--multi-gpu says how many of those wanted need two ranks or more"));
    }
    let repo = infradev_executor::repository(&home, &args.repo, &progress)?;
    let mut revisions: Vec<String> = Vec::new();
    for rev in &args.revs {
        if !revisions.contains(rev) {
            revisions.push(rev.clone());
        }
    }
    let request = Request {
        revisions,
        filter: Filter {
            areas: args.areas.iter().map(|word| (*word).into()).collect(),
            kinds: args.kinds.iter().map(|word| (*word).into()).collect(),
            since: args.since.clone(),
            min_score: args.min_score,
            min_tests: args.min_tests,
            max_lines: args.max_lines,
            max_files: args.max_files,
            cpu: args.cpu,
            pure: args.pure,
        },
        want: args.want.map(|all| Want { all, multi }),
        forge: forge(&args, &repo)?,
    };
    let told = |done: usize, of: usize| {
        if done % 1000 < 96 || done == of {
            progress.line(&format!("{done} of {of} new commits read"));
        }
    };
    let document = curate(&repo, &home.curations(), &request, &told)?;
    progress.clear();
    if let Some(path) = &args.jsonl {
        write_whole(path, lines(&document)?.as_bytes())?;
    }
    if let Some(path) = &args.html {
        write_whole(path, page(&name(&args, &repo), &document)?.as_bytes())?;
    }
    for what in
        document.missing.iter().chain(document.pulls.iter().filter_map(|pulls| pulls.stopped.as_ref()))
    {
        report::warn(what);
    }
    if let Some(count) = document.left_out.get(&LeftOutBecause::MissingObjects) {
        report::warn(format!(
            "the clone lacks objects of {}, which are left out: fetch them (git fetch --refetch), and run it again",
            counted(*count, "commit")
        ));
    }
    if args.json {
        report::print_json(&document)?;
        return Ok(ExitCode::SUCCESS);
    }
    report::print(shown(&document, args.rows))?;
    Ok(ExitCode::SUCCESS)
}

/// GitHub, where there is a token to ask it with and a repository to ask for.
fn forge(args: &CurateArgs, repo: &Repo) -> Result<Option<Forge>, Failure> {
    let token = std::env::var("GITHUB_TOKEN").ok().filter(|token| !token.trim().is_empty());
    let named = match &args.github {
        Some(name) if is_repository(name) => Some(name.clone()),
        Some(name) => {
            return Err(Failure::usage(format!("`{name}` is no repository on GitHub"))
                .hint("write it as OWNER/NAME, such as NVIDIA/Megatron-LM"));
        }
        None => None,
    };
    if named.is_some() && token.is_none() {
        return Err(Failure::usage("--github needs a token in GITHUB_TOKEN, and there is none")
            .hint("set it, or leave --github out: messages of commits stand in"));
    }
    let Some(token) = token.filter(|_| !args.no_github) else { return Ok(None) };
    let cloned = || github_name(&args.repo).or_else(|| github_name(&repo.origin()?));
    let Some(repository) = named.or_else(cloned) else { return Ok(None) };
    Ok(Some(Forge { endpoint: Endpoint::new(&args.github_api, &token)?, repository }))
}

/// Whose candidates these are, for the page.
fn name(args: &CurateArgs, repo: &Repo) -> String {
    let cloned = || github_name(&args.repo).or_else(|| github_name(&repo.origin()?));
    args.github.clone().or_else(cloned).unwrap_or_else(|| {
        let folder =
            std::path::Path::new(&args.repo).file_name().map(|name| name.to_string_lossy().into_owned());
        folder.unwrap_or_else(|| args.repo.clone())
    })
}

fn lines(document: &CurationDocument) -> Result<String, Failure> {
    let mut text = String::new();
    for candidate in &document.candidates {
        let line = serde_json::to_string(candidate)
            .map_err(|error| Failure::fault(format!("cannot write the candidates: {error}")))?;
        text += &(line + "\n");
    }
    Ok(text)
}

/// Characters of a title in the table.
const TITLE: usize = 56;

fn shown(document: &CurationDocument, rows: usize) -> String {
    let header = ["score", "commit", "number", "area", "kind", "ranks", "source", "tests", "title"];
    let mut table = Table::new(&header, &[0, 5, 6, 7]);
    let most = if rows == 0 { usize::MAX } else { rows };
    for candidate in document.candidates.iter().take(most) {
        table.row(row(candidate));
    }
    let mut text = table.text();
    let left = document.candidates.len().saturating_sub(most);
    if left > 0 {
        let _ = writeln!(text, "… and {left} more: --rows 0 shows all");
    }
    let _ = writeln!(
        text,
        "\n{} of {} ({} numbers): {}",
        counted(document.candidates.len() as u32, "candidate"),
        counted(document.commits, "commit"),
        document.numbers,
        reasons(document),
    );
    let mut strata: BTreeMap<String, u32> = BTreeMap::new();
    for candidate in &document.candidates {
        *strata.entry(word(&candidate.facts.area.is)).or_default() += 1;
        *strata.entry(word(&candidate.facts.kind.is)).or_default() += 1;
        if candidate.facts.needs.world > 1 {
            *strata.entry("two ranks or more".into()).or_default() += 1;
        }
    }
    if !strata.is_empty() {
        let strata: Vec<String> = strata.iter().map(|(name, count)| format!("{name} {count}")).collect();
        let _ = writeln!(text, "Of them {}", strata.join(", "));
    }
    if let Some(pulls) = &document.pulls {
        let _ = writeln!(
            text,
            "Pull requests of {}: {} read, {} of these numbers are none",
            pulls.repository, pulls.known, pulls.absent
        );
    }
    if let Some(best) = document.candidates.first() {
        let parts: Vec<String> =
            best.parts.iter().map(|part| format!("{} {:+} ({})", part.name, part.points, part.why)).collect();
        let _ = writeln!(text, "{} is {}: {}", &best.commit[..10], best.score, visible(&parts.join(", ")));
    }
    text
}

fn reasons(document: &CurationDocument) -> String {
    let reasons: Vec<String> =
        document.left_out.iter().map(|(because, count)| format!("{} {count}", word(because))).collect();
    if reasons.is_empty() { "none left out".into() } else { format!("left out {}", reasons.join(", ")) }
}

fn row(candidate: &Candidate) -> Vec<Cell> {
    let facts = &candidate.facts;
    let changed = |lines: &infradev_model::Lines| format!("+{} -{}", lines.added, lines.deleted);
    let device = match facts.needs.device {
        Device::Cpu => "",
        Device::Cuda => " gpu",
    };
    vec![
        candidate.score.to_string().into(),
        candidate.commit[..10].into(),
        candidate.number.clone().unwrap_or_default().into(),
        word(&facts.area.is).into(),
        word(&facts.kind.is).into(),
        format!("{}{device}", facts.needs.world).into(),
        changed(&facts.source).into(),
        format!("+{} ~{}", facts.tests_added, facts.tests_changed).into(),
        short(&candidate.title, TITLE).into(),
    ]
}

/// A value's name as it stands in documents.
fn word(value: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}
