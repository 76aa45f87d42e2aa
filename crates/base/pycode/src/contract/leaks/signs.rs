//! The characters of a text as they are meant: markup resolved, marks that are not seen left out, numbers in one piece. Each
//! keeps the place that it comes from.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization;

use super::lookalikes::latin;
use super::quantity::unit;

/// A character, and where it comes from.
pub(super) type Sign = (char, Range<usize>);

/// The longest tag that is looked for, in characters.
const TAG: usize = 80;
/// Tags of HTML that mark a part of a line.
const TAGS: [&str; 20] = [
    "a", "b", "big", "br", "code", "em", "font", "i", "kbd", "mark", "s", "samp", "small", "span", "strong",
    "sub", "sup", "tt", "u", "wbr",
];
/// The longest entity that is looked for, in characters.
const ENTITY: usize = 12;
/// HTML's names of characters.
const ENTITIES: [(&str, char); 45] = [
    ("amp", '&'),
    ("apos", '\''),
    ("ast", '*'),
    ("bsol", '\\'),
    ("colon", ':'),
    ("comma", ','),
    ("emsp", ' '),
    ("ensp", ' '),
    ("equals", '='),
    ("ge", '≥'),
    ("geq", '≥'),
    ("grave", '`'),
    ("gt", '>'),
    ("hairsp", ' '),
    ("Hat", '^'),
    ("hyphen", '-'),
    ("lbrack", '['),
    ("lcub", '{'),
    ("le", '≤'),
    ("leq", '≤'),
    ("lowbar", '_'),
    ("lpar", '('),
    ("lsqb", '['),
    ("lt", '<'),
    ("middot", '·'),
    ("minus", '−'),
    ("nbsp", ' '),
    ("ne", '≠'),
    ("num", '#'),
    ("percnt", '%'),
    ("period", '.'),
    ("plus", '+'),
    ("quot", '"'),
    ("rbrack", ']'),
    ("rcub", '}'),
    ("rpar", ')'),
    ("rsqb", ']'),
    ("sdot", '·'),
    ("shy", '\u{ad}'),
    ("sol", '/'),
    ("sup2", '²'),
    ("sup3", '³'),
    ("thinsp", ' '),
    ("times", '×'),
    ("zwnj", '\u{200c}'),
];
/// TeX's names of signs; a blank where one only sets what follows.
const TEX: [(&str, &str); 22] = [
    ("approx", "≈"),
    ("ast", "*"),
    ("cdot", "·"),
    ("div", "/"),
    ("ge", "≥"),
    ("geq", "≥"),
    ("ldots", "..."),
    ("le", "≤"),
    ("left", ""),
    ("leq", "≤"),
    ("ll", "<<"),
    ("mathit", ""),
    ("mathrm", ""),
    ("mathtt", ""),
    ("ne", "≠"),
    ("neq", "≠"),
    ("operatorname", ""),
    ("quad", " "),
    ("right", ""),
    ("text", ""),
    ("texttt", ""),
    ("times", "×"),
];

/// Without tags, entities, backslashes and what is not seen, and each character in its plain form.
pub(super) fn meant(signs: &[Sign]) -> Vec<Sign> {
    plain(&without_backslashes(&without_entities(&without_tags(signs))))
}

fn without_tags(signs: &[Sign]) -> Vec<Sign> {
    rewritten(signs, |rest| {
        let inside = text(rest.get(1..).filter(|_| rest[0].0 == '<')?, TAG);
        let (inside, _) = inside.split_once('>')?;
        let opening = inside.trim_start_matches('/');
        let name = opening.split(|c: char| !c.is_ascii_alphanumeric()).next()?.to_lowercase();
        let is_tag = TAGS.contains(&name.as_str()) && !inside.contains(['<', '\n']);
        let stands = match name.as_str() {
            "sup" if opening.len() == inside.len() => "^",
            "br" => " ",
            _ => "",
        };
        is_tag.then(|| (inside.chars().count() + 2, stands.to_owned()))
    })
}

fn without_entities(signs: &[Sign]) -> Vec<Sign> {
    rewritten(signs, |rest| {
        let name = text(rest.get(1..).filter(|_| rest[0].0 == '&')?, ENTITY);
        let (name, _) = name.split_once(';')?;
        let c = match name.strip_prefix('#') {
            Some(number) => char::from_u32(match number.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16).ok()?,
                None => number.parse().ok()?,
            })?,
            None => ENTITIES.iter().find(|(known, _)| *known == name)?.1,
        };
        Some((name.chars().count() + 2, c.to_string()))
    })
}

