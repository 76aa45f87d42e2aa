//! What tests of mutants share: golden as a small function, and the lines that mutants of one kind leave of it.

#![allow(dead_code, reason = "each test file uses its part")]

use infradev_model::{Mutant, Operator};
use infradev_pycode::{MutationSource, mutants};

pub fn mutants_between(base: &str, golden: &str) -> Vec<Mutant> {
    mutants(&MutationSource { path: "pkg/module.py", base: Some(base), golden: Some(golden) }).unwrap()
}

/// The lines that each mutant of a kind puts in place of golden's, in the order of the text.
pub fn lines_of(operator: Operator, base: &str, golden: &str) -> Vec<String> {
    let of_kind = |mutant: &Mutant| mutant.operator == operator;
    mutants_between(base, golden).into_iter().filter(of_kind).map(|mutant| lines(&mutant, golden)).collect()
}

fn lines(mutant: &Mutant, golden: &str) -> String {
    let text = mutant.text(golden).unwrap();
    let start = golden[..mutant.start].rfind('\n').map_or(0, |at| at + 1);
    let end = mutant.start + mutant.replacement.as_ref().unwrap().len();
    let end = text[end..].find('\n').map_or(text.len(), |at| end + at);
    text[start..end].trim().to_owned()
}

/// A body as a method of a class, all of it added to a file that had nothing.
pub fn method(body: &str) -> String {
    let body: String = body.lines().map(|line| format!("        {line}\n")).collect();
    format!("class Layer:\n    def forward(self, x, flag: bool, group=None):\n{body}        return x\n")
}

/// Each body beside what the mutants of a kind make of it.
#[track_caller]
pub fn table(operator: Operator, cases: &[(&str, &[&str])]) {
    for (body, expected) in cases {
        assert_eq!(lines_of(operator, "", &method(body)), *expected, "{operator} of `{body}`");
    }
}
