//! Whether a text gives golden's code away: its statements however they are spelled, its numbers and messages, the names
//! it chose, long runs of its tokens and of the words of its comments and docstrings.

mod algorithm;
mod allowed;
mod bound;
mod calls;
mod catalogue;
mod conditions;
mod encoded;
mod interface;
mod lookalikes;
mod messages;
mod names;
mod number;
mod pattern;
mod prose;
mod quantity;
mod reading;
mod secrets;
mod signs;
mod spelling;
mod statement;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use infradev_model::{Contract, ContractFinding, ContractRule, GoldenLine};

pub use self::allowed::{Sifted, without_allowed};
pub use self::prose::PROSE;

use self::algorithm::{Algorithms, Golden};
use self::names::Names;
use self::number::Number;
use self::prose::Prose;
use self::secrets::{SHORTEST_RUN, Secrets, Source};
use self::spelling::{Lines, Role, Stream, Text, Token};
use self::statement::Statement;
use super::outline::words_of;
use crate::module::Module;

/// How many tokens in a row are too many, brackets and quotes counted.
pub const NGRAM: usize = 8;

/// The texts of a task in which golden is looked for and from which it is known.
pub struct Texts<'a> {
    /// `(path, text)` of base's files that golden changes.
    pub base: &'a [(String, String)],
    /// The same as golden has them, and those that it adds.
    pub golden: &'a [(String, String)],
    /// The official tests and the probes.
    pub tests: &'a [&'a str],
    /// Whether a word stands anywhere in base's tree.
    pub base_has_word: &'a dyn Fn(&str) -> bool,
    /// What may be told by name.
    pub contract: &'a Contract,
    /// Where golden has what the contract lists: file and qualified name.
    pub listed: &'a [(String, String)],
}

/// What golden's code has that a reader of the task may not learn.
#[derive(Debug, Clone, Default)]
pub struct Leaks {
    runs: HashMap<Vec<String>, GoldenLine>,
    statements: Vec<Statement>,
    numbers: BTreeMap<Number, (String, GoldenLine)>,
    messages: BTreeMap<String, GoldenLine>,
    names: Names,
    /// Those names that are a function's own and nothing else.
    locals: HashSet<String>,
    prose: Prose,
    algorithms: Algorithms,
    /// The tokens of base and of the tests, for statements that are found.
    known: Vec<Stream>,
}

/// Golden's code in a text.
struct Hit {
    range: Range<usize>,
    rule: ContractRule,
    is: String,
    golden: GoldenLine,
    /// What stands there, as it is read.
    passage: String,
}

impl Hit {
    fn new(text: &str, range: Range<usize>, rule: ContractRule, is: String, golden: &GoldenLine) -> Hit {
        let passage = closed(text, range.clone()).replace(['`', '\\'], " ");
        let passage = passage.split_whitespace().collect::<Vec<_>>().join(" ");
        Hit { range, rule, is, golden: golden.clone(), passage }
    }

    fn is_code(&self) -> bool {
        matches!(self.rule, ContractRule::BodyLine | ContractRule::LongNgram)
    }

    fn is_inside(&self, other: &Hit) -> bool {
        other.range.start <= self.range.start && self.range.end <= other.range.end
    }

    /// Whether another hit says the same of the same place.
    fn repeats(&self, other: &Hit) -> bool {
        let overlap = self.range.start < other.range.end && other.range.start < self.range.end;
        self.is_code() && other.is_code() && self.is_inside(other)
            || overlap
                && self.rule == other.rule
                && (self.rule == ContractRule::Prose || self.golden == other.golden)
    }

    fn finding(self, file: &str, line: u32) -> ContractFinding {
        ContractFinding::leak(file, line, self.rule, &self.is, &self.passage, self.golden)
    }
}

