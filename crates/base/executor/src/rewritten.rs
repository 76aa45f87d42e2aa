//! Golden written anew, as submissions: what they do is what golden does.

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
    /// The submission.
    pub patch: Vec<u8>,
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
    /// Submissions, in the order of golden's files and functions.
    pub rewritten: Vec<Rewritten>,
    /// Files of golden or base that don't parse: nothing of them is rewritten.
    pub unparsed: Vec<ParseError>,
}

impl GoldenChange<'_> {
    /// Behaviour-preserving rewrites of the functions that golden adds, each a submission. A probe that fails one
    /// of them is over-fitted.
    pub fn rewrites(&self) -> Result<RewrittenChange, DeriveError> {
        let mut all = RewrittenChange::default();
        let before = self.before()?;
        for (file, golden) in self.after()? {
            let base = before.iter().find(|(path, _)| *path == file).map(|(_, text)| text.as_str());
            let found = match rewrites(&RewriteSource { file: &file, base, golden: &golden }) {
                Ok(found) => found,
                Err(error) => {
                    all.unparsed.push(error);
                    continue;
                }
            };
            for rewrite in found {
                let work = self.fresh()?;
                let target = work.work().join(&file);
                fs::write(&target, &rewrite.text).map_err(at(&target))?;
                all.rewritten.push(Rewritten {
                    kind: rewrite.kind,
                    file: rewrite.file,
                    function: rewrite.function,
                    patch: work.diff()?,
                });
            }
        }
        Ok(all)
    }
}
