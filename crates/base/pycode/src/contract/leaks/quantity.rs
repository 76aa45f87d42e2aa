//! Numbers as people write them into a text: with commas, as products, with units of size, with a per cent sign.

use std::ops::Range;

use super::number::{Number, folded, word_length};

/// A number of a text: where it stands, and the values that it may be meant to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spelled {
    pub(super) range: Range<usize>,
    pub(super) values: Vec<Number>,
}

/// All numbers of a text, in its order, in all spellings; one that begins with another's beginning is told with it.
pub(super) fn spelled(text: &str) -> Vec<Spelled> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let Some(c) = text[at..].chars().next() else { break };
        if !begins(text, at) {
            at += word_length(&text[at..]).max(c.len_utf8());
            continue;
        }
        let Some((mut end, value)) = folded(text, at) else {
            at += word_length(&text[at..]).max(c.len_utf8());
            continue;
        };
        let next = end;
        let mut values = vec![value];
        if let Some((to, grouped)) = grouped(text, at) {
            values.push(grouped);
            end = end.max(to);
        }
        let mut product = *values.last().unwrap_or(&value);
        while let Some((to, factor)) = factor(text, end) {
            let Some(larger) = product.times(factor) else { break };
            (product, end) = (larger, to);
            values.extend([factor, product]);
        }
        if let Some((to, readings)) = with_unit(text, end, product) {
            end = to;
            values.extend(readings);
        }
        found.push(Spelled { range: at..end, values });
        // A second factor, and what a comma may part rather than join, are numbers themselves.
        at = next;
    }
    found
}

/// Whether a number may begin at a byte: no word goes on there.
fn begins(text: &str, at: usize) -> bool {
    let rest = &text[at..];
    let digits = rest.strip_prefix('.').unwrap_or(rest);
    let goes_on = match text[..at].chars().next_back() {
        // `a.25`, `1.2.3`, `..5`.
        Some('.') => digits.len() < rest.len() || text[..at - 1].ends_with(char::is_alphanumeric),
        before => before.is_some_and(|c| c.is_alphanumeric() || c == '_'),
    };
    !goes_on && digits.starts_with(|c: char| c.is_ascii_digit())
}

/// `4,096`, and with thin spaces or apostrophes in the comma's place: where it ends, and its value.
fn grouped(text: &str, at: usize) -> Option<(usize, Number)> {
    let plain = |c: char| c.is_ascii_digit();
    let first = text[at..].find(|c: char| !plain(c))?;
    let mark = text[at + first..]
        .chars()
        .next()
        .filter(|c| [',', '\'', '\u{a0}', '\u{2009}', '\u{202f}'].contains(c))?;
    let mut whole = text[at..at + first].to_owned();
    let mut end = at + first;
    if !(1..=3).contains(&first) {
        return None;
    }
    while let Some(group) = text[end..].strip_prefix(mark) {
        let count = group.find(|c: char| !plain(c)).unwrap_or(group.len());
        if count != 3 {
            break;
        }
        whole.push_str(&group[..3]);
        end += mark.len_utf8() + 3;
    }
    if end == at + first
        || word_length(&text[end..]) > 0 && unit(&text[end..end + word_length(&text[end..])]).is_none()
    {
        return None;
    }
    if let Some(fraction) = text[end..].strip_prefix('.').filter(|rest| rest.starts_with(plain)) {
        let count = fraction.find(|c: char| !plain(c)).unwrap_or(fraction.len());
        let value = Number::new((whole + &fraction[..count]).parse().ok()?, -i32::try_from(count).ok()?)?;
        return Some((end + 1 + count, value));
    }
    Some((end, Number::new(whole.parse().ok()?, 0)?))
}

/// A number that another at this byte is multiplied by: `* 1024`, `× 10⁻⁶`.
fn factor(text: &str, at: usize) -> Option<(usize, Number)> {
    let rest = text[at..].trim_start_matches([' ', '\u{a0}']);
    let rest = rest.strip_prefix(['*', '×', '·', 'x'])?;
    let from = text.len() - rest.trim_start_matches([' ', '\u{a0}']).len();
    folded(text, from)
}

/// What a unit of size makes of the number before it: `KiB` 1024 of it, `kB` 1000 or 1024, `%` a hundredth.
fn with_unit(text: &str, at: usize, number: Number) -> Option<(usize, Vec<Number>)> {
    let rest = text[at..].strip_prefix([' ', '\u{a0}', '\u{202f}', '-']).unwrap_or(&text[at..]);
    let from = text.len() - rest.len();
    if rest.starts_with('%') {
        return Some((from + 1, vec![number.times(Number::new(1, -2)?)?]));
    }
    let length = word_length(rest);
    // A letter by itself is a unit only right behind its number.
    let is_apart = from > at && length == 1;
    let factors = unit(&rest[..length]).filter(|_| !is_apart)?;
    let readings = factors.into_iter().filter_map(|factor| number.times(Number::new(factor, 0)?)).collect();
    Some((from + length, readings))
}

/// Units of size by their names, with the power of a thousand or of 1024 that each is.
const NAMED: [(&str, &str); 4] = [("kibi", "kilo"), ("mebi", "mega"), ("gibi", "giga"), ("tebi", "tera")];

