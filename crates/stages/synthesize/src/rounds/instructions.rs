//! What an agent is told in each role.

use infradev_model::{AgentRole, TaskSpec};

/// How probes are written, as the book says it.
pub(super) const PROBES: &str = include_str!("../../../../../docs/src/probes.md");

/// The prompt of a step.
pub(super) fn prompt(role: AgentRole, task: &TaskSpec, round: u32, rounds: u32) -> String {
    let worlds: Vec<String> = task.worlds.iter().map(u32::to_string).collect();
    let aim = match role {
        AgentRole::Adversary => ADVERSARY,
        AgentRole::Prober => PROBER,
        AgentRole::Prompter => PROMPTER,
    };
    format!(
        "# {}: {}\n\n{SETTING}\n\nTests run at world size {}. This is round {round} of {rounds}; `REPORT.md` says what the last one came to.\n\n{aim}\n{RULES}",
        role.word(),
        task.title,
        worlds.join(" and "),
    )
}

const SETTING: &str = "\
A real change to AI infrastructure, the *golden patch*, is to become a graded task: whoever attempts it sees a specification and
an interface contract, and is graded by the change's own *official tests* and by *hidden probes*, which check what the change
promises and the official tests leave open. Your folder holds

- `task/`: the task. `spec.md` and `contract.toml` (public), `golden.patch`, `official.patch`, `adversarial/`, `probes/` (sealed);
- `base/`: the repository before the change;
- `golden/`: the repository with the change and its official tests, for you to read and to run;
- `PROBES.md`: how probes are written;
- `REPORT.md`: what the last round came to.";

const ADVERSARY: &str = "\
## Your part

Find what the official tests do not notice. Write *adversarial patches*: each passes every official test at least as well as golden,
and breaks one promise of the change that a user would miss: a number that is wrong for some inputs, state that is stale, memory or
traffic that is not saved, a condition that is not met. A patch that merely does nothing new is no use: base and a hollow golden are
tried anyway. Small and plausible is best, such as a hurried colleague might write.

Write `task/adversarial/NAME.toml`, one a patch:

    schema = 1
    promise = \"the promise that it breaks, in one sentence\"

    [[replace]]
    file = \"path/in/the/repository.py\"
    find = \"text that stands exactly once in golden's file\"
    with = \"what stands there instead\"

Try each in a copy of `golden/` against the official tests before you leave it.";

const PROBER: &str = "\
## Your part

Write probes, `task/probes/judge_*.py` with `task/probes/observe_*.py`, by the rules of `PROBES.md`. Golden passes each of them in every
run and at every world size; base, a hollow golden and every patch in `task/adversarial/` is rejected by one or more. A rejection counts
when the code under test answers and the answer is wrong, not when a name is missing. Compute references in the judge, by other means
than golden's. Touch only names that base has or that `task/contract.toml` may state; do not test how golden does it.";

const PROMPTER: &str = "\
## Your part

Make `task/spec.md` and `task/contract.toml` state all that the official tests and the probes rely on, and nothing of the solution. The
specification says what and why, the data flow before and after, the scope, each required behaviour, what is left to the one who attempts
it, what must not regress, and what the tests cover at a high level. The contract lists each new name, signature, keyword, attribute,
setting, flag or environment variable that a test touches. No lines, constants, private names or long passages of golden.";

const RULES: &str = "
## Rules

- Write in your own files under `task/` only; whatever you write elsewhere is dropped.
- Nothing can be looked up: there is no network.
- What you leave running ends with you.
- Stop when you are done; nobody answers questions.
";
