//! What InfraDev reads from disk (packs, tasks) and keeps on disk (`$INFRADEV_HOME`).
//!
//! Whatever is written appears under its name whole, by a rename, or not at all: after a kill at any instant, or on a full
//! disk, a reader finds the old file or the new one. Locks are advisory (flock) and end with their process.

mod calibrations;
mod canary;
mod disk;
mod error;
mod home;
pub mod journal;
mod pack;
mod removal;
mod run;
mod runs;
mod scratch;
mod sharing;
mod stamp;
mod task;
mod trees;
mod walk;

pub use calibrations::Calibrations;
pub use canary::{CanaryBreach, LACKS_CANARY, canary_breaches, put_canary};
pub use disk::{Held, lock};
pub use error::StoreError;
pub use home::Home;
pub use pack::{
    History, LoadedPack, LoadedTask, NoHistory, PackFiles, PublicPack, Split, load_pack, load_public,
    load_public_pack,
};
pub use removal::remove_tree;
pub use run::{RunFolder, Staging};
pub use runs::{Plan, RunEvent, RunView, Runs, in_use};
pub use scratch::Scratch;
pub use sharing::{Shares, shares};
pub use stamp::utc_time;
pub use task::{last_acceptance, load_adversarial, save_acceptance, with_parts};
pub use trees::{Made, Sharing, Tree, Trees, folder_digest};
