//! One way to write a statement: its tokens, of which some may be others, and what it tells.

use std::collections::{BTreeSet, HashSet};

use super::spelling::{self, Role, Stream, Text, Token};
use super::statement::{Part, is_keyword, is_telling};

/// Fewest tokens of a statement that is told with golden's names.
const SHORT: usize = 4;
/// Fewest tokens of a value that is told with golden's names without the rest of its statement.
const VALUE: usize = 6;
/// Fewest tokens of what is told with other names.
pub(super) const RENAMED: usize = 6;
/// The same where an attribute's name stands without `self`: `slots[row] += 1`, but not `state[key] = value`.
const RENAMED_BARE: usize = 7;
/// Fewest tokens of what is told by its shape and common names alone, where attributes without `self` have other names, too.
const SHAPE: usize = 12;

/// One token of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    text: String,
    role: Role,
    /// A name of the function's own, which may be another.
    is_local: bool,
    /// Of the `self` of `self._name`: what may stand for all three.
    bare: Option<Bare>,
}

/// An attribute of `self` as a name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bare {
    /// `name`, without the underscores before it.
    name: String,
    /// What no local is called.
    key: String,
}

/// One way to write it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    pieces: Vec<Piece>,
    /// What it tells where attributes of `self` stand as they are.
    full: Tells,
    /// What it tells where they stand as names without `self`.
    bare: Tells,
    /// Whether it still tells something with other names in the attributes' place.
    by_shape: bool,
}

/// With which names a pattern is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tells {
    /// With golden's names.
    by_name: bool,
    /// With other names in its locals' place.
    by_place: bool,
}

/// How the attributes of `self` stand where a pattern is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Attributes {
    /// As golden has them, if there are any.
    OfSelf,
    /// One of them without `self`.
    Bare,
    /// One of them with another name.
    Renamed,
}

impl Pattern {
    /// `None` where it is too short or too common to tell anything.
    pub(super) fn of(text: &str, part: Part, locals: &HashSet<String>) -> Option<Pattern> {
        let tokens = spelling::tokens(text, Text::Code);
        let after_point = |at: usize| at > 0 && tokens[at - 1].text == ".";
        let pieces: Vec<Piece> = tokens
            .iter()
            .enumerate()
            .map(|(at, token)| {
                let is_own = token.role == Role::Plain && token.is_word() && !after_point(at);
                Piece {
                    text: token.text.clone(),
                    role: token.role,
                    is_local: is_own && !is_keyword(&token.text) && locals.contains(&token.text),
                    bare: is_own.then(|| attribute(&tokens[at..])).flatten(),
                }
            })
            .collect();
        let plain: Vec<&Piece> = pieces.iter().filter(|piece| piece.role == Role::Plain).collect();
        let full = Tells::of(&plain, part, RENAMED);
        // The names of attributes without the `self.` before them.
        let owners: Vec<usize> = (0..plain.len()).filter(|at| plain[*at].bare.is_some()).collect();
        let is_owner = |at: &usize| owners.contains(at) || *at > 0 && owners.contains(&(at - 1));
        let names: Vec<usize> = (0..plain.len()).filter(|at| !is_owner(at)).collect();
        let bare: Vec<&Piece> = names.iter().map(|at| plain[*at]).collect();
        let is_attribute = |at: usize| at > 1 && owners.contains(&(at - 2));
        let kept: BTreeSet<&str> = names
            .iter()
            .filter(|at| !is_attribute(**at) && !plain[**at].is_local)
            .map(|at| plain[*at].text.as_str())
            .filter(|text| spelling::is_word(text) && !is_keyword(text))
            .collect();
        let tells = kept.iter().any(|name| is_telling(name) && name.chars().count() > 2);
        let by_shape = is_code(&bare)
            && part != Part::Around
            && (tells && bare.len() >= RENAMED_BARE || kept.len() > 1 && bare.len() >= SHAPE);
        // `func(*args, **kwargs)` is any wrapper's.
        let is_wrapper = !bare.iter().any(|piece| piece.is_local && is_telling(&piece.text));
        let bare = Tells::of(&bare, part, RENAMED_BARE);
        let bare = Tells {
            by_name: bare.by_name && !owners.is_empty(),
            by_place: bare.by_place && !owners.is_empty() && !is_wrapper,
        };
        let by_shape = by_shape && !owners.is_empty();
        let tells = full.by_name || full.by_place || bare.by_name || bare.by_place || by_shape;
        tells.then_some(Pattern { pieces, full, bare, by_shape })
    }

    /// Where it stands in a text: the first and the last of its tokens, each time.
    pub(super) fn find(&self, text: &Stream, renamed: bool) -> impl Iterator<Item = (usize, usize)> {
        let tells = move |attributes| match (attributes, renamed) {
            (Attributes::OfSelf, false) => self.full.by_name,
            (Attributes::OfSelf, true) => self.full.by_place,
            (Attributes::Bare, false) => self.bare.by_name,
            (Attributes::Bare, true) => self.bare.by_place,
            (Attributes::Renamed, _) => renamed && self.by_shape,
        };
        let is_free = |at: usize| {
            let piece = &self.pieces[at];
            let of_self = (at.saturating_sub(2)..=at).any(|at| self.pieces[at].bare.is_some());
            piece.role != Role::Plain || renamed && piece.is_local || of_self
        };
        let is_asked = [Attributes::OfSelf, Attributes::Bare, Attributes::Renamed].into_iter().any(tells);
        let is_possible =
            is_asked && (0..self.pieces.len()).all(|at| is_free(at) || text.has(&self.pieces[at].text));
        let places = if is_possible { 0..text.tokens.len() } else { 0..0 };
        places.filter_map(move |from| {
            let (last, attributes) = self.stands_at(&text.tokens, from, renamed)?;
            tells(attributes).then_some((from, last))
        })
    }

