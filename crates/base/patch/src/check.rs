//! Refuses hostile content, before any tree is looked at.

use std::collections::BTreeSet;

use crate::diff::{Change, Content, FilePatch, Line, Patch};
use crate::error::{PatchError, Refusal};
use crate::paths::show_path;
use crate::tree::parents;

pub(crate) const LINK: u32 = 0o120000;
const GITLINK: u32 = 0o160000;
const KIND: u32 = 0o170000;
const REGULAR: u32 = 0o100000;

impl Patch {
    /// Refuses what no honest change of a source tree holds: paths that leave the tree or reach into `.git`, links that
    /// leave the tree, gitlinks, files below a link that the patch itself makes. [`crate::apply`] calls it, and checks the
    /// same against the links that the tree holds.
    ///
    /// # Errors
    /// [`PatchError::Refused`] with the line of the file's header.
    pub fn check(&self) -> Result<(), PatchError> {
        let mut links = BTreeSet::new();
        for file in &self.files {
            check_file(file)?;
            if file.change != Change::Delete && file.new_mode.is_some_and(is_link) {
                links.insert(file.new_path.as_slice());
            }
        }
        for file in self.files.iter().filter(|file| file.change != Change::Delete) {
            if parents(&file.new_path).any(|parent| links.contains(parent)) {
                return Err(refused(file, &file.new_path, Refusal::ThroughLink));
            }
        }
        Ok(())
    }
}

pub(crate) fn is_link(mode: u32) -> bool {
    mode & KIND == LINK
}

pub(crate) fn refused(file: &FilePatch, path: &[u8], refusal: Refusal) -> PatchError {
    PatchError::Refused { line: file.line, path: show_path(path), refusal }
}

fn check_file(file: &FilePatch) -> Result<(), PatchError> {
    for path in [&file.old_path, &file.new_path] {
        if let Some(refusal) = refusal_of_path(path) {
            return Err(refused(file, path, refusal));
        }
    }
    for mode in [file.old_mode, file.new_mode].into_iter().flatten() {
        match mode & KIND {
            REGULAR | LINK => {}
            GITLINK => return Err(refused(file, &file.new_path, Refusal::Gitlink)),
            _ => return Err(refused(file, &file.new_path, Refusal::OddMode)),
        }
    }
    if let (Some(old), Some(new), Change::Modify | Change::Rename | Change::Copy) =
        (file.old_mode, file.new_mode, file.change)
        && is_link(old) != is_link(new)
    {
        let what = "a change between file and link must be a deletion and a creation".into();
        return Err(PatchError::Syntax { line: file.line, what });
    }
    if file.change == Change::Create && file.new_mode.is_some_and(is_link) {
        let target = match &file.content {
            Content::Same => Vec::new(),
            Content::Text(hunks) => {
                let new = hunks.iter().flat_map(|h| &h.lines).filter(|line| Line::is_new(line));
                new.flat_map(|line| line.body.iter().copied()).collect()
            }
            Content::Binary(binary) => {
                binary.forward.unpack(b"").map_err(|what| PatchError::Syntax { line: file.line, what })?
            }
        };
        if let Some(refusal) = refusal_of_link(&file.new_path, &target) {
            return Err(refused(file, &file.new_path, refusal));
        }
    }
    Ok(())
}

fn refusal_of_path(path: &[u8]) -> Option<Refusal> {
    if path.contains(&0) {
        return Some(Refusal::NulByte);
    }
    if path.starts_with(b"/") {
        return Some(Refusal::AbsolutePath);
    }
    if is_too_long(path) {
        return Some(Refusal::TooLong);
    }
    path.split(|&b| b == b'/').find_map(|component| match component {
        b"" | b"." => Some(Refusal::MalformedPath),
        b".." => Some(Refusal::ParentComponent),
        _ if is_git_folder(component) => Some(Refusal::GitFolder),
        _ => None,
    })
}

/// Else the file system would refuse it halfway through, which would look like a fault of the machine.
fn is_too_long(path: &[u8]) -> bool {
    path.len() > 3000 || path.split(|&b| b == b'/').any(|component| component.len() > 255)
}

/// `.git` in any case, and the spellings that HFS+ (ignorable code points) and NTFS (short name, trailing dots and
/// spaces, streams) take for it. No path of a patch has such a component. Source: git's `is_hfs_dotgit` and `is_ntfs_dotgit`.
pub fn is_git_folder(component: &[u8]) -> bool {
    let text: String = String::from_utf8_lossy(component)
        .chars()
        .filter(|c| {
            !matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
        })
        .collect();
    let name = text.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']).to_ascii_lowercase();
    name == ".git" || name == "git~1"
}

/// Why a link at `path` may not point to `target`. A `..` is allowed at the start of a target alone: after a name it
/// would go up from wherever that name leads, which a second link could turn outwards. A patch with such a link is refused as a whole.
pub fn refusal_of_link(path: &[u8], target: &[u8]) -> Option<Refusal> {
    if target.is_empty() {
        return Some(Refusal::MalformedPath);
    }
    if target.contains(&0) {
        return Some(Refusal::NulByte);
    }
    if target.starts_with(b"/") {
        return Some(Refusal::AbsoluteLink);
    }
    if is_too_long(target) {
        return Some(Refusal::TooLong);
    }
    let mut depth = path.iter().filter(|&&b| b == b'/').count();
    let mut named = false;
    for component in target.split(|&b| b == b'/') {
        match component {
            b"" | b"." => {}
            b".." if named || depth == 0 => return Some(Refusal::EscapingLink),
            b".." => depth -= 1,
            _ if is_git_folder(component) => return Some(Refusal::GitFolder),
            _ => named = true,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_folders_are_known_in_every_spelling() {
        for name in [".git", ".GIT", ".Git.", ".git ", "git~1", ".git::$INDEX_ALLOCATION", ".g\u{200c}it"] {
            assert!(is_git_folder(name.as_bytes()), "{name}");
        }
        for name in [".gitignore", ".github", "git", ".git2"] {
            assert!(!is_git_folder(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn a_link_may_go_up_as_far_as_the_tree_and_no_further() {
        assert_eq!(refusal_of_link(b"a/b/link", b"../../c"), None);
        assert_eq!(refusal_of_link(b"a/b/link", b"../../../c"), Some(Refusal::EscapingLink));
        assert_eq!(refusal_of_link(b"a/link", b"x/../y"), Some(Refusal::EscapingLink));
        assert_eq!(refusal_of_link(b"link", b".git/config"), Some(Refusal::GitFolder));
    }
}
