//! A JSON object that is written as it was read: keys in their order, which a model sees in the schemas of its tools, and numbers
//! as they stand. It borrows from the bytes that it was read from, and holds a bounded number of values.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::log::without_halves;

/// Values that a request may hold, all lists and objects together: each takes memory of this process.
pub(crate) const MOST_VALUES: usize = 500_000;
/// Lists and objects one in another.
const DEEPEST: usize = 128;

/// Any JSON, each key once.
#[derive(Debug, Clone)]
pub(crate) enum Json<'a> {
    /// Null, a truth value, a number: as it stands.
    Plain(&'a RawValue),
    /// A text.
    Text(Cow<'a, str>),
    /// A list.
    List(Vec<Json<'a>>),
    /// An object.
    Object(Object<'a>),
}

/// An object's keys and values in their order.
#[derive(Debug, Clone)]
pub(crate) struct Object<'a>(pub Vec<(Cow<'a, str>, Json<'a>)>);

/// Why bytes are no request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unread {
    /// They are not what is passed on.
    Malformed(String),
    /// They hold more than [`MOST_VALUES`] values.
    TooMany,
}

/// Text with the halves of surrogate pairs mended, which JavaScript writes; borrowed where there are none.
///
/// # Errors
/// The bytes are no UTF-8.
pub(crate) fn mended(bytes: &[u8]) -> Result<Cow<'_, str>, Unread> {
    let no_text = |error: &dyn fmt::Display| {
        Unread::Malformed(format!("the request is no JSON object: it is no UTF-8: {error}"))
    };
    let escapes = bytes.windows(3).any(|part| part.eq_ignore_ascii_case(b"\\ud"));
    match escapes.then(|| without_halves(bytes)).flatten() {
        Some(mended) => String::from_utf8(mended).map(Cow::Owned).map_err(|error| no_text(&error)),
        None => std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|error| no_text(&error)),
    }
}

impl<'a> Object<'a> {
    /// Reads a text. A key that stands twice is refused: which of the two counts is each reader's own choice.
    pub(crate) fn read(text: &'a str) -> Result<Object<'a>, Unread> {
        let malformed =
            |error: &dyn fmt::Display| Unread::Malformed(format!("the request is no JSON object: {error}"));
        let raw: &RawValue = serde_json::from_str(text).map_err(|error| malformed(&error))?;
        let mut reader = Reader { left: MOST_VALUES };
        match reader.json(raw, 0) {
            Ok(Json::Object(object)) => Ok(object),
            Ok(_) => Err(Unread::Malformed("the request is no JSON object".to_owned())),
            Err(_) if reader.left == 0 => Err(Unread::TooMany),
            Err(error) => Err(malformed(&error)),
        }
    }

    /// As text; `about` is how long that is likely to be.
    pub(crate) fn written(&self, about: usize) -> Vec<u8> {
        let mut written = Vec::with_capacity(about);
        let done = serde_json::to_writer(&mut written, self);
        debug_assert!(done.is_ok(), "memory takes all of it");
        written
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Json<'a>> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Json::as_text)
    }
}

impl Json<'_> {
    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Whether it is null or false: said, and nothing asked for by it.
    pub(crate) fn says_no(&self) -> bool {
        matches!(self, Json::Plain(raw) if ["null", "false"].contains(&raw.get()))
    }

    /// Tells of each text in it, keys left aside.
    pub(crate) fn texts(&self, told: &mut dyn FnMut(&str)) {
        match self {
            Json::Plain(_) => {}
            Json::Text(text) => told(text),
            Json::List(list) => list.iter().for_each(|item| item.texts(told)),
            Json::Object(object) => object.texts(told),
        }
    }
}

impl Object<'_> {
    /// Tells of each text in it, keys left aside.
    pub(crate) fn texts(&self, told: &mut dyn FnMut(&str)) {
        self.0.iter().for_each(|(_, value)| value.texts(told));
    }
}

struct Reader {
    /// Values that may still come.
    left: usize,
}

impl Reader {
    fn json<'a>(&mut self, raw: &'a RawValue, depth: usize) -> serde_json::Result<Json<'a>> {
        let text = raw.get();
        let deeper = || match depth {
            DEEPEST => Err(serde_json::Error::custom("lists and objects are nested too deep")),
            _ => Ok(depth + 1),
        };
        match text.as_bytes().first() {
            Some(b'"') => serde_json::from_str(text).map(|Text(text)| Json::Text(text)),
            Some(b'[') => {
                let depth = deeper()?;
                let Items(items) = serde_json::from_str(text)?;
                self.take(items.len())?;
                let items = items.into_iter().map(|item| self.json(item, depth));
                items.collect::<Result<_, _>>().map(Json::List)
            }
            Some(b'{') => {
                let depth = deeper()?;
                let Pairs(pairs) = serde_json::from_str(text)?;
                self.take(pairs.len())?;
                let mut known = HashSet::with_capacity(pairs.len());
                if let Some((key, _)) = pairs.iter().find(|(key, _)| !known.insert(key.as_ref())) {
                    return Err(serde_json::Error::custom(format_args!("the key `{key}` stands twice")));
                }
                drop(known);
                let pairs = pairs.into_iter().map(|(key, value)| Ok((key, self.json(value, depth)?)));
                pairs.collect::<Result<_, _>>().map(|pairs| Json::Object(Object(pairs)))
            }
            _ => Ok(Json::Plain(raw)),
        }
    }

    fn take(&mut self, values: usize) -> serde_json::Result<()> {
        self.left = self.left.saturating_sub(values);
        if self.left > 0 { Ok(()) } else { Err(serde_json::Error::custom("too many values")) }
    }
}

