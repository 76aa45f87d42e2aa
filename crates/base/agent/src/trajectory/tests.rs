//! Logs as each agent writes them, cut off, damaged and made up, to trajectories.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use infradev_model::Tokens;
use infradev_model::atif::Trajectory;
use infradev_supervise::Invocation;
use proptest::prelude::*;

use super::*;

const CLAUDE: &str = include_str!("logs/claude-code.jsonl");
const CODEX: &str = include_str!("logs/codex.jsonl");
const GEMINI: &str = include_str!("logs/gemini-cli.jsonl");
const QWEN: &str = include_str!("logs/qwen-code.jsonl");
const OPENHANDS: &str = include_str!("logs/openhands.jsonl");
const OPENHANDS_STATE: &str = include_str!("logs/openhands-state.json");
const MINI: &str = include_str!("logs/mini-swe-agent.json");

struct Made {
    said: Said,
    report: TrajectoryReport,
    trajectory: Trajectory,
}

fn laid(format: OutputFormat, text: &[u8]) -> (tempfile::TempDir, Log) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("prompt.md"), "Do it.").unwrap();
    fs::create_dir(folder.path().join("out")).unwrap();
    let name = if format == OutputFormat::MiniTrajectory { "out/trajectory.json" } else { "agent.log" };
    fs::write(folder.path().join(name), text).unwrap();
    if format == OutputFormat::OpenhandsJsonl {
        fs::create_dir_all(folder.path().join("out/conversations/c-1")).unwrap();
        fs::write(folder.path().join("out/conversations/c-1/base_state.json"), OPENHANDS_STATE).unwrap();
    }
    let agent = TrajectoryAgent { name: "mine".into(), version: "1".into(), model_name: Some("m".into()) };
    let log = Log { kept: folder.path().to_owned(), format, agent, metered: Metered::default() };
    (folder, log)
}

fn made(format: OutputFormat, text: impl AsRef<[u8]>) -> Made {
    let (folder, log) = laid(format, text.as_ref());
    let (said, report) = read(&log);
    let bytes = fs::read(folder.path().join("trajectory.json")).unwrap();
    let trajectory = Trajectory::parse("trajectory.json", &bytes).unwrap();
    Made { said, report: report.unwrap(), trajectory }
}

/// All that is made of a log, for a snapshot.
fn shown(format: OutputFormat, text: &str) -> String {
    let Made { said, report, trajectory } = made(format, text);
    let json = |value: &dyn Fn() -> serde_json::Result<String>| value().unwrap();
    format!(
        "{said:?}\n{}\n{}",
        json(&|| serde_json::to_string(&report)),
        json(&|| serde_json::to_string_pretty(&trajectory))
    )
}

#[test]
fn claude_codes_answers_are_one_step_each_and_a_subagents_are_a_trajectory_of_their_own() {
    insta::assert_snapshot!(shown(OutputFormat::ClaudeStreamJson, CLAUDE));
}

#[test]
fn codexs_items_are_steps_and_what_was_at_work_when_it_was_killed_is_the_last() {
    insta::assert_snapshot!(shown(OutputFormat::CodexJsonl, CODEX));
}

#[test]
fn gemini_clis_pieces_are_put_together_up_to_what_their_calls_gave() {
    insta::assert_snapshot!(shown(OutputFormat::GeminiStreamJson, GEMINI));
}

#[test]
fn qwen_codes_parts_of_an_answer_are_one_step_with_the_usage_of_the_last() {
    insta::assert_snapshot!(shown(OutputFormat::QwenStreamJson, QWEN));
}

#[test]
fn openhands_events_are_steps_by_the_models_answer_and_its_state_tells_what_each_used() {
    insta::assert_snapshot!(shown(OutputFormat::OpenhandsJsonl, OPENHANDS));
}

#[test]
fn mini_swe_agents_own_document_is_read_message_by_message_and_its_responses_are_counted() {
    insta::assert_snapshot!(shown(OutputFormat::MiniTrajectory, MINI));
}

