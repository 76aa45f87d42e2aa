//! What a commit's message says: its title, its numbers, and whether it takes another back, brings one back or repeats one.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// What a message says.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Message {
    /// The subject without numbers, merge words and control characters.
    pub title: String,
    /// `#12` of GitHub or `!12` of GitLab: the last where the subject has several.
    pub number: Option<String>,
    /// Numbers before the last: those of the change that this one repeats.
    pub earlier: Vec<String>,
    /// Commits that it says it was picked from.
    pub picked: Vec<String>,
    /// Set where it takes another change back or brings one back.
    pub act: Option<Act>,
}

/// A revert, or the revert of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Act {
    /// It brings the change back.
    pub restores: bool,
    /// Commits that it names.
    pub commits: Vec<String>,
    /// The number in the quoted subject.
    pub number: Option<String>,
    /// The quoted subject, innermost, as [`Message::title`] would have it.
    pub title: String,
}

impl Message {
    /// The title of the change itself, where this brings one back.
    pub fn of_change(&self) -> &str {
        match &self.act {
            Some(act) if act.restores && !act.title.is_empty() => &act.title,
            _ => &self.title,
        }
    }
}

impl Message {
    /// Its number; where it brings a change back and has none of its own, that of the change.
    pub fn number_of_change(&self) -> Option<&str> {
        let restored = || self.act.as_ref().filter(|act| act.restores).and_then(|act| act.number.as_deref());
        self.number.as_deref().or_else(restored)
    }
}

/// Words that open a subject that brings something back.
const RESTORING: &[&str] = &["reapply", "reland", "re-land", "unrevert"];

/// Reads a message.
pub fn read(subject: &str, body: &str) -> Message {
    let mut line = cleaned(subject);
    let mut merged = None;
    if let Some(rest) = line.strip_prefix("Merge pull request #") {
        merged = leading_number(rest).map(|number| format!("#{number}"));
        line = first_line(body).unwrap_or(line);
    } else if line.starts_with("Merge branch ") && line.contains(" into ") {
        merged = merge_request(body);
        if let Some(first) = first_line(body).filter(|first| !first.starts_with("See merge request")) {
            line = first;
        }
    }
    let mirrored = gitlab_prefix(&line).map(|(number, rest)| (number, rest.to_owned()));
    if let Some((number, rest)) = mirrored {
        merged = merged.or(Some(number));
        line = rest;
    }
    let (title, mut numbers) = without_numbers(&line);
    let number = merged.or_else(|| numbers.pop());
    let mut act = act(&title, body);
    if let Some(act) = act.as_mut().filter(|act| act.number.is_none()) {
        // `[Reland] x (#1) (#2)`: the number before its own is that of what it brings back.
        act.number = numbers.last().cloned();
    }
    Message { act, title, number, earlier: numbers, picked: after_each(body, "cherry picked from commit ") }
}

/// One line, its control characters taken out, those of a terminal's colours with what follows them.
pub fn cleaned(text: &str) -> String {
    let text = without_colours(text);
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Without sequences such as `ESC [ 31 m`.
fn without_colours(text: &str) -> Cow<'_, str> {
    let Some((before, rest)) = text.split_once("\u{1b}[") else { return Cow::Borrowed(text) };
    let mut plain = before.to_owned();
    for piece in rest.split("\u{1b}[") {
        let shown = piece.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        plain.push_str(shown.strip_prefix(|c: char| c.is_ascii_alphabetic()).unwrap_or(shown));
    }
    Cow::Owned(plain)
}

fn first_line(body: &str) -> Option<String> {
    body.lines().map(cleaned).find(|line| !line.is_empty())
}