#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// A list's items, unread; one more than may be at most.
struct Items<'a>(Vec<&'a RawValue>);

/// An object's values, unread; one more than may be at most.
struct Pairs<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Items<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Items<'de>, D::Error> {
        struct Of;
        impl<'de> Visitor<'de> for Of {
            type Value = Items<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Items<'de>, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = items.next_element()? {
                    // What comes beyond is passed over: the count alone says that it is too much.
                    if list.len() <= MOST_VALUES {
                        list.push(item);
                    }
                }
                Ok(Items(list))
            }
        }
        deserializer.deserialize_seq(Of)
    }
}

impl<'de> Deserialize<'de> for Pairs<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Pairs<'de>, D::Error> {
        struct Of;
        impl<'de> Visitor<'de> for Of {
            type Value = Pairs<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Pairs<'de>, A::Error> {
                let mut pairs = Vec::new();
                while let Some((Text(key), value)) = entries.next_entry()? {
                    if pairs.len() <= MOST_VALUES {
                        pairs.push((key, value));
                    }
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Of)
    }
}

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Json::Plain(raw) => raw.serialize(serializer),
            Json::Text(text) => text.serialize(serializer),
            Json::List(list) => list.serialize(serializer),
            Json::Object(object) => object.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(bytes: &[u8]) -> Result<String, String> {
        let read = mended(bytes).and_then(|text| Object::read(&text).map(|object| object.written(0)));
        match read {
            Ok(written) => Ok(String::from_utf8(written).unwrap()),
            Err(Unread::Malformed(what)) => Err(what),
            Err(Unread::TooMany) => Err("too many".to_owned()),
        }
    }

    #[test]
    fn an_object_is_written_as_it_was_read() {
        let text = r#"{"z":1,"a":[null,true,-2,1.5,"é\n",{"y":{},"b":[]}],"m":18446744073709551615}"#;
        assert_eq!(again(text.as_bytes()).unwrap(), text);
        let half = again(br#" {"a": "x\ud83dy"} "#);
        assert_eq!(half.unwrap(), "{\"a\":\"x\u{fffd}y\"}", "which JavaScript writes");
    }

    #[test]
    fn a_number_stays_the_number_that_was_asked_with() {
        let text = r#"{"a":[123456789012345678901234567890,-0,0.10,1E400,1e2]}"#;
        assert_eq!(again(text.as_bytes()).unwrap(), text);
    }

    #[test]
    fn what_two_readers_could_read_in_two_ways_is_refused() {
        let utf16: Vec<u8> = "\u{feff}{\"a\":1}".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let texts: [&[u8]; 9] = [
            &utf16,
            b"",
            b"[{}]",
            b"{} {}",
            b"{\"a\":1,\"a\":2}",
            b"{\"a\":[{\"b\":1,\"\\u0062\":2}]}",
            b"\xef\xbb\xbf{}",
            b"{\"a\":\"\xff\"}",
            b"a=1",
        ];
        for text in texts {
            let error = again(text).unwrap_err();
            assert!(error.starts_with("the request is no JSON object"), "{error}");
        }
        assert!(again(texts[4]).unwrap_err().contains("the key `a` stands twice"));
        assert!(again(texts[5]).unwrap_err().contains("the key `b` stands twice"));
        let deep = |count: usize| format!("{{\"a\":{}{}}}", "[".repeat(count), "]".repeat(count));
        assert!(again(deep(100_000).as_bytes()).is_err());
        assert_eq!(again(deep(100).as_bytes()).unwrap(), deep(100));
    }

    #[test]
    fn a_request_holds_a_bounded_number_of_values_wherever_they_stand() {
        let flat = |count: usize| format!("{{\"a\":[{}0]}}", "0,".repeat(count - 1));
        assert!(again(flat(MOST_VALUES / 2).as_bytes()).is_ok());
        let spread = format!("{{\"a\":[{}[]]}}", "[0,0,0],".repeat(MOST_VALUES / 4 + 1));
        for text in [flat(2 * MOST_VALUES), spread] {
            assert_eq!(again(text.as_bytes()).unwrap_err(), "too many");
        }
    }
}
