//! Pages of runs: a site on disk, the same served, opened in Chromium.

mod ground;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::path::Path;

use ground::Ground;
use infradev_supervise::{Exit, Sink, Spawn};
use nix::sys::signal::Signal;
use serde_json::json;

const RIGHT: &str = "def triple(x):\n+    return 3 * x\n";
const HOSTILE: &str =
    "</pre><script>alert(1)</script><img src=x onerror=alert(1)> \u{1b}[2J \u{202e}txt\u{0}";

/// A right attempt and one that probes alone reject, graded.
fn graded() -> (Ground, String) {
    let ground = Ground::new();
    for (at, body) in [RIGHT, "def triple(x):\n+    return 3 * x if x < 10 else 4 * x\n"].iter().enumerate() {
        let path = format!("patches/codex#{}/triple.patch", at + 1);
        ground.write(&path, &ground::GOLDEN.replace(RIGHT, body));
    }
    let document = ground.infradev(&["grade", "pack", "--patches", "patches", "--json"]).exits(0).json();
    let run = document["run"].as_str().unwrap().to_owned();
    (ground, run)
}

/// Paths of all pages below a folder, and their texts.
fn pages(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for part in ["", "tasks", "submissions"] {
        for entry in std::fs::read_dir(folder.join(part)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|end| end == "html") {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                found.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// Values of an attribute.
fn values<'a>(page: &'a str, attribute: &str) -> Vec<&'a str> {
    let start = format!(" {attribute}=\"");
    page.split(&start).skip(1).map(|rest| rest.split('"').next().unwrap()).collect()
}

/// Tags with the names of their attributes, without what these say.
fn tags(page: &str) -> String {
    let tags = page.split('<').skip(1).map(|rest| rest.split('>').next().unwrap());
    tags.map(|tag| format!("<{} ", tag.split('"').step_by(2).collect::<String>())).collect()
}

/// No page runs, loads or asks for anything, and each link leads to a page or a place of this site.
fn assert_alone(pages: &[(String, String)]) {
    let names: BTreeSet<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
    for (name, page) in pages {
        assert!(page.contains("content=\"default-src 'none'; style-src 'sha256-"), "{name}");
        let tags = tags(page);
        for no in ["<script", "<img", "<link", "<iframe", "<object", "<embed", " style=", " src=", " on"] {
            assert!(!tags.contains(no), "{no} in {name}");
        }
        for href in values(page, "href") {
            if let Some(place) = href.strip_prefix('#') {
                assert!(values(page, "id").contains(&place), "{href} in {name}");
                continue;
            }
            let up = href.strip_prefix("../");
            assert_eq!(up.is_some(), name.contains('/'), "{href} in {name}");
            assert!(names.contains(up.unwrap_or(href)), "{href} in {name}");
        }
        assert_eq!(page.matches("<pre").count(), page.matches("</pre>").count(), "{name}");
        assert!(
            !page.chars().any(|c| (c.is_control() && c != '\n' && c != '\t') || c == '\u{202e}'),
            "{name}"
        );
    }
}

/// What a reader sees: no tags, no style, no line that is empty, no time, the run's id as RUN.
fn text(page: &str, run: &str) -> String {
    let body = page.split_once("<body>").unwrap().1.replace(run, "RUN");
    let mut shown = String::new();
    for part in body.split('<') {
        shown.push_str(part.split_once('>').map_or(part, |(_, text)| text));
        shown.push(' ');
    }
    let seconds = |line: &&str| !line.trim().is_empty() && !line.contains(" s, run RUN");
    let lines =
        shown.lines().filter(seconds).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_public_site_shows_verdicts_and_patches_and_nothing_of_probes_or_golden() {
    let (ground, run) = graded();
    ground.infradev(&["accept", "pack"]).exits(0);
    let told = ground.infradev(&["report", &run, "--site", "site", "--pack", "pack"]).exits(0);
    assert!(told.err.contains("site/index.html"), "{}", told.err);
    let public = pages(&ground.path().join("site"));
    assert_eq!(public.len(), 4, "an index, a task, two submissions");
    assert_alone(&public);
    for (name, page) in &public {
        for sealed in ["any_number", "judge_model", "large-numbers", "Kill matrix", "expected "] {
            assert!(!page.contains(sealed), "{sealed} in {name}");
        }
    }
    let page = |start: &str| public.iter().find(|(name, _)| name.starts_with(start)).unwrap();
    insta::assert_snapshot!("index", text(&page("index").1, &run));
    insta::assert_snapshot!("task", text(&page("tasks/").1, &run));
    let rejected = public.iter().find(|(_, page)| page.contains("<h1>codex#2</h1>")).unwrap();
    insta::assert_snapshot!("submission", text(&rejected.1, &run));

    ground.infradev(&["report", &run, "--site", "site", "--pack", "pack", "--sealed"]).exits(0);
    let sealed = pages(&ground.path().join("site"));
    assert_alone(&sealed);
    let all: String = sealed.iter().map(|(_, page)| page.as_str()).collect();
    for shown in ["any_number", "Kill matrix", "large-numbers", ">Golden<", "failed, substantive"] {
        assert!(all.contains(shown), "{shown}");
    }
    let left: Vec<_> = std::fs::read_dir(ground.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with(".infradev")), "{left:?}");

    ground.write("site/notes.txt", "mine");
    let refused = ground.infradev(&["report", &run, "--site", "site"]).exits(2);
    assert!(refused.err.contains("no site of ours: it holds notes.txt"), "{}", refused.err);
    assert_eq!(ground.read("site/notes.txt"), "mine");
}

#[test]
fn the_tasks_own_patches_are_on_no_public_page() {
    let ground = Ground::new();
    let graded = |patches: &str| {
        let document = ground.infradev(&["grade", "pack", "--patches", patches, "--json"]).exits(0).json();
        document["run"].as_str().unwrap().to_owned()
    };
    let made = |agent: &str| {
        let document = ground.infradev(&["attempt", "pack", "--agent", agent, "--json"]).exits(0).json();
        document["run"].as_str().unwrap().to_owned()
    };
    let built_in = [made("golden"), made("hollow"), made("mutant:large-numbers")];
    // The same patches, graded by the lines that attempts left.
    let lines = format!("home/runs/{}/predictions.jsonl", built_in[2]);
    let runs = [graded("golden"), graded("adversarial"), graded(&lines)];
    let args: Vec<&str> = ["report", "--site", "site"]
        .into_iter()
        .chain(runs.iter().chain(&built_in).map(String::as_str))
        .collect();
    ground.infradev(&args).exits(0);
    let public = pages(&ground.path().join("site"));
    let shown = public.iter().filter(|(name, _)| name.starts_with("submissions/")).count();
    assert_eq!(
        shown, 4,
        "golden, hollow, the adversarial patch and the mutant, attempts beside their grades"
    );
    for (name, page) in public.into_iter().filter(|(name, _)| name != "compare.html") {
        assert!(!page.contains("3 * x") && !page.contains("NotImplementedError"), "{name}");
        assert_eq!(
            page.contains("it is one of the pack&#39;s own") || page.contains("it is one of the pack's own"),
            name.starts_with("submissions/"),
            "{name}"
        );
    }
}

/// Lines of a pack's sealed files that say something.
fn sealed_lines(ground: &Ground) -> Vec<String> {
    let task = ground.path().join("pack/tasks/triple");
    let mut files = vec![task.join("golden.patch"), task.join("official.patch")];
    for folder in ["probes", "adversarial"] {
        let entries = std::fs::read_dir(task.join(folder)).unwrap();
        files.extend(entries.map(|entry| entry.unwrap().path()));
    }
    let texts: String = files.iter().map(|file| std::fs::read_to_string(file).unwrap() + "\n").collect();
    let told = |line: &&str| line.len() > 9 && !line.starts_with("@@") && !line.contains("toy/model.py");
    let lines = texts.lines().map(|line| line.trim_start_matches(['+', '-']).trim()).filter(told);
    // What base has is no secret.
    let base = ground::MODEL.to_owned() + "def test_double():\n    assert model.double(2) == 4\n";
    lines.filter(|line| !base.contains(line)).map(str::to_owned).collect()
}

#[test]
fn no_line_of_a_sealed_file_is_in_a_public_report_of_a_submission_that_raises() {
    let ground = Ground::new();
    let raises = "def triple(*x):\n+    raise ValueError(\"no\")\n";
    ground.write("patches/codex/triple.patch", &ground::GOLDEN.replace(RIGHT, raises));
    ground.infradev(&["grade", "pack", "--patches", "patches", "--quiet"]).exits(0);
    ground.infradev(&["accept", "pack", "--quiet"]).exits(0);
    let lines = sealed_lines(&ground);
    assert!(lines.len() > 20 && lines.iter().any(|line| line == "assert triple(2) == 6"), "{lines:?}");
    let report = |more: &[&str]| {
        let run = ground.infradev(&["run", "list", "--json"]).exits(0).json();
        let run = run["runs"].as_array().unwrap().iter().find(|run| run["verb"] == "grade").unwrap();
        let args =
            ["report", run["id"].as_str().unwrap(), "--pack", "pack", "--site", "site", "--csv", "csv"];
        let mut texts = vec![ground.infradev(&[&args[..], more].concat()).exits(0).out];
        texts.push(ground.infradev(&[&args[..], &["--json"], more].concat()).exits(0).out);
        texts.push(ground.infradev(&[&args[..], &["--markdown"], more].concat()).exits(0).out);
        texts.extend(pages(&ground.path().join("site")).into_iter().map(|(_, page)| page));
        let tables = std::fs::read_dir(ground.path().join("csv")).unwrap();
        texts.extend(tables.map(|table| std::fs::read_to_string(table.unwrap().path()).unwrap()));
        texts
            .join("\n")
            .replace("&#39;", "'")
            .replace("&#34;", "\"")
            .replace("&#62;", ">")
            .replace("&#60;", "<")
    };
    let public = report(&[]);
    let found: Vec<&String> = lines.iter().filter(|line| public.contains(line.as_str())).collect();
    assert!(found.is_empty(), "{found:?}");
    let sealed = report(&["--sealed"]);
    assert!(sealed.contains("assert triple(2) == 6") && sealed.contains("any_number_is_tripled"));
}

/// A run of attempts and one of grades whose names, patch, log and trajectory are hostile.
fn hostile(ground: &Ground) {
    let digest = "ab".repeat(32);
    let run = |verb: &str| {
        json!({"schema": 1, "id": format!("{verb}-20260101-000000-0000"), "verb": verb, "pack": HOSTILE,
            "command": ["infradev", verb, "--patches", "patches"], "plan": digest, "started": 1})
    };
    let sandbox = json!({"kind": "none", "uid_separation": false, "memory_limit": "", "network": ""});
    let attempt = json!({"schema": 1, "run": "x", "predictions": "", "submissions": [{
        "schema": 1, "task": HOSTILE, "submission": HOSTILE, "attempt": 1,
        "agent": {"name": HOSTILE, "version": "1"}, "prompt": digest, "ending": "finished", "agent_s": 1.5, "wall_s": 2.0,
        "metered": {"requests": 1, "failed": 0, "unmetered": 0, "tokens": {"input": 1, "cached": 0, "output": 1, "reasoning": 0}},
        "lookups": [], "left_running": [], "patch": digest, "patch_bytes": 9, "test_edits": [], "skipped": [],
        "sandbox": sandbox, "folder": "trials/ab"}]});
    let score = json!({"passed": 0, "of": 1});
    let detail =
        json!({"exception": HOSTILE, "message": format!("{HOSTILE}\n{HOSTILE}"), "file": HOSTILE, "line": 3});
    let grade = json!({"schema": 1, "run": "grade-20260101-000000-0000", "submissions": [{
        "task": HOSTILE, "submission": HOSTILE, "verdict": "unresolved", "passed": 0, "of": 1,
        "suites": {"official": score, "probe": {"passed": 0, "of": 0}}, "fail_to_pass": score, "pass_to_pass": score,
        "wall_s": 1.0, "fault": null, "reasons": [HOSTILE], "tampering": [], "sandbox": sandbox, "trials": [digest],
        "failing": [{"suite": "official", "id": HOSTILE, "world": 2, "word": "failed", "fail_to_pass": true,
            "vector": [{"outcome": "failed", "detail": detail}, {"outcome": "peer_abort"}]}]}]});
    let step = json!({"step_id": 1, "source": "agent", "message": HOSTILE, "reasoning_content": HOSTILE,
        "tool_calls": [{"tool_call_id": "a", "function_name": HOSTILE, "arguments": {"x": HOSTILE}}],
        "observation": {"results": [{"source_call_id": "a", "content": HOSTILE}]}});
    let trajectory = json!({"schema_version": "ATIF-v1.8", "agent": {"name": "a", "version": "1"}, "steps": [step],
        "notes": HOSTILE});
    let write = |path: &str, text: String| ground.write(&format!("runs/{path}"), &text);
    for (verb, document) in [("attempt", attempt), ("grade", grade)] {
        let folder = format!("{verb}-20260101-000000-0000");
        write(&format!("{folder}/run.json"), run(verb).to_string());
        write(&format!("{folder}/{verb}.json"), document.to_string());
        write(&format!("{folder}/finished.json"), "{}".to_owned());
        write(&format!("{folder}/journal.jsonl"), String::new());
    }
    let attempted = "attempt-20260101-000000-0000/trials/ab";
    write(&format!("{attempted}/trajectory.json"), trajectory.to_string());
    write(&format!("{attempted}/patch.diff"), format!("no patch {HOSTILE}"));
    let log = format!("grade-20260101-000000-0000/trials/{digest}/logs/official-1-rank0.log");
    write(&log, format!("{HOSTILE}\r\n").repeat(2_000));
}

#[test]
fn what_a_name_a_patch_a_log_and_a_trajectory_say_is_text_on_every_page() {
    let ground = Ground::new();
    hostile(&ground);
    let runs = ["./runs/attempt-20260101-000000-0000", "./runs/grade-20260101-000000-0000"];
    for sealed in [&[][..], &["--sealed"]] {
        let args = [&["report", runs[0], runs[1], "--site", "site"], sealed].concat();
        ground.infradev(&args).exits(0);
        let all = pages(&ground.path().join("site"));
        assert_eq!(all.len(), 3, "{:?}", all.iter().map(|(name, _)| name).collect::<Vec<_>>());
        assert_alone(&all);
        let (_, page) = all.iter().find(|(name, _)| name.starts_with("submissions/")).unwrap();
        for place in ["no patch ", "peer_abort", "calls ", "came back", "reasoning"] {
            assert!(page.contains(place), "{place}");
        }
        // Logs tell which cases are there to catch tampering.
        assert_eq!(page.contains("bytes before are left out"), !sealed.is_empty());
        assert!(page.contains("&#60;script&#62;alert(1)") && page.contains("\\u{202e}txt\\u{0}"), "{page}");
    }
}

#[test]
fn two_runs_are_compared_and_such_a_site_is_replaced_too() {
    let ground = Ground::new();
    hostile(&ground);
    let (one, other) = ("grade-20260101-000000-0000", "grade-20260102-000000-0000");
    for name in ["run.json", "grade.json", "finished.json", "journal.jsonl"] {
        let text = ground.read(&format!("runs/{one}/{name}")).replace(one, other);
        ground.write(&format!("runs/{other}/{name}"), &text);
    }
    let (one, other) = (format!("./runs/{one}"), format!("./runs/{other}"));
    for _ in 0..2 {
        ground.infradev(&["report", &one, &other, "--site", "site"]).exits(0);
    }
    let all = pages(&ground.path().join("site"));
    assert_alone(&all);
    let (_, page) = all.iter().find(|(name, _)| name == "compare.html").unwrap();
    assert!(page.contains("Of 1 submissions in both, 0 are resolved in both"), "{page}");
    assert!(page.contains("Submissions with the same verdict: 1"), "{page}");
    assert_eq!(values(page, "href").iter().filter(|href| href.starts_with("submissions/")).count(), 2);
    assert!(page.contains("(first)") && page.contains("(second)"), "each arm beside itself");
}

fn ask(port: u16, request: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut said = Vec::new();
    stream.read_to_end(&mut said).unwrap();
    String::from_utf8(said).unwrap()
}

fn get(port: u16, method: &str, path: &str, host: &str) -> String {
    ask(port, &format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
}

#[test]
fn pages_are_served_to_this_machine_alone_and_ctrl_c_ends_that_well() {
    let ground = Ground::new();
    hostile(&ground);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut spawn = Spawn::new(env!("CARGO_BIN_EXE_infradev"));
        spawn.args = ["serve", "./runs/grade-20260101-000000-0000"].iter().map(Into::into).collect();
        spawn.env = ground.variables().into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        spawn.cwd = Some(ground.path().to_path_buf());
        spawn.stdout = Sink::Fd(OwnedFd::from(writer));
        let mut child = spawn.start().unwrap();
        let mut said = String::new();
        while !said.ends_with("/\n") {
            let mut byte = [0];
            assert_eq!(reader.read(&mut byte).unwrap(), 1, "it ended early: {said}");
            said.push(char::from(byte[0]));
        }
        let port: u16 =
            said.trim().strip_prefix("http://127.0.0.1:").unwrap().trim_end_matches('/').parse().unwrap();
        let us = format!("127.0.0.1:{port}");
        let status = |answer: String| answer.split(' ').nth(1).unwrap_or_default().to_owned();

        let index = get(port, "GET", "/", &us);
        assert!(index.starts_with("HTTP/1.1 200") && index.contains("What runs show"), "{index}");
        assert!(index.contains("frame-ancestors 'none'") && index.contains("nosniff"), "{index}");
        assert!(
            index.contains("href=\"progress.html\"") && !index.contains("http-equiv=\"refresh\""),
            "{index}"
        );
        let head = get(port, "HEAD", "/index.html", &format!("localhost:{port}"));
        assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");
        let progress = get(port, "GET", "/progress.html", &us);
        assert!(progress.contains("0 of 0 begun have a record"), "{progress}");
        for host in ["evil.example", "127.0.0.1", "127.0.0.1:1", &format!("evil.example:{port}")] {
            assert_eq!(status(get(port, "GET", "/", host)), "421", "{host}");
        }
        let two = format!("GET / HTTP/1.1\r\nHost: {us}\r\nHost: evil\r\nConnection: close\r\n\r\n");
        assert_ne!(status(ask(port, &two)), "200");
        let whole = format!("GET http://evil/ HTTP/1.1\r\nHost: {us}\r\nConnection: close\r\n\r\n");
        assert_eq!(status(ask(port, &whole)), "421");
        assert_eq!(status(get(port, "POST", "/", &us)), "405");
        for path in ["/../../run.json", "/tasks/../index.html", "/nothing", "/%2e%2e/run.json"] {
            assert_eq!(status(get(port, "GET", path, &us)), "404", "{path}");
        }
        // A connection that says nothing holds nothing up.
        let _silent = TcpStream::connect(("127.0.0.1", port)).unwrap();
        child.signal(Signal::SIGINT);
        assert_eq!(child.wait().await.unwrap(), Exit::Code(0));
    });
    assert!(!ground.path().join("home/runs").exists(), "it writes nothing");
}

