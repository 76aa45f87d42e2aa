//! `equivalent.toml`: mutants of golden that no input tells from golden, each with its reason.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::format::{self, FormatError};
use crate::mutant::{Mutant, Operator};
use crate::place;
use crate::task::is_tree_path;

/// The schema version of `equivalent.toml` that this program reads.
pub const EQUIVALENT_SCHEMA: u32 = 1;

/// Characters that a reason has at least.
const REASON: usize = 10;

/// `equivalent.toml`: mutants of golden that are listed as equivalent to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EquivalentSpec {
    /// Version of this file's format.
    pub schema: u32,
    /// The mutants.
    #[serde(rename = "mutant", default, skip_serializing_if = "Vec::is_empty")]
    pub mutants: Vec<EquivalentMutant>,
}

/// One of them: named by what it changes rather than by where, so that it survives a change elsewhere in golden.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EquivalentMutant {
    /// Path in golden's tree.
    pub file: String,
    /// The innermost function or class around it, as the mutant's record has it; empty at the module's level.
    pub function: String,
    /// The kind of mistake.
    pub operator: Operator,
    /// Golden's lines that it changes, as the mutant's record has them, without space around.
    pub was: String,
    /// What stands there instead, the same way; empty where they are gone.
    pub becomes: String,
    /// Which one, from 1 and by line, where golden has several that are alike in all of this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nth: Option<u32>,
    /// Why no input tells it from golden.
    pub why: String,
    /// The line of the entry, from 1, where it is known.
    #[serde(skip)]
    pub line: Option<usize>,
}

/// A mutant as an entry names it: itself, golden's lines and what stands there instead.
#[derive(Debug, Clone, Copy)]
pub struct ShownMutant<'a> {
    /// The mutant.
    pub mutant: &'a Mutant,
    /// Golden's lines that it changes.
    pub was: &'a str,
    /// What stands there instead.
    pub becomes: &'a str,
}

/// A key of an entry, and whether a mutant has what the entry says there.
type Key = (&'static str, fn(&EquivalentMutant, &ShownMutant<'_>) -> bool);

/// The keys that name a mutant, in the order in which they narrow.
const KEYS: [Key; 5] = [
    ("file", |entry, shown| shown.mutant.file == entry.file),
    ("function", |entry, shown| shown.mutant.function.as_deref().unwrap_or_default() == entry.function),
    ("operator", |entry, shown| shown.mutant.operator == entry.operator),
    ("was", |entry, shown| shown.was.trim() == entry.was.trim()),
    ("becomes", |entry, shown| shown.becomes.trim() == entry.becomes.trim()),
];

impl EquivalentSpec {
    /// Parses and checks an `equivalent.toml`.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<EquivalentSpec, FormatError> {
        let mut spec: EquivalentSpec = format::toml(file, bytes)?;
        let text = format::utf8(file, bytes)?;
        format::schema(file, spec.schema, EQUIVALENT_SCHEMA).map_err(|error| error.locate(text))?;
        for (index, entry) in spec.mutants.iter_mut().enumerate() {
            entry.line = place::line_of_key(text, &format!("mutant[{index}]"));
        }
        for (index, entry) in spec.mutants.iter().enumerate() {
            if !is_tree_path(&entry.file) {
                return Err(entry.refusal(
                    file,
                    index,
                    "file",
                    format!("`{}` is no path in the tree", entry.file),
                ));
            }
            if entry.why.trim().chars().count() < REASON {
                let what = "says why no input tells the mutant from golden, in 10 characters at least";
                return Err(entry.refusal(file, index, "why", what));
            }
            if let Some(other) = spec.mutants[..index].iter().position(|other| other.names_the_same(entry)) {
                let what = format!("names the mutant that `mutant[{other}]` names");
                return Err(entry.refusal(file, index, "file", what));
            }
        }
        Ok(spec)
    }
}

