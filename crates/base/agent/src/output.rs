//! What an agent says of its own end and of what it used, in its own words.

use infradev_model::Tokens;

/// What an agent said of its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum OwnWord {
    /// It says nothing of it.
    #[default]
    Nothing,
    /// It says nothing of it, though its output would: in a sentence, with what it said of an error before.
    Missing(String),
    /// That it is done.
    Done,
    /// That it failed.
    Failed(String),
    /// That a limit of its own ended it.
    Limit(String),
}

/// What an agent's log says in its own words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Said {
    /// How it ended: the last word counts.
    pub word: OwnWord,
    /// What it used, by its own count.
    pub tokens: Option<Tokens>,
}
