//! How a run of an agent ended, by all that was seen of it.

use std::time::Duration;

use infradev_model::{Ending, Metered};
use infradev_sandbox::SandboxEnd;
use infradev_supervise::Exit;

use crate::output::OwnWord;
use crate::relay::Told;
use crate::tally::Last;

/// What is wrong with the endpoint, by its last answer; `answered`: whether it had answered this run before.
///
/// The agent chooses what it asks last, and an attempt that was kept from its model is made again. So an answer that one gets by
/// asking for the wrong thing is the agent's own doing: 400, 413 and 422 always, and once the endpoint has answered all but those by
/// which it says that it cannot answer now.
pub(crate) fn trouble(last: &Last, answered: bool) -> Option<String> {
    let own = |status: u16| match answered {
        false => [400, 413, 422].contains(&status),
        true => !matches!(status, 200 | 408 | 429 | 500..),
    };
    match last {
        Last::Status(status, why) if !own(*status) => Some(format!("the endpoint answered {status}: {why}")),
        Last::Unreachable(why) => Some(format!("the endpoint could not be reached: {why}")),
        _ => None,
    }
}

/// An agent that had no answer all the time has not been tried.
pub(crate) fn timed_out(after: Duration, metered: &Metered, last: &Last) -> (Ending, Option<String>) {
    let after = format!("after {} s", after.as_secs());
    match trouble(last, false).filter(|_| metered.failed == metered.requests) {
        Some(trouble) => (Ending::EndpointUnreachable, Some(format!("{trouble}; {after}"))),
        None => (Ending::TimedOut, Some(after)),
    }
}

/// How an agent that ended by itself ended.
pub(crate) fn judge(
    end: &SandboxEnd,
    told: &Told,
    word: OwnWord,
    last: Last,
    metered: &Metered,
    has_model: bool,
) -> (Ending, Option<String>) {
    let trouble = trouble(&last, metered.requests > metered.failed);
    let limit = end.excess.map(|excess| format!("{excess:?}").to_lowercase());
    let failed = match (&word, limit) {
        (_, Some(limit)) => Some(format!("it went over its limit of {limit}")),
        (OwnWord::Failed(why), _) => Some(why.clone()),
        _ if end.oom_kills > 0 && !end.exit.success() => Some("it went over its limit of memory".to_owned()),
        _ if !end.exit.success() => Some(told.not_started.clone().unwrap_or_else(|| in_words(end.exit))),
        _ => None,
    };
    match (failed, word, trouble, last) {
        (_, OwnWord::Limit(why), ..) => (Ending::Budget, Some(why)),
        (Some(why), _, Some(trouble), _) => (Ending::EndpointUnreachable, Some(format!("{trouble}; {why}"))),
        // One that gives up on its model, and says nothing of its end, may exit well all the same.
        (None, OwnWord::Nothing | OwnWord::Missing(_), Some(trouble), _) if has_model => {
            (Ending::EndpointUnreachable, Some(trouble))
        }
        (_, _, _, Last::Refused) => (Ending::Refused, None),
        // Whoever says how it ended, and this time does not, did not come to its end, whatever its exit code.
        (Some(why), ..) | (None, OwnWord::Missing(why), ..) => (Ending::AgentCrashed, Some(why)),
        (None, ..) => (Ending::Finished, None),
    }
}

/// How a process ended, as a sentence.
fn in_words(exit: Exit) -> String {
    match exit {
        Exit::Code(_) => format!("it ended with {exit}"),
        Exit::Signal(_) => format!("it was {exit}"),
        Exit::TimedOut => "it was killed at its deadline".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_reads_as_a_sentence() {
        assert_eq!(in_words(Exit::Code(7)), "it ended with exit status 7");
        assert_eq!(in_words(Exit::Signal(9)), "it was killed by SIGKILL");
    }

    fn ending(code: i32, word: OwnWord, last: Last) -> Ending {
        ending_after(0, code, word, last)
    }

    /// The same of a run that had so many answers before.
    fn ending_after(answers: u64, code: i32, word: OwnWord, last: Last) -> Ending {
        let end = SandboxEnd { exit: Exit::Code(code), excess: None, oom_kills: 0, memory_peak: None };
        let metered = Metered { requests: answers + 1, failed: 1, ..Metered::default() };
        judge(&end, &Told::default(), word, last, &metered, true).0
    }

    #[test]
    fn what_an_agent_gets_by_asking_for_the_wrong_thing_is_no_fault_of_an_endpoint_that_answered_before() {
        let status = |status: u16| Last::Status(status, "no".into());
        for (code, word) in [(1, OwnWord::Nothing), (0, OwnWord::Nothing)] {
            for wrong in [302, 401, 403, 404, 405, 415] {
                let before = ending_after(0, code, word.clone(), status(wrong));
                assert_eq!(before, Ending::EndpointUnreachable, "{wrong} as the only answer");
                let after = ending_after(1, code, word.clone(), status(wrong));
                assert_ne!(after, Ending::EndpointUnreachable, "{wrong} after an answer");
            }
            for busy in [200, 408, 429, 500, 503, 529] {
                assert_eq!(ending_after(1, code, word.clone(), status(busy)), Ending::EndpointUnreachable);
            }
        }
    }

    #[test]
    fn an_ending_is_read_from_exit_code_own_word_and_the_last_answer_together() {
        let overloaded = || Last::Status(529, "Overloaded".into());
        let too_long = Last::Status(400, "prompt is too long".into());
        let failed = || OwnWord::Failed("API Error".into());
        assert_eq!(ending(0, OwnWord::Done, Last::Answered), Ending::Finished);
        assert_eq!(ending(0, OwnWord::Nothing, Last::None), Ending::Finished);
        assert_eq!(ending(0, failed(), Last::Answered), Ending::AgentCrashed);
        assert_eq!(ending(1, OwnWord::Nothing, Last::Answered), Ending::AgentCrashed);
        assert_eq!(ending(1, failed(), overloaded()), Ending::EndpointUnreachable);
        assert_eq!(ending(0, OwnWord::Nothing, overloaded()), Ending::EndpointUnreachable);
        // The last request may have been for a title.
        assert_eq!(ending(0, OwnWord::Done, overloaded()), Ending::Finished);
        assert_eq!(ending(1, failed(), Last::Unreachable("refused".into())), Ending::EndpointUnreachable);
        assert_eq!(ending(1, failed(), too_long), Ending::AgentCrashed);
        let missing = || OwnWord::Missing("it ended without its last word".into());
        assert_eq!(ending(0, missing(), Last::Answered), Ending::AgentCrashed);
        assert_eq!(ending(0, missing(), Last::Refused), Ending::Refused);
        assert_eq!(ending(0, missing(), overloaded()), Ending::EndpointUnreachable);
        assert_eq!(ending(0, OwnWord::Limit("turns".into()), Last::Answered), Ending::Budget);
        assert_eq!(ending(0, OwnWord::Done, Last::Refused), Ending::Refused);
    }

    #[test]
    fn a_time_that_passed_without_any_answer_is_the_endpoints() {
        let of = |requests: u64, failed: u64| {
            let metered = Metered { requests, failed, ..Metered::default() };
            timed_out(Duration::from_secs(9), &metered, &Last::Status(529, "Overloaded".into())).0
        };
        assert_eq!((of(3, 3), of(3, 2)), (Ending::EndpointUnreachable, Ending::TimedOut));
    }
}
