//! `$INFRADEV_HOME`: where all that is kept lies.

use std::path::{Component, Path, PathBuf};

use crate::error::StoreError;

/// The folder of the store. Each part is made when something is first put there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    root: PathBuf,
}

impl Home {
    /// `$INFRADEV_HOME`, else `$XDG_DATA_HOME/infradev`, else `~/.local/share/infradev`.
    pub fn locate() -> Result<Home, StoreError> {
        Home::from_variables(|name| std::env::var_os(name).map(PathBuf::from))
    }

    /// As [`Home::locate`], from other variables than this process's.
    pub fn from_variables(get: impl Fn(&str) -> Option<PathBuf>) -> Result<Home, StoreError> {
        let set = |name: &str| get(name).filter(|value| !value.as_os_str().is_empty());
        let root = set("INFRADEV_HOME")
            // The XDG specification: a relative path is to be ignored.
            .or_else(|| {
                set("XDG_DATA_HOME").filter(|path| path.is_absolute()).map(|data| data.join("infradev"))
            })
            .or_else(|| set("HOME").map(|home| home.join(".local/share/infradev")))
            .ok_or(StoreError::NoHome)?;
        Home::at(&root)
    }

    /// The store at this folder; a relative path is taken from the current folder.
    pub fn at(root: &Path) -> Result<Home, StoreError> {
        let root = std::path::absolute(root).map_err(|e| StoreError::io("resolve", root, e))?;
        Ok(Home { root: without_dots(&root)? })
    }

    /// The folder itself, absolute.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Python environments.
    pub fn envs(&self) -> PathBuf {
        self.root.join("envs")
    }

    /// Base trees and what is built from them.
    pub fn builds(&self) -> PathBuf {
        self.root.join("builds")
    }

    /// What is compiled of trees.
    pub fn layers(&self) -> PathBuf {
        self.builds().join("layers")
    }

    /// Models, datasets, tokenizers by content.
    pub fn artifacts(&self) -> PathBuf {
        self.root.join("artifacts")
    }

    /// Mirrors of git repositories.
    pub fn repos(&self) -> PathBuf {
        self.root.join("repos")
    }

    /// Coding agents, installed.
    pub fn agents(&self) -> PathBuf {
        self.root.join("agents")
    }

    /// Run folders.
    pub fn runs(&self) -> PathBuf {
        self.root.join("runs")
    }

    /// What is known of commits of histories.
    pub fn curations(&self) -> PathBuf {
        self.root.join("curations")
    }

    /// Golden calibrations.
    pub fn calibrations(&self) -> PathBuf {
        self.root.join("calibrations")
    }
}

/// An absolute path without `..`: sandboxes take none that has it. The folder before a `..` is asked where it leads, since it may
/// be a link; one that is not there leads nowhere else.
fn without_dots(path: &Path) -> Result<PathBuf, StoreError> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        if part != Component::ParentDir {
            plain.push(part);
            continue;
        }
        match plain.canonicalize() {
            Ok(leads) => plain = leads,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(StoreError::io("resolve", path, e)),
        }
        plain.pop();
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_is_where_the_variables_say_in_their_order() {
        let root = |pairs: &[(&str, &str)]| {
            Home::from_variables(|name| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| PathBuf::from(v)))
                .map(|home| home.root().to_string_lossy().into_owned())
                .map_err(|error| error.to_string())
        };
        let all = [("INFRADEV_HOME", "/i"), ("XDG_DATA_HOME", "/x"), ("HOME", "/h")];
        assert_eq!(root(&all).unwrap(), "/i");
        assert_eq!(root(&all[1..]).unwrap(), "/x/infradev");
        assert_eq!(root(&all[2..]).unwrap(), "/h/.local/share/infradev");
        assert_eq!(
            root(&[("INFRADEV_HOME", ""), ("XDG_DATA_HOME", "rel"), ("HOME", "/h")]).unwrap(),
            "/h/.local/share/infradev"
        );
        assert!(root(&[]).unwrap_err().contains("INFRADEV_HOME"));
    }

    #[test]
    fn a_path_that_goes_up_is_made_plain_and_links_on_the_way_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(here.join("deep/er")).unwrap();
        std::os::unix::fs::symlink("deep/er", here.join("link")).unwrap();
        let root =
            |path: &str| Home::at(&here.join(path)).unwrap().root().strip_prefix(&here).unwrap().to_owned();
        assert_eq!(root("deep/../home"), Path::new("home"));
        assert_eq!(root("link/../home"), Path::new("deep/home"));
        assert_eq!(root("link/home"), Path::new("link/home"));
        assert_eq!(root("new/../home/./x"), Path::new("home/x"));
        assert_eq!(Home::at(Path::new("/../..")).unwrap().root(), Path::new("/"));
    }
}
