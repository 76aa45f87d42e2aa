//! A patch of bounded length: the changes of the largest files are left out of it.

use infradev_patch::Patch;

/// What begins the change of a file. No other line of git's diffs begins so: text has a sign before it, binary data no spaces.
const HEADER: &[u8] = b"diff --git ";

/// Leaves out the longest changes of a git diff without renames, as many as it takes for the rest to have no more bytes than `room`;
/// gives their paths too.
pub(crate) fn shortened(patch: Vec<u8>, room: usize) -> (Vec<u8>, Vec<Vec<u8>>) {
    if patch.len() <= room {
        return (patch, Vec::new());
    }
    let changes = changes(&patch);
    let mut longest: Vec<usize> = (0..changes.len()).collect();
    longest.sort_by_key(|&index| std::cmp::Reverse(changes[index].len()));
    let (mut left, mut out) = (patch.len(), vec![false; changes.len()]);
    for index in longest {
        if left <= room {
            break;
        }
        left -= changes[index].len();
        out[index] = true;
    }
    let mut kept = Vec::with_capacity(left);
    let mut paths = Vec::new();
    for (change, out) in changes.into_iter().zip(out) {
        match out {
            true => paths.extend(path(change)),
            false => kept.extend_from_slice(change),
        }
    }
    (kept, paths)
}

/// The patch in parts of a file each.
fn changes(patch: &[u8]) -> Vec<&[u8]> {
    let (mut starts, mut at) = (Vec::new(), 0);
    for line in patch.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(HEADER) {
            starts.push(at);
        }
        at += line.len();
    }
    let ends = starts.iter().skip(1).copied().chain([patch.len()]);
    starts.iter().copied().zip(ends).map(|(start, end)| &patch[start..end]).collect()
}

/// The file that a part changes, by its first line, which may be quoted.
fn path(change: &[u8]) -> Option<Vec<u8>> {
    let first = change.split_inclusive(|byte| *byte == b'\n').next()?;
    let alone = [first, b"old mode 100644\nnew mode 100755\n"].concat();
    Patch::parse(&alone).ok()?.files.into_iter().next().map(|file| file.new_path)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::Write;
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::capture::{Base, SkipReason, captured};

    #[test]
    fn the_longest_changes_are_left_out_until_the_rest_has_room_in_its_order() {
        let part = |name: &str, lines: usize| {
            let text = "+x\n".repeat(lines);
            format!(
                "diff --git {name}\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1,9 @@\n{text}"
            )
        };
        let quoted = r#""a/\303\251 \"b" "b/\303\251 \"b""#;
        let parts =
            [part("a/one b/one", 10), part(quoted, 30), part("a/b b/c b/b b/c", 20), part("a/z b/z", 1)];
        let patch = parts.concat().into_bytes();
        let made = |room: usize| {
            let (patch, paths) = shortened(patch.clone(), room);
            let paths: Vec<String> = paths.iter().map(|path| String::from_utf8_lossy(path).into()).collect();
            (String::from_utf8(patch).unwrap(), paths)
        };
        assert_eq!(made(patch.len()), (parts.concat(), vec![]));
        let without_quoted = [0, 2, 3].map(|index: usize| parts[index].clone()).concat();
        assert_eq!(made(patch.len() - 1), (without_quoted, vec!["é \"b".to_owned()]));
        let two = [0, 3].map(|index: usize| parts[index].clone()).concat();
        assert_eq!(made(two.len()), (two, vec!["é \"b".to_owned(), "b b/c".to_owned()]));
    }

    #[test]
    fn holes_that_would_be_text_of_a_patch_are_left_out_as_too_much() {
        let folder = tempfile::tempdir().unwrap();
        let (base, work) = (folder.path().join("base"), folder.path().join("work"));
        fs::create_dir(&base).unwrap();
        fs::create_dir(&work).unwrap();
        fs::write(work.join("edit"), "x = 1\n").unwrap();
        for name in ["hole", "larger"] {
            let mut file = File::create(work.join(name)).unwrap();
            // By its beginning, git takes it for text.
            file.write_all(&b"text\n".repeat(2000)).unwrap();
            file.set_len(if name == "hole" { 1 << 20 } else { 2 << 20 }).unwrap();
            assert!(file.metadata().unwrap().blocks() * 512 < 1 << 16);
        }
        let made = captured(Base::Folder(&base), &work, (1 << 20) + (1 << 17)).unwrap();
        let patch = Patch::parse(&made.patch).unwrap();
        assert_eq!(patch.paths(), [&b"edit"[..], b"hole"]);
        let skipped: Vec<_> = made.skipped.iter().map(|file| (file.path.as_slice(), file.reason)).collect();
        assert_eq!(skipped, [(&b"larger"[..], SkipReason::TooMuch)]);
    }
}
