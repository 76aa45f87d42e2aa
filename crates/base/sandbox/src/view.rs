//! What a sandbox description puts in view, checked before anything is started.

use std::path::{Component, Path, PathBuf};

use crate::error::SandboxError;
use crate::root::{Part, parts};
use crate::spec::SandboxSpec;

/// Refuses what would fail, or harm the host, later.
pub(crate) fn check(spec: &SandboxSpec) -> Result<(), SandboxError> {
    let wrong = |what: String| Err(SandboxError::Spec { what });
    let is_plain = |path: &Path| {
        path.is_absolute()
            && path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
    };
    let targets = spec.mounts.iter().map(|mount| &mount.target);
    for path in targets.chain(spec.files.iter().map(|(path, _)| path)).chain([&spec.cwd, &spec.program]) {
        if !is_plain(path) {
            return wrong(format!("`{}` is not a plain absolute path", path.display()));
        }
    }
    for (path, _) in &spec.files {
        if let Some(mount) = spec.mounts.iter().find(|mount| path.starts_with(&mount.target)) {
            // Making it would write to the host's folder.
            return wrong(format!("file {} lies in the mount {}", path.display(), mount.target.display()));
        }
    }
    if let Some((_, number)) = spec.fds.iter().find(|(_, number)| *number < 3) {
        return wrong(format!("descriptor {number} is a standard stream; hand over 3 and up"));
    }
    program_in_view(spec)
}

/// Follows the program's links as they lead inside: an environment's `bin/python` often leads to an interpreter elsewhere.
fn program_in_view(spec: &SandboxSpec) -> Result<(), SandboxError> {
    let mut path = spec.program.clone();
    for _ in 0..40 {
        let Some(host) = on_host(spec, &path) else {
            let from = if path == spec.program {
                String::new()
            } else {
                format!(", where {} leads", spec.program.display())
            };
            return Err(SandboxError::Spec {
                what: format!("{}{from}, is not in view of the sandbox", path.display()),
            });
        };
        match std::fs::read_link(&host) {
            Ok(target) => path = plain(&path.parent().unwrap_or(Path::new("/")).join(target)),
            Err(_) => {
                let found = std::fs::metadata(&host).map(drop);
                return found.map_err(|source| SandboxError::Mount { path: host, source });
            }
        }
    }
    Err(SandboxError::Spec { what: format!("the links of {} go in a circle", spec.program.display()) })
}

/// `..` and `.` taken out by name.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// Where on the host a path inside lies.
fn on_host(spec: &SandboxSpec, path: &Path) -> Option<PathBuf> {
    let mounted = spec.mounts.iter().filter(|mount| path.starts_with(&mount.target));
    if let Some(mount) = mounted.max_by_key(|mount| mount.target.components().count()) {
        let rest = path.strip_prefix(&mount.target).ok()?;
        return Some(if rest.as_os_str().is_empty() {
            mount.source.clone()
        } else {
            mount.source.join(rest)
        });
    }
    let of_root = parts().iter().any(|part| match part {
        Part::Seen(top) | Part::Link(top, _) => path.starts_with(top),
    });
    of_root.then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Mode, Mount};

    fn wrong(change: impl FnOnce(&mut SandboxSpec)) -> String {
        let mut spec = SandboxSpec::new("/usr/bin/env");
        change(&mut spec);
        check(&spec).unwrap_err().to_string()
    }

    #[test]
    fn an_interpreter_outside_the_mounts_is_named_with_the_link_that_leads_there() {
        let folder = tempfile::tempdir().unwrap();
        let (environment, elsewhere) = (folder.path().join("env"), folder.path().join("elsewhere"));
        std::fs::create_dir(&environment).unwrap();
        std::fs::create_dir(&elsewhere).unwrap();
        std::fs::write(elsewhere.join("python3"), "").unwrap();
        std::os::unix::fs::symlink("../elsewhere/python3", environment.join("python")).unwrap();
        let mut spec = SandboxSpec::new(environment.join("python"));
        spec.mounts = vec![Mount::read_only(&environment)];
        let text = check(&spec).unwrap_err().to_string();
        assert!(text.contains("elsewhere/python3, where ") && text.contains("env/python leads"), "{text}");
        spec.mounts.push(Mount::read_only(&elsewhere));
        check(&spec).unwrap();
        std::fs::remove_file(elsewhere.join("python3")).unwrap();
        assert!(matches!(check(&spec), Err(SandboxError::Mount { .. })));
    }

    #[test]
    fn contradictions_are_refused_by_name() {
        assert!(wrong(|spec| spec.cwd = "/a/../b".into()).contains("/a/../b"));
        assert!(wrong(|spec| spec.program = "python".into()).contains("`python`"));
        let file = |spec: &mut SandboxSpec| {
            let target = PathBuf::from("/opt/data");
            spec.mounts = vec![Mount { source: "/tmp".into(), target, mode: Mode::ReadWrite }];
            spec.files = vec![("/opt/data/present".into(), Vec::new())];
        };
        assert!(wrong(file).contains("/opt/data/present lies in the mount /opt/data"));
        assert!(
            wrong(|spec| spec.fds = vec![(std::io::pipe().unwrap().0.into(), 2)]).contains("descriptor 2")
        );
    }
}
