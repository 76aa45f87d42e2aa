//! What the building of environments says, as happenings.

use infradev_pyenv::{Event, Events};

use crate::progress::{Happening, Progress};

/// Hands events of pyenv on.
pub(crate) struct Words<'a> {
    progress: &'a dyn Progress,
}

impl<'a> Words<'a> {
    pub(crate) fn new(progress: &'a dyn Progress) -> Words<'a> {
        Words { progress }
    }
}

impl Events for Words<'_> {
    fn on(&self, event: Event<'_>) {
        let words = match event {
            Event::Waiting { key } => {
                format!("waiting for another process that builds environment {}", key.short())
            }
            Event::Building { key, packages } => {
                format!("building environment {} of {packages} packages", key.short())
            }
            Event::Copying { cache, root } => {
                format!(
                    "no hard links from {} into {}: environments get copies of their files",
                    cache.display(),
                    root.display()
                )
            }
            Event::Built { key, took } => {
                format!("built environment {} in {:.1} s", key.short(), took.as_secs_f64())
            }
            Event::Swept { folder } => format!("removed what a killed build left: {}", folder.display()),
        };
        self.progress.emit(Happening::Environment(words));
    }
}
