//! What is shown while trials run: bars with case counts on a terminal, plain lines elsewhere, nothing when quiet. All of it
//! goes to stderr.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use infradev_executor::{Happening, Progress};
use infradev_trial::TrialEvent;

use crate::report;

/// Shows happenings.
pub struct Shown {
    way: Way,
}

enum Way {
    Nothing,
    Lines,
    Bars { all: MultiProgress, trials: Mutex<HashMap<String, Trial>> },
}

struct Trial {
    bar: ProgressBar,
    /// Cases that the suites announced so far.
    collected: u64,
    expected: Option<u64>,
}

impl Shown {
    /// Bars where stderr is a terminal.
    pub fn new(quiet: bool) -> Shown {
        let way = if quiet {
            Way::Nothing
        } else if std::io::stderr().is_terminal() {
            let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
            Way::Bars { all, trials: Mutex::default() }
        } else {
            Way::Lines
        };
        Shown { way }
    }

    /// A line that stays.
    pub fn line(&self, text: &str) {
        match &self.way {
            Way::Nothing => {}
            Way::Lines => report::note(text),
            Way::Bars { all, .. } => {
                let _ = all.println(report::visible(text));
            }
        }
    }

    /// Takes all bars away, before results are printed.
    pub fn clear(&self) {
        if let Way::Bars { all, trials } = &self.way {
            trials.lock().unwrap_or_else(PoisonError::into_inner).clear();
            let _ = all.clear();
        }
    }

    fn started(&self, label: &str, expected: Option<u64>) {
        let Way::Bars { all, trials } = &self.way else { return };
        let bar = all.add(ProgressBar::new(expected.unwrap_or(0)));
        let with_total = "{spinner} {msg} {bar:20.cyan/dim} {pos}/{len} cases {elapsed}";
        if let Ok(style) = ProgressStyle::with_template(with_total) {
            bar.set_style(style.progress_chars("━━─"));
        }
        bar.set_message(label.to_string());
        bar.enable_steady_tick(Duration::from_millis(200));
        let trial = Trial { bar, collected: 0, expected };
        trials.lock().unwrap_or_else(PoisonError::into_inner).insert(label.to_string(), trial);
    }

    fn trial_event(&self, label: &str, event: &TrialEvent) {
        let Way::Bars { trials, .. } = &self.way else { return };
        let mut trials = trials.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(trial) = trials.get_mut(label) else { return };
        match event {
            TrialEvent::Collected { cases, .. } => {
                trial.collected += *cases as u64;
                trial.bar.set_length(trial.expected.unwrap_or(0).max(trial.collected));
            }
            TrialEvent::CaseEnded { .. } => {
                // Cases that must fail are told of too and are no part of the total.
                let most = trial.bar.length().unwrap_or(u64::MAX);
                trial.bar.set_position((trial.bar.position() + 1).min(most));
            }
            TrialEvent::CaseStarted { .. } | TrialEvent::Launched { .. } => {}
        }
    }

    fn ended(&self, label: &str) {
        let Way::Bars { trials, .. } = &self.way else { return };
        let trial = trials.lock().unwrap_or_else(PoisonError::into_inner).remove(label);
        if let Some(trial) = trial {
            trial.bar.finish_and_clear();
        }
    }
}

impl Progress for Shown {
    fn emit(&self, happening: Happening) {
        match happening {
            Happening::Environment(words) | Happening::Tree(words) => self.line(&words),
            Happening::Calibrating { task, world, runs } => {
                let (times, ranks) = (counted(runs, "run"), counted(world, "rank"));
                self.line(&format!("{task} · {ranks}: calibrating by {times} of golden and base"));
            }
            Happening::TrialStarted { label, expected } => self.started(&label, expected),
            Happening::Trial { label, event } => self.trial_event(&label, &event),
            Happening::TrialEnded { label, wall_s, cached, summary } => {
                self.ended(&label);
                let time = if cached { "recorded before".to_string() } else { format!("{wall_s:.1} s") };
                self.line(&format!("{label}: {summary} ({time})"));
            }
            Happening::Retried { label, evidence } => {
                self.ended(&label);
                let evidence = evidence.lines().next().unwrap_or_default().to_string();
                self.line(&format!("{label}: harness fault, trying again: {evidence}"));
            }
        }
    }
}

/// `1 rank`, `2 ranks`.
pub fn counted(count: u32, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}
