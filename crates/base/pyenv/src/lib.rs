//! Python environments by resolved package set: built once by uv, files hard-linked from one cache.
//!
//! # On disk
//!
//! ```text
//! <root>/<key>/                    a relocatable virtual environment, complete from the moment that its name exists
//! <root>/<key>/infradev-env.json   its packages, interpreter, key
//! <root>/.building-<key>-…/        one being built, or what a killed builder left; swept by the next build
//! <root>/.locks/<key>              an advisory lock (flock) held while that environment is built
//! <root>/.uses/<key>               an advisory lock shared by those who use it; its time is that of the last use
//! <root>/.removing-<key>           one being removed; swept by the next `collect`
//! <root>/.interpreters/            which interpreter was found for a version, while its file is the same
//! <root>/.cache/                   uv's cache; $UV_CACHE_DIR where that is set
//! ```
//!
//! A build happens under another name and appears by one rename, so a reader needs no lock and a kill at any instant
//! leaves only a `.building-` folder. `uv venv --relocatable` is what lets a finished environment be renamed: its
//! scripts find the interpreter beside themselves, and Python corrects the paths in bytecode when it loads it. A power
//! failure is not covered: data is not flushed before the rename.
//!
//! Hard links need the cache and the environments on one file system; with `UV_CACHE_DIR` elsewhere uv copies. Files of
//! an environment are the cache's own: mount it read-only.
//!
//! Beside environments: [`Layers`], what is compiled of the trees that are tested in them, with the same locks and leases.

mod environments;
mod error;
mod events;
mod export;
mod interpreter;
mod inventory;
mod layers;
mod lease;
mod lock;
mod marker;
mod plugins;
mod proposal;
mod pylock;
mod remembered;
mod under_way;
mod uv;
mod verification;

pub use environments::{Definition, Environment, Environments};
pub use error::PyenvError;
pub use events::{Event, Events, Quiet};
pub use inventory::{Share, Stored, Usage, left_over};
pub use layers::{BuiltWith, Layer, LayerFile, Layers, Making, StoredLayer};
pub use lease::Lease;
pub use lock::{Lock, Package, Resolved};
pub use marker::MarkerValues;
pub use proposal::{Proposal, is_read as is_read_for_proposal, propose};
pub use uv::PASSED_TO_UV;
pub use verification::Verification;
