//! A key: shown by nobody, and struck out of what an endpoint says of it, as it is and in base64.

use std::ffi::OsString;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use hyper::header::HeaderValue;

use crate::error::AgentError;

/// Shorter ones are no secrets, but words that local servers take, and which stand in answers by themselves; bytes.
const SHORTEST: usize = 12;

/// A key as a person gave it.
#[derive(Clone)]
pub struct GivenKey {
    /// The variable that holds it.
    pub variable: String,
    /// Its text.
    pub text: OsString,
}

impl std::fmt::Debug for GivenKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GivenKey").field("variable", &self.variable).finish_non_exhaustive()
    }
}

/// A key that a header may hold.
#[derive(Clone)]
pub(crate) struct Secret {
    text: String,
    /// What is struck out; nothing of a key that is too short.
    forms: Arc<[Vec<u8>]>,
}

impl TryFrom<GivenKey> for Secret {
    type Error = AgentError;

    fn try_from(key: GivenKey) -> Result<Secret, AgentError> {
        let what = match key.text.into_string() {
            Ok(text) => match flaw(&text) {
                None => return Ok(Secret { forms: forms(text.as_bytes()).into(), text }),
                Some(what) => what,
            },
            Err(_) => "it is no UTF-8".to_owned(),
        };
        Err(AgentError::Key { variable: key.variable, what })
    }
}

/// Why headers do not bear a key alike everywhere; the key itself is not shown.
fn flaw(key: &str) -> Option<String> {
    let (at, wrong) = key.chars().enumerate().find(|(_, c)| !c.is_ascii_graphic())?;
    let what = match wrong {
        '\n' | '\r' => "a line's end",
        wrong if wrong.is_whitespace() => "a blank",
        wrong if wrong.is_ascii() => "a control character",
        _ => "not ASCII",
    };
    Some(format!("character {} of {} is {what}", at + 1, key.chars().count()))
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// As a header's value, after `before`.
    pub(crate) fn header(&self, before: &str) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(&format!("{before}{}", self.text)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// Text without it: as many asterisks. None where it does not stand in it.
    pub(crate) fn struck(&self, text: &[u8]) -> Option<Vec<u8>> {
        let (mut struck, mut at) = (None, 0);
        while at < text.len() {
            let rest = &text[at..];
            let form = self.forms.iter().find(|form| form[0] == rest[0] && rest.starts_with(form));
            match form.map(Vec::len) {
                Some(length) => {
                    struck.get_or_insert_with(|| text.to_vec())[at..at + length].fill(b'*');
                    at += length;
                }
                None => at += 1,
            }
        }
        struck
    }

    /// How much of a text's end may be its beginning.
    fn begun(&self, text: &[u8]) -> usize {
        let longest = self.forms.iter().map(Vec::len).max().unwrap_or(1);
        let may = |length: &usize| {
            let end = &text[text.len() - length..];
            self.forms.iter().any(|form| form.len() > *length && form.starts_with(end))
        };
        (1..longest.min(text.len() + 1)).rev().find(may).unwrap_or(0)
    }
}

/// A key as it is, and what of it stands in base64 of any text that holds it: where it begins at any of three places within a group,
/// and in either alphabet. Letters that its neighbours have a part in are left out.
fn forms(key: &[u8]) -> Vec<Vec<u8>> {
    if key.len() < SHORTEST {
        return Vec::new();
    }
    let mut forms = vec![key.to_vec()];
    for before in 0..3 {
        let text = [&vec![0; before], key].concat();
        let (first, last) = ((8 * before).div_ceil(6), 8 * text.len() / 6);
        for alphabet in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            let form = alphabet.encode(&text).as_bytes()[first..last].to_vec();
            if !forms.contains(&form) {
                forms.push(form);
            }
        }
    }
    forms
}

/// Strikes a key out of bytes that come in pieces. What may be its beginning is held back until more is known; the length stays.
pub(crate) struct Strike {
    key: Option<Secret>,
    held: Vec<u8>,
}

impl Strike {
    pub(crate) fn new(key: Option<&Secret>) -> Strike {
        Strike { key: key.filter(|key| !key.forms.is_empty()).cloned(), held: Vec::new() }
    }