#[test]
fn a_document_that_is_cut_off_is_read_as_far_as_it_goes() {
    let cut = MINI.split_once("\"role\": \"tool\"").unwrap().0;
    let Made { said, report, trajectory } = made(OutputFormat::MiniTrajectory, cut);
    assert!(report.cut_off);
    assert_eq!(trajectory.steps.len(), 5);
    assert_eq!(said.word, OwnWord::Missing("it ended without its last word".into()));
    assert_eq!(said.tokens, Some(Tokens { input: 150, cached: 40, written: 0, output: 15, reasoning: 3 }));
}

#[test]
fn a_link_a_pipe_or_nothing_in_the_place_of_an_agents_document_is_not_followed() {
    let lay: [&dyn Fn(&PathBuf); 3] = [
        &|path| std::os::unix::fs::symlink("/etc/passwd", path).unwrap(),
        &|path| nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap(),
        &|_| (),
    ];
    for lay in lay {
        let (folder, log) = laid(OutputFormat::MiniTrajectory, b"");
        let path = folder.path().join("out/trajectory.json");
        fs::remove_file(&path).unwrap();
        lay(&path);
        let (said, report) = read(&log);
        let report = report.unwrap();
        assert_eq!((report.steps, report.not_shown.len()), (1, 1), "the prompt alone");
        assert!(matches!(said.word, OwnWord::Missing(_)), "{:?}", said.word);
    }
}

#[test]
fn a_trajectory_that_cannot_be_written_costs_nothing_of_what_the_agent_says() {
    let (folder, log) = laid(OutputFormat::CodexJsonl, CODEX.as_bytes());
    fs::create_dir(folder.path().join("trajectory.json")).unwrap();
    let (said, report) = read(&log);
    assert_eq!(said.tokens.unwrap().input, 130, "the thread's so far");
    let error = report.unwrap().error.unwrap();
    assert!(error.starts_with("trajectory.json could not be written: "), "{error}");
}

#[test]
fn the_last_word_of_an_end_is_read_by_each_agents_own_rules() {
    let word = |format: OutputFormat, text: &str| made(format, text).said.word;
    let result = |rest: &str| {
        word(
            OutputFormat::ClaudeStreamJson,
            &format!("{{\"type\":\"assistant\"}}\n{{\"type\":\"result\",{rest}}}\n"),
        )
    };
    assert_eq!(result("\"subtype\":\"success\",\"is_error\":false"), OwnWord::Done);
    let overloaded = result("\"subtype\":\"success\",\"is_error\":true,\"result\":\"API Error: 529\"");
    assert_eq!(overloaded, OwnWord::Failed("API Error: 529".into()), "success with is_error is none");
    let turns = result("\"subtype\":\"error_max_turns\",\"is_error\":true");
    assert_eq!(turns, OwnWord::Limit("error_max_turns".into()));
    let codex =
        |rest: &str| word(OutputFormat::CodexJsonl, &format!("{{\"type\":\"turn.started\"}}\n{rest}"));
    assert_eq!(
        codex("{\"type\":\"turn.failed\",\"error\":{\"message\":\"no\"}}"),
        OwnWord::Failed("no".into())
    );
    assert_eq!(codex("{\"type\":\"turn.completed\",\"usage\":{}}"), OwnWord::Done);
    assert!(matches!(codex(""), OwnWord::Failed(_)));
    let gemini =
        |rest: &str| word(OutputFormat::GeminiStreamJson, &format!("{{\"type\":\"result\",{rest}}}"));
    assert_eq!(gemini("\"status\":\"success\""), OwnWord::Done);
    let limit = "\"status\":\"error\",\"error\":{\"type\":\"FatalTurnLimitedError\",\"message\":\"turns\"}";
    assert_eq!(gemini(limit), OwnWord::Limit("turns".into()));
    let mini = |status: &str| {
        let text = format!(
            "{{\"messages\":[{{\"role\":\"exit\",\"content\":\"x\",\"extra\":{{\"exit_status\":\"{status}\"}}}}]}}"
        );
        word(OutputFormat::MiniTrajectory, &text)
    };
    assert_eq!(mini("LimitsExceeded"), OwnWord::Limit("LimitsExceeded".into()));
    assert_eq!(mini("RuntimeError"), OwnWord::Failed("RuntimeError: x".into()));
}

