//! How much of the host's disk a run takes: a bound on it, and a reserve that is left to everybody else.
//!
//! Looking is cheap: four times a second the file system is asked for its use. Only where that has grown by a part of what the run
//! has left are its folders walked and what is allocated there is counted.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::statvfs::statvfs;
use tokio::time::sleep;

use crate::allocated::{INODE, allocated};
use crate::error::AgentError;

/// How often the file system is asked for its use.
const EVERY: Duration = Duration::from_millis(250);
/// Folders are walked at the latest after so long: others may have freed what the run took.
const AT_LATEST: Duration = Duration::from_secs(30);
/// Folders are walked where the file system's use has grown by one in so many parts of what the run has left.
const PART: u64 = 4;
/// Between two walks lies so many times what the last one took.
const SHARE: u32 = 4;
/// What stays free of a file system for all else, bytes; of a small one, a twentieth.
const RESERVE: u64 = 1 << 30;

/// A bound that was passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passed {
    /// The run's own; bytes that it took.
    Bound(u64),
    /// The host's reserve, while the run was within its bound; bytes that are free.
    Reserve(u64),
}

/// A watch on what a run puts on the disk.
#[derive(Debug)]
pub(crate) struct DiskWatch {
    /// What is counted; all on one file system.
    folders: Vec<PathBuf>,
    /// Bytes that the run may take.
    bound: u64,
    /// Bytes that lay there before.
    before: u64,
    /// Bytes that the run had taken at the last walk.
    taken: u64,
    /// Bytes in use on the file system at the last walk, or fewer where some were freed since.
    in_use: u64,
    walked: Instant,
    /// How long the last walk took.
    took: Duration,
}

impl DiskWatch {
    /// Counts from what lies in the folders now.
    ///
    /// # Errors
    /// The file system cannot be asked, or has less left than its reserve.
    pub(crate) fn new(folders: Vec<PathBuf>, bound: u64) -> Result<DiskWatch, AgentError> {
        let space = Space::around(&folders)?;
        let begun = Instant::now();
        let before = allocated(&folders, None);
        let (in_use, took) = (space.used, begun.elapsed());
        let watch = DiskWatch { folders, bound, before, taken: 0, in_use, walked: begun, took };
        match space.is_short() {
            true => Err(watch.host_full(space.free)),
            false => Ok(watch),
        }
    }

    /// Ends when a bound is passed. `init` is the host's number of the sandbox's first process.
    ///
    /// # Errors
    /// The file system cannot be asked.
    pub(crate) async fn passed(&mut self, init: i32) -> Result<Passed, AgentError> {
        loop {
            sleep(EVERY).await;
            if let Some(passed) = self.look(init).await? {
                return Ok(passed);
            }
        }
    }

    /// What is there when every process is dead: whoever fills the disk and ends at once is told all the same.
    ///
    /// # Errors
    /// The file system cannot be asked.
    pub(crate) async fn at_the_end(&mut self) -> Result<Option<Passed>, AgentError> {
        let space = Space::around(&self.folders)?;
        self.walk(space, None).await
    }

    /// Asks the file system, and walks where its use has grown by a part of what the run has left.
    async fn look(&mut self, init: i32) -> Result<Option<Passed>, AgentError> {
        let space = Space::around(&self.folders)?;
        self.in_use = self.in_use.min(space.used);
        let grown = space.used - self.in_use >= self.bound.saturating_sub(self.taken) / PART;
        let since = self.walked.elapsed();
        let due = grown && since >= self.took * SHARE || since >= AT_LATEST;
        match due || space.is_short() {
            true => self.walk(space, Some(init)).await,
            false => Ok(None),
        }
    }

    async fn walk(&mut self, space: Space, init: Option<i32>) -> Result<Option<Passed>, AgentError> {
        let (begun, folders) = (Instant::now(), self.folders.clone());
        let walk = tokio::task::spawn_blocking(move || allocated(&folders, init));
        let now = walk.await.map_err(|_| AgentError::Cancelled)?;
        self.taken = now.saturating_sub(self.before);
        (self.in_use, self.walked, self.took) = (space.used, Instant::now(), begun.elapsed());
        Ok(match self.taken > self.bound {
            true => Some(Passed::Bound(self.taken)),
            false => space.is_short().then_some(Passed::Reserve(space.free)),
        })
    }

    /// The host's disk is full, and not by this run.
    pub(crate) fn host_full(&self, free: u64) -> AgentError {
        let folder = self.folders.first().cloned().unwrap_or_default();
        AgentError::HostDisk { folder, free, taken: self.taken }
    }

    /// What is said of a run that took more than it may.
    pub(crate) fn detail(&self, taken: u64) -> String {
        format!("{} MiB on the disk of {} MiB", taken.div_ceil(1 << 20), self.bound >> 20)
    }
}

/// A file system's bytes.
#[derive(Debug, Clone, Copy)]
struct Space {
    whole: u64,
    /// Those of inodes included, as a run's are counted.
    used: u64,
    free: u64,
}

impl Space {
    fn around(folders: &[PathBuf]) -> Result<Space, AgentError> {
        let folder = folders.first().map_or(Path::new("/"), PathBuf::as_path);
        let asked = AgentError::io(format!("ask for the room around {}", folder.display()));
        let found = statvfs(folder).map_err(|errno| asked(errno.into()))?;
        let bytes = |blocks: u64| blocks * found.fragment_size();
        let (whole, free) = (bytes(found.blocks()), bytes(found.blocks_available()));
        // Empty files take no block that is told of, but an inode.
        let inodes = found.files().saturating_sub(found.files_free()) * INODE;
        Ok(Space { whole, used: whole - bytes(found.blocks_free()) + inodes, free })
    }

    fn is_short(&self) -> bool {
        self.free < RESERVE.min(self.whole / 20)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn fill(path: &Path, bytes: u64) {
        fs::write(path, vec![1; bytes as usize]).unwrap();
    }

    #[tokio::test]
    async fn what_lay_there_before_is_not_the_runs_and_what_it_frees_is_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fill(&at("base"), 8 * MIB);
        let mut watch = DiskWatch::new(vec![folder.path().to_owned()], 4 * MIB).unwrap();
        fill(&at("within"), 3 * MIB);
        assert_eq!(watch.at_the_end().await.unwrap(), None);
        fs::remove_file(at("within")).unwrap();
        fill(&at("again"), 3 * MIB);
        assert_eq!(watch.at_the_end().await.unwrap(), None);
        fill(&at("more"), 3 * MIB);
        let Some(Passed::Bound(taken)) = watch.at_the_end().await.unwrap() else { panic!("not noticed") };
        assert_eq!(watch.detail(taken), "6 MiB on the disk of 4 MiB");
    }

    #[tokio::test]
    async fn many_empty_files_pass_the_bound_too() {
        let folder = tempfile::tempdir().unwrap();
        let mut watch = DiskWatch::new(vec![folder.path().to_owned()], MIB).unwrap();
        for number in 0..300 {
            fs::write(folder.path().join(number.to_string()), "").unwrap();
        }
        let Some(Passed::Bound(taken)) = watch.at_the_end().await.unwrap() else { panic!("not noticed") };
        assert_eq!(taken, 300 * 4096);
    }
}