impl EquivalentMutant {
    /// The one mutant that the entry names. `file` and `index` say where the entry stands.
    ///
    /// # Errors
    /// That there is none, at the first key that leaves none; or that there are several.
    pub fn find<'a>(
        &self,
        file: &str,
        index: usize,
        mutants: &[ShownMutant<'a>],
    ) -> Result<&'a Mutant, FormatError> {
        let mut left: Vec<&ShownMutant<'a>> = mutants.iter().collect();
        for (key, agrees) in KEYS {
            let kept: Vec<&ShownMutant<'a>> =
                left.iter().copied().filter(|shown| agrees(self, shown)).collect();
            if kept.is_empty() {
                let error = self.refusal(file, index, key, stale(key, &left));
                return Err(error.meant(nearest(key, self, &left)));
            }
            left = kept;
        }
        left.sort_by_key(|shown| (shown.mutant.line, shown.mutant.start));
        let lines = || {
            let lines: Vec<String> = left.iter().map(|shown| shown.mutant.line.to_string()).collect();
            lines.join(", ")
        };
        match (self.nth, &left[..]) {
            (None | Some(1), [shown]) => Ok(shown.mutant),
            (None, _) => {
                let what = format!(
                    "names {} mutants of golden, in lines {}: say which with `nth`",
                    left.len(),
                    lines()
                );
                Err(self.refusal(file, index, "becomes", what))
            }
            (Some(nth), _) => match (nth as usize).checked_sub(1).and_then(|at| left.get(at)) {
                Some(shown) => Ok(shown.mutant),
                None => {
                    let what =
                        format!("there is no number {nth}: golden has such mutants in line {}", lines());
                    Err(self.refusal(file, index, "nth", what))
                }
            },
        }
    }

    fn names_the_same(&self, other: &EquivalentMutant) -> bool {
        let key = |entry: &EquivalentMutant| {
            let (was, becomes) = (entry.was.trim().to_string(), entry.becomes.trim().to_string());
            (entry.file.clone(), entry.function.clone(), entry.operator, was, becomes, entry.nth)
        };
        key(self) == key(other)
    }

    fn refusal(&self, file: &str, index: usize, key: &str, what: impl fmt::Display) -> FormatError {
        let mut error = FormatError::new(file, Some(&format!("mutant[{index}].{key}")), what.to_string());
        error.line = self.line;
        error
    }
}

