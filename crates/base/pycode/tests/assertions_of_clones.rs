//! The whole of real repositories' tests: nothing panics, lines are right, and how long it takes. Clones are named by
//! INFRADEV_MEGATRON, INFRADEV_VERL and INFRADEV_TORCHTITAN; without one there is nothing to read.

#![allow(clippy::disallowed_macros, reason = "says what it counted, and of which clone there is nothing")]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use infradev_patch::looks_like_test;
use infradev_pycode::assertions::{Assertion, Share, assertions};
use infradev_supervise::{Exit, Invocation};

fn git(clone: &Path, words: &[&str], stdin: Vec<u8>) -> Vec<u8> {
    let git = Invocation::new("git").arg("-C").arg(clone).args(words).inherit_env("PATH").stdin(stdin);
    let output = git.stdout_limit(1 << 30).deadline(Duration::from_secs(120)).run().unwrap();
    assert_eq!(output.status, Exit::Code(0), "{}", output.stderr_text());
    output.stdout
}

/// The Python files of a clone's `HEAD` that look like tests, with their texts.
fn test_files(clone: &Path) -> Vec<(String, String)> {
    let names = String::from_utf8(git(clone, &["ls-tree", "-r", "--name-only", "HEAD"], Vec::new())).unwrap();
    let names: Vec<&str> =
        names.lines().filter(|name| name.ends_with(".py") && looks_like_test(name.as_bytes())).collect();
    let asked: String = names.iter().map(|name| format!("HEAD:{name}\n")).collect();
    let mut given = &git(clone, &["cat-file", "--batch"], asked.into_bytes())[..];
    let mut files = Vec::new();
    for name in names {
        let end = given.iter().position(|byte| *byte == b'\n').unwrap();
        let size: usize = String::from_utf8_lossy(&given[..end]).rsplit(' ').next().unwrap().parse().unwrap();
        let text = String::from_utf8_lossy(&given[end + 1..end + 1 + size]).into_owned();
        given = &given[end + 2 + size..];
        files.push((name.to_owned(), text));
    }
    files
}

/// The line that is named begins with the assertion's own text, and its last line is not before it.
fn lines_are_right(text: &str, one: &Assertion) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    let first = one.text.split(' ').next().unwrap().trim_end_matches('…');
    let line = lines[one.line - 1];
    line.contains(first) && one.line <= one.last_line && one.last_line <= lines.len()
}

#[test]
fn every_test_file_of_a_clone_is_read_and_lines_are_right() {
    let shown = std::env::var_os("INFRADEV_ASSERTIONS_SHOWN").map(PathBuf::from);
    let mut listed = shown.map(|path| std::fs::File::create(path).unwrap());
    for variable in ["INFRADEV_MEGATRON", "INFRADEV_VERL", "INFRADEV_TORCHTITAN"] {
        let Some(clone) = std::env::var_os(variable).map(PathBuf::from) else {
            println!("{variable} names no clone");
            continue;
        };
        let (mut share, mut lines, mut unparsed, mut found) = (Share::default(), 0, 0, 0);
        let files = test_files(&clone);
        let begin = Instant::now();
        let mut checked = Duration::ZERO;
        for (path, text) in &files {
            let Ok(all) = assertions(path, text) else {
                unparsed += 1;
                continue;
            };
            let aside = Instant::now();
            for one in &all {
                assert!(lines_are_right(text, one), "{path}:{} `{}`", one.line, one.text);
                if let Some(listed) = &mut listed {
                    writeln!(
                        listed,
                        "{}\t{path}:{}\t{}\t{}\t{}",
                        one.property, one.line, one.counted_at_calls, one.evidence, one.text
                    )
                    .unwrap();
                }
            }
            (lines, found) = (lines + text.lines().count(), found + all.len());
            share.add(&Share::of(&all));
            checked += aside.elapsed();
        }
        let ms = (begin.elapsed() - checked).as_secs_f64() * 1e3;
        println!(
            "{variable}: {} files, {lines} lines, {unparsed} not Python, {found} assertions in {ms:.0} ms ({:.2} ms for 5,000 lines): {share}",
            files.len(),
            ms * 5e3 / lines as f64
        );
        assert!(found > 0);
    }
}
