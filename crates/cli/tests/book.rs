//! What the book shows as run is run: every `console,runs` block of docs/, with the real program, from the repository's root.
//!
//! A block is `$ infradev …` lines, each with what it prints (`…` stands for any text within a line, alone on a line for any lines)
//! and, where that is not 0, `[exit N]`.

use std::path::{Path, PathBuf};

use infradev_supervise::{Exit, Invocation};

struct Shown {
    place: String,
    command: String,
    lines: Vec<String>,
    exit: i32,
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(pages(&path));
        } else if path.extension().is_some_and(|end| end == "md") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn shown_in(page: &Path) -> Vec<Shown> {
    let text = std::fs::read_to_string(page).unwrap();
    let mut found: Vec<Shown> = Vec::new();
    let mut runs = false;
    for (number, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            runs = line == "```console,runs";
            continue;
        }
        if !runs {
            continue;
        }
        if let Some(command) = line.strip_prefix("$ ") {
            let place = format!("{}:{}", page.display(), number + 1);
            found.push(Shown { place, command: command.to_string(), lines: Vec::new(), exit: 0 });
            continue;
        }
        let last = found.last_mut().expect("a block begins with a command");
        match line.strip_prefix("[exit ").and_then(|rest| rest.strip_suffix(']')) {
            Some(code) => last.exit = code.parse().unwrap(),
            None => last.lines.push(line.to_string()),
        }
    }
    found
}

/// Whether a line is the one shown, `…` standing for any text.
fn alike(shown: &str, said: &str) -> bool {
    match shown.split_once('…') {
        None => shown == said,
        Some((begin, end)) => {
            said.len() >= begin.len() + end.len() && said.starts_with(begin) && said.ends_with(end)
        }
    }
}

/// Whether lines are those shown, a `…` alone standing for any number of them.
fn lines_alike(shown: &[String], said: &[&str]) -> bool {
    match shown {
        [] => said.is_empty(),
        [first, rest @ ..] if first == "…" => (0..=said.len()).any(|skip| lines_alike(rest, &said[skip..])),
        [first, rest @ ..] => {
            said.first().is_some_and(|line| alike(first, line)) && lines_alike(rest, &said[1..])
        }
    }
}

#[test]
fn the_book_s_examples_print_what_they_show() {
    let book = repository().join("docs/src");
    let examples: Vec<Shown> = pages(&book).iter().flat_map(|page| shown_in(page)).collect();
    assert!(examples.len() >= 6, "{} examples: are the blocks still marked?", examples.len());
    let home = tempfile::tempdir().unwrap();
    for Shown { place, command, lines, exit } in examples {
        let mut words = command.split_whitespace();
        assert_eq!(words.next(), Some("infradev"), "{place}: only infradev is run");
        let ran = Invocation::new(env!("CARGO_BIN_EXE_infradev"))
            .args(words)
            .cwd(repository())
            .inherit_env("PATH")
            .env("INFRADEV_HOME", home.path())
            .run()
            .unwrap();
        let said = [ran.stdout, ran.stderr].concat();
        let said = String::from_utf8(said).unwrap();
        assert_eq!(ran.status, Exit::Code(exit), "{place}: $ {command}\n{said}");
        let same = lines_alike(&lines, &said.lines().collect::<Vec<_>>());
        assert!(same, "{place}: $ {command}\nshown:\n{}\nsaid:\n{said}", lines.join("\n"));
    }
}
