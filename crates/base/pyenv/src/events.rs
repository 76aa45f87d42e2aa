//! What a person may want to know while an environment is made ready.

use std::path::Path;
use std::time::Duration;

use infradev_model::Digest;

/// A step towards an environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// Another process builds the same environment; this one waits for it.
    Waiting {
        /// The environment's key.
        key: &'a Digest,
    },
    /// A build starts.
    Building {
        /// The environment's key.
        key: &'a Digest,
        /// How many packages it will hold.
        packages: usize,
    },
    /// Files of uv's cache cannot be hard links in environments: each is a copy. Told once.
    Copying {
        /// uv's cache.
        cache: &'a Path,
        /// The store.
        root: &'a Path,
    },
    /// A build is done.
    Built {
        /// The environment's key.
        key: &'a Digest,
        /// From the start of the build.
        took: Duration,
    },
    /// The folder of a build that was killed has been removed.
    Swept {
        /// Where it was.
        folder: &'a Path,
    },
}

/// Where events go. Any `Fn(Event)` will do.
pub trait Events {
    /// Called on the thread that asked for the environment.
    fn on(&self, event: Event<'_>);
}

impl<F: Fn(Event<'_>)> Events for F {
    fn on(&self, event: Event<'_>) {
        self(event);
    }
}

/// Drops every event.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quiet;

impl Events for Quiet {
    fn on(&self, _: Event<'_>) {}
}
