//! Reading our files: every refusal names the file, the line and the key, and an unknown key names its nearest kin.

use serde::de::DeserializeOwned;

use crate::error::{Class, Classified};
use crate::place;

/// Why a file of ours could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormatError {
    /// The file, as the person named it.
    pub file: String,
    /// The line, counted from 1, where it is known.
    pub line: Option<usize>,
    /// The key's path, such as `limits.pids`.
    pub key: Option<String>,
    /// What is wrong, in one sentence.
    pub what: String,
    /// What to do.
    pub hint: Option<String>,
}

impl FormatError {
    /// An error about a whole file, or about one key of it.
    pub fn new(file: &str, key: Option<&str>, what: impl Into<String>) -> FormatError {
        FormatError {
            file: file.to_string(),
            line: None,
            key: key.map(str::to_string),
            what: what.into(),
            hint: None,
        }
    }

    /// Finds the line where `key` stands in the TOML text `text`, for checks that come after parsing.
    pub fn locate(self, text: &str) -> FormatError {
        match self.key.clone() {
            Some(key) => self.locate_at(text, &key),
            None => self,
        }
    }

    /// The same for an error about a part of what its key holds, such as one entry of a list: `tests.official[1]`.
    pub fn locate_at(mut self, text: &str, path: &str) -> FormatError {
        if self.line.is_none() {
            self.line = place::line_of_key(text, path);
        }
        self
    }

    /// Names what is known and close to what was given, where something is.
    pub fn meant(mut self, nearest: Option<String>) -> FormatError {
        self.hint = nearest.map(|nearest| format!("did you mean `{nearest}`?")).or(self.hint);
        self
    }

    /// Says what to do.
    pub fn advise(mut self, hint: impl Into<String>) -> FormatError {
        self.hint = Some(hint.into());
        self
    }
}

impl std::fmt::Display for FormatError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(key) = &self.key {
            write!(f, ": key `{key}`")?;
        }
        write!(f, ": {}", self.what)
    }
}

impl std::error::Error for FormatError {}

impl Classified for FormatError {
    fn class(&self) -> Class {
        Class::BadInput
    }

    fn hint(&self) -> Option<String> {
        self.hint.clone()
    }
}

/// Decodes a text file of ours.
pub fn utf8<'a>(file: &str, bytes: &'a [u8]) -> Result<&'a str, FormatError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
        FormatError {
            file: file.to_string(),
            line: Some(line),
            key: None,
            what: format!("is not UTF-8 (byte {} of the file)", error.valid_up_to()),
            hint: None,
        }
    })
}

/// Parses a TOML file of ours into `T`.
pub fn toml<T: DeserializeOwned>(file: &str, bytes: &[u8]) -> Result<T, FormatError> {
    let text = utf8(file, bytes)?;
    let refuse = |error: &toml::de::Error, key: Option<String>| {
        let (what, nearest, field) = explain(error.message());
        let key = match (key, field) {
            (Some(key), Some(field)) if key.rsplit('.').next() != Some(&field) => {
                Some(format!("{key}.{field}"))
            }
            (None, field) => field,
            (key, _) => key,
        };
        let line = error.span().map(|span| place::line_at(text, span.start));
        let error = FormatError { line, ..FormatError::new(file, key.as_deref(), what) };
        error.meant(nearest).locate(text)
    };
    let deserializer = toml::Deserializer::parse(text)
        .map_err(|error| twice(file, text, &error).unwrap_or_else(|| refuse(&error, None)))?;
    serde_path_to_error::deserialize(deserializer).map_err(|error| {
        let path = error.path().to_string();
        refuse(error.inner(), (path != ".").then_some(path))
    })
}

