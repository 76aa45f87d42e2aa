//! Behaviour-preserving rewrites of golden through both suites: a case that fails one judges how golden is written.

use std::collections::BTreeSet;
use std::time::Instant;

use infradev_executor::{ChangedFile, GoldenChange, ReadyTask, Rewritten};
use infradev_model::{Digest, DigestBuilder, RejectedBy, RewriteRecord, Suite, Word};
use infradev_pycode::{Span, lines_around};
use infradev_trial::{Ask, Line, Session, TrialError};

use super::FunnelError;
use super::control::{SuiteControl, run};
use super::rejecting::word;
use super::trying::Trying;

/// At most `limit` rewrites of a task's golden patch, spread over kinds, files and functions.
pub fn rewrites_of(ready: &ReadyTask, limit: usize) -> Result<Vec<Rewritten>, FunnelError> {
    if limit == 0 {
        return Ok(Vec::new());
    }
    let all = GoldenChange::of(ready)?.rewrites()?;
    Ok(all.chosen(limit).into_iter().cloned().collect())
}

/// A rewrite with what it takes to try it.
pub(super) struct Anew<'a> {
    rewritten: &'a Rewritten,
    /// Names it among all rewrites.
    pub digest: Digest,
    /// The lines that must run for it to matter; none known means any may.
    lines: Option<BTreeSet<Line>>,
}

impl<'a> Anew<'a> {
    /// `followed` are the files whose lines are known, by index.
    pub(super) fn of(rewritten: &'a Rewritten, files: &[ChangedFile], followed: &[String]) -> Anew<'a> {
        let mut digest = DigestBuilder::new("infradev rewrite v1");
        digest.part("name", rewritten.name().as_bytes()).part("text", rewritten.text.as_bytes());
        let lines = || -> Option<BTreeSet<Line>> {
            let golden = files.iter().find(|file| file.path == rewritten.file)?.golden.as_deref()?;
            let index = followed.iter().position(|path| *path == rewritten.file)? as u32;
            let lines = lines_around(&rewritten.file, golden, differing(golden, &rewritten.text)).ok()?;
            Some(lines.into_iter().map(|line| (index, line)).collect())
        };
        Anew { rewritten, digest: digest.finish(), lines: lines() }
    }
}

/// The span of golden outside of which both texts are the same.
fn differing(golden: &str, anew: &str) -> Span {
    let common = |a: &mut dyn Iterator<Item = u8>, b: &mut dyn Iterator<Item = u8>| {
        a.zip(b).take_while(|(a, b)| a == b).count()
    };
    let start = common(&mut golden.bytes(), &mut anew.bytes());
    let rest = golden.len().min(anew.len()) - start;
    let end = common(&mut golden.bytes().rev(), &mut anew.bytes().rev()).min(rest);
    Span { start: golden.floor_char_boundary(start), end: golden.ceil_char_boundary(golden.len() - end) }
}

impl Trying<'_> {
    /// Tries one rewrite under both suites at all world sizes.
    pub(super) async fn anew(
        &self,
        session: &mut Session,
        anew: &Anew<'_>,
    ) -> Result<RewriteRecord, TrialError> {
        let begin = Instant::now();
        let mut record = RewriteRecord {
            rewrite: anew.rewritten.name(),
            official_reach: 0,
            probe_reach: 0,
            failed: Vec::new(),
            flaky: Vec::new(),
            wall_s: 0.0,
        };
        session.lay(&[(anew.rewritten.file.clone(), Some(anew.rewritten.text.clone().into_bytes()))])?;
        let outcome = self.anew_under(session, anew, &mut record).await;
        session.put_back()?;
        outcome?;
        record.wall_s = begin.elapsed().as_secs_f64();
        Ok(record)
    }

    async fn anew_under(
        &self,
        session: &mut Session,
        anew: &Anew<'_>,
        record: &mut RewriteRecord,
    ) -> Result<(), TrialError> {
        for control in &self.control.suites {
            let cases = control.reaching(anew.lines.as_ref());
            match control.suite {
                Suite::Official => record.official_reach += cases.len() as u32,
                Suite::Probe => record.probe_reach += cases.len() as u32,
            }
            let failed = self.failing(session, control, &cases).await?;
            let again: BTreeSet<String> = failed.iter().map(|by| by.case.clone()).collect();
            let twice: BTreeSet<String> =
                self.failing(session, control, &again).await?.into_iter().map(|by| by.case).collect();
            let (always, once): (Vec<_>, Vec<_>) =
                failed.into_iter().partition(|by| twice.contains(&by.case));
            record.failed.extend(always);
            record.flaky.extend(once.into_iter().map(|by| by.case));
        }
        Ok(())
    }

    /// The cases that do not pass on the tree as it is laid now.
    async fn failing(
        &self,
        session: &mut Session,
        control: &SuiteControl,
        cases: &BTreeSet<String>,
    ) -> Result<Vec<RejectedBy>, TrialError> {
        if cases.is_empty() {
            return Ok(Vec::new());
        }
        // A case may lean on those before it.
        let asked = match control.suite {
            Suite::Official => control.whole_files(cases),
            Suite::Probe => cases.clone(),
        };
        let (timeouts, deadlines) = control.timeouts(&self.task.public.spec.timeouts, &asked);
        let ask = Ask { cases: Some(&asked), ..Ask::all(control.world, &timeouts, &deadlines, self.seed) };
        let tried = run(session, control.suite, &ask).await?;
        let failing = |id: &String| {
            let found = tried.cases.iter().find(|case| case.case.id == *id);
            let word = found.map_or(Word::Missing, |case| word(control, case));
            let said = || match found {
                Some(case) => case.said(),
                None => tried.notes.first().cloned().unwrap_or_default(),
            };
            (word != Word::Passed).then(|| RejectedBy {
                suite: control.suite,
                case: id.clone(),
                world: control.world,
                word,
                said: said(),
            })
        };
        Ok(cases.iter().filter_map(failing).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_span_that_differs_holds_all_that_was_changed_and_no_half_character() {
        let span = |golden: &str, anew: &str| {
            let span = differing(golden, anew);
            golden[span.start..span.end].to_string()
        };
        assert_eq!(span("a = x\nb = 1\n", "a = y\nb = 1\n"), "x");
        assert_eq!(span("aa", "aaa"), "");
        assert_eq!(span("aaa", "aa"), "a");
        assert_eq!(span("é = 1", "è = 1"), "é");
    }
}
