//! Python in the commands of a shell: here-documents and `python -c`.

use std::borrow::Cow;

/// What a command writes or runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// A program given to an interpreter.
    Script(String),
    /// A file as a whole.
    File { path: String, text: String },
    /// A part of a file.
    Part { path: String, text: String },
}

/// The Python programs that a command runs from its own text, and the files that its here-documents write.
pub(super) fn pieces(command: &str) -> Vec<Piece> {
    let command = unwrapped(command);
    let mut found = Vec::new();
    let mut rest = String::new();
    let mut lines = command.split('\n');
    while let Some(line) = lines.next() {
        rest.push_str(line);
        rest.push('\n');
        for document in documents(line) {
            let mut body = String::new();
            for inner in lines.by_ref() {
                let inner = if document.tabs { inner.trim_start_matches('\t') } else { inner };
                if inner.trim_end_matches('\r') == document.ends {
                    break;
                }
                body.push_str(inner);
                body.push('\n');
            }
            found.extend(of_document(line, body));
        }
    }
    found.extend(given_by_option(&rest));
    found
}

/// The command inside `bash -lc '…'`.
fn unwrapped(command: &str) -> Cow<'_, str> {
    let mut command = Cow::Borrowed(command);
    for _ in 0..3 {
        let first = command.split_whitespace().next().unwrap_or_default();
        if !matches!(first.rsplit('/').next(), Some("bash" | "sh" | "zsh" | "dash")) {
            break;
        }
        let Some(words) = shlex::split(&command) else { break };
        let at = words.iter().position(|word| word.starts_with('-') && word.ends_with('c'));
        let Some(inner) = at.and_then(|at| words.get(at + 1)) else { break };
        command = Cow::Owned(inner.clone());
    }
    command
}

/// A here-document that a line opens.
struct Document {
    ends: String,
    tabs: bool,
}

fn documents(line: &str) -> Vec<Document> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find("<<") {
        let after = &rest[at + 2..];
        rest = after;
        if after.starts_with('<') {
            rest = after.trim_start_matches('<');
            continue;
        }
        let tabs = after.starts_with('-');
        let word = after.trim_start_matches('-').trim_start();
        let quote = word.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let word = word.trim_start_matches(['\'', '"', '\\']);
        let ends: String = match quote {
            Some(quote) => word.chars().take_while(|c| *c != quote).collect(),
            None => word.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect(),
        };
        // `1 << 3` is arithmetic.
        if ends.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            found.push(Document { ends, tabs });
        }
    }
    found
}

fn of_document(line: &str, body: String) -> Vec<Piece> {
    let words: Vec<&str> =
        line.split([' ', '\t', ';', '&', '|', '(']).filter(|word| !word.is_empty()).collect();
    if body.contains("*** Begin Patch") {
        return of_apply_patch(&body);
    }
    let target = line.split('>').skip(1).filter(|part| !part.is_empty()).find_map(|part| {
        let part = part.trim_start_matches('>').trim_start();
        let word = part.split([' ', '\t', '<', ';', '&', '|']).next()?;
        (!word.is_empty()).then(|| word.trim_matches(['\'', '"']).to_owned())
    });
    let tee = words
        .iter()
        .position(|word| *word == "tee")
        .and_then(|at| words[at + 1..].iter().find(|word| !word.starts_with('-') && !word.starts_with('<')));
    if words.iter().any(|word| is_python(word)) {
        vec![Piece::Script(body)]
    } else if let Some(path) = tee.map(|path| path.trim_matches(['\'', '"']).to_owned()).or(target) {
        vec![Piece::File { path, text: body }]
    } else {
        Vec::new()
    }
}