#[test]
fn chromium_opens_the_site_from_disk_and_the_pages_policy_lets_its_style_in() {
    let ground = Ground::new();
    hostile(&ground);
    let runs = ["./runs/attempt-20260101-000000-0000", "./runs/grade-20260101-000000-0000"];
    ground.infradev(&["report", runs[0], runs[1], "--site", "site"]).exits(0);
    assert!(
        infradev_supervise::find_program("chromium").is_some(),
        "no chromium is on PATH; tools/setup.sh tests installs it"
    );
    let profile = format!("--user-data-dir={}", ground.path().join("profile").display());
    for (name, page) in pages(&ground.path().join("site")) {
        let url = format!("file://{}", ground.path().join("site").join(&name).display());
        let quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", &profile];
        let opened = ground.tool("chromium", &[&quiet[..], &["--dump-dom", &url]].concat()).exits(0);
        assert!(opened.out.contains("<h1>") && opened.out.contains("id=\"main\""), "{}", opened.out);
        // What Chromium made of it has no element that the page did not write.
        for tag in ["<script", "<img", "<pre", "<details", "<tr", "<a "] {
            assert_eq!(opened.out.matches(tag).count(), page.matches(tag).count(), "{tag} in {name}");
        }
        for word in ["Refused to", "violates the following", "ERR_"] {
            assert!(!opened.err.contains(word), "{name}: {}", opened.err);
        }
    }
    let shot = ground.path().join("shot.png");
    let screenshot = format!("--screenshot={}", shot.display());
    let url = format!("file://{}/site/index.html", ground.path().display());
    let args =
        ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=500,900", &profile, &screenshot, &url];
    ground.tool("chromium", &args).exits(0);
    assert!(std::fs::read(&shot).unwrap().starts_with(b"\x89PNG"));
}
