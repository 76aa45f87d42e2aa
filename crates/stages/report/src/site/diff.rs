//! Patches as pages show them.

use infradev_model::HunkAt;
use infradev_patch::{Content, Patch, Tag, show_path};

/// Lines of a patch that a page shows.
const LINES: usize = 5_000;

/// A patch in parts.
#[derive(Debug, Default)]
pub(crate) struct Diff {
    pub files: Vec<DiffFile>,
    /// The text as it is, where it is no patch.
    pub raw: Option<String>,
    /// Lines that are left out.
    pub left: usize,
}

#[derive(Debug)]
pub(crate) struct DiffFile {
    pub path: String,
    pub added: usize,
    pub removed: usize,
    /// What is to say of a file without hunks.
    pub note: &'static str,
    pub hunks: Vec<DiffHunk>,
}

#[derive(Debug)]
pub(crate) struct DiffHunk {
    pub head: String,
    /// No test notices that it is taken back.
    pub unprobed: bool,
    pub lines: Vec<DiffLine>,
}

#[derive(Debug)]
pub(crate) struct DiffLine {
    /// `+`, `-` or a space.
    pub sign: char,
    pub text: String,
}

/// A patch's files and hunks; those of `unprobed` are marked.
pub(crate) fn diff(bytes: &[u8], unprobed: &[HunkAt]) -> Diff {
    let Ok(patch) = Patch::parse(bytes) else {
        let text = String::from_utf8_lossy(bytes);
        let (shown, _) = super::excerpt::start(&text, 200_000);
        return Diff { raw: Some(shown.to_owned()), ..Diff::default() };
    };
    let mut shown = Diff::default();
    let mut room = LINES;
    for file in &patch.files {
        let stat = file.stat();
        let path = show_path(&stat.path);
        let mut hunks = Vec::new();
        if let Content::Text(all) = &file.content {
            for hunk in all {
                shown.left += hunk.lines.len().saturating_sub(room);
                hunks.push(of_hunk(hunk, &path, unprobed, room));
                room = room.saturating_sub(hunk.lines.len());
            }
        }
        let note = match &file.content {
            Content::Binary(_) => "binary",
            Content::Same => "no line changes",
            Content::Text(_) => "",
        };
        shown.files.push(DiffFile { path, added: stat.added, removed: stat.removed, note, hunks });
    }
    shown
}

fn of_hunk(hunk: &infradev_patch::Hunk, path: &str, unprobed: &[HunkAt], room: usize) -> DiffHunk {
    let lines = hunk.lines.iter().take(room).map(|line| DiffLine {
        sign: match line.tag {
            Tag::Added => '+',
            Tag::Removed => '-',
            Tag::Context => ' ',
        },
        text: String::from_utf8_lossy(line.body.strip_suffix(b"\n").unwrap_or(&line.body)).into_owned(),
    });
    let end = hunk.new_start + hunk.new_lines;
    DiffHunk {
        head: format!(
            "@@ -{},{} +{},{} @@{}",
            hunk.old_start,
            hunk.old_lines,
            hunk.new_start,
            hunk.new_lines,
            String::from_utf8_lossy(&hunk.section)
        ),
        unprobed: unprobed
            .iter()
            .any(|at| at.file == path && (hunk.new_start..=end).contains(&(at.line as usize))),
        lines: lines.collect(),
    }
}
