//! Reads a patch from bytes.

use crate::apply::Mending;
use crate::binary::{BinaryChunk, BinaryPatch, MAX_TOTAL, Method, decode_line};
use crate::diff::{Change, Content, FilePatch, Index, Patch};
use crate::error::PatchError;
use crate::hunks::{hunk_header, number};
use crate::paths::{self, HeaderNames, header_names, marker_name, show_path};

impl Patch {
    /// Reads a git diff or a plain unified diff. Text before the first file and between files is passed over, as
    /// `git apply` does. Empty input (or white space alone) is a patch without files.
    ///
    /// Mended and recorded: a last line that lost its newline, and line ends that a transport turned into CRLF
    /// throughout. Nothing else is guessed. Hostile content is read; [`Patch::check`] refuses it.
    ///
    /// # Errors
    /// [`PatchError`], with the patch's line.
    pub fn parse(bytes: &[u8]) -> Result<Patch, PatchError> {
        let mut mended = Vec::new();
        let mut text = bytes.to_vec();
        if text.iter().all(u8::is_ascii_whitespace) {
            return Ok(Patch::default());
        }
        if !text.ends_with(b"\n") {
            text.push(b'\n');
            mended.push(Mending::FinalNewline { line: text.iter().filter(|&&b| b == b'\n').count() });
        }
        if let Some(unixed) = undo_transport_crlf(&text)? {
            text = unixed;
            mended.push(Mending::TransportCrlf);
        }
        let lines: Vec<&[u8]> = text.split_inclusive(|&b| b == b'\n').collect();
        let mut reader = Reader { lines, at: 0, unpacked: 0 };
        let mut files = Vec::new();
        while let Some(line) = reader.peek() {
            if let Some(rest) = line.strip_prefix(b"diff --git ") {
                files.push(reader.git_file(rest)?);
            } else if reader.at_plain_header() {
                files.push(reader.plain_file()?);
            } else if line.starts_with(b"diff --cc ") || line.starts_with(b"diff --combined ") {
                return Err(reader.syntax("a combined diff of a merge can't be applied"));
            } else if hunk_header(line).is_some() {
                return Err(reader.syntax("a hunk without a file header before it"));
            } else {
                reader.at += 1;
            }
        }
        if files.is_empty() {
            return Err(PatchError::NotADiff);
        }
        Ok(Patch { files, mended })
    }
}

/// Header lines never end in CR (git quotes such names): where the first one does, the whole text was converted.
fn undo_transport_crlf(text: &[u8]) -> Result<Option<Vec<u8>>, PatchError> {
    let lines: Vec<&[u8]> = text.split_inclusive(|&b| b == b'\n').collect();
    let first = lines.iter().enumerate().find(|(at, line)| {
        line.starts_with(b"diff --git ")
            || line.starts_with(b"--- ") && lines.get(at + 1).is_some_and(|next| next.starts_with(b"+++ "))
    });
    if !first.is_some_and(|(_, line)| line.ends_with(b"\r\n")) {
        return Ok(None);
    }
    let mut out = Vec::with_capacity(text.len());
    for (at, line) in lines.iter().enumerate() {
        match line.strip_suffix(b"\r\n") {
            Some(body) => out.extend([body, b"\n"].concat()),
            // The last line's newline may be the one that was mended.
            None if at + 1 == lines.len() => out.extend(*line),
            None => {
                let what = "ends in LF, but the patch's headers end in CRLF".to_string();
                return Err(PatchError::Syntax { line: at + 1, what });
            }
        }
    }
    Ok(Some(out))
}

pub(crate) struct Reader<'a> {
    pub(crate) lines: Vec<&'a [u8]>,
    /// Lines read so far; the next line's number is one more.
    pub(crate) at: usize,
    /// Bytes that the binary data read so far unpack to.
    unpacked: usize,
}

/// A `---` or `+++` line: none where it was not there, then none for `/dev/null`.
type Marker = Option<Option<Vec<u8>>>;

