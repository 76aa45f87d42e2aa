//! Words that hold text in another coding, base64 or hexadecimal digits: what they hold is read, too.

use std::ops::Range;

/// Shortest word that is tried, in characters.
const SHORTEST: usize = 24;
/// Most lines in which a word goes on.
const MOST_LINES: usize = 200;

/// The texts that words of a text hold, each with the place of the word. A word that goes on in the next lines is one.
pub(super) fn held(text: &str) -> Vec<(Range<usize>, String)> {
    let mut found = Vec::new();
    let words: Vec<Range<usize>> = words(text).collect();
    let mut at = 0;
    while at < words.len() {
        let goes_on = |next: &usize| {
            let between = text.get(words[next - 1].end..words[*next].start).unwrap_or_default();
            between.matches('\n').count() == 1
                && between.trim_start_matches([' ', '\t', '\n', '\r', '>']).is_empty()
        };
        if words[at].len() < SHORTEST {
            at += 1;
            continue;
        }
        let long = (at + 1..words.len()).take(MOST_LINES).take_while(goes_on).last().unwrap_or(at);
        let whole = |last: usize| {
            let joined: String = words[at..=last].iter().map(|word| &text[word.clone()]).collect();
            Some((last, decoded(&joined)?))
        };
        match (at..=long).rev().find_map(whole) {
            Some((last, held)) => {
                found.push((words[at].start..words[last].end, held));
                at = last + 1;
            }
            None => at += 1,
        }
    }
    found
}

fn is_sign(c: char) -> bool {
    c.is_ascii_alphanumeric() || "+/-_=".contains(c)
}

/// Runs of signs of base64.
fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let begin = from + text[from..].find(is_sign)?;
        let end = text[begin..].find(|c| !is_sign(c)).map_or(text.len(), |length| begin + length);
        from = end;
        Some(begin..end)
    })
}

/// What a word holds, if that is text.
fn decoded(word: &str) -> Option<String> {
    let of_hex = || {
        let digits: Option<Vec<u8>> =
            word.chars().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
        let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
        plain(digits.chunks(2).map(|pair| (pair[0] << 4) | pair[1]).collect())
    };
    of_hex().or_else(|| plain(of_base64(word)?))
}

fn of_base64(word: &str) -> Option<Vec<u8>> {
    let signs = word.trim_end_matches('=');
    if signs.contains('=') || signs.len() % 4 == 1 {
        return None;
    }
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for sign in signs.bytes() {
        let value = match sign {
            b'A'..=b'Z' => sign - b'A',
            b'a'..=b'z' => sign - b'a' + 26,
            b'0'..=b'9' => sign - b'0' + 52,
            b'+' | b'-' => 62,
            _ => 63,
        };
        bits = ((bits << 6) | u32::from(value)) & 0xffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(((bits >> count) & 0xff) as u8);
        }
    }
    Some(bytes)
}

/// Bytes as text, where they are such that one can read.
fn plain(bytes: Vec<u8>) -> Option<String> {
    let text = String::from_utf8(bytes).ok()?;
    let is_read = |c: char| !c.is_control() || matches!(c, '\n' | '\t' | '\r');
    (!text.is_empty() && text.chars().all(is_read)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<String> {
        held(text).into_iter().map(|(place, held)| format!("{}: {held}", &text[place])).collect()
    }

    #[test]
    fn what_words_hold_is_read() {
        for (word, is) in [
            ("dG90YWwgPSB4ICogX1dJTkRPVyAj", "total = x * _WINDOW #"),
            ("dG90YWwgPSB4ICogX1dJTkRPVw==", "total = x * _WINDOW"),
            ("746f74616c203d2078202a205f57494e444f57", "total = x * _WINDOW"),
            ("dG90YWwgPSB4ICog\nX1dJTkRPVw==", ""),
            ("dG90YWwgPSB4ICogX1dJTkRP\n  VyArIDE=", "total = x * _WINDOW + 1"),
        ] {
            let expected: Vec<String> =
                if is.is_empty() { Vec::new() } else { vec![format!("{word}: {is}")] };
            assert_eq!(read(&format!("See `{word}`.")), expected, "{word}");
        }
    }

    #[test]
    fn names_paths_and_digests_hold_nothing() {
        let text = "gradient_accumulation_steps, ministack/serving/prefix_cache, ------------------------, \
                    d41d8cd98f00b204e9800998ecf8427e, ========================, \
                    test_that_an_expert_takes_no_more_than_its_capacity";
        assert_eq!(read(text), Vec::<String>::new());
    }
}
