//! Letters of other alphabets that look like Latin ones: `self._by_kеy` with a Cyrillic `е` reads as golden's name.

/// Each with the Latin letter that it is taken for.
const LOOKALIKES: [(&str, &str); 4] = [
    // Cyrillic.
    ("АВЕЅІЈКМНОРСТХУЗԌԚԜ", "ABESIJKMHOPCTXY3GQW"),
    ("аеѕіјорсухһԁԛԝӏᴦ", "aesijopcyxhdqwlr"),
    // Greek.
    ("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹͿ", "ABEZHIKMNOPTYXCJ"),
    ("αοινρϲϳκυ", "aoivpcjku"),
];
/// Latin letters of other shapes that compatibility forms leave as they are.
const SHAPES: [(char, char); 4] = [('ı', 'i'), ('ȷ', 'j'), ('ɡ', 'g'), ('ɑ', 'a')];

/// The Latin letter that a character looks like; others are left as they are.
pub(super) fn latin(c: char) -> char {
    if c.is_ascii() {
        return c;
    }
    let of_alphabets = LOOKALIKES.iter().find_map(|(others, latin)| {
        let at = others.chars().position(|other| other == c)?;
        latin.chars().nth(at)
    });
    let of_shapes = || SHAPES.iter().find(|(other, _)| *other == c).map(|(_, latin)| *latin);
    of_alphabets.or_else(of_shapes).unwrap_or(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_that_look_like_latin_ones_are_these() {
        for (others, latin) in LOOKALIKES {
            assert_eq!(others.chars().count(), latin.chars().count(), "{others}");
            assert!(others.chars().all(|c| !c.is_ascii()), "{others}");
        }
        let read = |text: &str| text.chars().map(latin).collect::<String>();
        assert_eq!(read("_by_k\u{435}y, \u{3bf}ffsets, ж, Σ, μ, 2 × n"), "_by_key, offsets, ж, Σ, μ, 2 × n");
    }
}
