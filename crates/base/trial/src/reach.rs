//! Which lines of golden's files each case reaches, as ranks told it.

use std::collections::{BTreeMap, BTreeSet};

use crate::messages::Reached;

/// A line of a file: the file's index in the list that was asked about, and the line, from 1.
pub type Line = (u32, u32);

/// The lines that one case reaches on any rank.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaseReach {
    /// Lines that ran while it ran.
    pub lines: BTreeSet<Line>,
    /// It may have reached more than was seen: it started processes, or a rank of it did not come back.
    pub wide: bool,
}

/// The lines that the cases of a suite reach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReachLog {
    /// By the case's id.
    pub cases: BTreeMap<String, CaseReach>,
    /// Lines that ran at import, at collection and in fixtures that cases share: each case may depend on them.
    pub shared: BTreeSet<Line>,
}

impl ReachLog {
    /// Adds what a rank of a suite that shares its processes told of a case.
    pub(crate) fn add(&mut self, id: &str, reached: Reached) {
        let case = self.cases.entry(id.to_string()).or_default();
        case.lines.extend(reached.own);
        case.wide |= reached.wide;
        self.shared.extend(reached.shared);
    }

    /// Adds what a rank told whose process belongs to this case alone.
    pub(crate) fn add_whole(&mut self, id: &str, reached: Reached) {
        let case = self.cases.entry(id.to_string()).or_default();
        case.lines.extend(reached.own);
        case.lines.extend(reached.shared);
        case.wide |= reached.wide;
    }

    pub(crate) fn add_wide(&mut self, id: &str) {
        self.cases.entry(id.to_string()).or_default().wide = true;
    }

    /// Whether a case reaches one of these lines, or may.
    pub fn reaches(&self, id: &str, lines: &BTreeSet<Line>) -> bool {
        let seen = |of: &BTreeSet<Line>| lines.iter().any(|line| of.contains(line));
        seen(&self.shared) || self.cases.get(id).is_some_and(|case| case.wide || seen(&case.lines))
    }
}
