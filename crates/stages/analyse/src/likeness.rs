//! How close a patch is to golden: containment by lines and resemblance by shingles (A. Broder, On the resemblance and containment
//! of documents, 1997), and the files that both change.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};

use infradev_model::Likeness;
use infradev_patch::{Patch, PathClass, Tag, TestPaths};
use rustc_hash::{FxHashSet, FxHasher};

/// Tokens of a shingle.
const SHINGLE: usize = 5;
/// A line that says less than this many letters and digits is one that anyone writes.
const TELLING: usize = 12;

/// Golden, read once for all submissions of its task.
pub(crate) struct Golden(Text);

/// The source part of a patch.
struct Text {
    lines: FxHashSet<String>,
    shingles: FxHashSet<u64>,
    files: BTreeSet<Vec<u8>>,
}

impl Golden {
    /// Reads golden's patch; none where it is none.
    pub fn of(bytes: &[u8], tests: &TestPaths) -> Option<Golden> {
        Some(Golden(Text::of(&Patch::parse(bytes).ok()?, tests)))
    }

    /// How close a patch is to it.
    pub fn likeness(&self, patch: &Patch, tests: &TestPaths) -> Likeness {
        let Golden(golden) = self;
        let own = Text::of(patch, tests);
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let both = golden.shingles.intersection(&own.shingles).count();
        let either = golden.shingles.len() + own.shingles.len() - both;
        Likeness {
            lines: number(golden.lines.len()),
            shared_lines: number(golden.lines.intersection(&own.lines).count()),
            shingles: if either == 0 { 0.0 } else { both as f64 / either as f64 },
            files: number(golden.files.len()),
            shared_files: number(golden.files.intersection(&own.files).count()),
            own_files: number(own.files.len()),
        }
    }
}

impl Text {
    fn of(patch: &Patch, tests: &TestPaths) -> Text {
        let mut text =
            Text { lines: FxHashSet::default(), shingles: FxHashSet::default(), files: BTreeSet::new() };
        for file in &patch.files {
            if tests.classify(&file.new_path) == PathClass::Test {
                continue;
            }
            text.files.insert(file.new_path.clone());
            let mut tokens: Vec<u64> = Vec::new();
            let added =
                file.hunks().iter().flat_map(|hunk| &hunk.lines).filter(|line| line.tag == Tag::Added);
            for line in added {
                let line = String::from_utf8_lossy(&line.body);
                tokens.extend(words(&line).map(hashed));
                text.lines.extend(telling(&line));
            }
            text.shingles.extend(tokens.windows(SHINGLE).map(hashed));
        }
        text
    }
}

/// A line on which whitespace does not count; none of one that anyone writes, and none of a comment.
fn telling(line: &str) -> Option<String> {
    let bare = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let letters = bare.chars().filter(|c| c.is_alphanumeric()).count();
    (letters >= TELLING && !bare.starts_with('#') && words(&bare).count() > 2).then_some(bare)
}

/// Names and numbers whole, every other sign by itself; a comment has none.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let line = if line.trim_start().starts_with('#') { "" } else { line };
    let mut rest = line;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let first = rest.chars().next()?;
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let end = match is_word(first) {
            true => rest.find(|c: char| !is_word(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (word, more) = rest.split_at(end);
        rest = more;
        Some(word)
    })
}

fn hashed<T: Hash>(of: T) -> u64 {
    let mut hasher = FxHasher::default();
    of.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch(path: &str, lines: &[&str]) -> Patch {
        let added: String = lines.iter().map(|line| format!("+{line}\n")).collect();
        let head =
            format!("diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n");
        Patch::parse(format!("{head}@@ -0,0 +1,{} @@\n{added}", lines.len()).as_bytes()).unwrap()
    }

    const GOLDEN: [&str; 5] = [
        "def triple(value, offset):",
        "    # what anyone may write",
        "    shifted = value + offset * 2",
        "    return 3 * shifted - offset",
        "",
    ];

    fn likeness(path: &str, lines: &[&str]) -> Likeness {
        let tests = TestPaths::new(&["tests"]);
        let golden = Golden(Text::of(&patch("model.py", &GOLDEN), &tests));
        golden.likeness(&patch(path, lines), &tests)
    }

    #[test]
    fn golden_is_like_itself_whatever_its_whitespace_and_comments() {
        let spaced = GOLDEN.map(|line| line.replace("    ", "\t").replace("# what", "# who"));
        let found = likeness("model.py", &spaced.each_ref().map(String::as_str));
        assert_eq!((found.lines, found.shared_lines, found.shingles), (3, 3, 1.0));
        assert_eq!((found.files, found.shared_files, found.own_files), (1, 1, 1));
    }

    #[test]
    fn another_way_of_doing_it_shares_little_and_tests_count_on_neither_side() {
        let other = ["def triple(value, offset):", "    return sum((value, value, value)) + 5 * offset"];
        let found = likeness("other.py", &other);
        assert_eq!((found.lines, found.shared_lines), (3, 1));
        assert!(found.shingles > 0.0 && found.shingles < 0.5, "{}", found.shingles);
        assert_eq!((found.shared_files, found.own_files), (0, 1));
        let found = likeness("tests/test_model.py", &GOLDEN);
        assert_eq!((found.shared_lines, found.shingles, found.own_files), (0, 0.0, 0));
    }

    #[test]
    fn lines_that_anyone_writes_say_nothing() {
        for line in
            ["    return self", "    )", "        else:", "# a comment of many words it is", "import torch"]
        {
            assert_eq!(telling(line), None, "{line}");
        }
        assert_eq!(telling("  x  =  compute(y)\n"), None, "too short");
        assert_eq!(telling("  total =  compute(left, right)\n").unwrap(), "total = compute(left, right)");
        assert_eq!(words("a.b_1+=3 # x").collect::<Vec<_>>(), ["a", ".", "b_1", "+", "=", "3", "#", "x"]);
    }
}
