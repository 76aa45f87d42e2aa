//! Environment markers of a requirement (PEP 508): `python_version < "3.12" and sys_platform == "linux"`.

use std::collections::BTreeMap;
use std::str::FromStr;

use pep440_rs::{Version, VersionSpecifiers};

/// The variables of PEP 508 by name, as an interpreter gave them.
pub type MarkerValues = BTreeMap<String, String>;

const VARIABLES: [&str; 12] = [
    "extra",
    "implementation_name",
    "implementation_version",
    "os_name",
    "platform_machine",
    "platform_python_implementation",
    "platform_release",
    "platform_system",
    "platform_version",
    "python_full_version",
    "python_version",
    "sys_platform",
];

/// Longest first, so that `<=` is not read as `<`.
const OPERATORS: [&str; 8] = ["===", "==", "!=", "<=", ">=", "~=", "<", ">"];

/// Parentheses deeper than this are refused, so that no lock exhausts the stack.
const DEEPEST: usize = 50;

/// A parsed marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Marker {
    Compare { left: Operand, operator: String, right: Operand },
    All(Vec<Marker>),
    Any(Vec<Marker>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operand {
    Variable(String),
    Text(String),
}

impl Marker {
    pub(crate) fn parse(text: &str) -> Result<Marker, String> {
        let mut reader = Reader { tokens: tokens(text)?, at: 0 };
        let marker = reader.any(0)?;
        match reader.next() {
            None => Ok(marker),
            Some(token) => Err(format!("{} is not expected here", token.shown())),
        }
    }

    /// Whether the marker holds; an error where two values can't be compared so.
    pub(crate) fn holds(&self, values: &MarkerValues) -> Result<bool, String> {
        match self {
            Marker::All(each) => {
                for marker in each {
                    if !marker.holds(values)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Marker::Any(each) => {
                for marker in each {
                    if marker.holds(values)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Marker::Compare { left, operator, right } => {
                compare(left.value(values), operator, right.value(values))
            }
        }
    }
}

impl Operand {
    /// A variable that the interpreter does not have (`extra`) is empty.
    fn value<'a>(&'a self, values: &'a MarkerValues) -> &'a str {
        match self {
            Operand::Variable(name) => values.get(name).map_or("", String::as_str),
            Operand::Text(text) => text,
        }
    }
}

/// As versions where both are, else as texts, as PEP 508 has it.
fn compare(left: &str, operator: &str, right: &str) -> Result<bool, String> {
    match operator {
        "in" => return Ok(right.contains(left)),
        "not in" => return Ok(!right.contains(left)),
        _ => {}
    }
    let specifier = VersionSpecifiers::from_str(&format!("{operator}{right}"));
    if let (Ok(version), Ok(specifier)) = (Version::from_str(left), specifier) {
        return Ok(specifier.contains(&version));
    }
    match operator {
        "==" | "===" => Ok(left == right),
        "!=" => Ok(left != right),
        "<" => Ok(left < right),
        "<=" => Ok(left <= right),
        ">" => Ok(left > right),
        ">=" => Ok(left >= right),
        _ => Err(format!("`{left}` {operator} `{right}` compares what are no versions")),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    Text(String),
    Operator(String),
    Open,
    Close,
}

impl Token {
    fn shown(&self) -> String {
        match self {
            Token::Word(text) | Token::Operator(text) => format!("`{text}`"),
            Token::Text(text) => format!("\"{text}\""),
            Token::Open => "`(`".to_owned(),
            Token::Close => "`)`".to_owned(),
        }
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if let Some(operator) = OPERATORS.iter().find(|operator| rest.starts_with(**operator)) {
            tokens.push(Token::Operator((*operator).to_owned()));
            operator.len()
        } else if first == '(' || first == ')' {
            tokens.push(if first == '(' { Token::Open } else { Token::Close });
            1
        } else if first == '"' || first == '\'' {
            let inside = &rest[1..];
            let end = inside.find(first).ok_or_else(|| format!("a text is not closed by {first}"))?;
            tokens.push(Token::Text(inside[..end].to_owned()));
            end + 2
        } else {
            let in_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
            let end = rest.find(|c| !in_word(c)).unwrap_or(rest.len());
            if end == 0 {
                return Err(format!("`{first}` is not expected here"));
            }
            tokens.push(Token::Word(rest[..end].to_owned()));
            end
        };
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

struct Reader {
    tokens: Vec<Token>,
    at: usize,
}

impl Reader {
    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        token
    }

    fn take_word(&mut self, word: &str) -> bool {
        let taken = matches!(self.tokens.get(self.at), Some(Token::Word(given)) if given == word);
        self.at += usize::from(taken);
        taken
    }

    fn any(&mut self, depth: usize) -> Result<Marker, String> {
        let mut each = vec![self.all(depth)?];
        while self.take_word("or") {
            each.push(self.all(depth)?);
        }
        Ok(Marker::Any(each))
    }

    fn all(&mut self, depth: usize) -> Result<Marker, String> {
        let mut each = vec![self.one(depth)?];
        while self.take_word("and") {
            each.push(self.one(depth)?);
        }
        Ok(Marker::All(each))
    }

    fn one(&mut self, depth: usize) -> Result<Marker, String> {
        if self.tokens.get(self.at) == Some(&Token::Open) {
            if depth == DEEPEST {
                return Err(format!("parentheses are nested more than {DEEPEST} deep"));
            }
            self.at += 1;
            let inside = self.any(depth + 1)?;
            return match self.next() {
                Some(Token::Close) => Ok(inside),
                _ => Err("a `(` is not closed".to_owned()),
            };
        }
        let left = self.operand()?;
        let operator = match self.next() {
            Some(Token::Operator(operator)) => operator,
            Some(Token::Word(word)) if word == "in" => word,
            Some(Token::Word(word)) if word == "not" && self.take_word("in") => "not in".to_owned(),
            Some(token) => return Err(format!("{} stands where a comparison should", token.shown())),
            None => return Err("it ends where a comparison should stand".to_owned()),
        };
        Ok(Marker::Compare { left, operator, right: self.operand()? })
    }

    fn operand(&mut self) -> Result<Operand, String> {
        match self.next() {
            Some(Token::Text(text)) => Ok(Operand::Text(text)),
            Some(Token::Word(word)) if VARIABLES.contains(&word.as_str()) => Ok(Operand::Variable(word)),
            Some(Token::Word(word)) => Err(format!("`{word}` is no variable of PEP 508")),
            Some(token) => Err(format!("{} stands where a value should", token.shown())),
            None => Err("it ends where a value should stand".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn linux311() -> MarkerValues {
        [
            ("python_version", "3.11"),
            ("python_full_version", "3.11.7"),
            ("sys_platform", "linux"),
            ("os_name", "posix"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    }

    #[test]
    fn markers_hold_as_pep_508_has_it() {
        let table = [
            ("python_version >= '3.9'", true),
            ("python_version < \"3.9\"", false),
            ("'3.9' < python_version", true),
            ("python_full_version == '3.11.*'", true),
            ("python_full_version ~= '3.11.2'", true),
            ("sys_platform == 'win32'", false),
            ("sys_platform != 'win32' and os_name == 'posix'", true),
            ("sys_platform == 'win32' or python_version == '3.11' and os_name == 'nt'", false),
            ("(sys_platform == 'win32' or python_version == '3.11') and os_name == 'posix'", true),
            ("python_version in '3.10 3.11'", true),
            ("'lin' not in sys_platform", false),
            ("extra == 'test'", false),
            ("platform_machine=='x86_64'", false),
        ];
        for (text, holds) in table {
            assert_eq!(Marker::parse(text).unwrap().holds(&linux311()), Ok(holds), "{text}");
        }
    }

    #[test]
    fn what_is_no_marker_is_refused_in_words() {
        let table = [
            "python_version >",
            "'3",
            "pythn_version > '3'",
            "(os_name == 'a'",
            "os_name == 'a')",
            "os_name is 'a'",
            "os_name not 'a'",
            "os_name == 'a' &",
            "and",
        ];
        let said: Vec<String> =
            table.iter().map(|text| format!("{text}\n    {}", Marker::parse(text).unwrap_err())).collect();
        insta::assert_snapshot!(said.join("\n"));
        let odd = Marker::parse("sys_platform ~= 'linux'").unwrap().holds(&linux311());
        assert_eq!(odd.unwrap_err(), "`linux` ~= `linux` compares what are no versions");
        assert!(Marker::parse(&"(".repeat(100_000)).unwrap_err().contains("nested"));
    }

    proptest! {
        #[test]
        fn any_marker_is_parsed_or_refused(
            text in "((python_version|sys_platform|extra|in|not|and|or|==|>=|~=|'3.1[01]'|\"x\"|'|\\(|\\)|3|é) ?){0,9}",
            any in ".{0,40}",
        ) {
            for text in [text, any] {
                if let Ok(marker) = Marker::parse(&text) {
                    let _ = marker.holds(&linux311());
                }
            }
        }
    }
}
