//! What a prompt shows of a task's files, and where in them it stands.

use std::fmt::Write;
use std::ops::{Range, RangeInclusive};

use toml::de::{DeTable, DeValue};

use crate::place;
use crate::task::{Contract, ContractName, NameKind};

/// The parts of a `spec.md` that the prompt shows, in their order: all but its HTML comments. One that never ends is shown.
pub fn shown_parts(text: &str) -> Vec<Range<usize>> {
    let mut parts: Vec<Range<usize>> = Vec::new();
    let mut from = 0;
    while let Some((before, inside)) = text[from..].split_once("<!--") {
        let Some((_, after)) = inside.split_once("-->") else { break };
        let kept = before.trim_end_matches(' ');
        parts.push(from..from + kept.len());
        // A comment that has its lines to itself leaves none behind.
        let last = parts.iter().rev().find(|part| !part.is_empty());
        let alone = last.is_none_or(|part| text[..part.end].ends_with('\n'));
        let rest = if alone { after.trim_start_matches(['\n', '\r']) } else { after };
        from = text.len() - rest.len();
    }
    parts.push(from..text.len());
    parts
}

/// The contract as the prompt shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShownContract {
    /// Markdown.
    pub text: String,
    /// Where each value of the file stands in it, in its order.
    pub values: Vec<ShownValue>,
}

/// A value of an entry of a `contract.toml` in the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownValue {
    /// Where it stands in the prompt's text.
    pub range: Range<usize>,
    /// The entry, from 0.
    pub entry: usize,
    /// Its key in the entry: `name`, `signature` or `about`.
    pub key: &'static str,
}

impl ShownValue {
    /// The lines, from 1, on which the key and its value stand in the text of the `contract.toml`.
    pub fn lines_in(&self, text: &str) -> RangeInclusive<u32> {
        let path = format!("name[{}].{}", self.entry, self.key);
        let first = place::line_of_key(text, &path).unwrap_or(1);
        let (document, _) = DeTable::parse_recoverable(text);
        let end = match document.get_ref().get("name").map(|names| names.get_ref()) {
            Some(DeValue::Array(entries)) => match entries.get(self.entry).map(|entry| entry.get_ref()) {
                Some(DeValue::Table(entry)) => entry.get(self.key).map(|value| value.span().end),
                _ => None,
            },
            _ => None,
        };
        let last = end.map_or(first, |end| place::line_at(text, end)).max(first);
        first as u32..=last as u32
    }
}

impl Contract {
    /// It as the prompt shows it.
    pub fn shown(&self) -> ShownContract {
        let mut shown = ShownContract { text: "## Interface contract\n\n".to_owned(), values: Vec::new() };
        if self.names.is_empty() {
            // No more than that: what the tests use is known where they could be read, and `contract lint` says whether they could.
            shown.text.push_str("It lists no name that is not in the tree already.");
            return shown;
        }
        shown.text.push_str(
            "The tests import and use these names exactly as they are written here. Whatever is not listed is yours to name and to \
             place.\n",
        );
        for (entry, name) in self.names.iter().enumerate() {
            let _ = write!(shown.text, "\n- {} `", name.kind);
            shown.add(entry, "name", &name.name);
            shown.add(entry, "signature", &signature(name));
            shown.text.push('`');
            if !name.about.trim().is_empty() {
                shown.text.push_str("  \n  ");
                shown.add(entry, "about", &name.about.trim().replace('\n', "\n  "));
            }
        }
        shown
    }
}

impl ShownContract {
    fn add(&mut self, entry: usize, key: &'static str, value: &str) {
        let from = self.text.len();
        self.text.push_str(value);
        if !value.is_empty() {
            self.values.push(ShownValue { range: from..self.text.len(), entry, key });
        }
    }

    /// The values that a part of the text is of; of one between two values, the next.
    pub fn values_at(&self, range: &Range<usize>) -> impl Iterator<Item = &ShownValue> {
        let first = self.values.partition_point(|value| value.range.end <= range.start);
        let later = self.values.iter().skip(first + 1).take_while(|value| value.range.start < range.end);
        self.values.get(first).into_iter().chain(later)
    }
}

/// What follows a name, as Python would write it.
fn signature(name: &ContractName) -> String {
    match name.signature.as_deref().map(str::trim) {
        None | Some("") => String::new(),
        Some(signature) if signature.starts_with('(') => signature.to_owned(),
        Some(fields) if name.kind == NameKind::Class => format!(" {{ {fields} }}"),
        Some(annotation) => format!(": {annotation}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_written_as_python_would_write_it() {
        for (kind, signature, shown) in [
            ("function", "(a: int) -> int", "- function `m.X(a: int) -> int`"),
            ("setting", "bool = False", "- setting `m.X: bool = False`"),
            ("class", "a: int; b: str", "- class `m.X { a: int; b: str }`"),
            ("module", "", "- module `m.X`"),
        ] {
            let text = format!(
                "schema = 1\n[[name]]\nname = \"m.X\"\nkind = \"{kind}\"\nsignature = \"{signature}\"\n"
            );
            let contract = Contract::parse("contract.toml", text.as_bytes()).expect("a contract");
            assert!(contract.shown().text.ends_with(shown), "{}", contract.shown().text);
        }
    }

    #[test]
    fn a_contract_without_names_says_nothing_of_what_tests_use() {
        let contract = Contract::parse("contract.toml", b"schema = 1\n").expect("a contract");
        let shown = contract.shown().text;
        assert_eq!(shown, "## Interface contract\n\nIt lists no name that is not in the tree already.");
    }

    #[test]
    fn what_is_shown_of_a_contract_is_known_by_its_lines() {
        let text = "schema = 1\n\n[[name]]\nname = \"m.f\"\nkind = \"function\"\nsignature = '(a)'\nabout = '''\nOne,\ntwo.'''\n\n\
            [[name]]\nname = \"m.g\"\nkind = \"module\"\n";
        let contract = Contract::parse("contract.toml", text.as_bytes()).expect("a contract");
        let shown = contract.shown();
        let told: Vec<(&str, RangeInclusive<u32>)> = shown
            .values
            .iter()
            .map(|value| (&shown.text[value.range.clone()], value.lines_in(text)))
            .collect();
        assert_eq!(told, [("m.f", 4..=4), ("(a)", 6..=6), ("One,\n  two.", 7..=9), ("m.g", 12..=12)]);
        let at = |part: &str| {
            let from = shown.text.find(part).expect(part);
            shown.values_at(&(from..from + part.len())).map(|value| value.key).collect::<Vec<_>>()
        };
        assert_eq!(at("m.f(a"), ["name", "signature"]);
        assert_eq!(at("- function"), ["name"]);
        assert_eq!(at("two.\n- module `m"), ["about", "name"]);
    }
}
