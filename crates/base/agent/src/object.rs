//! A JSON object that is written as it was read: keys in their order, which a model sees in the schemas of its tools.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::log::without_halves;

/// Any JSON, each key once.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json {
    /// What holds nothing: null, a truth value, a number, a text.
    Plain(Value),
    /// A list.
    List(Vec<Json>),
    /// An object.
    Object(Object),
}

/// An object's keys and values in their order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Object(pub Vec<(String, Json)>);

impl Object {
    /// Reads UTF-8. A key that stands twice is refused: which of the two counts is each reader's own choice.
    pub(crate) fn read(bytes: &[u8]) -> Result<Object, String> {
        let read = |bytes: &[u8]| serde_json::from_slice::<Json>(bytes);
        let read = read(bytes).or_else(|error| match without_halves(bytes) {
            Some(mended) => read(&mended),
            None => Err(error),
        });
        match read {
            Ok(Json::Object(object)) => Ok(object),
            Ok(_) => Err("the request is no JSON object".to_owned()),
            Err(error) => Err(format!("the request is no JSON object: {error}")),
        }
    }

    /// For those who do not look at the order.
    pub(crate) fn value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// As text.
    pub(crate) fn written(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Json> {
        self.0.iter_mut().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match self.0.iter().find(|(known, _)| known == key) {
            Some((_, Json::Plain(value))) => value.as_str(),
            _ => None,
        }
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Json::Plain(value) => value.serialize(serializer),
            Json::List(list) => list.serialize(serializer),
            Json::Object(object) => object.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Json, E> {
        Ok(Json::Plain(Value::Null))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Plain(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Plain(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Plain(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Plain(value.into()))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Plain(value.into()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Json, E> {
        Ok(Json::Plain(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let (mut object, mut known) = (Vec::new(), HashSet::new());
        while let Some((key, value)) = entries.next_entry::<String, Json>()? {
            if !known.insert(key.clone()) {
                return Err(A::Error::custom(format_args!("the key `{key}` stands twice")));
            }
            object.push((key, value));
        }
        Ok(Json::Object(Object(object)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_written_as_it_was_read() {
        let text = r#"{"z":1,"a":[null,true,-2,1.5,"é\n",{"y":{},"b":[]}],"m":18446744073709551615}"#;
        assert_eq!(Object::read(text.as_bytes()).unwrap().written(), text.as_bytes());
        let half = Object::read(br#" {"a": "x\ud83dy"} "#).unwrap();
        assert_eq!(half.text("a"), Some("x\u{fffd}y"), "which JavaScript writes");
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
            let error = Object::read(text).unwrap_err();
            assert!(error.starts_with("the request is no JSON object"), "{error}");
        }
        assert!(Object::read(texts[4]).unwrap_err().contains("the key `a` stands twice"));
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(Object::read(deep.as_bytes()).is_err());
    }
}