    /// What may pass of all that came by now.
    pub(crate) fn feed(&mut self, bytes: Bytes) -> Bytes {
        let Some(secret) = &self.key else { return bytes };
        let whole = match self.held.is_empty() {
            true => bytes,
            false => Bytes::from([std::mem::take(&mut self.held).as_slice(), &bytes].concat()),
        };
        let mut whole = secret.struck(&whole).map_or(whole, Bytes::from);
        self.held = whole.split_off(whole.len() - secret.begun(&whole)).to_vec();
        whole
    }

    /// What was held back at the end.
    pub(crate) fn rest(&mut self) -> Bytes {
        Bytes::from(std::mem::take(&mut self.held))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-aab-sk-aac-0123";

    fn secret(text: impl Into<OsString>) -> Result<Secret, AgentError> {
        Secret::try_from(GivenKey { variable: "A_KEY".to_owned(), text: text.into() })
    }

    #[test]
    fn a_key_that_no_header_can_hold_is_refused_with_what_and_where() {
        use std::os::unix::ffi::OsStringExt;
        for (key, what) in [
            ("a\nb", "character 2 of 3 is a line's end"),
            ("ab\r\n", "character 3 of 4 is a line's end"),
            (" a", "character 1 of 2 is a blank"),
            ("a\tb", "character 2 of 3 is a blank"),
            ("a\u{1}", "character 2 of 2 is a control character"),
            ("schl\u{fc}ssel", "character 5 of 9 is not ASCII"),
        ] {
            let error = secret(key).unwrap_err();
            assert_eq!(error.to_string(), format!("A_KEY holds a key that no header can hold: {what}"));
        }
        let error = secret(OsString::from_vec(vec![b'a', 0xff])).unwrap_err();
        assert!(error.to_string().ends_with("it is no UTF-8"), "{error}");
        assert_eq!(secret(KEY).unwrap().header("Bearer ").unwrap(), format!("Bearer {KEY}"));
    }

    #[test]
    fn a_key_is_struck_out_wherever_the_pieces_are_cut_and_nothing_else_is() {
        let secret = secret(KEY).unwrap();
        let text = format!("wrong key {KEY}{KEY}, sk-aab-{KEY} sk-aab-sk-a");
        let stars = "*".repeat(KEY.len());
        let struck = format!("wrong key {stars}{stars}, sk-aab-{stars} sk-aab-sk-a");
        for step in 1..text.len() {
            let mut strike = Strike::new(Some(&secret));
            let pieces = text.as_bytes().chunks(step);
            let mut passed: Vec<u8> =
                pieces.flat_map(|part| strike.feed(Bytes::copy_from_slice(part))).collect();
            passed.extend(strike.rest());
            assert_eq!(String::from_utf8(passed).unwrap(), struck, "{step}");
        }
    }

    #[test]
    fn a_key_in_base64_is_struck_out_wherever_it_begins_and_the_pieces_are_cut() {
        // Letters of which the two alphabets make different ones.
        for key in [KEY, "~~~???>>>~~~???>>>"] {
            let secret = secret(key).unwrap();
            for (before, after) in [("", ""), ("a", "z"), ("ab", "yz"), ("abc", ""), ("Bearer ", "\n")] {
                for alphabet in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
                    let said = alphabet.encode(format!("{before}{key}{after}"));
                    for step in 1..=said.len() {
                        let mut strike = Strike::new(Some(&secret));
                        let pieces = said.as_bytes().chunks(step);
                        let mut passed: Vec<u8> =
                            pieces.flat_map(|part| strike.feed(Bytes::copy_from_slice(part))).collect();
                        passed.extend(strike.rest());
                        let passed = String::from_utf8(passed).unwrap();
                        assert_eq!(passed.len(), said.len());
                        let left = passed.chars().filter(|c| *c != '*').count();
                        let around = (before.len() + after.len()) * 8 / 6 + 4;
                        assert!(left <= around, "{said}: {passed}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_word_that_stands_for_a_key_is_left_in_answers() {
        let mut strike = Strike::new(Some(&secret("none").unwrap()));
        assert_eq!(strike.feed(Bytes::from_static(b"there is none")), "there is none");
    }
}
