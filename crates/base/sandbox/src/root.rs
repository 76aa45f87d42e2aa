//! The parts of the host's root that every sandbox sees, and the files of `/etc` that are made for it.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::spec::Uids;

/// The home folder inside: a private tmpfs.
pub const HOME: &str = "/home/trial";

/// Folders at the top of the host's root that programs need.
const TOP: [&str; 7] = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/// Files and folders of the host's `/etc` that say where libraries, certificates and time zones are, and nothing of the
/// host's people or networks.
const ETC: [&str; 8] = [
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "alternatives",
    "localtime",
    "ssl/certs",
    "ssl/openssl.cnf",
    "nvidia",
];

/// A part of the root as the host has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// To be seen read-only at the same path.
    Seen(PathBuf),
    /// A symbolic link: path and target.
    Link(PathBuf, OsString),
}

/// `/usr`, `/bin`, `/lib*` and what is needed of `/etc`.
pub(crate) fn parts() -> Vec<Part> {
    let tops = TOP.iter().map(|name| Path::new("/").join(name));
    let etc = ETC.iter().map(|name| Path::new("/etc").join(name));
    tops.chain(etc)
        .filter_map(|path| match std::fs::read_link(&path) {
            // A link of /etc may lead to a place that is not in view; see its target there instead.
            Ok(target) if !path.starts_with("/etc") => Some(Part::Link(path, target.into())),
            _ => path.exists().then_some(Part::Seen(path)),
        })
        .collect()
}

/// Files of `/etc` that are made: users, groups, names.
pub(crate) fn made_files(uids: Option<Uids>) -> Vec<(PathBuf, Vec<u8>)> {
    let mut passwd = format!("root:x:0:0:root:{HOME}:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n");
    let mut group = "root:x:0:\ntty:x:5:\nnogroup:x:65534:\n".to_owned();
    let mut user = |name: &str, uid: u32| {
        // Writing to a String does not fail.
        let _ = writeln!(passwd, "{name}:x:{uid}:{uid}:{name}:{HOME}:/bin/sh");
        let _ = writeln!(group, "{name}:x:{uid}:");
    };
    match uids {
        Some(uids) => {
            for (index, uid) in uids.all().enumerate() {
                user(&if index == 0 { "launcher".to_owned() } else { format!("rank{}", index - 1) }, uid);
            }
        }
        None => {
            let own = nix::unistd::getuid().as_raw();
            if own != 0 {
                user("trial", own);
            }
        }
    }
    let text = |path: &str, text: &str| (PathBuf::from(path), text.as_bytes().to_vec());
    vec![
        text("/etc/passwd", &passwd),
        text("/etc/group", &group),
        text("/etc/hosts", "127.0.0.1 localhost infradev\n::1 localhost\n"),
        text("/etc/hostname", "infradev\n"),
        text("/etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files\n"),
        text("/etc/resolv.conf", ""),
    ]
}

/// Folders from the top down to the parent of `path`, `/` left out.
pub(crate) fn parents(path: &Path) -> Vec<&Path> {
    let mut folders: Vec<_> = path.ancestors().skip(1).filter(|folder| folder.parent().is_some()).collect();
    folders.reverse();
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_run_from_the_top_down() {
        assert_eq!(parents(Path::new("/a/b/c")), [Path::new("/a"), Path::new("/a/b")]);
        assert!(parents(Path::new("/a")).is_empty());
    }

    #[test]
    fn every_uid_of_a_trial_has_a_name() {
        let files = made_files(Some(Uids { launcher: 200_000, ranks_base: 200_001 }));
        let passwd = String::from_utf8(files[0].1.clone()).unwrap();
        assert!(passwd.contains("launcher:x:200000:200000:"));
        assert!(passwd.contains("rank0:x:200001:200001:"));
        assert!(passwd.contains("rank14:x:200015:200015:"));
    }
}