#[test]
fn an_end_without_the_last_word_that_an_agent_has_is_told_with_the_error_before_it() {
    let word = |format: OutputFormat, text: &str| made(format, text).said.word;
    let missing = |rest: &str| OwnWord::Missing(format!("it ended without its last word{rest}"));
    let formats = [
        OutputFormat::ClaudeStreamJson,
        OutputFormat::QwenStreamJson,
        OutputFormat::CodexJsonl,
        OutputFormat::GeminiStreamJson,
    ];
    for format in formats {
        assert_eq!(word(format, ""), missing(""), "{format:?}");
        assert_eq!(word(format, "no json\n"), missing(""), "{format:?}");
        assert_eq!(word(format, "{\"type\":\"result\",\"subt"), missing(""), "{format:?}");
        let error = "{\"type\":\"error\",\"message\":\"no quota\"}\n";
        assert_eq!(word(format, error), missing("; it said before: no quota"), "{format:?}");
        let within = "{\"type\":\"error\",\"error\":{\"message\":\"no quota\"}}\n";
        assert_eq!(word(format, within), missing("; it said before: no quota"), "{format:?}");
    }
    assert_eq!(word(OutputFormat::CodexJsonl, "{\"type\":\"thread.started\"}\n"), missing(""));
    assert_eq!(word(OutputFormat::ClaudeStreamJson, "{\"type\":\"assistant\"}\n"), missing(""));
    // These say nothing of an end in words of their own.
    assert_eq!(word(OutputFormat::OpenhandsJsonl, "no json\n"), OwnWord::Nothing);
    let (folder, log) = laid(OutputFormat::ClaudeStreamJson, b"");
    fs::remove_file(folder.path().join("agent.log")).unwrap();
    assert_eq!(read(&log).0.word, OwnWord::Nothing, "what cannot be read may have said it");
}

#[test]
fn only_times_that_every_reader_takes_are_passed_on() {
    let good = ["2026-11-30T18:00:00Z", "2024-02-29T23:59:59.123456+05:30"];
    let bad = [
        "2026-02-29T00:00:00Z",
        "2026-11-30T24:00:00Z",
        "2026-11-30 18:00:00Z",
        "2026-11-30T18:00:00",
        "now",
    ];
    let also_bad =
        ["2026-11-30T18:00:00.Z", "2026-11-30T18:00:00+0530", "2026-11-30T18:00:00+25:00", "2026-1\u{e9}"];
    let taken = |text: &&str| time(&Value::String((*text).to_owned())).is_some();
    assert!(good.iter().all(taken));
    assert!(!bad.iter().any(taken) && !also_bad.iter().any(taken));
}