impl<'a> Reader<'a> {
    /// The next line without its newline.
    pub(crate) fn peek(&self) -> Option<&'a [u8]> {
        self.line_after(0)
    }

    pub(crate) fn line_after(&self, skip: usize) -> Option<&'a [u8]> {
        self.lines.get(self.at + skip).map(|line| line.strip_suffix(b"\n").unwrap_or(line))
    }

    pub(crate) fn syntax(&self, what: impl Into<String>) -> PatchError {
        PatchError::Syntax { line: self.at + 1, what: what.into() }
    }

    pub(crate) fn at_plain_header(&self) -> bool {
        self.peek().is_some_and(|l| l.starts_with(b"--- "))
            && self.line_after(1).is_some_and(|l| l.starts_with(b"+++ "))
            && self.line_after(2).is_some_and(|l| l.starts_with(b"@@ -"))
    }

    fn marker(&mut self, mark: &[u8]) -> Result<Marker, PatchError> {
        let Some(rest) = self.peek().and_then(|line| line.strip_prefix(mark)) else { return Ok(None) };
        let name = marker_name(rest).ok_or_else(|| self.syntax("a quoted name that can't be read"))?;
        self.at += 1;
        Ok(Some(name))
    }

    fn plain_file(&mut self) -> Result<FilePatch, PatchError> {
        let line = self.at + 1;
        let old = self.marker(b"--- ")?.flatten();
        let new = self.marker(b"+++ ")?.flatten();
        let (change, old, new) = match (old, new) {
            (None, None) => {
                return Err(PatchError::Syntax { line, what: "both names are /dev/null".into() });
            }
            (None, Some(new)) => {
                let new = paths::strip_single(&new, 1).to_vec();
                (Change::Create, new.clone(), new)
            }
            (Some(old), None) => {
                let old = paths::strip_single(&old, 0).to_vec();
                (Change::Delete, old.clone(), old)
            }
            (Some(old), Some(new)) => {
                let (old, new) = match paths::strip_pair(&old, &new) {
                    Some((old, new)) => (old.to_vec(), new.to_vec()),
                    None => (old, new),
                };
                // `diff -u x.py.orig x.py`: the shorter name is the file.
                let name = if old.starts_with(&new) {
                    new
                } else if new.starts_with(&old) {
                    old
                } else {
                    let what = format!("the names {} and {} differ", show_path(&old), show_path(&new));
                    return Err(PatchError::Syntax { line, what });
                };
                (Change::Modify, name.clone(), name)
            }
        };
        Ok(FilePatch {
            line,
            change,
            old_path: old,
            new_path: new,
            old_mode: None,
            new_mode: None,
            index: None,
            similarity: None,
            content: Content::Text(self.hunks()?),
        })
    }

    fn git_file(&mut self, names: &[u8]) -> Result<FilePatch, PatchError> {
        let line = self.at + 1;
        let header = header_names(names);
        self.at += 1;
        let mut file = FilePatch {
            line,
            change: Change::Modify,
            old_path: Vec::new(),
            new_path: Vec::new(),
            old_mode: None,
            new_mode: None,
            index: None,
            similarity: None,
            content: Content::Same,
        };
        let (mut from, mut to) = (None, None);
        while let Some(text) = self.peek() {
            let value = |key: &str| text.strip_prefix(key.as_bytes());
            if let Some(mode) = value("old mode ") {
                file.old_mode = Some(self.mode(mode)?);
            } else if let Some(mode) = value("new mode ") {
                file.new_mode = Some(self.mode(mode)?);
            } else if let Some(mode) = value("deleted file mode ") {
                (file.change, file.old_mode) = (Change::Delete, Some(self.mode(mode)?));
            } else if let Some(mode) = value("new file mode ") {
                (file.change, file.new_mode) = (Change::Create, Some(self.mode(mode)?));
            } else if let Some(name) = value("rename from ") {
                (file.change, from) = (Change::Rename, Some(self.extended_name(name)?));
            } else if let Some(name) = value("rename to ") {
                (file.change, to) = (Change::Rename, Some(self.extended_name(name)?));
            } else if let Some(name) = value("copy from ") {
                (file.change, from) = (Change::Copy, Some(self.extended_name(name)?));
            } else if let Some(name) = value("copy to ") {
                (file.change, to) = (Change::Copy, Some(self.extended_name(name)?));
            } else if let Some(percent) = value("similarity index ") {
                file.similarity =
                    number(percent.strip_suffix(b"%").unwrap_or(percent)).map(|n| n.min(100) as u8);
            } else if value("dissimilarity index ").is_some() {
                // Says how much a rewrite changed; nothing to apply.
            } else if let Some(ids) = value("index ") {
                self.index(ids, &mut file)?;
            } else {
                break;
            }
            self.at += 1;
        }
        let (old_marker, new_marker) = self.body(&mut file, &header)?;
        name_file(&mut file, header, (from, to), (old_marker, new_marker))?;
        Ok(file)
    }

    /// What follows the extended header lines: hunks below their markers, binary data, or nothing.
    fn body(
        &mut self,
        file: &mut FilePatch,
        header: &Option<HeaderNames>,
    ) -> Result<(Marker, Marker), PatchError> {
        let Some(text) = self.peek() else { return Ok((None, None)) };
        if text == b"GIT binary patch" {
            self.at += 1;
            file.content = Content::Binary(self.binary()?);
        } else if text.starts_with(b"Binary files ") && text.ends_with(b" differ") {
            let path = header.as_ref().map_or("the file".into(), |names| show_path(&names.new));
            return Err(PatchError::BinaryWithoutData { line: self.at + 1, path });
        } else if text.starts_with(b"--- ") {
            let old = self.marker(b"--- ")?;
            let new = self.marker(b"+++ ")?;
            if new.is_none() {
                return Err(self.syntax("a `+++` line must follow the `---` line"));
            }
            file.content = Content::Text(self.hunks()?);
            return Ok((old, new));
        } else if hunk_header(text).is_some() {
            return Err(self.syntax("a hunk without `---` and `+++` lines before it"));
        }
        Ok((None, None))
    }

    fn mode(&self, text: &[u8]) -> Result<u32, PatchError> {
        std::str::from_utf8(text)
            .ok()
            .and_then(|text| u32::from_str_radix(text.trim_end(), 8).ok())
            .ok_or_else(|| self.syntax("a file mode is octal digits"))
    }

    fn extended_name(&self, text: &[u8]) -> Result<Vec<u8>, PatchError> {
        if !text.starts_with(b"\"") {
            return Ok(text.to_vec());
        }
        match paths::unquote(text) {
            Some((name, [])) => Ok(name),
            _ => Err(self.syntax("a quoted name that can't be read")),
        }
    }

    fn index(&self, ids: &[u8], file: &mut FilePatch) -> Result<(), PatchError> {
        let bad = || self.syntax("an index line is two blob ids and perhaps a mode");
        let text = std::str::from_utf8(ids).map_err(|_| bad())?;
        let (ids, mode) = match text.split_once(' ') {
            Some((ids, mode)) => (ids, Some(mode)),
            None => (text, None),
        };
        let (old, new) = ids.split_once("..").ok_or_else(bad)?;
        if ![old, new].iter().all(|id| !id.is_empty() && id.bytes().all(|b| b.is_ascii_hexdigit())) {
            return Err(bad());
        }
        file.index = Some(Index { old: old.into(), new: new.into() });
        if let Some(mode) = mode {
            let mode = self.mode(mode.as_bytes())?;
            file.old_mode.get_or_insert(mode);
            file.new_mode.get_or_insert(mode);
        }
        Ok(())
    }

    fn binary(&mut self) -> Result<BinaryPatch, PatchError> {
        let forward = self.chunk()?.ok_or_else(|| self.syntax("expected `literal` or `delta` and a size"))?;
        let reverse = self.chunk()?;
        Ok(BinaryPatch { forward, reverse })
    }

    fn chunk(&mut self) -> Result<Option<BinaryChunk>, PatchError> {
        let Some(text) = self.peek() else { return Ok(None) };
        let (method, size) = if let Some(size) = text.strip_prefix(b"literal ") {
            (Method::Literal, size)
        } else if let Some(size) = text.strip_prefix(b"delta ") {
            (Method::Delta, size)
        } else {
            return Ok(None);
        };
        let size = number(size).ok_or_else(|| self.syntax("a size is decimal digits"))?;
        let head = self.at + 1;
        self.at += 1;
        let mut chunk = BinaryChunk { method, size, deflated: Vec::new() };
        while let Some(text) = self.peek().filter(|text| !text.is_empty()) {
            decode_line(text, &mut chunk.deflated).map_err(|what| self.syntax(what))?;
            self.at += 1;
        }
        // The blank line that ends a chunk; a stripped patch may lack it.
        self.at += usize::from(self.peek().is_some());
        self.unpacked = self.unpacked.saturating_add(size);
        if self.unpacked > MAX_TOTAL {
            let what = format!("the binary changes unpack to more than {MAX_TOTAL} bytes together");
            return Err(PatchError::Syntax { line: head, what });
        }
        chunk.inflate().map_err(|what| PatchError::Syntax { line: head, what })?;
        Ok(Some(chunk))
    }
}

