//! Locks that all runs on a machine share: files under one folder, held by `flock`, so that they end with their holder.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use crate::error::SandboxError;

/// The folder of the lock files.
#[derive(Debug, Clone)]
pub struct LockFolder {
    path: PathBuf,
}

/// A lock that is held until dropped.
#[derive(Debug)]
pub(crate) struct Held {
    _file: Flock<File>,
}

impl LockFolder {
    /// The machine's own: `/run/lock/infradev`, or `/tmp/infradev-locks` where that can't be made. Open to all users.
    ///
    /// # Errors
    /// Neither folder can be made.
    pub fn machine() -> Result<Self, SandboxError> {
        let preferred = Path::new("/run/lock/infradev");
        LockFolder::at(preferred).or_else(|_| LockFolder::at("/tmp/infradev-locks"))
    }

    /// A folder of that path, made where missing.
    ///
    /// # Errors
    /// The folder can't be made or written.
    pub fn at(path: impl Into<PathBuf>) -> Result<Self, SandboxError> {
        let path = path.into();
        let made = match std::fs::create_dir(&path) {
            Ok(()) => std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o1777)),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(e) => Err(e),
        };
        let usable = made.and_then(|()| Ok(nix::unistd::access(&path, nix::unistd::AccessFlags::W_OK)?));
        match usable {
            Ok(()) => Ok(LockFolder { path }),
            Err(source) => Err(SandboxError::Lock { path, source }),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn error(&self, name: &str) -> impl Fn(io::Error) -> SandboxError + use<> {
        let path = self.path_of(name);
        move |source| SandboxError::Lock { path: path.clone(), source }
    }

    fn open(&self, name: &str) -> Result<File, SandboxError> {
        let path = self.path_of(name);
        // Any user may plant a link in this folder; its target is not ours to write.
        let options = || {
            let mut options = OpenOptions::new();
            options.read(true).write(true).custom_flags(libc::O_NOFOLLOW);
            options
        };
        // Not created if there: in a sticky folder the kernel refuses O_CREAT on another user's file.
        let opened = match options().open(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let new = options().create(true).truncate(false).mode(0o666).open(&path);
                new.inspect(|file| drop(file.set_permissions(std::fs::Permissions::from_mode(0o666))))
            }
            other => other,
        };
        opened.map_err(self.error(name))
    }

    /// The lock, if nobody holds it.
    pub(crate) fn try_lock(&self, name: &str) -> Result<Option<Held>, SandboxError> {
        match Flock::lock(self.open(name)?, FlockArg::LockExclusiveNonblock) {
            Ok(file) => Ok(Some(signed(file))),
            Err((_, Errno::EWOULDBLOCK)) => Ok(None),
            Err((_, errno)) => Err(self.error(name)(errno.into())),
        }
    }

    /// Sends the lock once it is free. Waits on a thread of its own: a blocked `flock` can't be called off, so a thread
    /// whose receiver is gone lets go of the lock as soon as it has it.
    pub(crate) fn lock_in_background(
        &self,
        name: &str,
        answer: tokio::sync::mpsc::UnboundedSender<(String, Result<Held, SandboxError>)>,
    ) -> Result<(), SandboxError> {
        let file = self.open(name)?;
        let error = self.error(name);
        let owned = name.to_owned();
        let waiting = std::thread::Builder::new().name(format!("lock {name}")).spawn(move || {
            let mut file = file;
            let held = loop {
                match Flock::lock(file, FlockArg::LockExclusive) {
                    Ok(file) => break Ok(signed(file)),
                    Err((back, Errno::EINTR)) => file = back,
                    Err((_, errno)) => break Err(error(errno.into())),
                }
            };
            let _ = answer.send((owned, held));
        });
        waiting.map(drop).map_err(self.error(name))
    }

    /// Who holds the lock, in words, as its holder wrote them: `process 4711 (infradev accept core)`.
    pub(crate) fn holder(&self, name: &str) -> String {
        let text = std::fs::read_to_string(self.path_of(name)).unwrap_or_default();
        if text.trim().is_empty() { "another process".to_owned() } else { text.trim().to_owned() }
    }
}

fn signed(mut file: Flock<File>) -> Held {
    let command = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    let words: Vec<_> = command.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let mut line = words.join(" ").trim().replace('\n', " ");
    line.truncate(line.char_indices().nth(200).map_or(line.len(), |(at, _)| at));
    // Only for people who wait; a lock is a lock without.
    let _ = file.set_len(0);
    let _ = writeln!(file, "process {} ({line})", std::process::id());
    Held { _file: file }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_planted_in_the_shared_folder_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        std::fs::write(&victim, "precious").unwrap();
        let locks = LockFolder::at(folder.path().join("locks")).unwrap();
        std::os::unix::fs::symlink(&victim, locks.path().join("gpu-0")).unwrap();
        assert!(matches!(locks.try_lock("gpu-0"), Err(SandboxError::Lock { .. })));
        assert_eq!(std::fs::read_to_string(victim).unwrap(), "precious");
    }

    #[test]
    fn the_folder_and_its_files_are_open_to_all_users() {
        let folder = tempfile::tempdir().unwrap();
        let locks = LockFolder::at(folder.path().join("locks")).unwrap();
        let held = locks.try_lock("gpu-0").unwrap();
        assert!(held.is_some());
        assert!(locks.try_lock("gpu-0").unwrap().is_none());
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(locks.path()), 0o1777);
        assert_eq!(mode(&locks.path_of("gpu-0")), 0o666);
    }
}
