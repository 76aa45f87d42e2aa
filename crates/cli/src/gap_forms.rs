//! Lines that no test notices, in the forms in which people and their tools read them: text, Markdown, SARIF.

use std::collections::BTreeMap;
use std::fmt::Write;

use infradev_model::{Gap, GapMutant, GapsDocument, Operator, Suite};
use serde_json::{Value, json};

use crate::report::visible;
use crate::tables::short;

/// Longest line of code that is shown.
const WIDTH: usize = 96;

/// What a maintainer reads in a terminal.
pub fn text(document: &GapsDocument) -> String {
    let mut text = String::new();
    let mut file = "";
    for gap in &document.gaps {
        if gap.file != file {
            file = &gap.file;
            let _ = writeln!(text, "{}{}", if text.is_empty() { "" } else { "\n" }, visible(file));
        }
        let _ = writeln!(text, "{:>5}  {}", place(gap), visible(&short(&gap.text, WIDTH)));
        for mutant in &gap.mutants {
            let becomes = Becomes::of(gap, mutant).shown(|code| format!("`{code}`"));
            let _ = writeln!(text, "       {}: {}", mutant.operator.name(), visible(&becomes));
            let _ = writeln!(text, "         unchecked: {} ({})", mutant.promise, reach(mutant));
        }
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(&summary(document));
    text.push('\n');
    for passed in &document.change.passed_over {
        let _ = writeln!(text, "passed over {}: {}", visible(&passed.file), visible(&passed.why));
    }
    for remark in &document.change.remarks {
        let _ = writeln!(text, "note: {}", visible(remark));
    }
    text
}

/// One sentence for all of it.
pub fn summary(document: &GapsDocument) -> String {
    let mutants = document.change.strength.mutants;
    let tests: u32 = document
        .change
        .golden
        .iter()
        .filter(|golden| golden.suite == Suite::Official)
        .map(|golden| golden.cases)
        .max()
        .unwrap_or(0);
    let notice = if tests == 1 { "notices" } else { "notice" };
    let pass = counted(tests, "test");
    if mutants.of == 0 {
        return "no mutant can be made of this change: it adds no line of Python that does something"
            .to_string();
    }
    let unnoticed = mutants.left();
    if unnoticed == 0 {
        return format!("{pass} {notice} each of {}", counted(mutants.of, "mutant"));
    }
    format!(
        "{} of your change could break unnoticed: {unnoticed} of {} pass {pass}",
        counted(document.gaps.len() as u32, "line"),
        counted(mutants.of, "mutant"),
    )
}

fn counted(count: u32, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}

/// The number of its line; of an empty file, which has none, the word for the whole.
fn place(gap: &Gap) -> String {
    if gap.line == 0 { "file".to_string() } else { gap.line.to_string() }
}

/// What a mutant makes of the line: in words, code, or both.
struct Becomes {
    words: &'static str,
    /// On one line, as it stands there.
    code: Option<String>,
}

impl Becomes {
    fn of(gap: &Gap, mutant: &GapMutant) -> Becomes {
        let line = mutant.becomes.lines().find(|line| !line.trim().is_empty() && line.trim() != gap.text);
        let code = || line.map(|line| short(line.trim(), WIDTH));
        let (words, code) = match (mutant.operator, line) {
            // Of a file that base has, its text stands there instead.
            (Operator::TakeBackFile, _) if mutant.promise == Operator::TakeBackFile.promise() => {
                ("the file as it was before", None)
            }
            (Operator::TakeBackFile, _) => ("the file is missing", None),
            (Operator::TakeBackHunk, Some(_)) => ("as before: ", code()),
            (Operator::TakeBackHunk, None) => ("without these lines", None),
            (_, Some(_)) => ("", code()),
            (_, None) => ("gone", None),
        };
        Becomes { words, code }
    }

    /// With its code as a form shows code.
    fn shown(&self, code: impl Fn(&str) -> String) -> String {
        format!("{}{}", self.words, self.code.as_deref().map(code).unwrap_or_default())
    }
}

fn reach(mutant: &GapMutant) -> String {
    match mutant.reach {
        0 => "no test runs it: not tried".to_string(),
        1 => "1 test runs it and passes".to_string(),
        many => format!("{many} tests run it and pass"),
    }
}

/// A comment on a pull request.
pub fn markdown(document: &GapsDocument) -> String {
    let mut text = format!("### What no test of this change notices\n\n{}.\n", summary(document));
    let mut by_file: BTreeMap<&str, Vec<&Gap>> = BTreeMap::new();
    for gap in &document.gaps {
        by_file.entry(&gap.file).or_default().push(gap);
    }
    for (file, gaps) in by_file {
        let _ = write!(
            text,
            "\n**{}**\n\n| line | could become | and then breaks |\n| ---: | --- | --- |\n",
            cell(file)
        );
        for gap in gaps {
            for (index, mutant) in gap.mutants.iter().enumerate() {
                let line = match index {
                    0 if gap.line == 0 => place(gap),
                    0 => format!("{} {}", place(gap), code(&gap.text)),
                    _ => String::new(),
                };
                let became = Becomes::of(gap, mutant).shown(code);
                let _ =
                    writeln!(text, "| {line} | {became} | {} ({}) |", cell(&mutant.promise), reach(mutant));
            }
        }
    }
    let notes = document
        .change
        .passed_over
        .iter()
        .map(|passed| format!("passed over {}: {}", passed.file, passed.why));
    for note in notes.chain(document.change.remarks.iter().cloned()) {
        let _ = write!(text, "\n- {}", cell(&note));
    }
    text.trim_end().to_string() + "\n"
}

/// Text in a table's cell.
fn cell(text: &str) -> String {
    visible(text).replace('|', "\\|").replace('\n', " ").replace('<', "&lt;")
}

/// Code in a table's cell: with as many backticks as it needs.
fn code(text: &str) -> String {
    let text = visible(&short(text, WIDTH)).replace('|', "\\|");
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if longest > 0 { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// SARIF 2.1.0: one result a mutant, its rule the kind of mistake.
pub fn sarif(document: &GapsDocument) -> Value {
    let mut rules: BTreeMap<&str, Value> = BTreeMap::new();
    let mut results = Vec::new();
    for gap in &document.gaps {
        for mutant in &gap.mutants {
            let name = mutant.operator.name();
            rules.entry(name).or_insert_with(|| {
                json!({
                    "id": name,
                    "shortDescription": {"text": plain(&format!("No test checks that {}", mutant.operator.promise()))},
                    "defaultConfiguration": {"level": "warning"},
                })
            });
            let message = message(gap, mutant);
            let mut place = json!({"artifactLocation": {"uri": uri(&gap.file), "uriBaseId": "%SRCROOT%"}});
            if gap.line > 0 {
                place["region"] = json!({"startLine": gap.line, "endLine": gap.end_line});
            }
            results.push(json!({
                "ruleId": name,
                "level": if mutant.reach == 0 { "note" } else { "warning" },
                "message": {"text": message},
                "locations": [{"physicalLocation": place}],
            }));
        }
    }
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "infradev probe-gaps",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules.into_values().collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

/// A result's text: a sentence that stands for all of it where there is little room, and then the mutant. Code comes last
/// and without quotes: plain text has no marks of code, and any quote may stand in it.
fn message(gap: &Gap, mutant: &GapMutant) -> String {
    let becomes = Becomes::of(gap, mutant);
    let end = if becomes.code.is_none() { "." } else { "" };
    let becomes = becomes.shown(|code| code.to_string());
    plain(&format!("No test checks that {}: {}. The mutant: {becomes}{end}", mutant.promise, reach(mutant)))
}

/// A plain text message (SARIF 2.1.0, 3.11.3): braces would be placeholders (3.11.5), and brackets before parentheses a link (3.11.6),
/// for which a literal one has no other spelling.
fn plain(text: &str) -> String {
    visible(text).replace('{', "{{").replace('}', "}}").replace("](", "] (")
}

/// A path as a relative reference: what is neither unreserved nor a slash is percent-encoded.
fn uri(path: &str) -> String {
    let mut text = String::new();
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                text.push(byte as char)
            }
            other => {
                let _ = write!(text, "%{other:02X}");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_in_a_cell_keeps_its_backticks_and_bars() {
        assert_eq!(code("a | b"), "`a \\| b`");
        assert_eq!(code("`x`"), "`` `x` ``");
    }

    #[test]
    fn a_plain_message_holds_code_as_it_is_but_for_what_would_be_a_placeholder_or_a_link() {
        assert_eq!(plain("x = f\"{a}`\" + b['c']"), "x = f\"{{a}}`\" + b['c']");
        assert_eq!(plain("WAYS[name](x) or {}"), "WAYS[name] (x) or {{}}");
    }

    #[test]
    fn a_path_is_a_relative_reference() {
        assert_eq!(uri("a b/ü.py"), "a%20b/%C3%BC.py");
    }
}