/// Settles the names of a git file from its header, `rename`/`copy` lines and markers, which must agree.
fn name_file(
    file: &mut FilePatch,
    header: Option<HeaderNames>,
    (from, to): (Option<Vec<u8>>, Option<Vec<u8>>),
    (old_marker, new_marker): (Marker, Marker),
) -> Result<(), PatchError> {
    let line = file.line;
    let fail = |what: String| Err(PatchError::Syntax { line, what });
    if old_marker == Some(None) && file.change == Change::Modify {
        file.change = Change::Create;
    }
    if new_marker == Some(None) && file.change == Change::Modify {
        file.change = Change::Delete;
    }
    let moved = matches!(file.change, Change::Rename | Change::Copy);
    let prefixed = header.as_ref().map(|names| names.prefixed);
    let strip = |marker: Marker, side: usize| -> Option<Vec<u8>> {
        let name = marker.flatten()?;
        Some(match prefixed {
            Some(false) => name,
            Some(true) => {
                name.iter().position(|&b| b == b'/').map_or(name.clone(), |at| name[at + 1..].to_vec())
            }
            None => paths::strip_single(&name, side).to_vec(),
        })
    };
    let (old_name, new_name) = (strip(old_marker, 0), strip(new_marker, 1));
    let (header_old, header_new) = match header {
        Some(names) => (Some(names.old), Some(names.new)),
        None => (None, None),
    };
    let (old, new) = if moved { (from, to) } else { (header_old, header_new) };
    let (old, new) = (old.or(old_name.clone()), new.or(new_name.clone()));
    let (Some(old), Some(new)) = (old.clone().or(new.clone()), new.or(old)) else {
        return fail("the names of this file can't be told apart".into());
    };
    if old_name.is_some_and(|name| name != old) || new_name.is_some_and(|name| name != new) {
        return fail("the `diff --git` line and the `---`/`+++` lines name different files".into());
    }
    if !moved && old != new {
        return fail(format!(
            "{} becomes {} without `rename` or `copy` lines",
            show_path(&old),
            show_path(&new)
        ));
    }
    (file.old_path, file.new_path) = (old, new);
    Ok(())
}