/// The factors that a unit of size may stand for.
pub(super) fn unit(word: &str) -> Option<Vec<u128>> {
    let mut letters = word.chars();
    let letter = letters.next()?;
    let power = "kMGT".find(if letter == 'K' { 'k' } else { letter }).map(|at| at as u32 + 1);
    let both = |power: u32| vec![1000_u128.pow(power), 1024_u128.pow(power)];
    match (power, letters.as_str()) {
        (Some(power), "iB" | "ib" | "i") => return Some(vec![1024_u128.pow(power)]),
        (Some(power), "B" | "b" | "") => return Some(both(power)),
        _ => {}
    }
    let word = word.to_lowercase();
    let name = word.strip_suffix('s').unwrap_or(&word);
    let name = name.strip_suffix("byte").or_else(|| name.strip_suffix("bit"))?;
    let at = NAMED.iter().position(|(binary, decimal)| name == *binary || name == *decimal)?;
    let power = at as u32 + 1;
    Some(if NAMED[at].0 == name { vec![1024_u128.pow(power)] } else { both(power) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plain(value: u128) -> Number {
        Number::new(value, 0).expect("a number in reach")
    }

    fn reads_as(text: &str, value: Number) -> bool {
        spelled(text).iter().any(|number| number.values.contains(&value))
    }

    #[test]
    fn a_number_is_the_same_in_each_of_its_spellings() {
        for (value, spellings) in [
            (
                plain(4096),
                &[
                    "4096",
                    "4_096",
                    "4,096",
                    "4\u{202f}096",
                    "4'096",
                    "0x1000",
                    "0X1_000",
                    "0o10000",
                    "2**12",
                    "2 ** 12",
                    "2^12",
                    "2¹²",
                    "1 << 12",
                    "1<<12",
                    "4 KiB",
                    "4KiB",
                    "4-KiB",
                    "4 kB",
                    "4K",
                    "4 kibibytes",
                    "4-kibibyte",
                    "4 Kilobytes",
                    "4k",
                    "4 * 1024",
                    "4×1024",
                    "64 x 64",
                    "4096x4096",
                    "4096-byte",
                    "4096.",
                    "4.096e3",
                    "0b1_0000_0000_0000",
                    "(4,096)",
                    "`4096`",
                    "of 4096,",
                    "4096.0",
                ][..],
            ),
            (
                Number::new(1, -6).expect("a number"),
                &[
                    "1e-6",
                    "1E-06",
                    "1e\u{2212}6",
                    "0.000001",
                    ".000001",
                    "10^-6",
                    "10**-6",
                    "10 ** -6",
                    "10⁻⁶",
                    "1×10^-6",
                    "1 * 10⁻⁶",
                    "0.0001 %",
                    "10^−6",
                ][..],
            ),
            (Number::new(5, -2).expect("a number"), &["0.05", "5%", "5 %", "5e-2", "0.050"][..]),
            (plain(16 << 20), &["16 MiB", "16 << 20", "16,777,216", "16 * 2**20", "16M"][..]),
            (Number::new(12345, -1).expect("a number"), &["1,234.5", "1234.5"][..]),
        ] {
            for text in spellings {
                assert!(reads_as(text, value), "{text}: {:?}", spelled(text));
            }
        }
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in [
            "int64",
            "fp8",
            "H200",
            "3D",
            "16th",
            "1.2.3",
            "v1.25",
            "_10",
            "x10",
            "1j",
            "0xg",
            "one",
            ".",
            "",
            "a.25",
            "10e2147483647",
            "9e99999999999",
        ] {
            assert_eq!(spelled(text), [], "{text}");
        }
    }

    #[test]
    fn numbers_that_any_text_has_tell_nothing() {
        for text in ["0", "1", "2", "9", "0.5", "1.0", "50 %", "2**3", "32", "2**6", "100"] {
            let values = spelled(text)[0].values.clone();
            assert!(!values.last().expect("a value").tells(), "{text}");
        }
        for text in ["11", "48", "128", "1000", "0.1", "1e-6", "4096", "1.5", "2**70", "1e300"] {
            assert!(spelled(text)[0].values[0].tells(), "{text}");
        }
    }

    #[test]
    fn numbers_in_a_row_are_each_told() {
        let found = |text: &str| -> Vec<String> {
            spelled(text).iter().map(|n| text[n.range.clone()].to_owned()).collect()
        };
        assert_eq!(found("between 16, 32 and 64"), ["16", "32", "64"]);
        assert_eq!(found("4 * 1024"), ["4 * 1024", "1024"]);
        assert_eq!(found("on 2024-05-12"), ["2024", "05", "12"]);
        assert_eq!(found("[1,024]"), ["1,024", "024"]);
    }

    proptest! {
        #[test]
        fn every_whole_number_is_read_from_each_way_to_write_it(value in 0_u64..) {
            let whole = plain(u128::from(value));
            let mut commas = value.to_string();
            let mut at = commas.len();
            while at > 3 {
                at -= 3;
                commas.insert(at, ',');
            }
            for text in [value.to_string(), commas.clone(), commas.replace(',', "_"), format!("{value:#x}"), format!("{value:#o}"), format!("{value:#b}"), format!("{value}e0"), format!("{value}.0")] {
                prop_assert!(reads_as(&format!("a {text} b"), whole), "{}", text);
            }
        }

        #[test]
        fn a_fraction_is_read_from_digits_and_from_powers_of_ten(mantissa in 1_u32.., places in 0_i32..12) {
            let value = Number::new(u128::from(mantissa), -places).expect("a number");
            for text in [format!("{mantissa}e-{places}"), format!("{mantissa} × 10^-{places}"), format!("{:.*}", places as usize, f64::from(mantissa) / 10_f64.powi(places))] {
                prop_assert!(reads_as(&text, value), "{}", text);
            }
        }

        #[test]
        fn numbers_of_any_text_stand_in_it_in_its_order(text in "[\\PC\n]{0,60}|[0-9_.,eExXoKMiB%*<^⁻²' -]{0,40}") {
            let mut last = 0;
            for number in spelled(&text) {
                prop_assert!(text.get(number.range.clone()).is_some());
                prop_assert!(number.range.start >= last && !number.range.is_empty() && !number.values.is_empty());
                last = number.range.start;
            }
        }
    }
}