fn is_python(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    name.strip_prefix("python").is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

/// A command with its operators set apart from words: shlex knows quotes and no operators.
fn set_apart(command: &str) -> String {
    let (mut text, mut quote, mut escaped) = (String::with_capacity(command.len()), None, false);
    for c in command.chars() {
        let bare = quote.is_none() && !escaped;
        match (quote, c) {
            (Some(open), c) if c == open && !escaped => quote = None,
            (None, '\'' | '"') if !escaped => quote = Some(c),
            _ => {}
        }
        escaped = c == '\\' && !escaped && quote != Some('\'');
        if bare && matches!(c, ';' | '&' | '|' | '(' | ')' | '<' | '>') {
            text.extend([' ', c, ' ']);
        } else {
            text.push(c);
        }
    }
    text
}

/// `python -c PROGRAM`.
fn given_by_option(command: &str) -> Vec<Piece> {
    let words: Vec<String> = shlex::Shlex::new(&set_apart(command)).collect();
    let mut found = Vec::new();
    for (at, _) in words.iter().enumerate().filter(|(_, word)| is_python(word)) {
        let options = words[at + 1..].iter().take_while(|word| word.starts_with('-')).count();
        let last = words[at + 1..at + 1 + options]
            .iter()
            .position(|word| word.ends_with('c') && !word.starts_with("--"));
        if let Some(program) = last.and_then(|last| words.get(at + 2 + last)) {
            found.push(Piece::Script(program.clone()));
        }
    }
    found
}

/// The format of Codex's `apply_patch`: whole files, and the new side of hunks.
pub(super) fn of_apply_patch(text: &str) -> Vec<Piece> {
    let mut found: Vec<Piece> = Vec::new();
    let mut open: Option<(String, bool)> = None;
    for line in text.lines() {
        let header = |prefix: &str| line.strip_prefix(prefix).map(|path| path.trim().to_owned());
        if let Some(path) = header("*** Add File: ") {
            found.push(Piece::File { path: path.clone(), text: String::new() });
            open = Some((path, true));
        } else if let Some(path) = header("*** Update File: ") {
            open = Some((path, false));
        } else if line.starts_with("*** ") {
            open = None;
        } else if let Some((path, whole)) = &open {
            if !whole && line.starts_with("@@") {
                found.push(Piece::Part { path: path.clone(), text: String::new() });
            } else if let Some(line) = line.strip_prefix('+').or_else(|| line.strip_prefix(' ')) {
                match found.last_mut() {
                    Some(Piece::File { path: last, text } | Piece::Part { path: last, text })
                        if last == path =>
                    {
                        text.push_str(line);
                        text.push('\n');
                    }
                    _ => found.push(Piece::Part { path: path.clone(), text: format!("{line}\n") }),
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{Piece, pieces};

    fn script(text: &str) -> Piece {
        Piece::Script(text.into())
    }

    fn file(path: &str, text: &str) -> Piece {
        Piece::File { path: path.into(), text: text.into() }
    }

    #[test]
    fn programs_and_files_are_found_in_commands_as_agents_write_them() {
        for (command, found) in [
            ("python -c 'assert f(1) == 2'", vec![script("assert f(1) == 2")]),
            ("cd a && python3.12 -u -c \"assert x\"; ls", vec![script("assert x")]),
            ("(python -c 'f(\";\")'|tail)", vec![script("f(\";\")")]),
            ("python - <<'EOF'\nassert x\nEOF\nls", vec![script("assert x\n")]),
            ("cat > tests/test_a.py << EOF\nassert x\nEOF", vec![file("tests/test_a.py", "assert x\n")]),
            ("tee test_a.py <<-\\EOF\n\tassert x\n\tEOF", vec![file("test_a.py", "assert x\n")]),
            ("bash -lc 'python - <<\"PY\"\nassert x\nPY'", vec![script("assert x\n")]),
            ("echo $((1 << 3)); python -m pytest -c a.ini", vec![]),
            ("python x.py <<< 'a'", vec![]),
            (
                "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: test_a.py\n+assert x\n*** Update File: test_b.py\n@@ def test_b\n a = 1\n-assert a\n+assert a == 1\n*** End Patch\nEOF",
                vec![
                    file("test_a.py", "assert x\n"),
                    Piece::Part { path: "test_b.py".into(), text: "a = 1\nassert a == 1\n".into() },
                ],
            ),
        ] {
            assert_eq!(pieces(command), found, "{command}");
        }
    }

    #[test]
    fn a_document_that_never_ends_and_a_quote_that_never_closes_are_read_to_the_end() {
        assert_eq!(pieces("python - <<EOF\nassert x"), [script("assert x\n")]);
        assert_eq!(pieces("python -c 'assert x"), []);
    }
}