impl Leaks {
    /// Reads it off golden's files. What stands in base's versions or in the tests, and names that base's tree has or the contract
    /// lists, give nothing away. A file that does not parse is passed over.
    pub fn of(texts: &Texts<'_>) -> Leaks {
        let mut secrets = Secrets::default();
        for (path, text) in texts.golden.iter().filter(|(path, _)| path.ends_with(".py")) {
            let Ok(module) = Module::parse(path, text) else { continue };
            let before = texts.base.iter().find(|(known, _)| known == path).map_or("", |(_, text)| text);
            let old = before.lines().map(str::trim).collect();
            let is_listed = |name: &str| {
                let mut listed = texts.listed.iter().filter(|(file, _)| file == path);
                listed.any(|(_, other)| {
                    let below = other.strip_prefix(name);
                    below.is_some_and(|rest| rest.is_empty() || !name.is_empty() && rest.starts_with('.'))
                })
            };
            secrets.read(Source { module: &module, old, is_listed: &is_listed });
        }
        let known: Vec<&str> =
            texts.base.iter().map(|(_, text)| text.as_str()).chain(texts.tests.iter().copied()).collect();
        let Secrets { mut runs, statements, mut numbers, mut messages, names, locals, interface, passages } =
            secrets;
        let prose = Prose::of(&passages, &known);
        let golden = Golden { base: texts.base, golden: texts.golden, passages: &passages };
        let listed = texts.contract.names.iter().map(|listed| listed.name.as_str());
        let signatures: Vec<&str> =
            texts.contract.names.iter().filter_map(|listed| listed.signature.as_deref()).collect();
        let public: Vec<&str> =
            known.iter().copied().chain(listed).chain(signatures.iter().copied()).collect();
        let algorithms = Algorithms::of(&golden, &public, texts.base_has_word);
        let strings: Vec<String> = known.iter().flat_map(|text| messages::strings(text)).collect();
        let spoken = || known.iter().copied().chain(strings.iter().map(String::as_str));
        messages.retain(|message, _| !spoken().any(|text| text.contains(message.as_str())));

        let values: HashSet<Number> = known
            .iter()
            .chain(&signatures)
            .flat_map(|text| quantity::spelled(text))
            .flat_map(|number| number.values)
            .collect();
        numbers.retain(|number, _| !values.contains(number));

        let streams: Vec<Stream> = known.iter().map(|text| Stream::of(text, Text::Code)).collect();
        let plain: Vec<Vec<String>> =
            streams.iter().map(|stream| plain(&stream.tokens, |_| true).1).collect();
        let known_runs: HashSet<&[String]> = plain
            .iter()
            .flat_map(|tokens| (SHORTEST_RUN..=NGRAM).flat_map(|length| tokens.windows(length)))
            .collect();
        runs.retain(|run, _| !known_runs.contains(run.as_slice()));

        let words: HashSet<&str> = known.iter().flat_map(|text| words_of(text)).collect();
        let has_word = |name: &str| words.contains(name) || (texts.base_has_word)(name);
        let locals: HashSet<String> =
            locals.into_iter().filter(|name| !interface.contains(name) && !has_word(name)).collect();
        let public = names::public_words(texts.contract, &locals);
        let known_words = names::Known { words: &words, public: &public, base_has_word: texts.base_has_word };
        let names = Names::of(names, &known_words);
        Leaks { runs, statements, numbers, messages, names, locals, prose, algorithms, known: streams }
    }

    /// What of it stands in a text; `file` names the text in findings.
    pub fn find(&self, file: &str, text: &str) -> Vec<ContractFinding> {
        let lines = Lines::of(text);
        let mut findings: Vec<ContractFinding> = self
            .hits(text)
            .into_iter()
            .map(|hit| {
                let line = lines.at(hit.range.start);
                hit.finding(file, line)
            })
            .collect();
        findings.sort();
        findings.dedup();
        findings
    }

    /// What of it stands in a text, in whichever way that is read.
    fn hits(&self, text: &str) -> Vec<Hit> {
        let mut kept: Vec<Hit> = Vec::new();
        for reading in reading::readings(text) {
            let found = self.hits_as_read(&reading.text).into_iter();
            let found = found.map(|hit| Hit { range: reading.place(hit.range.clone()), ..hit });
            let new: Vec<Hit> = found.filter(|hit| !kept.iter().any(|other| hit.repeats(other))).collect();
            kept.retain(|hit| !new.iter().any(|other| hit.is_code() && hit.repeats(other)));
            kept.extend(new);
        }
        kept
    }

    fn hits_as_read(&self, text: &str) -> Vec<Hit> {
        let mut hits = self.code(text);
        hits.extend(self.constants(text));
        hits.extend(self.names.find(text));
        hits.extend(self.prose.find(text).into_iter().map(|(range, count, golden)| {
            let is = format!("{count} words of golden's comments or docstrings stand here in a row");
            Hit::new(text, range, ContractRule::Prose, is, golden)
        }));
        hits.extend(self.algorithms.find(text).into_iter().map(|(range, name, golden)| {
            let is = format!("an algorithm that golden uses is named here: {name}");
            Hit::new(text, range, ContractRule::Algorithm, is, golden)
        }));
        hits
    }

