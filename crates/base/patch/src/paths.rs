//! Paths as they stand in a patch: git's C quoting, and the `a/` `b/` prefixes.

/// A path for people: as it is where it is plain, C-quoted as git would otherwise.
pub fn show_path(path: &[u8]) -> String {
    String::from_utf8_lossy(&quote(path)).into_owned()
}

/// Quotes a path as git does with `core.quotePath`: control bytes, `"`, `\` and bytes from 0x80 are escaped.
pub(crate) fn quote(path: &[u8]) -> Vec<u8> {
    if path.iter().all(|&b| (0x20..0x7f).contains(&b) && b != b'"' && b != b'\\') {
        return path.to_vec();
    }
    let mut out = vec![b'"'];
    for &byte in path {
        match byte {
            b'"' => out.extend(b"\\\""),
            b'\\' => out.extend(b"\\\\"),
            0x07 => out.extend(b"\\a"),
            0x08 => out.extend(b"\\b"),
            b'\t' => out.extend(b"\\t"),
            b'\n' => out.extend(b"\\n"),
            0x0b => out.extend(b"\\v"),
            0x0c => out.extend(b"\\f"),
            b'\r' => out.extend(b"\\r"),
            0x20..0x7f => out.push(byte),
            _ => out.extend(format!("\\{byte:03o}").bytes()),
        }
    }
    out.push(b'"');
    out
}

/// Reads a C-quoted string at the start of `text`; gives its bytes and the rest after the closing quote.
pub(crate) fn unquote(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut rest = text.strip_prefix(b"\"")?;
    let mut out = Vec::new();
    loop {
        let (&byte, after) = rest.split_first()?;
        rest = after;
        match byte {
            b'"' => return Some((out, rest)),
            b'\\' => {
                let (&escape, after) = rest.split_first()?;
                rest = after;
                match escape {
                    b'a' => out.push(7),
                    b'b' => out.push(8),
                    b't' => out.push(b'\t'),
                    b'n' => out.push(b'\n'),
                    b'v' => out.push(11),
                    b'f' => out.push(12),
                    b'r' => out.push(b'\r'),
                    b'"' | b'\\' => out.push(escape),
                    b'0'..=b'3' => {
                        let digits = rest.get(..2)?;
                        if !digits.iter().all(|d| (b'0'..=b'7').contains(d)) {
                            return None;
                        }
                        out.push((escape - b'0') * 64 + (digits[0] - b'0') * 8 + (digits[1] - b'0'));
                        rest = &rest[2..];
                    }
                    _ => return None,
                }
            }
            _ => out.push(byte),
        }
    }
}

/// Prefix pairs that git writes: the default, and those of `diff.mnemonicPrefix`.
const PREFIXES: [(&[u8], &[u8]); 5] =
    [(b"a/", b"b/"), (b"i/", b"w/"), (b"c/", b"i/"), (b"c/", b"w/"), (b"o/", b"w/")];

/// Takes a prefix pair off where both names have it.
pub(crate) fn strip_pair<'a>(old: &'a [u8], new: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    PREFIXES.iter().find_map(|(a, b)| Some((old.strip_prefix(*a)?, new.strip_prefix(*b)?)))
}

/// Takes the old (`side` 0) or new (`side` 1) prefix off a name that stands alone, its partner being `/dev/null`.
pub(crate) fn strip_single(name: &[u8], side: usize) -> &[u8] {
    let prefix: &[u8] = if side == 0 { b"a/" } else { b"b/" };
    name.strip_prefix(prefix).unwrap_or(name)
}

/// The two names of a `diff --git` line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct HeaderNames {
    pub(crate) old: Vec<u8>,
    pub(crate) new: Vec<u8>,
    /// Both had a prefix, which is taken off.
    pub(crate) prefixed: bool,
}

/// Reads the names after `diff --git `. None where they can't be told apart (unquoted names that differ, with spaces):
/// the lines that follow then state them.
pub(crate) fn header_names(rest: &[u8]) -> Option<HeaderNames> {
    let pair = |old: &[u8], new: &[u8]| match strip_pair(old, new) {
        Some((old, new)) => HeaderNames { old: old.to_vec(), new: new.to_vec(), prefixed: true },
        None => HeaderNames { old: old.to_vec(), new: new.to_vec(), prefixed: false },
    };
    if rest.starts_with(b"\"") {
        let (old, rest) = unquote(rest)?;
        let rest = rest.strip_prefix(b" ")?;
        let new = if rest.starts_with(b"\"") { unquote(rest)?.0 } else { rest.to_vec() };
        return Some(pair(&old, &new));
    }
    if rest.ends_with(b"\"") {
        let at = rest.windows(2).position(|w| w == b" \"")?;
        let (new, after) = unquote(&rest[at + 1..])?;
        return after.is_empty().then(|| pair(&rest[..at], &new));
    }
    let spaces: Vec<usize> = (0..rest.len()).filter(|&i| rest[i] == b' ').collect();
    if let [at] = spaces[..] {
        return Some(pair(&rest[..at], &rest[at + 1..]));
    }
    // Equal names have equal length, so the middle space parts them; a mnemonic prefix is as long as `a/`.
    let at = rest.len() / 2;
    if rest.len() % 2 == 1 && rest[at] == b' ' {
        let names = pair(&rest[..at], &rest[at + 1..]);
        return (names.old == names.new).then_some(names);
    }
    None
}

/// Reads the name of a `---` or `+++` line (after the marker and its space). None means `/dev/null`, or a time stamp of
/// 1970 such as GNU diff writes for a file that does not exist.
pub(crate) fn marker_name(rest: &[u8]) -> Option<Option<Vec<u8>>> {
    if rest.starts_with(b"\"") {
        return Some(Some(unquote(rest)?.0));
    }
    let (name, stamp) = match rest.iter().position(|&b| b == b'\t') {
        Some(at) => (&rest[..at], &rest[at + 1..]),
        None => (rest, &rest[..0]),
    };
    let epoch = stamp.starts_with(b"1970-01-01 00:00:00") || stamp.starts_with(b"1969-12-31 ");
    Some((name != b"/dev/null" && !epoch).then(|| name.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_prefix_is_taken_off_only_where_both_names_have_it() {
        let names = header_names(b"a/x.py b/x.py").unwrap();
        assert_eq!((names.old.as_slice(), names.prefixed), (&b"x.py"[..], true));
        let names = header_names(b"a/x.py a/x.py").unwrap();
        assert_eq!((names.old.as_slice(), names.prefixed), (&b"a/x.py"[..], false));
    }

    #[test]
    fn names_with_spaces_are_parted_in_the_middle() {
        let names = header_names(b"a/my file b/my file").unwrap();
        assert_eq!(names.new, b"my file");
        assert_eq!(header_names(b"a/my file b/her file"), None);
    }

    proptest! {
        #[test]
        fn quoting_is_undone_by_unquoting(path in proptest::collection::vec(any::<u8>(), 1..40)) {
            let quoted = quote(&path);
            if quoted.starts_with(b"\"") {
                let (back, rest) = unquote(&quoted).unwrap();
                prop_assert_eq!(back, path);
                prop_assert!(rest.is_empty());
            } else {
                prop_assert_eq!(quoted, path);
            }
        }
    }
}
