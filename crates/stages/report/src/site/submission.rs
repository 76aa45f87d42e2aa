//! A submission's page: verdict, failing cases by rank, patch, logs, what its agent did.

use askama::Template;
use infradev_model::atif::{Step, StepSource, Trajectory};
use infradev_model::{
    AnalysedSubmission, CaseError, FailingCase, Gates, Grade, Judgement, LabelledBy, RankOutcome, Suite,
    Tried,
};

use super::diff::{Diff, diff};
use super::evidence::{Known, Log};
use super::excerpt::start;
use super::frame::{Frame, verdict};
use super::{Site, SiteError, task_page};
use crate::table::Table;

/// Steps of a trajectory on a page, and characters of one text.
const STEPS: usize = 1_000;
const TEXT: usize = 8_000;

#[derive(Template)]
#[template(path = "site/submission.html")]
struct Page<'a> {
    frame: Frame,
    verdict: &'static str,
    tone: &'static str,
    task: &'a str,
    task_page: String,
    facts: Vec<(&'static str, String)>,
    reasons: Vec<String>,
    cases: Vec<Case>,
    no_cases: &'static str,
    patch_hidden: bool,
    patch: Option<Diff>,
    golden: Option<Diff>,
    logs: Vec<Log>,
    notes: Vec<String>,
    steps: Option<Vec<Shown>>,
}

struct Case {
    name: String,
    word: &'static str,
    label: &'static str,
    facts: Vec<(&'static str, String)>,
    ranks: Table,
    texts: Vec<String>,
}

struct Shown {
    source: &'static str,
    head: String,
    parts: Vec<(String, String)>,
}

/// What pages show of a submission, for whoever is to judge its failing cases.
#[derive(Debug, Default)]
pub struct Material {
    /// Its patch; none where it may not be shown.
    pub patch: Option<Vec<u8>>,
    /// What its failing cases say in more than a line, in the analysis' order.
    pub texts: Vec<Vec<String>>,
}

impl Site {
    /// What pages show of a submission; of one of the pack's own patches nothing where the site is public.
    pub fn material(&self, submission: &AnalysedSubmission) -> Material {
        let known = self.evidence.known(submission);
        let texts = self.cases(submission, &known).into_iter().map(|case| case.texts).collect();
        let patch = if known.own && !self.analysis.sealed { None } else { known.patch() };
        Material { patch, texts }
    }

    pub(super) fn submission(&self, submission: &AnalysedSubmission) -> Result<String, SiteError> {
        let sealed = self.analysis.sealed;
        let known = self.evidence.known(submission);
        let hidden = known.own && !sealed;
        let (verdict, tone) = verdict(submission);
        let cases = self.cases(submission, &known);
        let trajectory = if hidden { None } else { known.trajectory() };
        let (notes, steps) = steps(trajectory);
        let golden = self.packed.get(&submission.task).and_then(|packed| packed.golden.as_deref());
        let page = Page {
            frame: self.frame(submission.submission.clone(), "../"),
            verdict,
            tone,
            task: &submission.task,
            task_page: format!("../{}", task_page(&submission.task)),
            facts: facts(submission),
            reasons: if sealed { reasons(known.grade) } else { Vec::new() },
            no_cases: match verdict {
                "resolved" => "None: it passes every case that golden passes.",
                "unresolved" => "None is recorded.",
                _ => "None is counted: it was not run as it stands.",
            },
            cases,
            patch_hidden: hidden,
            patch: if hidden { None } else { known.patch().map(|patch| diff(&patch, &[])) },
            golden: golden.filter(|_| sealed).map(|golden| diff(golden, &[])),
            logs: if sealed { known.logs() } else { Vec::new() },
            notes,
            steps,
        };
        Ok(page.render()?)
    }

    fn cases(&self, submission: &AnalysedSubmission, known: &Known<'_>) -> Vec<Case> {
        let key = (&submission.run, &submission.task, &submission.submission);
        let mine = self.analysis.cases.iter().filter(|case| (&case.run, &case.task, &case.submission) == key);
        let sealed = self.analysis.sealed;
        let judgements = if sealed { known.judgements() } else { Default::default() };
        mine.map(|case| {
            // A public report has other names for probe cases: what their ranks did is found for the sealed one alone.
            let failing = known.grade.and_then(|grade| failing(grade, case));
            let judgement =
                failing.and_then(|failing| judgements.get(&(failing.case.clone(), failing.world)));
            shown_case(case, failing, judgement, sealed)
        })
        .collect()
    }
}

fn failing<'a>(grade: &'a Grade, case: &CaseError) -> Option<&'a FailingCase> {
    let key = (case.suite, case.case.as_str(), case.world);
    grade.failing.iter().find(|found| (found.case.suite, found.case.id.as_str(), found.world) == key)
}

