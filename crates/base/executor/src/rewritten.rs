//! Golden written anew, as submissions: what they do is what golden does.

use std::collections::BTreeMap;
use std::fs;

use infradev_pycode::{ParseError, RewriteKind, RewriteSource, rewrites};

use crate::derived::{DeriveError, GoldenChange, at};

/// Golden with one function written anew.
#[derive(Debug, Clone)]
pub struct Rewritten {
    /// How.
    pub kind: RewriteKind,
    /// The file.
    pub file: String,
    /// The function, as `__qualname__` has it.
    pub function: String,
    /// The whole file's text; golden's other files stay as they are.
    pub text: String,
}

impl Rewritten {
    /// What it is called: `renamed-locals of ministack/moe.py::Layer.forward`.
    pub fn name(&self) -> String {
        format!("{} of {}::{}", self.kind, self.file, self.function)
    }
}

/// All rewrites of a change.
#[derive(Debug, Clone, Default)]
pub struct RewrittenChange {
    /// In the order of golden's files and functions.
    pub rewritten: Vec<Rewritten>,
    /// Files of golden or base that don't parse: nothing of them is rewritten.
    pub unparsed: Vec<ParseError>,
}

impl RewrittenChange {
    /// At most `limit` of them, spread over kinds first, then over files, then over functions: first one of each kind, in the
    /// order of files and functions, then one of each kind in each further file, then second ones, and so on.
    pub fn chosen(&self, limit: usize) -> Vec<&Rewritten> {
        let mut in_file: BTreeMap<(RewriteKind, &str), usize> = BTreeMap::new();
        let mut of_kind: BTreeMap<(RewriteKind, usize), usize> = BTreeMap::new();
        let mut ranked: Vec<((usize, usize), &Rewritten)> = Vec::new();
        for rewritten in &self.rewritten {
            let turn = next(&mut in_file, (rewritten.kind, rewritten.file.as_str()));
            let file = next(&mut of_kind, (rewritten.kind, turn));
            ranked.push(((turn, file), rewritten));
        }
        // Stable: within a rank the order of the text stays.
        ranked.sort_by_key(|(rank, _)| *rank);
        ranked.into_iter().take(limit).map(|(_, rewritten)| rewritten).collect()
    }
}

/// How often something was asked for before.
fn next<K: Ord>(counts: &mut BTreeMap<K, usize>, key: K) -> usize {
    let count = counts.entry(key).or_default();
    *count += 1;
    *count - 1
}

impl GoldenChange<'_> {
    /// Behaviour-preserving rewrites of the functions that golden adds. A probe that fails one of them is over-fitted.
    pub fn rewrites(&self) -> Result<RewrittenChange, DeriveError> {
        let mut all = RewrittenChange::default();
        let before = self.before()?;
        for (file, golden) in self.after()? {
            let base = before.iter().find(|(path, _)| *path == file).map(|(_, text)| text.as_str());
            match rewrites(&RewriteSource { file: &file, base, golden: &golden }) {
                Ok(found) => all.rewritten.extend(found.into_iter().map(|rewrite| Rewritten {
                    kind: rewrite.kind,
                    file: rewrite.file,
                    function: rewrite.function,
                    text: rewrite.text,
                })),
                Err(error) => all.unparsed.push(error),
            }
        }
        Ok(all)
    }

    /// A rewrite as a submission.
    pub fn rewritten(&self, rewrite: &Rewritten) -> Result<Vec<u8>, DeriveError> {
        let work = self.fresh()?;
        let target = work.work().join(&rewrite.file);
        fs::write(&target, &rewrite.text).map_err(at(&target))?;
        work.diff()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_spread_over_kinds_then_files_then_functions() {
        let of = |kind, file: &str, function: &str| Rewritten {
            kind,
            file: file.into(),
            function: function.into(),
            text: String::new(),
        };
        use RewriteKind::{MovedFunction, RenamedLocals};
        let change = RewrittenChange {
            rewritten: vec![
                of(RenamedLocals, "a.py", "one"),
                of(RenamedLocals, "a.py", "two"),
                of(MovedFunction, "a.py", "two"),
                of(RenamedLocals, "b.py", "three"),
            ],
            unparsed: Vec::new(),
        };
        let names = |limit| -> Vec<String> {
            change
                .chosen(limit)
                .iter()
                .map(|rewritten| format!("{} {}", rewritten.kind, rewritten.function))
                .collect()
        };
        let order =
            ["renamed-locals one", "moved-function two", "renamed-locals three", "renamed-locals two"];
        for limit in 0..=5 {
            assert_eq!(names(limit), order[..limit.min(4)], "{limit}");
        }
    }
}
