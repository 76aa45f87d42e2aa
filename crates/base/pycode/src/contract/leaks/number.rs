//! Numbers as programs write them, read to their values: `4096`, `4_096`, `0x1000`, `2**12`, `1e-6`.

use std::fmt;

use super::quantity::unit;

/// A value, its sign left out: `mantissa × 10^exponent`, the mantissa without zeros at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Number {
    mantissa: u128,
    exponent: i32,
}

/// Highest power of ten that is told apart.
const MAX_EXPONENT: u32 = 4000;

impl Number {
    /// The value of `mantissa × 10^exponent`; `None` where it is out of reach.
    pub(super) fn new(mantissa: u128, exponent: i32) -> Option<Number> {
        let (mut mantissa, mut exponent) = (mantissa, exponent);
        if mantissa == 0 || exponent.unsigned_abs() > MAX_EXPONENT {
            return (mantissa == 0).then_some(Number { mantissa: 0, exponent: 0 });
        }
        while mantissa.is_multiple_of(10) {
            mantissa /= 10;
            exponent += 1;
        }
        Some(Number { mantissa, exponent })
    }

    pub(super) fn times(self, other: Number) -> Option<Number> {
        Number::new(self.mantissa.checked_mul(other.mantissa)?, self.exponent.checked_add(other.exponent)?)
    }

    /// The value to the power of another, a whole one; `is_negative` says that the power is below zero, which only powers of ten are
    /// read with.
    pub(super) fn power(self, other: Number, is_negative: bool) -> Option<Number> {
        let power = other.whole().filter(|power| *power <= u128::from(MAX_EXPONENT))? as u32;
        let exponent = self.exponent.checked_mul(power as i32)?;
        match (is_negative, self.mantissa) {
            (false, mantissa) => Number::new(mantissa.checked_pow(power)?, exponent),
            (true, 1) => Number::new(1, -exponent),
            (true, _) => None,
        }
    }

    /// `self << other`.
    pub(super) fn shifted(self, other: Number) -> Option<Number> {
        self.times(Number::new(2, 0)?.power(other, false)?)
    }

    fn whole(self) -> Option<u128> {
        self.mantissa.checked_mul(10_u128.checked_pow(u32::try_from(self.exponent).ok()?)?)
    }

    /// Whether it says something of the code it stands in: 0, 1, 2, a half, and the powers that widths and shares come in stand
    /// everywhere.
    pub(super) fn tells(self) -> bool {
        match self.exponent {
            ..0 => (self.mantissa, self.exponent) != (5, -1),
            _ => self.whole().is_none_or(|value| value > 9 && ![10, 16, 32, 64, 100].contains(&value)),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.exponent {
            0 => write!(f, "{}", self.mantissa),
            exponent => write!(f, "{}e{exponent}", self.mantissa),
        }
    }
}

/// How many bytes of a word stand at the beginning of a text.
pub(super) fn word_length(text: &str) -> usize {
    text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len())
}

/// A number at a byte of a text, or the power or the shift of two: where it ends, and its value.
pub(super) fn folded(text: &str, at: usize) -> Option<(usize, Number)> {
    let (end, base) = literal(text, at)?;
    let rest = text[end..].trim_start_matches([' ', '\u{a0}']);
    let behind = |sign: &str| rest.strip_prefix(sign).map(|rest| text.len() - rest.trim_start().len());
    let powered = behind("**").or_else(|| behind("^")).and_then(|from| {
        let is_negative = text[from..].starts_with(['-', '\u{2212}']);
        let from = from + if is_negative { text[from..].chars().next().map_or(0, char::len_utf8) } else { 0 };
        let (end, power) = literal(text, from)?;
        Some((end, base.power(power, is_negative)?))
    });
    let raised = || {
        let (length, power, is_negative) = superscript(&text[end..])?;
        Some((end + length, base.power(power, is_negative)?))
    };
    let shifted = || {
        let (end, by) = literal(text, behind("<<")?)?;
        Some((end, base.shifted(by)?))
    };
    powered.or_else(raised).or_else(shifted).or(Some((end, base)))
}

/// `⁻⁶` at the beginning of a text: its length, its value, and whether it is below zero.
fn superscript(text: &str) -> Option<(usize, Number, bool)> {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let digits = text.strip_prefix('⁻').unwrap_or(text);
    let is_negative = digits.len() < text.len();
    let (mut value, mut length) = (0_u128, 0);
    for c in digits.chars() {
        let Some(digit) = DIGITS.iter().position(|known| *known == c) else { break };
        value = value.checked_mul(10)?.checked_add(digit as u128)?;
        length += c.len_utf8();
    }
    (length > 0).then_some((text.len() - digits.len() + length, Number::new(value, 0)?, is_negative))
}

/// A number as Python writes it, at a byte of a text. `None` where a word or a version goes on there: `3D`, `1.2.3`.
fn literal(text: &str, at: usize) -> Option<(usize, Number)> {
    let rest = text.get(at..)?;
    for (prefix, radix) in [("0x", 16), ("0X", 16), ("0o", 8), ("0O", 8), ("0b", 2), ("0B", 2)] {
        if let Some(digits) = rest.strip_prefix(prefix) {
            let length = word_length(digits);
            let plain: String = digits[..length].chars().filter(|c| *c != '_').collect();
            let value = u128::from_str_radix(&plain, radix).ok()?;
            return Some((at + prefix.len() + length, Number::new(value, 0)?));
        }
    }
    let (mut mantissa, mut exponent, mut length) = (0_u128, 0_i32, 0);
    let mut add = |digits: &str, scale: i32| {
        for digit in digits.chars().filter_map(|c| c.to_digit(10)) {
            mantissa = mantissa.checked_mul(10)?.checked_add(u128::from(digit))?;
            exponent -= scale;
        }
        Some(())
    };
    let whole = digits(rest);
    add(&rest[..whole], 0)?;
    length += whole;
    let is_digit = |c: char| c.is_ascii_digit();
    if let Some(fraction) = rest[length..].strip_prefix('.').filter(|rest| rest.starts_with(is_digit)) {
        let fraction = &fraction[..digits(fraction)];
        add(fraction, 1)?;
        length += 1 + fraction.len();
        if rest[length..].strip_prefix('.').is_some_and(|rest| rest.starts_with(is_digit)) {
            return None;
        }
    }
    if length == 0 {
        return None;
    }
    if let Some(power) = rest[length..].strip_prefix(['e', 'E']) {
        let plain = power.strip_prefix(['+', '-', '\u{2212}']).unwrap_or(power);
        let count = digits(plain);
        if count > 0 {
            let value: i32 = plain[..count].replace('_', "").parse().ok()?;
            let value = if power.starts_with(['-', '\u{2212}']) { -value } else { value };
            exponent = exponent.checked_add(value)?;
            length += 1 + power.len() - plain.len() + count;
        }
    }
    let tail = &rest[length..];
    // `1024x768` and `4K` are read; `3D`, `16th` and `1j` are words.
    let is_size = tail.strip_prefix('x').is_some_and(|rest| rest.starts_with(is_digit));
    let word = &tail[..word_length(tail)];
    if !word.is_empty() && !is_size && unit(word).is_none() && superscript(tail).is_none() {
        return None;
    }
    Some((at + length, Number::new(mantissa, exponent)?))
}

/// How many bytes of digits, `_` between them, a text begins with.
fn digits(text: &str) -> usize {
    let mut length = 0;
    for (at, c) in text.char_indices() {
        match c {
            '0'..='9' => length = at + 1,
            '_' if length > 0 => {}
            _ => break,
        }
    }
    length
}
