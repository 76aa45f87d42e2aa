//! What a run has on the disk: the files below its folders, and those without a name that its processes still hold.
//!
//! Folders are walked by descriptors, of which two are open at a time: neither the length of a path nor the depth of a tree is a
//! bound of what is seen. What is moved while it is walked may be passed over until the next walk.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::{BufRead, BufReader};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use infradev_supervise::descendants;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;

/// Bytes that a file counts at least: its inode takes room too, and of inodes a file system has only so many.
pub(crate) const INODE: u64 = 4096;
/// Bytes of a block as `stat` counts them, stat(2).
const BLOCK: u64 = 512;

/// Bytes of what lies in folders, all on one file system, and of what processes from `init` on hold beside it. Blocks count, so holes
/// do not; a file counts once whatever its names.
pub(crate) fn allocated(folders: &[PathBuf], init: Option<i32>) -> u64 {
    let mut count = Count::default();
    for folder in folders {
        count.folder(folder);
    }
    let device = folders.first().and_then(|folder| fs::symlink_metadata(folder).ok()).map(|data| data.dev());
    for process in init.map(descendants).unwrap_or_default() {
        count.held_open(process.pid, device.unwrap_or_default());
        count.mapped(process.pid, device.unwrap_or_default());
    }
    count.bytes
}

/// Device and number of an inode.
type Id = (u64, u64);

/// Files that were counted.
#[derive(Default)]
struct Count {
    seen: HashSet<Id>,
    bytes: u64,
}

/// A folder that is being walked, and those above it.
struct Level {
    /// Its name in the one above.
    name: OsString,
    id: Id,
    /// Folders in it that are still to be walked.
    left: Vec<OsString>,
}

impl Count {
    fn add(&mut self, data: &Metadata) {
        if data.nlink() == 1 || self.seen.insert(id(data)) {
            self.bytes += (data.blocks() * BLOCK).max(INODE);
        }
    }

    /// All below a folder on the same file system. What goes away meanwhile counts no more, what cannot be read not at all.
    fn folder(&mut self, folder: &Path) {
        let Some((root, found)) = File::open(folder).ok().and_then(with_id) else { return };
        let mut levels = vec![Level { name: OsString::new(), id: found, left: self.entries(&root, found.0) }];
        let mut at = None;
        while let Some(level) = levels.last_mut() {
            let here = at.as_ref().unwrap_or(&root);
            if let Some(name) = level.left.pop() {
                // What is no folder any more, or another file system's, is passed over.
                if let Some((below, id)) = enter(here, &name).filter(|(_, id)| id.0 == found.0) {
                    let left = self.entries(&below, found.0);
                    levels.push(Level { name, id, left });
                    at = Some(below);
                }
            } else {
                levels.pop();
                let Some(level) = levels.last() else { return };
                let above = enter(here, OsStr::new("..")).filter(|(_, id)| *id == level.id);
                at = above.map(|(above, _)| above).or_else(|| entered_again(&root, &mut levels));
            }
        }
    }

    /// Counts what a folder holds; gives the names of those that are folders.
    fn entries(&mut self, folder: &File, device: u64) -> Vec<OsString> {
        let mut folders = Vec::new();
        let place = format!("/proc/self/fd/{}", folder.as_raw_fd());
        for entry in fs::read_dir(place).into_iter().flatten().flatten() {
            let Ok(data) = entry.metadata() else { continue };
            if data.dev() == device {
                self.add(&data);
                if data.is_dir() {
                    folders.push(entry.file_name());
                }
            }
        }
        folders
    }

    /// Files without a name that a process holds open: they take room until they are closed. Each thread may have descriptors of its
    /// own.
    fn held_open(&mut self, pid: i32, device: u64) {
        for thread in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            for entry in fs::read_dir(thread.path().join("fd")).into_iter().flatten().flatten() {
                self.nameless(&entry.path(), device);
            }
        }
    }

    /// Files without a name that a process has in its memory, whose descriptors it may have closed. Only one who administers the
    /// machine may look at them.
    fn mapped(&mut self, pid: i32, device: u64) {
        // Where the first thread has ended, its own list is empty.
        for thread in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let Ok(maps) = File::open(thread.path().join("maps")) else { continue };
            let thread = thread.file_name();
            for line in BufReader::new(maps).split(b'\n').map_while(Result::ok) {
                if let Some(range) = nameless_range(&line) {
                    let link = Path::new("/proc").join(&thread).join("map_files").join(range);
                    self.nameless(&link, device);
                }
            }
        }
    }

    fn nameless(&mut self, link: &Path, device: u64) {
        let Ok(data) = fs::metadata(link) else { return };
        if data.is_file() && data.nlink() == 0 && data.dev() == device {
            self.add(&data);
        }
    }
}

fn id(data: &Metadata) -> Id {
    (data.dev(), data.ino())
}

fn with_id(folder: File) -> Option<(File, Id)> {
    let data = folder.metadata().ok()?;
    Some((folder, id(&data)))
}

/// Opens a folder in a folder; no link is followed.
fn enter(folder: &File, name: &OsStr) -> Option<(File, Id)> {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    openat(folder.as_fd(), name, flags, Mode::empty()).ok().map(File::from).and_then(with_id)
}

/// The last of the levels that is still in its place, come to from the root, where a folder was moved out of the way back; none where
/// it is the root itself.
fn entered_again(root: &File, levels: &mut Vec<Level>) -> Option<File> {
    let mut at = None;
    for depth in 1..levels.len() {
        let level = &levels[depth];
        match enter(at.as_ref().unwrap_or(root), &level.name).filter(|(_, id)| *id == level.id) {
            Some((below, _)) => at = Some(below),
            None => {
                levels.truncate(depth);
                break;
            }
        }
    }
    at
}

