//! Where a key stands in the text of a TOML file.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

/// The line, from 1, of the key with this path, such as `limits.pids` or `mutant[0].why`; of the last part that is there, where
/// the rest is not. A text that is no TOML is read as far as it goes.
pub(crate) fn line_of_key(text: &str, path: &str) -> Option<usize> {
    let (document, _) = DeTable::parse_recoverable(text);
    in_table(document.get_ref(), path).map(|found| line_at(text, found.span.start))
}

/// The line, from 1, at a byte of a text.
pub(crate) fn line_at(text: &str, byte: usize) -> usize {
    text.as_bytes()[..byte.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// Of a key that is given twice: its path, and the line of the first one. `second` is where the second one stands.
pub(crate) fn given_twice(text: &str, second: Range<usize>) -> Option<(String, Option<usize>)> {
    let key = text.get(second.clone())?.trim().trim_matches(['"', '\'']).to_owned();
    let begin = text[..second.start].rfind('\n').map_or(0, |at| at + 1);
    // A key in a header, `[limits]`, has its path before it on the line.
    let before = text[begin..second.start].trim_start();
    let path = match before.strip_prefix('[') {
        Some(parents) => format!("{}{key}", parents.trim_start_matches('[').trim_start()),
        None => match table_above(&text[..begin]) {
            Some(table) => format!("{table}.{}{key}", dotted(before)),
            None => format!("{}{key}", dotted(before)),
        },
    };
    let (document, _) = DeTable::parse_recoverable(&text[..begin]);
    let first = in_table(document.get_ref(), &path).filter(|found| found.whole);
    match first {
        Some(first) => Some((path, Some(line_at(text, first.span.start)))),
        None => Some((key, None)),
    }
}

/// `a.b.` of a line that goes on with the key.
fn dotted(before: &str) -> &str {
    if before.ends_with('.') && !before.contains(['=', '{']) { before } else { "" }
}

/// The table whose header is the last in a text; the newest of an array of tables by its number.
fn table_above(text: &str) -> Option<String> {
    let headers: Vec<&str> = text.lines().filter_map(header).collect();
    let last = *headers.last()?;
    match last.strip_prefix('[') {
        None => Some(last.to_owned()),
        Some(array) => {
            let count = headers.iter().filter(|header| **header == last).count();
            Some(format!("{}[{}]", array.trim_end_matches(']'), count - 1))
        }
    }
}

fn header(line: &str) -> Option<&str> {
    let line = line.split('#').next().unwrap_or_default().trim();
    line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'))
}

struct Found {
    span: Range<usize>,
    /// Whether all of the path is there.
    whole: bool,
}

fn in_table(table: &DeTable<'_>, path: &str) -> Option<Found> {
    // Keys may hold dots themselves: of those that the path begins with, the longest.
    let rest_of = |name: &str| {
        let rest = path.strip_prefix(name)?;
        (rest.is_empty() || rest.starts_with(['.', '['])).then_some(rest)
    };
    let mut matching: Vec<_> =
        table.iter().filter_map(|(key, value)| Some((key, value, rest_of(key.get_ref())?))).collect();
    matching.sort_by_key(|(key, ..)| key.get_ref().len());
    let (key, value, rest) = matching.pop()?;
    in_value(value.get_ref(), rest, key.span())
}

/// `span` is that of what the value belongs to.
fn in_value(value: &DeValue<'_>, rest: &str, span: Range<usize>) -> Option<Found> {
    if rest.is_empty() {
        return Some(Found { span, whole: true });
    }
    let deeper = match (value, rest.strip_prefix('.'), index(rest)) {
        (DeValue::Table(table), Some(rest), _) => in_table(table, rest),
        (DeValue::Array(array), _, Some((number, rest))) => {
            array.get(number).and_then(|entry| in_value(entry.get_ref(), rest, entry.span()))
        }
        _ => None,
    };
    Some(deeper.unwrap_or(Found { span, whole: false }))
}

/// `[3].why`: the number, and what follows.
fn index(rest: &str) -> Option<(usize, &str)> {
    let (number, rest) = rest.strip_prefix('[')?.split_once(']')?;
    Some((number.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
why = \"of the file\"
list = [
    \"one\",
    \"two\",
]

[limits]
pids = 1 # why

[tests.files]
\"/data/a.txt\" = \"\"\"
why = 3
\"\"\"
\"/data/b.txt\" = \"\"

[[mutant]]
file = \"a\"

[[mutant]]
file = \"b\"
why = \"because\"
";

    #[test]
    fn a_key_is_found_by_its_whole_path_or_as_much_of_it_as_is_there() {
        for (path, line) in [
            ("why", Some(1)),
            ("list", Some(2)),
            ("list[1]", Some(4)),
            ("limits", Some(7)),
            ("limits.pids", Some(8)),
            ("limits.tmp_mib", Some(7)),
            ("tests.files./data/b.txt", Some(14)),
            ("mutant[0].file", Some(17)),
            ("mutant[0].why", Some(16)),
            ("mutant[1].why", Some(21)),
            ("mutant[1]", Some(19)),
            ("nothing.of.this", None),
        ] {
            assert_eq!(line_of_key(TEXT, path), line, "{path}");
        }
    }
}