    /// Statements and runs of tokens, without those that are part of others.
    fn code(&self, whole: &str) -> Vec<Hit> {
        let text = Stream::of(whole, Text::Prose);
        let tokens = &text.tokens;
        let mut hits = Vec::new();
        for statement in &self.statements {
            let mut report = |is: &str, places: Vec<(usize, usize)>| {
                hits.extend(places.into_iter().map(|(first, last)| {
                    let range = tokens[first].range.start..tokens[last].range.end;
                    Hit::new(whole, range, ContractRule::BodyLine, is.to_owned(), &statement.golden)
                }));
            };
            let named: Vec<_> = statement.by_name(&text).collect();
            if !named.is_empty() && !self.known.iter().any(|known| statement.by_name(known).next().is_some())
            {
                report("a statement of golden's stands here", named);
            }
            let placed: Vec<_> = statement.by_place(&text).collect();
            if !placed.is_empty()
                && !self.known.iter().any(|known| statement.by_place(known).next().is_some())
            {
                report("a statement of golden's stands here with other names", placed);
            }
        }
        hits.extend(self.long_runs(whole, tokens, true));
        hits.extend(self.long_runs(whole, tokens, false));
        hits.sort_by_key(|hit| (std::cmp::Reverse(hit.range.len()), hit.rule, hit.is.len(), hit.range.start));
        let mut kept: Vec<Hit> = Vec::new();
        for hit in hits {
            if !kept.iter().any(|other| hit.is_inside(other)) {
                kept.push(hit);
            }
        }
        kept
    }

    /// Runs of golden's tokens; one finding for a long run, not one for each of its parts.
    fn long_runs(&self, text: &str, tokens: &[Token], with_markers: bool) -> Vec<Hit> {
        let (at, words) = plain(tokens, |role| with_markers || role != Role::Marker);
        let run = |from: usize| {
            let ends = (SHORTEST_RUN..=NGRAM).filter_map(|length| {
                let end = from + length;
                Some((end, self.runs.get(words.get(from..end)?)?))
            });
            ends.max_by_key(|(end, _)| *end)
        };
        let mut hits = Vec::new();
        let mut from = 0;
        while from < words.len() {
            let Some((mut end, golden)) = run(from) else {
                from += 1;
                continue;
            };
            let mut next = from + 1;
            while next < end {
                end = run(next).map_or(end, |(other, _)| end.max(other));
                next += 1;
            }
            let range = tokens[at[from]].range.start..tokens[at[end - 1]].range.end;
            let is = format!("{} tokens of golden's code stand here in a row", end - from);
            hits.push(Hit::new(text, range, ContractRule::LongNgram, is, golden));
            from = end;
        }
        hits
    }

    /// Numbers by their values, messages by their words.
    fn constants(&self, text: &str) -> Vec<Hit> {
        let lines = Lines::of(text);
        let mut found: BTreeMap<(u32, Number), Range<usize>> = BTreeMap::new();
        for spelled in quantity::spelled(text) {
            for value in spelled.values.iter().filter(|value| self.numbers.contains_key(value)) {
                let range =
                    found.entry((lines.at(spelled.range.start), *value)).or_insert(spelled.range.clone());
                if spelled.range.len() < range.len() {
                    *range = spelled.range.clone();
                }
            }
        }
        let rule = ContractRule::Constant;
        let numbers = found.into_iter().map(|((_, value), range)| {
            let (golden_s, golden) = &self.numbers[&value];
            let is = if text[range.clone()] == **golden_s {
                "a number of golden's code stands here".to_owned()
            } else {
                format!("golden's number {golden_s} stands here in another spelling")
            };
            Hit::new(text, range, rule, is, golden)
        });
        let (collapsed, at) = collapsed(text);
        let messages = self.messages.iter().filter_map(|(message, golden)| {
            let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
            let from = collapsed.find(&message)?;
            let range = at[from]..at[from + message.len() - 1] + 1;
            let is = "a message of golden's code stands here".to_owned();
            Some(Hit::new(text, range, rule, is, golden))
        });
        numbers.chain(messages).collect()
    }
}

/// Tokens without keywords of arguments and what else is to be left out, with the place of each.
fn plain(tokens: &[Token], keep: impl Fn(Role) -> bool) -> (Vec<usize>, Vec<String>) {
    let kept = tokens.iter().enumerate();
    kept.filter(|(_, token)| token.role != Role::Keyword && keep(token.role))
        .map(|(at, token)| (at, token.text.clone()))
        .unzip()
}

/// A text with one space for each stretch of white space, and where each of its bytes stands in the text.
fn collapsed(text: &str) -> (String, Vec<usize>) {
    let (mut kept, mut places) = (String::with_capacity(text.len()), Vec::with_capacity(text.len()));
    for (at, c) in text.char_indices() {
        let c = if c.is_whitespace() { ' ' } else { c };
        if c != ' ' || !kept.ends_with(' ') {
            kept.push(c);
            places.extend(at..at + c.len_utf8());
        }
    }
    (kept, places)
}

/// What stands in a range, with the brackets behind it that close those in it.
fn closed(text: &str, range: Range<usize>) -> &str {
    let passage = &text[range.clone()];
    let open = passage.matches('(').count().saturating_sub(passage.matches(')').count());
    let closing = text[range.end..].bytes().take(open).take_while(|byte| *byte == b')').count();
    &text[range.start..range.end + closing]
}
