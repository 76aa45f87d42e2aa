//! The names that golden chose, as it writes them and in the spellings of others: `_by_key` is `byKey`, `PrefixNode` is `prefix_node`.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use infradev_model::{Contract, ContractRule, GoldenLine, NameKind};

use super::Hit;
use super::algorithm::pieces;
use super::spelling::{self, Text};
use crate::contract::outline::words_of;

/// Names of the field that others may have, whatever golden calls by them.
const COLLECTIVES: [&str; 6] =
    ["all gather", "all reduce", "all to all", "reduce scatter", "state dict", "world size"];

/// Names that give golden away, with the first place of each.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    names: BTreeMap<String, GoldenLine>,
    /// Those of several words by their words.
    spelled: BTreeMap<String, GoldenLine>,
}

/// What anybody may know.
pub(super) struct Known<'a> {
    /// The words of base's files and of the tests.
    pub(super) words: &'a HashSet<&'a str>,
    /// Those that the contract tells.
    pub(super) public: &'a HashSet<&'a str>,
    /// Whether base's tree has a word.
    pub(super) base_has_word: &'a dyn Fn(&str) -> bool,
}

impl Names {
    pub(super) fn of(mut names: BTreeMap<String, GoldenLine>, known: &Known<'_>) -> Names {
        let has_word = |name: &str| known.words.contains(name) || (known.base_has_word)(name);
        names.retain(|name, _| !has_word(name) && !known.public.contains(name.as_str()));
        let told: HashSet<String> =
            known.words.iter().chain(known.public).filter_map(|word| words(word)).collect();
        let mut spelled = BTreeMap::new();
        for (name, golden) in &names {
            let is_told = |words: &String| told.contains(words) || COLLECTIVES.contains(&words.as_str());
            let Some(words) = words(name).filter(|words| !is_told(words)) else { continue };
            if !spellings(&words).iter().any(|spelling| has_word(spelling)) {
                spelled.entry(words).or_insert_with(|| golden.clone());
            }
        }
        Names { names, spelled }
    }

    /// Where golden chose a name that it writes like this.
    pub(super) fn get(&self, name: &str) -> Option<&GoldenLine> {
        self.names.get(name)
    }

    /// Compound names anywhere, others where they make up a span of code by themselves; in other spellings where no English has them: in
    /// code, or as `byKey` and `prefix_node`.
    pub(super) fn find(&self, text: &str) -> Vec<Hit> {
        let is_span =
            |range: &Range<usize>| text[..range.start].ends_with('`') && text[range.end..].starts_with('`');
        let code = code(text);
        let is_code =
            |range: &Range<usize>| code.iter().any(|code| code.start <= range.start && range.end <= code.end);
        let tokens = spelling::tokens(text, Text::Prose).into_iter();
        let tokens = tokens.filter(|token| token.is_word() && !goes_on(text, &token.range));
        tokens
            .filter_map(|token| {
                let range = token.range;
                let (is, golden) = match self.names.get(&token.text) {
                    Some(golden) if is_compound(&token.text) || is_span(&range) => {
                        ("a name that golden chose stands here", golden)
                    }
                    Some(_) => return None,
                    None => {
                        let golden = self.spelled.get(&words(&token.text)?)?;
                        let is_english = token.text.starts_with(char::is_uppercase);
                        let is_told = !is_english || is_code(&range);
                        is_told
                            .then_some(("a name that golden chose stands here in another spelling", golden))?
                    }
                };
                Some(Hit::new(text, range, ContractRule::PrivateName, is.to_owned(), golden))
            })
            .collect()
    }
}

/// Words that the contract tells, golden's local names apart: no interface has those.
pub(super) fn public_words<'a>(contract: &'a Contract, locals: &HashSet<String>) -> HashSet<&'a str> {
    let mut public: HashSet<&str> = HashSet::new();
    for listed in &contract.names {
        public.extend(words_of(&listed.name));
        if listed.kind != NameKind::Module {
            let signature = words_of(listed.signature.as_deref().unwrap_or_default());
            public.extend(signature.into_iter().filter(|word| !locals.contains(*word)));
        }
    }
    public
}

/// The words of a name of several, in small letters: `by key`.
fn words(name: &str) -> Option<String> {
    let parts: Vec<String> = pieces(name).into_iter().map(|piece| name[piece].to_lowercase()).collect();
    (parts.len() > 1).then(|| parts.join(" "))
}

/// The names that have these words.
fn spellings(words: &str) -> [String; 4] {
    let capital = |word: &str| {
        let mut letters = word.chars();
        letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
    };
    let pascal: String = words.split(' ').map(capital).collect();
    let (first, rest) = words.split_once(' ').unwrap_or((words, ""));
    let camel = first.to_owned() + &rest.split(' ').map(capital).collect::<String>();
    let snake = words.replace(' ', "_");
    [format!("_{snake}"), snake, camel, pascal]
}

/// Where a text has code: spans in one line, fences, lines that are indented as code.
fn code(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut at, mut fence) = (Vec::new(), 0, None);
    for line in text.split_inclusive('\n') {
        let range = at..at + line.len();
        let mark = ["```", "~~~"].into_iter().find(|mark| line.trim_start().starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), mark) => {
                found.push(range.clone());
                fence = (mark != Some(open)).then_some(open);
            }
            (None, None) if line.starts_with("    ") || line.starts_with('\t') => found.push(range.clone()),
            (None, None) => {
                let marks: Vec<usize> = line.match_indices('`').map(|(mark, _)| at + mark).collect();
                found.extend(marks.chunks_exact(2).map(|span| span[0]..span[1]));
            }
        }
        at = range.end;
    }
    found
}

/// Whether a word is but a part of one whose underscores Markdown escapes: `_limit` in `rate\_limit`.
fn goes_on(text: &str, word: &Range<usize>) -> bool {
    let before = text[..word.start].strip_suffix('\\').filter(|_| text[word.start..].starts_with('_'));
    before.is_some_and(|before| before.ends_with(|c: char| c.is_alphanumeric() || c == '_'))
        || text[word.end..].starts_with("\\_")
}

/// Whether a word can't be one of plain English: `by_expert`, `PrefixNode`.
fn is_compound(word: &str) -> bool {
    let inner = word.trim_matches('_');
    inner.contains('_') || inner.len() < word.len() || inner.chars().filter(|c| c.is_uppercase()).count() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_folded_to_their_words() {
        for name in ["_by_key", "byKey", "ByKey", "by_key", "BY_KEY"] {
            assert_eq!(words(name).as_deref(), Some("by key"), "{name}");
        }
        assert_eq!(words("key"), None);
        assert_eq!(spellings("by key"), ["_by_key", "by_key", "byKey", "ByKey"]);
    }

    #[test]
    fn code_is_what_stands_in_spans_fences_and_indented_lines() {
        let text = "a `b` c\n```js\nd\n```\ne\n\n    f\n";
        let found: Vec<&str> =
            code(text).into_iter().map(|range| text[range].trim_matches('`').trim()).collect();
        assert_eq!(found, ["b", "d", "", "f"]);
    }
}