/// Backslashes before signs, as Markdown needs them, and what they begin in TeX.
fn without_backslashes(signs: &[Sign]) -> Vec<Sign> {
    let mut closing = Vec::new();
    let kept = rewritten(signs, |rest| {
        let next = rest.get(1).map(|(c, _)| *c);
        match (rest[0].0, next) {
            ('\\', Some(c)) if c.is_ascii_punctuation() => Some((2, c.to_string())),
            // The space of TeX in a number.
            ('\\', Some(' ')) => Some((2, " ".to_owned())),
            ('\\', Some(c)) if c.is_ascii_alphabetic() => {
                let name: String =
                    rest[1..].iter().map(|(c, _)| *c).take_while(char::is_ascii_alphabetic).collect();
                let (_, stands) = TEX.iter().find(|(known, _)| *known == name)?;
                let length = 1 + name.len();
                let braced = rest.get(length).filter(|(c, _)| *c == '{' && stands.is_empty());
                let end = braced.and_then(|_| rest[length..].iter().find(|(c, _)| *c == '}'));
                closing.extend(end.map(|(_, place)| place.start));
                Some((length + usize::from(end.is_some()), (*stands).to_owned()))
            }
            ('{', Some(',')) if rest.get(2).is_some_and(|(c, _)| *c == '}') => Some((3, ",".to_owned())),
            ('^', Some('{')) => {
                let end = rest.iter().position(|(c, _)| *c == '}')?;
                let power: String = rest[2..end].iter().map(|(c, _)| *c).filter(|c| *c != ' ').collect();
                power
                    .chars()
                    .all(|c| c.is_ascii_digit() || c == '-' || c == '−')
                    .then(|| (end + 1, format!("^{power}")))
            }
            _ => None,
        }
    });
    kept.into_iter().filter(|(c, place)| *c != '}' || !closing.contains(&place.start)).collect()
}

/// Each character in its plain form, one of another alphabet as the Latin letter that it looks like; but for raised digits, which stay
/// raised. What has no width is left out.
fn plain(signs: &[Sign]) -> Vec<Sign> {
    let mut kept = Vec::with_capacity(signs.len());
    for (c, place) in signs.iter().filter(|(c, _)| !is_unseen(*c)) {
        match c {
            '⁰' | '¹' | '²' | '³' | '⁴'..='⁹' | '⁻' => kept.push((*c, place.clone())),
            _ => kept.extend(std::iter::once(*c).nfkc().map(|c| (latin(c), place.clone()))),
        }
    }
    kept
}

fn is_unseen(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
}

/// Without the signs of emphasis, `**counts**`, which are runs of one length that open and close in one paragraph, and without those
/// of spans of code.
pub(super) fn without_emphasis(signs: &[Sign]) -> Vec<Sign> {
    let at = |at: usize| signs.get(at).map_or(' ', |(c, _)| *c);
    let mut open: Vec<(char, Range<usize>)> = Vec::new();
    let mut is_left_out = vec![false; signs.len()];
    let mut from = 0;
    while from < signs.len() {
        let c = at(from);
        if c == '\n' && at(from + 1) == '\n' {
            open.clear();
        }
        if !matches!(c, '*' | '_' | '~') {
            from += 1;
            continue;
        }
        let end = (from..signs.len()).find(|next| at(*next) != c).unwrap_or(signs.len());
        let (before, after) = (from.checked_sub(1).map_or(' ', at), at(end));
        let is_mark = |c: char| !c.is_alphanumeric();
        let inside = c == '_' && !is_mark(before) && !is_mark(after);
        let opens = !after.is_whitespace() && (!is_mark(after) || is_mark(before)) && !inside;
        let closes = !before.is_whitespace() && (!is_mark(before) || is_mark(after)) && !inside;
        let opened = open.iter().rposition(|(other, run)| *other == c && run.len() == end - from);
        match opened.filter(|_| closes) {
            Some(opened) => {
                is_left_out[open[opened].1.clone()].fill(true);
                is_left_out[from..end].fill(true);
                open.truncate(opened);
            }
            None if opens => open.push((c, from..end)),
            None => {}
        }
        from = end;
    }
    let kept = signs.iter().zip(is_left_out).filter(|((c, _), out)| !out && *c != '`');
    kept.map(|(sign, _)| sign.clone()).collect()
}

/// Numbers in one piece, `12 288`, and apart from the word behind them, `12288bytes`.
pub(super) fn numbers(signs: &[Sign]) -> Vec<Sign> {
    let at = |at: usize| signs.get(at).map_or('\n', |(c, _)| *c);
    let digits = |from: usize| (from..).take_while(|at_| at(*at_).is_ascii_digit()).count();
    let mut kept: Vec<Sign> = Vec::with_capacity(signs.len());
    let mut from = 0;
    while from < signs.len() {
        let before = from.checked_sub(1).map_or(' ', at);
        let length = digits(from);
        if length == 0 || before.is_alphanumeric() || matches!(before, '_' | '.') {
            kept.push(signs[from].clone());
            from += 1;
            continue;
        }
        let mut end = from + length;
        kept.extend_from_slice(&signs[from..end]);
        if length <= 3 && at(from) != '0' {
            while at(end) == ' ' && digits(end + 1) == 3 {
                kept.extend_from_slice(&signs[end + 1..end + 4]);
                end += 4;
            }
        }
        while matches!(at(end), ',' | '_' | '.') && digits(end + 1) > 0 {
            let group = end + 1 + digits(end + 1);
            kept.extend_from_slice(&signs[end..group]);
            end = group;
        }
        let word: String = (end..).map(at).take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let is_signed_power = matches!(word.as_str(), "e" | "E")
            && matches!(at(end + 1), '-' | '+' | '\u{2212}')
            && digits(end + 2) > 0;
        let is_ordinal = matches!(word.as_str(), "st" | "nd" | "rd" | "th") && end - from < 3;
        if !word.is_empty()
            && word.chars().all(char::is_alphabetic)
            && !is_ordinal
            && !is_signed_power
            && !matches!(word.as_str(), "j" | "J")
            && unit(&word).is_none()
        {
            let place = signs[end - 1].1.end;
            kept.push((' ', place..place));
        }
        from = end;
    }
    kept
}

