//! Which commits are one change, and which changes were taken back: read from messages in the order of the history.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use infradev_model::{AlsoAt, LeftOutBecause, Repeats};

use crate::message::{Message, without_tags};

/// A commit, as far as grouping needs it.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its id.
    pub commit: String,
    /// Which of the main lines that were asked for has it, the first where several do.
    pub line: usize,
    /// What its message says.
    pub message: Message,
    /// Paths of source files that it changes.
    pub sources: BTreeSet<String>,
}

/// What became of each commit.
#[derive(Debug, Default)]
pub struct Grouped {
    /// Commits that stand for a change that is still there, with the others of the same change.
    pub standing: BTreeMap<String, Vec<AlsoAt>>,
    /// The others, with the commit that is why.
    pub left_out: BTreeMap<String, (LeftOutBecause, Option<String>)>,
}

struct Change {
    members: Vec<(usize, Option<Repeats>)>,
    /// Members that were taken back, with what did it.
    dead: HashMap<usize, usize>,
}

/// Groups commits, the oldest of each line first.
pub fn group(members: &[Member]) -> Grouped {
    let mut index = Index::default();
    let mut changes: Vec<Change> = Vec::new();
    // For each member the change that it is of, or that it takes back.
    let mut change_of: Vec<Option<usize>> = vec![None; members.len()];
    let mut acts: BTreeMap<usize, Option<usize>> = BTreeMap::new();
    for (at, member) in members.iter().enumerate() {
        let act = member.message.act.as_ref();
        let target = act.and_then(|act| {
            let by_commit = act.commits.iter().find_map(|commit| index.by_commit(commit));
            let by_number = || act.number.as_ref().and_then(|number| index.by_number.get(number).copied());
            by_commit.or_else(by_number).or_else(|| index.by_title.get(key(&act.title).as_str()).copied())
        });
        let target = target.filter(|target| *target != at);
        let about = target.and_then(|target| change_of[target]);
        match (act, about) {
            (Some(act), Some(change)) => {
                // A revert of a commit that is itself one brings back, whatever its words are.
                let of_revert = target.is_some_and(|t| {
                    acts.contains_key(&t) && !changes[change].members.iter().any(|(m, _)| *m == t)
                });
                let restores = if of_revert && !act.commits.is_empty() { true } else { act.restores };
                if restores {
                    changes[change].members.push((at, Some(Repeats::Reland)));
                } else {
                    let same_line: Vec<usize> = changes[change]
                        .members
                        .iter()
                        .map(|(m, _)| *m)
                        .filter(|m| members[*m].line == member.line)
                        .collect();
                    for m in same_line {
                        changes[change].dead.entry(m).or_insert(at);
                    }
                    acts.insert(at, target);
                }
                change_of[at] = Some(change);
            }
            // It takes back what was not read, so what it brings back is its own.
            (Some(act), None) if !act.restores => {
                acts.insert(at, None);
                changes.push(Change { members: Vec::new(), dead: HashMap::new() });
                change_of[at] = Some(changes.len() - 1);
            }
            _ => {
                let same = index.same_as(member, members);
                let change = match same.and_then(|(other, by)| change_of[other].map(|change| (change, by))) {
                    Some((change, by)) if !changes[change].members.is_empty() => {
                        changes[change].members.push((at, Some(by)));
                        change
                    }
                    _ => {
                        changes.push(Change { members: vec![(at, None)], dead: HashMap::new() });
                        changes.len() - 1
                    }
                };
                change_of[at] = Some(change);
            }
        }
        index.add(at, member);
    }
    told(members, &changes, &acts)
}

fn told(members: &[Member], changes: &[Change], acts: &BTreeMap<usize, Option<usize>>) -> Grouped {
    let mut grouped = Grouped::default();
    let id = |at: usize| members[at].commit.clone();
    for (at, target) in acts {
        grouped.left_out.insert(id(*at), (LeftOutBecause::Revert, target.map(id)));
    }
    for change in changes {
        let alive = change.members.iter().filter(|(at, _)| !change.dead.contains_key(at));
        let head = alive.min_by_key(|(at, _)| (members[*at].line, *at)).copied();
        for (at, _) in &change.members {
            match (change.dead.get(at), head) {
                (Some(by), _) => {
                    grouped.left_out.insert(id(*at), (LeftOutBecause::Reverted, Some(id(*by))));
                }
                (None, Some((head, _))) if head != *at => {
                    grouped.left_out.insert(id(*at), (LeftOutBecause::Duplicate, Some(id(head))));
                }
                _ => {}
            }
        }
        if let Some((head, its)) = head {
            let others = change.members.iter().filter(|(at, _)| *at != head);
            let also = others
                .map(|(at, by)| AlsoAt { commit: id(*at), by: by.or(its).unwrap_or(Repeats::SameNumber) });
            grouped.standing.insert(id(head), also.collect());
        }
    }
    grouped
}

/// The shortest title by which two commits are the same change.
const TELLING_TITLE: usize = 16;

