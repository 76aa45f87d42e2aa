//! `[[allow]]` of `contract.toml`: what an author lets stand in the text although golden has it too.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::de::{DeTable, DeValue};

use crate::format::FormatError;
use crate::lint::ContractRule;
use crate::place;
use crate::task::Contract;

/// Characters that a reason has at least.
const REASON: usize = 10;
/// Characters that a text has at most: one passage, and not a whole section.
const TEXT: usize = 200;
/// Characters of a text that are told of it.
const SHORT: usize = 60;

/// One thing of golden's that spec.md or contract.toml may say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Allowance {
    /// The rule that would find it: one of those that look for golden in the text.
    pub rule: ContractRule,
    /// The passage as it stands in the text, in 200 characters at most; how it is spaced, quoted and marked up does not matter.
    pub text: String,
    /// Why a reader may have it.
    pub why: String,
}

impl Allowance {
    /// The text on one line, its end left out where it is long.
    pub fn shortened(&self) -> String {
        let text = self.text.split_whitespace().collect::<Vec<_>>().join(" ");
        match text.char_indices().nth(SHORT) {
            Some((at, _)) => format!("{}…", text[..at].trim_end()),
            None => text,
        }
    }

    /// The line, from 1, on which the entry of this number stands in the text of a `contract.toml`.
    pub fn line_in(text: &str, index: usize) -> Option<usize> {
        place::line_of_key(text, &format!("allow[{index}].text"))
    }
}

impl Contract {
    /// The text of a `contract.toml` without what its allowances say, which no prompt shows: blanks stand there, and every line keeps
    /// its number.
    pub fn without_allowances(text: &str) -> String {
        let (document, _) = DeTable::parse_recoverable(text);
        let mut kept = text.to_owned();
        let entries = document.get_ref().get("allow").map(|allowed| allowed.get_ref());
        let Some(DeValue::Array(entries)) = entries else { return kept };
        let tables = entries.iter().filter_map(|entry| match entry.get_ref() {
            DeValue::Table(table) => Some(table),
            _ => None,
        });
        for value in tables.flat_map(|table| table.values()) {
            let Some(said) = kept.get(value.span()) else { continue };
            let blank: String = said
                .bytes()
                .map(|byte| if matches!(byte, b'\n' | b'\r') { char::from(byte) } else { ' ' })
                .collect();
            kept.replace_range(value.span(), &blank);
        }
        kept
    }

    /// Refuses allowances that allow nothing that can be allowed, or without a reason.
    pub(crate) fn check_allowances(&self, file: &str, text: &str) -> Result<(), FormatError> {
        for (index, entry) in self.allowed.iter().enumerate() {
            let refuse = |key: &str, what: String| {
                Err(FormatError::new(file, Some(&format!("allow[{index}].{key}")), what).locate(text))
            };
            if !entry.rule.is_leak() {
                let known: Vec<&str> =
                    ContractRule::ALL.iter().filter(|rule| rule.is_leak()).map(|rule| rule.name()).collect();
                let what = format!(
                    "`{}` can't be allowed; those that can are {}",
                    entry.rule.name(),
                    known.join(", ")
                );
                return refuse("rule", what);
            }
            if entry.text.trim().is_empty() {
                return refuse("text", "is empty".to_owned());
            }
            let length = entry.text.trim().chars().count();
            if length > TEXT {
                let what = format!("has {length} characters; a passage that is allowed has {TEXT} at most");
                return refuse("text", what);
            }
            if entry.why.trim().chars().count() < REASON {
                let what = format!("says why a reader may have it, in {REASON} characters at least");
                return refuse("why", what);
            }
            if self.allowed[..index].iter().any(|other| other.rule == entry.rule && other.text == entry.text)
            {
                return refuse("text", "is allowed twice".to_owned());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Classified;

    const FILE: &str = "\
schema = 1

[[allow]]
rule = \"constant\"
text = \"4 KiB\"
why = \"the file format's own\"

[[allow]]
rule = \"prose\"
text = '''
a sentence
of two lines'''
why = \"it is the promise itself\"

[[name]]
name = \"m.f\"
kind = \"function\"
";

    #[test]
    fn an_allowance_is_read_and_found_on_its_line() {
        let contract = Contract::parse("contract.toml", FILE.as_bytes()).expect("it parses");
        let rules: Vec<ContractRule> = contract.allowed.iter().map(|entry| entry.rule).collect();
        assert_eq!(rules, [ContractRule::Constant, ContractRule::Prose]);
        assert_eq!([0, 1].map(|index| Allowance::line_in(FILE, index)), [Some(5), Some(10)]);
    }

    #[test]
    fn a_long_text_is_told_by_its_beginning() {
        let entry = |text: &str| Allowance { rule: ContractRule::Prose, text: text.into(), why: "so".into() };
        assert_eq!(entry(" a\n  b ").shortened(), "a b");
        let told = entry(&"word ".repeat(20)).shortened();
        assert_eq!(told.chars().count(), 60);
        assert!(told.ends_with("word…"), "{told}");
    }

    #[test]
    fn what_allowances_say_is_blank_and_all_else_stays_on_its_line() {
        let kept = Contract::without_allowances(FILE);
        assert_eq!(kept.lines().count(), FILE.lines().count());
        for said in ["4 KiB", "sentence", "two lines", "promise", "format"] {
            assert!(!kept.contains(said), "{kept}");
        }
        assert_eq!(kept.lines().nth(15), Some("name = \"m.f\""));
        for other in ["schema = 1\n", "allow = 3\n", "allow = [1]\n", "[[allow]]\n", "[[allow", "é = \"", ""]
        {
            assert_eq!(Contract::without_allowances(other).lines().count(), other.lines().count(), "{other}");
        }
        let odd = "[[allow]]\r\ntext = \"é\r\"\r\n";
        assert!(Contract::without_allowances(odd).ends_with("\r\n"));
    }

    #[test]
    fn what_is_no_allowance_is_refused_with_file_line_and_key() {
        let refusal = |find: &str, with: &str| {
            let error =
                Contract::parse("contract.toml", FILE.replace(find, with).as_bytes()).expect_err(with);
            format!("{error} [{}]", error.hint().unwrap_or_default())
        };
        insta::assert_snapshot!(
            [
                refusal("\"constant\"", "\"missing\""),
                refusal("\"constant\"", "\"constants\""),
                refusal("\"4 KiB\"", "\" \""),
                refusal("4 KiB", &"4 KiB of it ".repeat(17)),
                refusal("\"the file format's own\"", "\"so\""),
                refusal("why = \"the file format's own\"\n", ""),
                refusal("why = \"the", "reason = \"the"),
                refusal(
                    "rule = \"prose\"\ntext = '''\na sentence\nof two lines'''",
                    "rule = \"constant\"\ntext = \"4 KiB\""
                ),
            ]
            .join("\n")
        );
    }
}