/// Parses a JSON file of ours into `T`.
pub fn json<T: DeserializeOwned>(file: &str, bytes: &[u8]) -> Result<T, FormatError> {
    utf8(file, bytes)?;
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        let line = error.inner().line();
        let message = error.inner().to_string();
        let message = message.split(" at line ").next().unwrap_or(&message).to_string();
        let (what, nearest, _) = explain(&message);
        // A path says where the parser stood, which is no key of a text that is no JSON.
        let no_json = error.inner().is_syntax() || error.inner().is_eof();
        let key = (path != "." && !no_json).then_some(path);
        let what = if no_json { format!("is no JSON: {what}") } else { what };
        let line = (line > 0).then_some(line);
        FormatError { line, ..FormatError::new(file, key.as_deref(), what) }.meant(nearest)
    })?;
    deserializer.end().map_err(|error| FormatError {
        line: Some(error.line()),
        ..FormatError::new(file, None, "has more text after the document")
    })?;
    Ok(value)
}

/// Says of a key that is given twice where the first one stands.
fn twice(file: &str, text: &str, error: &toml::de::Error) -> Option<FormatError> {
    let span = error.span().filter(|_| error.message().starts_with("duplicate key"))?;
    let line = place::line_at(text, span.start);
    let (key, first) = place::given_twice(text, span)?;
    let first = first.map(|line| format!("; the first one is on line {line}")).unwrap_or_default();
    let error = FormatError::new(file, Some(&key), format!("is given twice{first}"));
    Some(FormatError { line: Some(line), ..error }.advise("keep one of them"))
}

/// Turns serde's words into ours: what is wrong, the nearest known key, and the unknown field's own name.
fn explain(message: &str) -> (String, Option<String>, Option<String>) {
    let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    if message.starts_with("unknown field") && !names.is_empty() {
        let (unknown, known) = (names[0], &names[1..]);
        let nearest = nearest(unknown, known);
        let what = match known {
            [] => "is unknown; nothing is expected here".to_string(),
            known => format!("is unknown; known here are {}", known.join(", ")),
        };
        return (what, nearest, Some(unknown.to_string()));
    }
    if message.starts_with("unknown variant") && !names.is_empty() {
        let (given, known) = (names[0], &names[1..]);
        return (format!("`{given}` is not one of {}", known.join(", ")), nearest(given, known), None);
    }
    if message.starts_with("missing field") && !names.is_empty() {
        return (format!("is missing the key `{}`", names[0]), None, None);
    }
    (message.lines().next().unwrap_or(message).to_string(), None, None)
}

pub(crate) fn nearest(given: &str, known: &[&str]) -> Option<String> {
    known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(given, name), *name))
        .filter(|(distance, name)| *distance <= 1 + name.len().max(given.len()) / 3)
        .min()
        .map(|(_, name)| name.to_string())
}

/// Refuses a schema version that this program does not read.
pub fn schema(file: &str, given: u32, known: u32) -> Result<(), FormatError> {
    if given == known {
        return Ok(());
    }
    let advice = if given > known { "written by a newer infradev" } else { "no longer read" };
    Err(FormatError::new(
        file,
        Some("schema"),
        format!("version {given} is {advice}; this one reads {known}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        #[allow(dead_code)]
        limits: Inner,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        #[allow(dead_code)]
        memory_mib: u32,
        #[allow(dead_code)]
        pids: u32,
    }

    fn refusal(text: &str) -> String {
        let error = toml::<Outer>("task.toml", text.as_bytes()).unwrap_err();
        format!("{error} [{}]", error.hint().unwrap_or_default())
    }

    #[test]
    fn every_refusal_names_file_line_and_key() {
        insta::assert_snapshot!(
            [
                "[limits]\nmemory_mib = 1\npid = 3\n",
                "[limits]\nmemory_mib = \"a lot\"\npids = 3\n",
                "[limits]\nmemory_mib = 1\n",
                "[limits\n",
                "[limits]\nmemory_mib = 1\npids = 1\n[other]\nx = 1\n",
                "[limits]\nmemory_mib = 1\npids = 1\n\nmemory_mib = 2\n",
                "[limits]\nmemory_mib = 1\n\n[limits]\npids = 1\n",
                "limits.pids = 1\nlimits.memory_mib = 1\nlimits.pids = 1\n",
                "limits = { pids = 1, memory_mib = 1, pids = 2 }\n",
                "\"limits\" = 1\n'limits' = 2\n",
            ]
            .map(refusal)
            .join("\n")
        );
    }
}
