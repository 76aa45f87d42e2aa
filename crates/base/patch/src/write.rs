//! Writes a patch as git would.

use crate::diff::{Change, Content, FilePatch, Hunk, Patch, Tag};
use crate::paths::quote;

impl Patch {
    /// The patch as a git diff with `a/` and `b/` prefixes. Reading it back gives the same patch, apart from line numbers
    /// and the record of mendings.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for file in &self.files {
            write_file(file, &mut out);
        }
        out
    }
}

fn put(out: &mut Vec<u8>, parts: &[&[u8]]) {
    for part in parts {
        out.extend_from_slice(part);
    }
    out.push(b'\n');
}

fn prefixed(prefix: &[u8], path: &[u8]) -> Vec<u8> {
    quote(&[prefix, path].concat())
}

fn write_file(file: &FilePatch, out: &mut Vec<u8>) {
    let (old, new) = (prefixed(b"a/", &file.old_path), prefixed(b"b/", &file.new_path));
    put(out, &[b"diff --git ", &old, b" ", &new]);
    let mode = |mode: Option<u32>| format!("{:06o}", mode.unwrap_or(0o100644)).into_bytes();
    match file.change {
        Change::Create => put(out, &[b"new file mode ", &mode(file.new_mode)]),
        Change::Delete => put(out, &[b"deleted file mode ", &mode(file.old_mode)]),
        _ if file.old_mode != file.new_mode => {
            put(out, &[b"old mode ", &mode(file.old_mode)]);
            put(out, &[b"new mode ", &mode(file.new_mode)]);
        }
        _ => {}
    }
    if let Change::Rename | Change::Copy = file.change {
        let word: &[u8] = if file.change == Change::Rename { b"rename" } else { b"copy" };
        if let Some(percent) = file.similarity {
            put(out, &[format!("similarity index {percent}%").as_bytes()]);
        }
        put(out, &[word, b" from ", &quote(&file.old_path)]);
        put(out, &[word, b" to ", &quote(&file.new_path)]);
    }
    if let Some(index) = &file.index {
        let mut line = format!("index {}..{}", index.old, index.new);
        if let (Some(mode), true) = (file.new_mode, file.old_mode == file.new_mode) {
            line += &format!(" {mode:06o}");
        }
        put(out, &[line.as_bytes()]);
    }
    match &file.content {
        Content::Same => {}
        Content::Text(hunks) => {
            let marker = |mark: &[u8], name: &[u8], absent: bool, out: &mut Vec<u8>| {
                let name: &[u8] = if absent { b"/dev/null" } else { name };
                // git ends a name with a space in it by a tab, so that other tools see where it ends.
                let tab: &[u8] = if name.contains(&b' ') { b"\t" } else { b"" };
                put(out, &[mark, name, tab]);
            };
            marker(b"--- ", &old, file.change == Change::Create, out);
            marker(b"+++ ", &new, file.change == Change::Delete, out);
            hunks.iter().for_each(|hunk| write_hunk(hunk, out));
        }
        Content::Binary(binary) => {
            put(out, &[b"GIT binary patch"]);
            binary.forward.write(out);
            if let Some(reverse) = &binary.reverse {
                reverse.write(out);
            }
        }
    }
}

fn write_hunk(hunk: &Hunk, out: &mut Vec<u8>) {
    let range = |start: usize, lines: usize| match lines {
        1 => start.to_string(),
        _ => format!("{start},{lines}"),
    };
    let (old, new) = (range(hunk.old_start, hunk.old_lines), range(hunk.new_start, hunk.new_lines));
    put(out, &[format!("@@ -{old} +{new} @@").as_bytes(), &hunk.section]);
    for line in &hunk.lines {
        out.push(match line.tag {
            Tag::Context => b' ',
            Tag::Removed => b'-',
            Tag::Added => b'+',
        });
        out.extend_from_slice(&line.body);
        if !line.body.ends_with(b"\n") {
            out.extend_from_slice(b"\n\\ No newline at end of file\n");
        }
    }
}
