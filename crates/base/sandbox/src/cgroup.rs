//! A control group for one trial: limits, peak, and what the kernel killed in it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use infradev_supervise::{process, watch_process};

use crate::report::MemoryLimit;
use crate::spec::Limits;

/// How long a process that was killed is waited for: one that the kernel holds in a system call may never end.
const UNKILLABLE: Duration = Duration::from_secs(1);

/// A control group that was made for one trial. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct Group {
    version: MemoryLimit,
    memory: PathBuf,
    /// The pids controller's folder where it is another (version 1).
    pids: Option<PathBuf>,
    /// Version 2: an open `memory.peak`; a write to it resets the peak for this descriptor (Linux 6.12).
    peak: Option<Mutex<File>>,
    removed: bool,
}

impl Group {
    pub(crate) fn create_v1(memory: PathBuf, pids: Option<PathBuf>, limits: Limits) -> io::Result<Group> {
        std::fs::create_dir(&memory)?;
        let mut group =
            Group { version: MemoryLimit::CgroupV1, memory, pids: None, peak: None, removed: false };
        group.write("memory.limit_in_bytes", limits.memory_bytes)?;
        // Memory and swap together; the file is missing where swap is not accounted.
        let _ = group.write("memory.memsw.limit_in_bytes", limits.memory_bytes);
        if let Some(pids) = pids {
            std::fs::create_dir(&pids)?;
            group.pids = Some(pids);
            group.write_pids(limits.pids)?;
        }
        Ok(group)
    }

    pub(crate) fn create_v2(path: PathBuf, limits: Limits) -> io::Result<Group> {
        std::fs::create_dir(&path)?;
        let mut group =
            Group { version: MemoryLimit::CgroupV2, memory: path, pids: None, peak: None, removed: false };
        group.write("memory.max", limits.memory_bytes)?;
        let _ = group.write("memory.swap.max", 0);
        group.write_pids(limits.pids)?;
        let peak = OpenOptions::new().read(true).write(true).open(group.memory.join("memory.peak"));
        group.peak = peak.ok().map(Mutex::new);
        Ok(group)
    }

    fn write(&self, file: &str, value: u64) -> io::Result<()> {
        std::fs::write(self.memory.join(file), value.to_string())
    }

    fn write_pids(&self, value: u64) -> io::Result<()> {
        let folder = self.pids.as_ref().unwrap_or(&self.memory);
        std::fs::write(folder.join("pids.max"), value.to_string())
    }

    fn number(&self, file: &str) -> Option<u64> {
        std::fs::read_to_string(self.memory.join(file)).ok()?.trim().parse().ok()
    }

    /// Version 1 or 2.
    pub(crate) fn version(&self) -> MemoryLimit {
        self.version
    }

    /// Whether the kernel bounds processes too.
    pub(crate) fn bounds_pids(&self) -> bool {
        self.version == MemoryLimit::CgroupV2 || self.pids.is_some()
    }

    /// Open files that a child writes `0` to, to join.
    pub(crate) fn doors(&self) -> io::Result<Vec<OwnedFd>> {
        let folders = std::iter::once(&self.memory).chain(&self.pids);
        folders
            .map(|path| Ok(OpenOptions::new().write(true).open(path.join("cgroup.procs"))?.into()))
            .collect()
    }

    /// Bytes in use now.
    pub(crate) fn current(&self) -> Option<u64> {
        let v1 = self.version == MemoryLimit::CgroupV1;
        self.number(if v1 { "memory.usage_in_bytes" } else { "memory.current" })
    }

    /// Most bytes in use at once since the start or the last reset.
    pub(crate) fn peak(&self) -> Option<u64> {
        if self.version == MemoryLimit::CgroupV1 {
            return self.number("memory.max_usage_in_bytes");
        }
        let mut file = self.peak.as_ref()?.lock().ok()?;
        let mut text = String::new();
        file.rewind().ok()?;
        file.read_to_string(&mut text).ok()?;
        text.trim().parse().ok()
    }

