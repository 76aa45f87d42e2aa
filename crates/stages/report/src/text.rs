//! Numbers and texts in cells.

use infradev_model::{Estimate, Proportion};

/// A text on one line, with control characters and those that turn the direction of writing written out.
pub fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => shown.push(' '),
            c if c.is_control() || turns(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

pub(crate) fn turns(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// `3/10`
pub(crate) fn counts(share: Proportion) -> String {
    format!("{}/{}", share.count, share.of)
}

/// `30 % [11, 60]`; a dash where there is nothing to count.
pub(crate) fn percent(share: Proportion) -> String {
    if share.of == 0 {
        return "–".to_owned();
    }
    let value = f64::from(share.count) / f64::from(share.of);
    format!("{:.1} % [{:.0}, {:.0}]", value * 100.0, share.low * 100.0, share.high * 100.0)
}

/// `0.430 [0.21, 0.65]`; of one task no interval, as there is nothing to resample.
pub(crate) fn estimate(estimate: Estimate) -> String {
    if estimate.tasks < 2 {
        return format!("{:.3}", estimate.value);
    }
    format!("{:.3} [{:.2}, {:.2}]", estimate.value, estimate.low, estimate.high)
}