fn facts(submission: &AnalysedSubmission) -> Vec<(&'static str, String)> {
    let score = |score: infradev_model::Score| format!("{} of {}", score.passed, score.of);
    let mut facts = vec![
        ("arm", submission.arm.clone()),
        ("attempt", submission.attempt.to_string()),
        ("official cases passed", score(submission.suites.official)),
        ("probe cases passed", score(submission.suites.probe)),
        ("graded in", format!("{:.1} s, run {}", submission.graded_s, submission.run)),
    ];
    if let Some(ending) = submission.ending {
        facts.push(("ending", ending.word().to_owned()));
    }
    facts.extend(
        submission.agent.as_ref().map(|agent| ("agent", format!("{} {}", agent.name, agent.version))),
    );
    facts.extend(submission.model.clone().map(|model| ("model", model)));
    facts.extend(submission.requests.map(|requests| ("requests", requests.to_string())));
    if let Some(tokens) = submission.tokens {
        facts.push((
            "tokens",
            format!("{} in ({} cached), {} out", tokens.input, tokens.cached, tokens.output),
        ));
    }
    facts.extend(submission.agent_s.map(|seconds| ("agent's time", format!("{seconds:.1} s"))));
    facts.extend(submission.usd.map(|usd| ("cost", format!("${usd:.4}"))));
    facts.extend(submission.lookups.map(|lookups| ("refused look-ups", lookups.to_string())));
    let opened = |opened| if opened { "yes" } else { "no" };
    facts.extend(submission.skill_opened.map(|skill| ("skill opened", opened(skill).to_owned())));
    facts.extend(readings(submission));
    facts
}

/// Gates, closeness to golden, its own tests, how far its agent tried it.
fn readings(submission: &AnalysedSubmission) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    facts.extend(submission.gates.map(|gates| ("gates passed", gates_passed(&gates))));
    if let Some(like) = submission.likeness {
        let said = format!(
            "{} of golden's {} lines, {:.0} % of shingles; {} of golden's {} files, and {} others",
            like.shared_lines,
            like.lines,
            like.shingles * 100.0,
            like.shared_files,
            like.files,
            like.own_files.saturating_sub(like.shared_files)
        );
        facts.push(("like golden", said));
    }
    if let Some(tests) = &submission.own_tests {
        let (all, resources) = tests.resources();
        let of: Vec<String> =
            tests.counted().iter().map(|(property, count)| format!("{property} {count}")).collect();
        let listed = if of.is_empty() { String::new() } else { format!(" ({})", of.join(", ")) };
        let unread = match tests.unread {
            0 => String::new(),
            unread => format!("; {unread} test files or programs could not be read"),
        };
        facts.push(("own assertions", format!("{all}, {resources} of a resource{listed}{unread}")));
    }
    for reached in submission.tried.iter().flatten() {
        let tokens = reached.tokens.map(|tokens| format!(", {tokens} tokens")).unwrap_or_default();
        let seconds = reached.seconds.map(|seconds| format!(", {seconds:.0} s")).unwrap_or_default();
        let name = match reached.gate {
            Tried::Imports => "agent imported",
            Tried::Collects => "agent collected",
            Tried::OneRank => "agent passed on one rank",
            Tried::Ranks => "agent passed on several",
        };
        facts.push((name, format!("at step {}{tokens}{seconds}", reached.step)));
    }
    facts
}