fn key(title: &str) -> String {
    without_tags(title).to_lowercase()
}

#[derive(Default)]
struct Index {
    commits: BTreeMap<String, usize>,
    by_number: HashMap<String, usize>,
    by_title: HashMap<String, usize>,
}

impl Index {
    fn add(&mut self, at: usize, member: &Member) {
        self.commits.insert(member.commit.clone(), at);
        if let Some(number) = &member.message.number {
            self.by_number.insert(number.clone(), at);
        }
        if member.message.act.is_none() {
            self.by_title.insert(key(&member.message.title), at);
        }
    }

    /// The commit that a full or short id names.
    fn by_commit(&self, id: &str) -> Option<usize> {
        self.commits
            .range(id.to_owned()..)
            .next()
            .filter(|(known, _)| known.starts_with(id))
            .map(|(_, at)| *at)
    }

    fn same_as(&self, member: &Member, members: &[Member]) -> Option<(usize, Repeats)> {
        let message = &member.message;
        if let Some(at) = message.picked.iter().find_map(|commit| self.by_commit(commit)) {
            return Some((at, Repeats::CherryPick));
        }
        if let Some(at) = message.earlier.iter().find_map(|number| self.by_number.get(number).copied()) {
            return Some((at, Repeats::CherryPick));
        }
        if let Some(at) = message.number.as_ref().and_then(|number| self.by_number.get(number).copied()) {
            return Some((at, Repeats::SameNumber));
        }
        let title = key(&message.title);
        let at = self.by_title.get(&title).copied().filter(|_| title.len() >= TELLING_TITLE)?;
        let (mine, theirs) = (&member.sources, &members[at].sources);
        let shared = mine.intersection(theirs).count();
        (shared > 0 && shared * 5 >= mine.len().max(theirs.len()) * 4).then_some((at, Repeats::SameTitle))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::read;

    fn history(lines: &[(&str, usize, &str, &str)]) -> Grouped {
        let members: Vec<Member> = lines
            .iter()
            .map(|(commit, line, subject, body)| Member {
                commit: (*commit).to_owned(),
                line: *line,
                message: read(subject, body),
                sources: BTreeSet::from(["a.py".to_owned()]),
            })
            .collect();
        group(&members)
    }

    fn standing(grouped: &Grouped) -> Vec<&str> {
        grouped.standing.keys().map(String::as_str).collect()
    }

    #[test]
    fn a_reverted_change_is_dropped_and_a_reverted_revert_brings_it_back() {
        let one = ("a1", 0, "Add x (#1)", "");
        let two = ("b2", 0, "Revert \"Add x (#1)\" (#2)", "");
        let three = ("c3", 0, "Revert \"Revert \"Add x (#1)\" (#2)\" (#3)", "");
        let dropped = history(&[one, two]);
        assert!(dropped.standing.is_empty());
        assert_eq!(dropped.left_out["a1"], (LeftOutBecause::Reverted, Some("b2".into())));
        assert_eq!(dropped.left_out["b2"], (LeftOutBecause::Revert, Some("a1".into())));
        let back = history(&[one, two, three]);
        assert_eq!(standing(&back), ["c3"]);
        assert_eq!(back.standing["c3"], [AlsoAt { commit: "a1".into(), by: Repeats::Reland }]);
        let gone = history(&[one, two, three, ("d4", 0, "Revert \"Reapply \"Add x (#1)\"\" (#4)", "")]);
        assert!(gone.standing.is_empty(), "{gone:?}");
    }

    #[test]
    fn git_s_own_reapply_names_the_revert_and_restores_what_that_took() {
        let full = "0123456789abcdef0123456789abcdef01234567";
        let body = format!("This reverts commit {full}.");
        let grouped = history(&[
            ("a1", 0, "Add x (#1)", ""),
            (full, 0, "Revert \"Add x (#1)\"", ""),
            ("c3", 0, "Reapply \"Add x (#1)\"", &body),
        ]);
        assert_eq!(standing(&grouped), ["c3"]);
    }

    #[test]
    fn picks_across_branches_are_one_candidate_and_a_revert_counts_on_its_own_branch() {
        let lines = [
            ("a1", 0, "Add x (#1)", ""),
            ("b2", 1, "Add x (#1) (#2)", ""),
            ("c3", 1, "Revert \"Add x (#1) (#2)\" (#3)", ""),
        ];
        let grouped = history(&lines);
        assert_eq!(standing(&grouped), ["a1"]);
        assert_eq!(grouped.left_out["b2"], (LeftOutBecause::Reverted, Some("c3".into())));
        let grouped = history(&lines[..2]);
        assert_eq!(grouped.left_out["b2"], (LeftOutBecause::Duplicate, Some("a1".into())));
    }

    #[test]
    fn a_revert_of_something_unread_is_left_out_too() {
        let grouped = history(&[("a1", 0, "Revert \"Something old (#9)\" (#10)", "")]);
        assert_eq!(grouped.left_out["a1"], (LeftOutBecause::Revert, None));
    }
}