/// The range of addresses of a line of `/proc/PID/maps`, as `/proc/PID/map_files` names it, where a file without a name is mapped.
fn nameless_range(line: &[u8]) -> Option<String> {
    let line = line.strip_suffix(b" (deleted)")?;
    let range = std::str::from_utf8(line.split(|byte| *byte == b' ').next()?).ok()?;
    let (from, to) = range.split_once('-')?;
    let number = |digits: &str| u64::from_str_radix(digits, 16).ok();
    Some(format!("{:x}-{:x}", number(from)?, number(to)?))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn fill(path: &Path, bytes: u64) -> File {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path).unwrap();
        file.write_all_at(&vec![1; bytes as usize], 0).unwrap();
        file
    }

    fn own() -> Option<i32> {
        i32::try_from(std::process::id()).ok()
    }

    #[test]
    fn blocks_count_once_for_all_names_of_a_file_and_holes_and_links_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let folders = vec![folder.path().to_owned()];
        let before = allocated(&folders, None);
        fs::create_dir(at("deep")).unwrap();
        fill(&at("deep/a"), 4 * MIB);
        fs::hard_link(at("deep/a"), at("b")).unwrap();
        File::create(at("sparse")).unwrap().set_len(1 << 40).unwrap();
        std::os::unix::fs::symlink("/usr", at("link")).unwrap();
        let taken = allocated(&folders, None) - before;
        assert!((4 * MIB..5 * MIB).contains(&taken), "{taken}");
    }

    #[test]
    fn a_file_that_was_removed_and_is_held_open_counts_as_long_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let folders = vec![folder.path().to_owned()];
        let file = fill(&folder.path().join("log"), 4 * MIB);
        fs::remove_file(folder.path().join("log")).unwrap();
        assert!(allocated(&folders, own()) >= 4 * MIB);
        drop(file);
        assert!(allocated(&folders, own()) < MIB);
    }

    /// A path below a folder that is open; it may be longer than a path may be, folder by folder.
    fn below(folder: &File, name: &str) -> PathBuf {
        Path::new(&format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name)
    }

    #[test]
    fn files_count_at_any_depth_and_on_the_way_back_too() {
        let folder = tempfile::tempdir().unwrap();
        let folders = vec![folder.path().to_owned()];
        let mut at = File::open(folder.path()).unwrap();
        for _ in 0..30 {
            for name in ["a", "b"] {
                fs::create_dir(below(&at, &name.repeat(200))).unwrap();
            }
            fill(&below(&at, &format!("{}/file", "a".repeat(200))), MIB / 2);
            fill(&below(&at, &format!("{}/file", "b".repeat(200))), MIB / 2);
            at = File::open(below(&at, &"a".repeat(200))).unwrap();
        }
        let taken = allocated(&folders, None);
        assert!((30 * MIB..31 * MIB).contains(&taken), "{taken}");
    }

    #[test]
    fn a_way_back_that_is_gone_leads_to_the_last_folder_that_is_in_its_place() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/b/c")).unwrap();
        let root = File::open(folder.path()).unwrap();
        let level = |path: &str| {
            let name = path.rsplit('/').next().unwrap().into();
            let data = fs::metadata(folder.path().join(path)).unwrap();
            Level { name, id: id(&data), left: Vec::new() }
        };
        let mut levels = vec![level(""), level("a"), level("a/b"), level("a/b/c")];
        fs::rename(folder.path().join("a/b"), folder.path().join("moved")).unwrap();
        fs::create_dir(folder.path().join("a/b")).unwrap();
        let at = entered_again(&root, &mut levels).and_then(with_id).unwrap().1;
        assert_eq!((at, levels.len()), (levels[1].id, 2));
    }

    #[test]
    fn a_file_that_was_removed_and_closed_counts_as_long_as_it_is_mapped() {
        use nix::libc;
        let folder = tempfile::tempdir().unwrap();
        let folders = vec![folder.path().to_owned()];
        let file = fill(&folder.path().join("log"), 4 * MIB);
        fs::remove_file(folder.path().join("log")).unwrap();
        let (length, shared) = (4 << 20, libc::MAP_SHARED);
        // SAFETY: a new mapping, at an address that the system chooses; nothing reads or writes it.
        let at =
            unsafe { libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ, shared, file.as_raw_fd(), 0) };
        assert_ne!(at, libc::MAP_FAILED);
        drop(file);
        let link = nameless_range_of(&folder.path().join("log"));
        // Without the right to look at it nothing can be told: the book says so.
        if fs::metadata(link).is_ok() {
            assert!(allocated(&folders, own()) >= 4 * MIB);
        }
        // SAFETY: the mapping from above, once.
        assert_eq!(unsafe { libc::munmap(at, length) }, 0);
        assert!(allocated(&folders, own()) < MIB);
    }

    /// The link to a file of this process's memory.
    fn nameless_range_of(path: &Path) -> PathBuf {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let name = format!("{} (deleted)", path.display());
        let line = maps.lines().find(|line| line.ends_with(&name)).unwrap();
        Path::new("/proc/self/map_files").join(nameless_range(line.as_bytes()).unwrap())
    }

    #[test]
    fn only_mappings_of_files_without_a_name_are_looked_at() {
        let range = |line: &str| nameless_range(line.as_bytes());
        let line = "00400000-7f08db0fd000 rw-s 00000000 fe:00 100                   /tmp/a b";
        assert_eq!(range(line), None);
        assert_eq!(range(&format!("{line} (deleted)")).unwrap(), "400000-7f08db0fd000");
        assert_eq!(range("7f08daffd000-7f08db0fd000 rw-p 00000000 00:00 0"), None);
    }
}
