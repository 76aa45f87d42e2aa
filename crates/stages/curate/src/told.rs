//! What people say of a change: its title, its description, its labels.

/// What is said of a change.
#[derive(Debug, Clone, Copy, Default)]
pub struct Told<'a> {
    /// The title, without numbers.
    pub title: &'a str,
    /// The description: a pull request's, else the rest of the commit's message.
    pub body: &'a str,
    /// Labels of the pull request.
    pub labels: &'a [String],
}

/// Most characters of a description that are read; what follows is tables, logs and the commits that were squashed.
const READ: usize = 1500;

/// A description without what a template or a program put there: comments, code, quotes, checklists, trailers, addresses.
pub fn prose(body: &str) -> String {
    let (mut text, mut in_code, mut in_comment) = (String::new(), false, false);
    for line in body.lines() {
        let line = line.trim();
        if line.starts_with("```") {
            in_code = !in_code;
            continue;
        }
        in_comment |= line.starts_with("<!--");
        let skipped = in_code || in_comment || !is_prose(line);
        in_comment &= !line.contains("-->");
        if line.to_lowercase().contains("checklist") {
            break;
        }
        if !skipped {
            // An address names things in words that nobody said of the change.
            for word in line.split_whitespace().filter(|word| !word.contains("://")) {
                text.push_str(word);
                text.push(' ');
            }
        } else if line.is_empty() || line.starts_with('#') {
            // A heading ends the sentence before it.
            text.push_str(". ");
        }
        if text.len() > READ {
            break;
        }
    }
    text
}

/// The headings of a description.
pub fn headings(body: &str) -> Vec<&str> {
    body.lines().map(str::trim).filter(|line| line.starts_with('#')).take(HEADINGS).collect()
}

/// Most headings that are read: those of a template's end say nothing.
const HEADINGS: usize = 6;

/// Words of a heading; a longer line after `#` is a sentence.
const HEADING: usize = 6;

fn is_prose(line: &str) -> bool {
    if line.starts_with('#') {
        return line.split_whitespace().count() > HEADING + 1;
    }
    let lower = line.to_lowercase();
    let starts = |with: &[&str]| with.iter().any(|start| lower.starts_with(start));
    !line.is_empty()
        && !starts(&[">", "|", "- [", "* [", "http", "signed-off-by", "co-authored-by", "see merge request"])
        && !starts(&[
            "ghstack-source-id",
            "pull request resolved",
            "differential revision",
            "reviewed by",
            "cc @",
        ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_read_without_its_template() {
        let body = "# It is a sentence that came after a mark\n### What does this PR do?\n\n<!-- say\nwhat -->\nIt makes x faster.\n```\nfix\n```\n> quoted\n\n### Checklist\n- [x] fix\nBug";
        let said = prose(body);
        assert!(said.starts_with("# It is a sentence"), "{said}");
        assert!(said.trim_end_matches(['.', ' ']).ends_with("It makes x faster"), "{said}");
        assert_eq!(prose("See https://x/6x-faster-reads now").trim(), "See now");
        assert_eq!(prose("Signed-off-by: Fix <a@b>\n").trim(), "");
    }
}