    /// Starts the peak anew; false if this kernel can't.
    pub(crate) fn reset_peak(&self) -> bool {
        if self.version == MemoryLimit::CgroupV1 {
            return self.write("memory.max_usage_in_bytes", 0).is_ok();
        }
        let Some(Ok(mut file)) = self.peak.as_ref().map(Mutex::lock) else { return false };
        file.rewind().and_then(|()| file.write_all(b"reset\n")).is_ok()
    }

    /// Processes that the kernel killed for want of memory in this group.
    pub(crate) fn oom_kills(&self) -> u64 {
        let v1 = self.version == MemoryLimit::CgroupV1;
        let file = if v1 { "memory.oom_control" } else { "memory.events" };
        let text = std::fs::read_to_string(self.memory.join(file)).unwrap_or_default();
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok()).unwrap_or(0)
    }

    /// Removes the group, killing what is still in it. A killed process leaves its group before its end can be seen, so once all
    /// of them have ended the folder goes at once, under either version. What cannot be killed keeps it; the next sweep takes it.
    pub(crate) async fn remove(mut self) {
        let _ = tokio::time::timeout(UNKILLABLE, self.empty()).await;
        self.remove_now();
    }

    /// Kills what is in the group until nothing is.
    async fn empty(&self) {
        loop {
            // Watched before they are killed: a number that is free again may be another's.
            let ends: Vec<_> =
                self.folders().flat_map(members).filter_map(|pid| watch_process(pid).ok()).collect();
            if ends.is_empty() {
                return;
            }
            self.folders().for_each(kill_members);
            for end in &ends {
                let _ = end.readable().await;
            }
        }
    }

    fn folders(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&self.memory).chain(&self.pids).map(PathBuf::as_path)
    }

    fn remove_now(&mut self) -> bool {
        let mut gone = true;
        for folder in self.folders() {
            kill_members(folder);
            let removed = std::fs::remove_dir(folder);
            gone &= removed.is_ok() || removed.is_err_and(|e| e.kind() == io::ErrorKind::NotFound);
        }
        self.removed |= gone;
        gone
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.removed {
            // What is still dying keeps the folder; the next sweep takes it.
            self.remove_now();
        }
    }
}

/// Kills the processes of a group.
pub(crate) fn kill_members(group: &Path) {
    members(group).into_iter().filter_map(process).for_each(|process| process.kill());
}

fn members(group: &Path) -> Vec<i32> {
    let members = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    members.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid > 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_2_speaks_through_its_own_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("infradev-1-0");
        let group = Group::create_v2(path.clone(), Limits { memory_bytes: 1000, pids: 7 }).unwrap();
        let read = |name: &str| std::fs::read_to_string(path.join(name)).unwrap();
        assert_eq!([read("memory.max"), read("memory.swap.max"), read("pids.max")], ["1000", "0", "7"]);
        std::fs::write(path.join("memory.current"), "4096\n").unwrap();
        std::fs::write(path.join("memory.events"), "low 0\noom 3\noom_kill 2\noom_group_kill 0\n").unwrap();
        assert_eq!((group.current(), group.oom_kills()), (Some(4096), 2));
        // This kernel, a plain folder, has no peak to read or reset.
        assert_eq!((group.peak(), group.reset_peak()), (None, false));
        assert!(group.bounds_pids());
    }

    #[tokio::test]
    async fn a_group_of_this_host_is_removed_with_what_is_left_in_it() {
        let places = crate::cgroup_place::Places::of_this_process();
        let group = places.create(Limits { memory_bytes: 1 << 30, pids: 16 }).unwrap();
        let mut spawn = infradev_supervise::Spawn::new("sleep");
        spawn.args = vec!["1000".into()];
        spawn.cgroups = group.doors().unwrap();
        let mut child = spawn.start().unwrap();
        let folder = group.memory.clone();
        assert_eq!(
            std::fs::read_to_string(folder.join("cgroup.procs")).unwrap().trim(),
            child.pid().to_string()
        );
        group.remove().await;
        assert!(!folder.exists());
        assert_eq!(child.wait().await.unwrap(), infradev_supervise::Exit::Signal(9));
    }
}