/// Signs with others in the place of some: `other` says, of what is left, how many of them go and what stands for them.
fn rewritten(signs: &[Sign], mut other: impl FnMut(&[Sign]) -> Option<(usize, String)>) -> Vec<Sign> {
    let mut kept = Vec::with_capacity(signs.len());
    let mut from = 0;
    while from < signs.len() {
        match other(&signs[from..]) {
            Some((length, stands)) => {
                let end = (from + length.max(1)).min(signs.len());
                let place = signs[from].1.start..signs[end - 1].1.end;
                kept.extend(stands.chars().map(|c| (c, place.clone())));
                from = end;
            }
            None => {
                kept.push(signs[from].clone());
                from += 1;
            }
        }
    }
    kept
}

/// The text of signs, so many of them at most.
fn text(signs: &[Sign], most: usize) -> String {
    signs.iter().take(most).map(|(c, _)| *c).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signs(text: &str) -> Vec<Sign> {
        text.char_indices().map(|(at, c)| (c, at..at + c.len_utf8())).collect()
    }

    fn read(signs: Vec<Sign>) -> String {
        text(&signs, usize::MAX)
    }

    #[test]
    fn characters_are_as_they_are_meant() {
        for (written, is_meant) in [
            ("by\\_weight \\* 2", "by_weight * 2"),
            ("a &gt;= b&nbsp;&#42; &#x63;", "a >= b * c"),
            ("a & b; &nothing; &#xfffffff;", "a & b; &nothing; &#xfffffff;"),
            ("co\u{200b}un\u{2060}ts\u{ad}", "counts"),
            ("\u{ff11}\u{ff12} \u{ff5f}", "12 \u{2985}"),
            ("2<sup>12</sup>, <span class=\"x\">counts</span><br/>", "2^12, counts "),
            ("a < b and c > d, x<y>z", "a < b and c > d, x<y>z"),
            ("$3 \\times 2^{12}$, 10^{-6}", "$3 × 2^12$, 10^-6"),
            ("12\\,288 and 12{,}288", "12,288 and 12,288"),
            ("\\text{counts} {a}, x^{n}", "counts {a}, x^{n}"),
            ("2¹²", "2¹²"),
            ("C:\\new \\", "C:\\new \\"),
        ] {
            assert_eq!(read(meant(&signs(written))), is_meant, "{written}");
        }
    }

    #[test]
    fn emphasis_is_left_out_and_operators_are_not() {
        for (written, bare) in [
            ("**counts**.cumsum(0) - *counts*", "counts.cumsum(0) - counts"),
            ("`counts`**.**`cumsum`, `a * b`", "counts.cumsum, a * b"),
            ("_counts_ and ~~counts~~, ***x***", "counts and counts, x"),
            ("f(*args, **kwargs)", "f(*args, **kwargs)"),
            ("a * b * c, _own, by_rank_of", "a * b * c, _own, by_rank_of"),
            ("*a\n\nb*", "*a\n\nb*"),
        ] {
            assert_eq!(read(without_emphasis(&signs(written))), bare, "{written}");
        }
    }

    #[test]
    fn numbers_are_in_one_piece_and_apart_from_words() {
        for (written, told) in [
            ("12 288 bytes", "12288 bytes"),
            ("1 234 567.5", "1234567.5"),
            ("12288bytes, 12288B, 12,288ms", "12288 bytes, 12288 B, 12,288 ms"),
            ("4K, 4KiB, 1j, 16th, 4096th, 0x10, 1e6", "4K, 4KiB, 1j, 16th, 4096 th, 0x10, 1e6"),
            ("1e-6, 1E+6, 1e\u{2212}6, 1e-x", "1e-6, 1E+6, 1e\u{2212}6, 1 e-x"),
            ("0 128, 2024 100, 1 22, 1 2345", "0 128, 2024 100, 1 22, 1 2345"),
            ("int64 128, v1.2rc", "int64 128, v1.2rc"),
        ] {
            assert_eq!(read(numbers(&signs(written))), told, "{written}");
        }
    }
}