/// `INFRADEV_LOG_MB` says how long the log is; rate, memory, length and seconds go to the file `INFRADEV_LOG_READ`.
#[test]
fn a_long_log_is_read_in_bounded_memory() {
    let Some(told) = std::env::var_os("INFRADEV_LOG_READ") else {
        // Memory is a process's: this test has one of its own.
        let folder = tempfile::tempdir().unwrap();
        let alone = Invocation::new(std::env::current_exe().unwrap())
            .args(["--exact", "trajectory::tests::a_long_log_is_read_in_bounded_memory"])
            .env("INFRADEV_LOG_READ", folder.path().join("read.txt"));
        let output = alone.run().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    };
    let megabytes = std::env::var("INFRADEV_LOG_MB").ok().and_then(|text| text.parse().ok()).unwrap_or(8);
    let (folder, log) = laid(OutputFormat::ClaudeStreamJson, b"");
    let output = "x = 1  # a line of what a tool gave\\n".repeat(100);
    let answer = |at: u64| {
        format!(
            "{{\"type\":\"assistant\",\"message\":{{\"id\":\"msg_{at}\",\"model\":\"m\",\"content\":[{{\"type\":\"text\",\"text\":\
             \"I look at file {at}.\"}},{{\"type\":\"tool_use\",\"id\":\"toolu_{at}\",\"name\":\"Bash\",\"input\":{{\"command\":\
             \"sed -n 1,100p file_{at}.py\"}}}}],\"usage\":{{\"input_tokens\":3,\"output_tokens\":9}}}},\"parent_tool_use_id\":null}}\n\
             {{\"type\":\"user\",\"message\":{{\"role\":\"user\",\"content\":[{{\"tool_use_id\":\"toolu_{at}\",\"type\":\"tool_result\",\
             \"content\":\"{output}\"}}]}},\"parent_tool_use_id\":null}}\n"
        )
    };
    let mut file = std::io::BufWriter::new(File::create(folder.path().join("agent.log")).unwrap());
    let (mut length, mut answers) = (0u64, 0);
    while length < megabytes << 20 {
        answers += 1;
        let text = answer(answers);
        length += text.len() as u64;
        std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
    }
    file.into_inner().unwrap();
    let before = peak();
    let begun = Instant::now();
    let report = read(&log).1.unwrap();
    let seconds = begun.elapsed().as_secs_f64();
    let grown = peak() - before;
    assert_eq!((report.events, report.steps), (2 * answers, answers + 1));
    assert!(grown < 64 << 10, "{grown} KiB more than before");
    let rate = length as f64 / 1e6 / seconds;
    fs::write(told, format!("{rate:.0} {grown} {length} {seconds:.3}\n")).unwrap();
}

/// The most memory that this process had, KiB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Lines of real logs in any order, with pieces of them and others between.
fn logs() -> impl Strategy<Value = Vec<u8>> {
    let known: Vec<String> = [CLAUDE, CODEX, GEMINI, QWEN, OPENHANDS, MINI]
        .iter()
        .flat_map(|text| text.lines())
        .map(str::to_owned)
        .collect();
    let whole = proptest::sample::select(known.clone());
    let cut = (proptest::sample::select(known), 0usize..400)
        .prop_map(|(line, at)| String::from_utf8_lossy(&line.as_bytes()[..at.min(line.len())]).into_owned());
    let name = "type|subtype|message|content|item|id|role|messages|extra|usage|timestamp";
    let value = "(1|null|\\[\\]|\\{\\}|\"(result|assistant|user|error|item.completed|x)\"|\\{\"type\":\"text\"\\}|\\[\\[1\\]\\])";
    let any = proptest::string::string_regex(&format!(
        "\\{{(\"({name})\":{value},){{0,3}}\"({name})\":{value}\\}}"
    ))
    .unwrap();
    let line = prop_oneof![4 => whole, 1 => cut, 2 => any, 1 => ".{0,30}"];
    proptest::collection::vec(line, 0..20).prop_map(|lines| lines.join("\n").into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn whatever_a_log_holds_its_trajectory_is_as_atif_wants_it_and_every_event_is_accounted_for(
        text in logs(),
        format in proptest::sample::select(vec![
            OutputFormat::ClaudeStreamJson, OutputFormat::QwenStreamJson, OutputFormat::CodexJsonl,
            OutputFormat::GeminiStreamJson, OutputFormat::OpenhandsJsonl, OutputFormat::MiniTrajectory,
        ]),
    ) {
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).count() as u64;
        let Made { report, .. } = made(format, text);
        if format != OutputFormat::MiniTrajectory {
            let texts = report.not_shown.get("line of text").copied().unwrap_or(0);
            prop_assert_eq!(report.events + report.malformed + texts + u64::from(report.cut_off), lines);
        }
    }
}