fn gates_passed(gates: &Gates) -> String {
    let passed = [
        ("applies", gates.applies),
        ("imports", gates.imports),
        ("collects", gates.collects),
        ("smallest world size", gates.smallest_world == Some(true)),
        ("each world size", gates.official),
        ("probes", gates.resolved),
    ];
    let words: Vec<&str> = passed.iter().filter(|(_, passed)| *passed).map(|(word, _)| *word).collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

fn reasons(grade: Option<&Grade>) -> Vec<String> {
    let Some(grade) = grade else { return Vec::new() };
    let evidence = grade.tampering.iter().map(|tampering| tampering.evidence.clone());
    let fault = grade.fault.iter().map(|fault| fault.evidence.clone());
    grade.reasons.iter().cloned().chain(evidence).chain(fault).collect()
}

fn shown_case(
    case: &CaseError,
    failing: Option<&FailingCase>,
    judgement: Option<&Judgement>,
    sealed: bool,
) -> Case {
    let mut facts = vec![("suite", case.suite.to_string()), ("world size", case.world.to_string())];
    facts.push(("base", if case.fail_to_pass { "fails it too" } else { "passes it" }.to_owned()));
    let told = [
        ("checks", case.checks.clone().unwrap_or_default()),
        ("assertion", case.assertion.clone().unwrap_or_default()),
        ("traits", case.traits.join(", ")),
        ("exception", case.exception.clone()),
        ("message", case.message.clone()),
        ("at", case.at.clone().unwrap_or_default()),
        ("signature", case.signature.clone()),
        ("label's reason", case.label.evidence.clone()),
        ("labelled by", labelled_by(case)),
    ];
    facts.extend(told.into_iter().filter(|(_, text)| !text.is_empty()));
    let vector = match (judgement, failing) {
        (Some(judgement), _) if !judgement.ranks.is_empty() => judgement.ranks.as_slice(),
        (_, Some(failing)) => failing.vector.as_slice(),
        _ => &[],
    };
    Case {
        name: case.case.clone(),
        word: case.word.word(),
        label: case.label.label.map_or("unlabelled", infradev_model::Label::word),
        facts,
        ranks: ranks(vector),
        texts: match case.suite {
            // What pytest says in more than a line has the text of the official test.
            _ if !sealed => Vec::new(),
            Suite::Official => messages(vector),
            Suite::Probe => judged(judgement),
        },
    }
}

/// Who gave a label, where no rule did.
fn labelled_by(case: &CaseError) -> String {
    match case.label.by {
        LabelledBy::Rule => String::new(),
        by => format!("{} {}", by.word(), case.label.rule),
    }
}

fn ranks(vector: &[RankOutcome]) -> Table {
    let mut table = Table::new("ranks", "By rank", &["rank", "outcome", "exception", "at", "message"]);
    for (rank, entry) in vector.iter().enumerate() {
        let detail = entry.detail.as_deref();
        let at = detail.and_then(|detail| {
            let line = detail.line.map(|line| format!(":{line}")).unwrap_or_default();
            detail.file.as_ref().map(|file| format!("{file}{line}"))
        });
        let message = detail.and_then(|detail| detail.message.lines().next()).unwrap_or_default();
        let exception = detail.map(|detail| detail.exception.clone()).unwrap_or_default();
        let (message, _) = start(message, 200);
        let outcome = entry.outcome.word().to_owned();
        let cells = [rank.to_string(), outcome, exception, at.unwrap_or_default(), message.to_owned()];
        table.rows.push(cells.to_vec());
    }
    table
}

/// Messages of more than a line, each once.
fn messages(vector: &[RankOutcome]) -> Vec<String> {
    let all = vector.iter().filter_map(|entry| Some(entry.detail.as_deref()?.message.as_str()));
    let mut texts: Vec<String> = all
        .filter(|text| text.trim_end().contains('\n'))
        .map(|text| start(text, TEXT).0.to_owned())
        .collect();
    texts.dedup();
    texts
}

fn judged(judgement: Option<&Judgement>) -> Vec<String> {
    let Some(judgement) = judgement else { return Vec::new() };
    let failed = judgement.expectations.iter().filter(|expectation| !expectation.ok);
    let told = failed.map(|failed| {
        format!(
            "{} {}\nexpected {}\ngot      {}\n{}",
            failed.kind, failed.what, failed.expected, failed.got, failed.detail
        )
    });
    let text = Some(judgement.text.clone()).filter(|text| !text.is_empty());
    told.chain(text).map(|text| start(&text, TEXT).0.to_owned()).collect()
}

fn steps(trajectory: Option<Result<Trajectory, String>>) -> (Vec<String>, Option<Vec<Shown>>) {
    let trajectory = match trajectory {
        None => return (Vec::new(), None),
        Some(Err(why)) => return (vec![format!("The trajectory cannot be shown: {why}")], Some(Vec::new())),
        Some(Ok(trajectory)) => trajectory,
    };
    let mut notes: Vec<String> = trajectory.notes.clone().into_iter().collect();
    let mut shown = Vec::new();
    let parts = trajectory.subagent_trajectories.iter().flatten();
    for (part, name) in std::iter::once((&trajectory, None)).chain(parts.map(|part| (part, Some("subagent"))))
    {
        shown.extend(part.steps.iter().map(|step| shown_step(step, name)));
    }
    if shown.len() > STEPS {
        notes.push(format!("{} more steps are left out.", shown.len() - STEPS));
        shown.truncate(STEPS);
    }
    (notes, Some(shown))
}

fn shown_step(step: &Step, of: Option<&'static str>) -> Shown {
    let source = match step.source {
        StepSource::System => "system",
        StepSource::User => "user",
        StepSource::Agent => of.unwrap_or("agent"),
    };
    let mut parts = Vec::new();
    let mut part = |name: String, text: &str| {
        if text.trim().is_empty() {
            return;
        }
        let (text, left) = start(text, TEXT);
        let more = if left > 0 { format!("\n[{left} more characters are left out]") } else { String::new() };
        parts.push((name, format!("{text}{more}")));
    };
    part("reasoning".to_owned(), step.reasoning_content.as_deref().unwrap_or_default());
    part("message".to_owned(), &step.message);
    let calls = step.tool_calls.iter().flatten();
    let names: Vec<&str> = calls.clone().map(|call| call.function_name.as_str()).collect();
    for call in calls {
        let arguments = serde_json::to_string_pretty(&call.arguments).unwrap_or_default();
        part(format!("calls {}", call.function_name), &arguments);
    }
    for result in step.observation.iter().flat_map(|observation| &observation.results) {
        part("came back".to_owned(), result.content.as_deref().unwrap_or_default());
    }
    let said = step.message.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let (said, _) = start(said, 100);
    let used = step.metrics.as_ref().and_then(|metrics| metrics.completion_tokens);
    let used = used.map(|tokens| format!(" ({tokens} tokens out)")).unwrap_or_default();
    let calls = if names.is_empty() { String::new() } else { format!(" [{}]", names.join(", ")) };
    Shown { source, head: format!("{said}{calls}{used}"), parts }
}
