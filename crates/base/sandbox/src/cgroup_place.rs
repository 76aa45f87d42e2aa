//! Where control groups of ours may be made, and the removal of those that dead owners left.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::cgroup::Group;
use crate::spec::Limits;

/// A mounted hierarchy and the group of this process in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The mount point.
    mount: PathBuf,
    /// Our own group, under the mount point.
    own: PathBuf,
}

/// The hierarchies that can bound memory and processes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Places {
    memory_v1: Option<Place>,
    pids_v1: Option<Place>,
    unified: Option<Place>,
}

impl Places {
    pub(crate) fn of_this_process() -> Places {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        Places::parse(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"))
    }

    /// From the texts of `/proc/self/mountinfo` and `/proc/self/cgroup`, proc(5) and cgroups(7).
    fn parse(mountinfo: &str, cgroup: &str) -> Places {
        let own_path = |controller: &str| {
            cgroup.lines().find_map(|line| {
                let mut parts = line.splitn(3, ':');
                let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
                controllers.split(',').any(|name| name == controller).then_some(path)
            })
        };
        let mut places = Places::default();
        for line in mountinfo.lines() {
            let Some((before, after)) = line.split_once(" - ") else { continue };
            let fields: Vec<&str> = before.split(' ').collect();
            let kind: Vec<&str> = after.split(' ').collect();
            let (Some(root), Some(mount), Some(options)) = (fields.get(3), fields.get(4), kind.get(2)) else {
                continue;
            };
            let place = |controller: &str| {
                // A container sees only a part of the hierarchy mounted; what lies above its root is not reachable.
                let below = own_path(controller)?.strip_prefix(root.trim_end_matches('/'))?;
                let mount = PathBuf::from(mount);
                let own = mount.join(below.trim_start_matches('/'));
                Some(Place { mount, own })
            };
            let controls = |name: &str| options.split(',').any(|option| option == name);
            match kind[0] {
                "cgroup" if controls("memory") => places.memory_v1 = place("memory").or(places.memory_v1),
                "cgroup" if controls("pids") => places.pids_v1 = place("pids").or(places.pids_v1),
                "cgroup2" => places.unified = place("").or(places.unified),
                _ => {}
            }
        }
        places
    }

    /// A new group with these limits, of version 1 or 2; else why there is none.
    pub(crate) fn create(&self, limits: Limits) -> Result<Group, String> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("infradev-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let mut reasons = Vec::new();
        for parent in self.unified_parents() {
            match enable_controllers(&parent).and_then(|()| Group::create_v2(parent.join(&name), limits)) {
                Ok(group) => return Ok(group),
                Err(error) => reasons.push(format!("{}: {error}", parent.display())),
            }
        }
        if let Some(memory) = &self.memory_v1 {
            let pids = self.pids_v1.as_ref().map(|place| place.own.join(&name));
            match Group::create_v1(memory.own.join(&name), pids, limits) {
                Ok(group) => return Ok(group),
                Err(error) => reasons.push(format!("{}: {error}", memory.own.display())),
            }
        }
        if reasons.is_empty() {
            reasons.push("no memory controller is mounted".to_owned());
        }
        Err(reasons.join("; "))
    }

    /// Groups of version 2 that could hold ours: our own, that above it (ours holds processes, and such a group can't
    /// hand controllers down), the top.
    fn unified_parents(&self) -> Vec<PathBuf> {
        let Some(Place { mount, own }) = &self.unified else { return Vec::new() };
        let mut parents = vec![own.clone()];
        parents.extend(own.parent().filter(|above| above.starts_with(mount)).map(Path::to_owned));
        parents.push(mount.clone());
        parents.dedup();
        parents
    }

    fn parents(&self) -> Vec<PathBuf> {
        let v1 = [&self.memory_v1, &self.pids_v1].into_iter().flatten().map(|place| place.own.clone());
        self.unified_parents().into_iter().chain(v1).collect()
    }
}

/// Hands memory and pids down to the groups below, where that is not done yet.
fn enable_controllers(parent: &Path) -> io::Result<()> {
    let file = parent.join("cgroup.subtree_control");
    let enabled = std::fs::read_to_string(&file)?;
    let missing: Vec<_> = ["memory", "pids"]
        .into_iter()
        .filter(|name| !enabled.split_whitespace().any(|word| word == *name))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let available = std::fs::read_to_string(parent.join("cgroup.controllers"))?;
    if let Some(name) = missing.iter().find(|name| !available.split_whitespace().any(|word| word == **name)) {
        return Err(io::Error::other(format!("the {name} controller is not delegated")));
    }
    std::fs::write(file, missing.iter().map(|name| format!("+{name} ")).collect::<String>())
}

/// Removes control groups whose owner is dead, killing what is left in them, and returns their paths.
pub fn sweep() -> Vec<PathBuf> {
    let mut removed = Vec::new();
    for parent in Places::of_this_process().parents() {
        for entry in std::fs::read_dir(&parent).into_iter().flatten().flatten() {
            let owner = entry.file_name().to_str().and_then(owner_of);
            if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
                crate::cgroup::kill_members(&entry.path());
                if std::fs::remove_dir(entry.path()).is_ok() {
                    removed.push(entry.path());
                }
            }
        }
    }
    removed
}

/// The process that made the group of this name: `infradev-<pid>-<n>`.
fn owner_of(name: &str) -> Option<u32> {
    let (pid, number) = name.strip_prefix("infradev-")?.split_once('-')?;
    number.parse::<u64>().ok()?;
    pid.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_1_groups_are_found_under_our_own() {
        let mountinfo = "33 24 0:29 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                         34 24 0:30 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n";
        let places = Places::parse(mountinfo, "8:pids:/\n4:memory:/service/abc\n0::/\n");
        assert_eq!(places.memory_v1.unwrap().own, Path::new("/sys/fs/cgroup/memory/service/abc"));
        assert_eq!(places.pids_v1.unwrap().own, Path::new("/sys/fs/cgroup/pids"));
        assert_eq!(places.unified, None);
    }

    #[test]
    fn a_container_sees_its_part_of_the_hierarchy() {
        let mountinfo = "33 24 0:29 /docker/c1 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        let places = Places::parse(mountinfo, "4:memory:/docker/c1/inner\n");
        assert_eq!(places.memory_v1.unwrap().own, Path::new("/sys/fs/cgroup/memory/inner"));
    }

    #[test]
    fn version_2_offers_our_group_then_those_above_it() {
        let mountinfo = "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";
        let places = Places::parse(mountinfo, "0::/user.slice/session-1.scope\n");
        let parents = places.unified_parents();
        let expected = ["user.slice/session-1.scope", "user.slice", ""];
        assert_eq!(parents, expected.map(|path| Path::new("/sys/fs/cgroup").join(path)));
    }

    #[test]
    fn only_names_of_ours_are_swept() {
        assert_eq!(owner_of("infradev-12-0"), Some(12));
        assert_eq!(owner_of("infradev-12-x"), None);
        assert_eq!(owner_of("system.slice"), None);
    }
}