fn leading_number(text: &str) -> Option<u64> {
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// `See merge request GROUP/PROJECT!12`.
fn merge_request(body: &str) -> Option<String> {
    let (_, rest) = body.rsplit_once("See merge request ")?;
    let (_, number) = rest.lines().next()?.split_once('!')?;
    leading_number(number).map(|number| format!("!{number}"))
}

/// `GROUP/PROJECT!12 - title`, or `!12 - title`.
fn gitlab_prefix(line: &str) -> Option<(String, &str)> {
    let (project, rest) = line.split_once('!')?;
    if project.contains(' ') || !project.is_empty() && !project.contains('/') {
        return None;
    }
    let number = leading_number(rest)?;
    let (_, title) = rest.split_once(" - ").unwrap_or(("", rest));
    Some((format!("!{number}"), title))
}

/// Takes `(#12)` off the end, as often as it stands there; the numbers in the order of the text.
fn without_numbers(line: &str) -> (String, Vec<String>) {
    let (mut rest, mut numbers) = (line.trim(), Vec::new());
    while let Some((before, number)) = rest.strip_suffix(')').and_then(|text| text.rsplit_once('(')) {
        // (NVIDIA#12) is a number of another fork, but of the same change.
        let Some(number) = number.rsplit_once('#').and_then(|(_, number)| number.parse::<u64>().ok()) else {
            break;
        };
        numbers.insert(0, format!("#{number}"));
        rest = before.trim_end();
    }
    (rest.to_owned(), numbers)
}

fn after_each(body: &str, words: &str) -> Vec<String> {
    let id = |rest: &str| rest.chars().take_while(char::is_ascii_hexdigit).collect::<String>();
    body.split(words).skip(1).map(id).filter(|id| id.len() >= 7).collect()
}

/// The words after tags and types: `[model] fix: x`, `fix(core): x` and `[a][b] x` are all `x`.
pub fn without_tags(title: &str) -> &str {
    let mut rest = title.trim();
    loop {
        if let Some(inner) = rest.strip_prefix('[')
            && let Some((_, after)) = inner.split_once(']')
        {
            rest = after.trim_start_matches([':', ' ']);
            continue;
        }
        if let Some((word, after)) = rest.split_once(':') {
            let word = word.trim_end_matches('!');
            let word = word.split_once('(').map_or(word, |(word, _)| word);
            if (2..=12).contains(&word.len())
                && word.chars().all(|c| c.is_ascii_lowercase())
                && after.starts_with(' ')
            {
                rest = after.trim_start();
                continue;
            }
        }
        return rest;
    }
}

/// `[a][Reland] x` as `[a] x`, where one of the tags says that it brings x back.
fn without_restoring_tag(title: &str) -> Option<String> {
    let mut at = 0;
    while let Some(inner) = title[at..].strip_prefix('[') {
        let (tag, after) = inner.split_once(']')?;
        if RESTORING.contains(&tag.trim().to_ascii_lowercase().as_str()) {
            let rest = after.trim_start_matches([':', ' ']);
            return Some(format!("{} {rest}", title[..at].trim_end()).trim().to_owned());
        }
        at = title.len() - after.trim_start().len();
    }
    None
}

fn act(title: &str, body: &str) -> Option<Act> {
    if let Some(of) = without_restoring_tag(title) {
        // What it brings back may be a revert.
        return act(&of, body)
            .or_else(|| Some(Act { restores: true, commits: Vec::new(), number: None, title: of }));
    }
    let lower = title.to_ascii_lowercase();
    // `revert: x`, `revert(core): x`, `replay: x`: the type says it, and the title is x itself.
    let typed = |word: &str| lower.strip_prefix(word).is_some_and(|rest| rest.starts_with([':', '(']));
    let bare = without_tags(title);
    let word = first_word(bare);
    let again = ["replay", "(replay)"].contains(&word.as_str()) && {
        let rest = bare[word.len()..].trim_start();
        word.starts_with('(') || rest.starts_with(['!', '#']) || rest.starts_with("of ")
    };
    let by_type = typed("revert") || typed("replay");
    let reverts = word == "revert" || typed("revert");
    let restores = RESTORING.contains(&word.as_str()) || again || typed("replay");
    if !reverts && !restores {
        return None;
    }
    // Each revert around turns the sense of what it quotes.
    let (mut sense, mut inner) = (restores, bare);
    if !by_type || word == "revert" {
        inner = bare[word.len()..].trim_start_matches(BETWEEN);
    }
    loop {
        inner = inner.trim_matches(['"', '\u{201c}', '\u{201d}', ' ', '`']);
        let next = first_word(inner);
        if next == "revert" {
            sense = !sense;
        } else if !RESTORING.contains(&next.as_str()) {
            break;
        }
        inner = inner[next.len()..].trim_start_matches(BETWEEN);
    }
    let mut commits = after_each(body, "This reverts commit ");
    let hex = |word: &&str| word.len() >= 8 && word.chars().all(|c| c.is_ascii_hexdigit());
    commits.extend(inner.split(' ').filter(hex).map(str::to_owned));
    let (title, number) = read_quoted(inner);
    let number = number
        .or_else(|| inner.rsplit_once('#').and_then(|(_, n)| leading_number(n)).map(|n| format!("#{n}")));
    Some(Act { restores: sense, commits, number, title })
}

/// What stands between a word such as `Revert` and what it is about.
const BETWEEN: [char; 3] = [':', ' ', '-'];

fn first_word(text: &str) -> String {
    text.split([' ', ':']).next().unwrap_or_default().to_ascii_lowercase()
}

/// The title and number of a subject in quotes; a quote may stand open before the number of the revert itself.
fn read_quoted(inner: &str) -> (String, Option<String>) {
    // A number after the closing quote is that of the revert around it.
    let mut line = inner.split("\" (").next().unwrap_or(inner).to_owned();
    let mut number = None;
    let mirrored = gitlab_prefix(&line).map(|(number, rest)| (number, rest.to_owned()));
    if let Some((mirror, rest)) = mirrored {
        number = Some(mirror);
        line = rest;
    }
    let (title, mut numbers) = without_numbers(line.trim_matches('"'));
    (title.trim_matches(['"', ' ']).to_owned(), number.or_else(|| numbers.pop()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn number(subject: &str, body: &str) -> Option<String> {
        read(subject, body).number
    }

    #[test]
    fn the_last_number_counts_and_earlier_ones_are_what_is_repeated() {
        let message = read("ci: unify scope names (#5316) (#5709)", "");
        assert_eq!(
            (message.number.as_deref(), message.earlier.as_slice()),
            (Some("#5709"), &["#5316".to_owned()][..])
        );
        assert_eq!(message.title, "ci: unify scope names");
        assert_eq!(number("Follow-up of (#12) in docs", ""), None);
    }

    #[test]
    fn merges_of_both_forges_give_their_number_and_the_title_in_their_body() {
        let github = read("Merge pull request #7 from a/b", "\nAdd a thing\n");
        assert_eq!((github.title.as_str(), github.number.as_deref()), ("Add a thing", Some("#7")));
        let gitlab = read("Merge branch 'x' into 'main'", "Add it\n\nSee merge request g/p!2964");
        assert_eq!((gitlab.title.as_str(), gitlab.number.as_deref()), ("Add it", Some("!2964")));
        let mirrored = read("ADLR/megatron-lm!4110 - Rename chunks", "");
        assert_eq!((mirrored.title.as_str(), mirrored.number.as_deref()), ("Rename chunks", Some("!4110")));
    }

    #[test]
    fn each_revert_around_a_subject_turns_its_sense() {
        let told = |subject: &str| {
            let act = read(subject, "").act.unwrap();
            (act.restores, act.number.unwrap_or_default(), act.title)
        };
        assert_eq!(told("Revert \"Add x (#5)\" (#9)"), (false, "#5".into(), "Add x".into()));
        assert_eq!(told("Revert \"Revert \"Add x (#5)\" (#9)\" (#11)"), (true, "#5".into(), "Add x".into()));
        assert_eq!(told("Reapply \"Add x (#5)\" (#9)"), (true, "#5".into(), "Add x".into()));
        assert_eq!(told("Revert \"Reapply \"g/p!34 - Add x\"\""), (false, "!34".into(), "Add x".into()));
        assert_eq!(
            told("[a] fix: Revert \"[b] feat: y\" (#2)"),
            (false, String::new(), "[b] feat: y".into())
        );
        assert_eq!(told("Replay !4110 - Rename chunks"), (true, "!4110".into(), "Rename chunks".into()));
        assert_eq!(told("(REPLAY) Fix it (#3)"), (true, String::new(), "Fix it".into()));
        assert_eq!(told("revert(core): take y out (#3)"), (false, String::new(), "take y out".into()));
        assert_eq!(told("revert of #2658 (#3736)").1, "#2658");
        for none in
            ["Handle reverted changes (#3)", "Replay buffer for agents (#4)", "Add router replay (#5)"]
        {
            assert!(read(none, "").act.is_none(), "{none}");
        }
    }

    #[test]
    fn a_tag_that_says_reland_brings_back_what_stands_after_it() {
        let told = |subject: &str| {
            let act = read(subject, "").act.unwrap();
            (act.restores, act.number.unwrap_or_default(), act.title)
        };
        assert_eq!(told("[a][Reland] Add x (#9)"), (true, String::new(), "[a] Add x".into()));
        assert_eq!(told("[RELAND][b] Add x (#5) (#9)"), (true, "#5".into(), "[b] Add x".into()));
        assert_eq!(told("[Reland] Revert \"Add x (#5)\" (#9)"), (false, "#5".into(), "Add x".into()));
        assert_eq!(read("[a][Reland] Add x", "").of_change(), "[a] Add x");
        assert!(read("[a] Reland-proof x", "").act.is_none());
    }

    #[test]
    fn commits_that_are_named_in_a_body_are_read() {
        let message = read("Revert \"x\"", "This reverts commit 0123456789abcdef0123456789abcdef01234567.");
        assert_eq!(message.act.unwrap().commits, ["0123456789abcdef0123456789abcdef01234567"]);
        let picked = read("x (#1)", "(cherry picked from commit abcdef0123)").picked;
        assert_eq!(picked, ["abcdef0123"]);
        assert_eq!(read("Reapply 3955c49ed9af5e5b (#3146)", "").act.unwrap().commits, ["3955c49ed9af5e5b"]);
    }

    #[test]
    fn control_characters_and_tags_are_taken_out() {
        assert_eq!(read("Fix\u{1b}[2J \u{7}it (#1)", "").title, "Fix it");
        assert_eq!(read("Add \u{1b}[1;31mred\u{1b}[0m", "").title, "Add red");
        assert_eq!(read("Cut \u{1b}[", "").title, "Cut");
        assert_eq!(without_tags("[dev][moe] fix(core): The x"), "The x");
        assert_eq!(without_tags("Make: it"), "Make: it");
    }

    proptest! {
        #[test]
        fn any_message_is_read(subject in ".{0,80}", body in "(.|\n){0,120}") {
            let message = read(&subject, &body);
            prop_assert!(!message.title.contains(|c: char| c.is_control()));
        }

        #[test]
        fn a_number_put_at_the_end_is_the_number(title in "[A-Za-z][a-z ]{0,30}[a-z]", number in 1u64..1_000_000) {
            let message = read(&format!("{title} (#{number})"), "");
            prop_assert_eq!(message.number, Some(format!("#{number}")));
        }

        #[test]
        fn as_many_reverts_as_are_put_around_turn_the_sense(title in "[A-Z][a-z]{4,20} thing", times in 1usize..6) {
            let subject = (0..times).fold(title.clone(), |inner, _| format!("Revert \"{inner}\""));
            let act = read(&subject, "").act.unwrap();
            prop_assert_eq!(act.restores, times % 2 == 0);
            prop_assert_eq!(act.title, title);
        }
    }
}