    /// The last token of it, where it begins with this one.
    fn stands_at(&self, tokens: &[Token], from: usize, renamed: bool) -> Option<(usize, Attributes)> {
        let mut bound: Vec<(&str, &str)> = Vec::new();
        let (mut at, mut piece_at, mut last) = (from, 0, from);
        let mut attributes = Attributes::OfSelf;
        while let Some(piece) = self.pieces.get(piece_at) {
            let token = tokens.get(at);
            if let (Some(bare), Some(token)) = (&piece.bare, token)
                && is_name(token)
                && !(at > 0 && tokens[at - 1].text == ".")
            {
                let is_kept = token.text.trim_start_matches('_') == bare.name;
                if !(is_kept || renamed && binds(&mut bound, &bare.key, &token.text)) {
                    return None;
                }
                attributes = attributes.max(if is_kept { Attributes::Bare } else { Attributes::Renamed });
                last = at;
                at += 1;
                piece_at += 3;
                continue;
            }
            let same = token.is_some_and(|token| match renamed && piece.is_local {
                true => is_name(token) && binds(&mut bound, &piece.text, &token.text),
                false => token.text == piece.text || self.is_attribute(piece_at, token),
            });
            if same {
                last = at;
                at += 1;
                piece_at += 1;
            } else if piece.role != Role::Plain {
                piece_at += 1;
            } else if at > from && token.is_some_and(|token| token.role != Role::Plain) {
                at += 1;
            } else {
                return None;
            }
        }
        Some((last, attributes))
    }

    /// Whether a token is the name of `self._name` that a piece is, with or without underscores before it.
    fn is_attribute(&self, piece_at: usize, token: &Token) -> bool {
        let owner = piece_at.checked_sub(2).and_then(|at| self.pieces[at].bare.as_ref());
        owner.is_some_and(|bare| bare.name == token.text.trim_start_matches('_'))
    }
}

impl Tells {
    /// What plain pieces tell, which are at least so many where names are others.
    fn of(plain: &[&Piece], part: Part, renamed: usize) -> Tells {
        let names: BTreeSet<&str> =
            plain.iter().map(|piece| piece.text.as_str()).filter(|text| is_telling(text)).collect();
        let shortest = if part == Part::Value { VALUE } else { SHORT };
        let is_named = names.len() >= 2 && names.iter().any(|name| name.chars().count() > 2);
        let by_name = is_code(plain) && plain.len() >= shortest && (is_named || returns_a_sum(plain));
        let tells = plain
            .iter()
            .any(|piece| !piece.is_local && is_telling(&piece.text) && piece.text.chars().count() > 2);
        let by_place = is_code(plain)
            && part != Part::Around
            && tells
            && plain.iter().any(|piece| piece.is_local)
            && !matches!(plain[0].text.as_str(), "assert" | "raise")
            && plain.len() >= renamed;
        Tells { by_name, by_place }
    }
}

/// Whether these pieces are no English: `a in b` may be.
fn is_code(plain: &[&Piece]) -> bool {
    plain.iter().any(|piece| {
        !spelling::is_word(&piece.text) && !piece.text.starts_with(|c: char| c.is_ascii_digit() || c == ',')
    })
}

/// The attribute that tokens begin with: `self._name`.
fn attribute(tokens: &[Token]) -> Option<Bare> {
    let [owner, point, name, ..] = tokens else { return None };
    let is_attribute = owner.text == "self" && point.text == "." && name.is_word();
    is_attribute.then(|| Bare {
        name: name.text.trim_start_matches('_').to_owned(),
        key: format!("self.{}", name.text),
    })
}

/// Whether a statement returns what it computes of a number: `return 3 * x`.
fn returns_a_sum(plain: &[&Piece]) -> bool {
    let is_number = |piece: &Piece| piece.text.starts_with(|c: char| c.is_ascii_digit());
    let is_operand = |piece: &Piece| is_number(piece) || piece.text == "]" || is_telling(&piece.text);
    plain[0].text == "return"
        && plain.iter().any(|piece| is_number(piece))
        && plain.iter().any(|piece| is_telling(&piece.text))
        && plain.windows(2).any(|pair| is_operand(pair[0]) && "*/%+-<>".contains(&pair[1].text))
}

/// Whether a token may be a local's other name.
fn is_name(token: &Token) -> bool {
    token.is_word() && !is_keyword(&token.text) && token.role == Role::Plain
}

/// Whether one name can stand for the other: each for one only.
fn binds<'a>(bound: &mut Vec<(&'a str, &'a str)>, golden: &'a str, other: &'a str) -> bool {
    match bound.iter().find(|(known, with)| *known == golden || *with == other) {
        Some(pair) => *pair == (golden, other),
        None => {
            bound.push((golden, other));
            true
        }
    }
}