/// That none of the mutants left has what an entry says under a key, and what they have instead.
fn stale(key: &str, left: &[&ShownMutant<'_>]) -> String {
    let known = match key {
        "operator" => {
            let mut names: Vec<&str> = left.iter().map(|shown| shown.mutant.operator.name()).collect();
            names.sort_unstable();
            names.dedup();
            format!("; known are {}", names.join(", "))
        }
        _ => String::new(),
    };
    let narrowed = if key == "file" { "" } else { ", with the keys above it" };
    format!("no mutant of golden has this{narrowed}{known}")
}

/// What a person may have meant, where one candidate is close.
fn nearest(key: &str, entry: &EquivalentMutant, left: &[&ShownMutant<'_>]) -> Option<String> {
    let given = match key {
        "file" => entry.file.as_str(),
        "function" => entry.function.as_str(),
        "was" => entry.was.trim(),
        "becomes" => entry.becomes.trim(),
        _ => return None,
    };
    let of = |shown: &ShownMutant<'_>| match key {
        "file" => shown.mutant.file.clone(),
        "function" => shown.mutant.function.clone().unwrap_or_default(),
        "was" => shown.was.trim().to_string(),
        _ => shown.becomes.trim().to_string(),
    };
    let candidates: Vec<String> = left.iter().map(|shown| of(shown)).collect();
    let candidates: Vec<&str> = candidates.iter().map(String::as_str).collect();
    format::nearest(given, &candidates)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Classified;

    const ENTRY: &str = "\
schema = 1

[[mutant]]
file = \"toy/model.py\"
function = \"triple\"
operator = \"drop-guard\"
was = \"\"\"
if x < 0:
        raise ValueError(\"negative\")\"\"\"
becomes = \"\"
why = \"nobody calls it with less than zero\"
";

    fn parsed(text: &str) -> Result<EquivalentSpec, String> {
        EquivalentSpec::parse("equivalent.toml", text.as_bytes())
            .map_err(|error| format!("{error} [{}]", error.hint().unwrap_or_default()))
    }

    fn mutant(function: Option<&str>, operator: Operator, line: u32) -> Mutant {
        Mutant {
            file: "toy/model.py".to_string(),
            start: 0,
            end: 0,
            line,
            replacement: Some(String::new()),
            operator,
            function: function.map(str::to_string),
            digest: Mutant::digest_of("toy/model.py", Some(&line.to_string())),
        }
    }

    /// What an entry makes of three mutants, two of them alike.
    fn found(edit: (&str, &str)) -> String {
        let spec = parsed(&ENTRY.replace(edit.0, edit.1)).expect("it parses");
        let guard = "    if x < 0:\n        raise ValueError(\"negative\")";
        let all = [
            (mutant(Some("triple"), Operator::DropGuard, 6), guard, ""),
            (mutant(Some("triple"), Operator::SwapConstant, 8), "    return 3 * x", "    return 4 * x"),
            (mutant(Some("triple"), Operator::SwapConstant, 9), "    return 3 * x", "    return 4 * x"),
        ];
        let shown: Vec<ShownMutant<'_>> =
            all.iter().map(|(mutant, was, becomes)| ShownMutant { mutant, was, becomes }).collect();
        match spec.mutants[0].find("equivalent.toml", 0, &shown) {
            Ok(mutant) => format!("line {}", mutant.line),
            Err(error) => format!("{error} [{}]", error.hint().unwrap_or_default()),
        }
    }

    #[test]
    fn an_entry_names_one_mutant_by_what_it_changes() {
        assert_eq!(found(("", "")), "line 6");
    }

    #[test]
    fn of_several_alike_an_entry_names_one_by_its_number() {
        let constant = "operator = \"swap-constant\"\nwas = \"return 3 * x\"\nbecomes = \"return 4 * x\"\n";
        let (from, to) = (ENTRY.find("operator").expect("a key"), ENTRY.find("why").expect("a key"));
        let nth = |nth: u32| found((&ENTRY[from..to], &format!("{constant}nth = {nth}\n")));
        assert_eq!([nth(1), nth(2)], ["line 8", "line 9"]);
        assert!(
            nth(3).starts_with("equivalent.toml:3: key `mutant[0].nth`: there is no number 3"),
            "{}",
            nth(3)
        );
        assert!(nth(0).contains("there is no number 0"), "{}", nth(0));
    }

    #[test]
    fn an_entry_that_names_none_or_several_is_refused_at_the_key_that_leaves_none() {
        let constant = "operator = \"swap-constant\"\nwas = \"return 3 * x\"\nbecomes = \"return 4 * x\"\n";
        let from = ENTRY.find("operator").expect("a key");
        let to = ENTRY.find("why").expect("a key");
        insta::assert_snapshot!(
            [
                found(("toy/model.py", "toy/models.py")),
                found(("\"triple\"", "\"tripel\"")),
                found(("drop-guard", "drop-reset")),
                found(("x < 0", "x < 1")),
                found(("becomes = \"\"", "becomes = \"pass\"")),
                found((&ENTRY[from..to], constant)),
            ]
            .join("\n")
        );
    }

    #[test]
    fn what_is_no_listing_is_refused_with_file_line_and_key() {
        let refusal = |find: &str, with: &str| parsed(&ENTRY.replace(find, with)).expect_err(with);
        let twice = format!("{ENTRY}\n{}", &ENTRY["schema = 1\n\n".len()..]);
        insta::assert_snapshot!(
            [
                refusal("schema = 1", "schema = 2"),
                refusal("why =", "reason ="),
                refusal("why = \"nobody calls it with less than zero\"", "why = \"it is so\""),
                refusal("why = \"nobody calls it with less than zero\"\n", ""),
                refusal("drop-guard", "drop-gard"),
                refusal("toy/model.py", "/toy/model.py"),
                parsed(&twice).expect_err("the same mutant twice"),
                parsed(&twice.replace("[[mutant]]", "[[ \"mutant\" ]]"))
                    .expect_err("the same in other words"),
            ]
            .join("\n")
        );
    }
}
