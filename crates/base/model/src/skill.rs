//! Skills: a folder with `SKILL.md`, whose front matter says its name and when it is of use.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use yaml_rust2::{Yaml, YamlLoader};

use crate::digest::Digest;
use crate::format::{self, FormatError};

/// Longest description, characters.
const LONGEST: usize = 1024;

/// What `SKILL.md` says of itself, and the text below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillText {
    /// Its name: lower-case letters, digits and single dashes, at most 64.
    pub name: String,
    /// When it is of use: what an agent sees before it opens the skill.
    pub description: String,
    /// All below the front matter.
    pub body: String,
}

impl SkillText {
    /// Parses `SKILL.md`.
    ///
    /// # Errors
    /// No front matter between two lines of `---`, or none with a `name` and a `description`.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<SkillText, FormatError> {
        let text = format::utf8(file, bytes)?;
        let refuse = |line: usize, key: Option<&str>, what: String| FormatError {
            line: Some(line),
            ..FormatError::new(file, key, what)
        };
        let mut lines = text.split_inclusive('\n');
        if lines.next().map(str::trim_end) != Some("---") {
            let what = "begins with front matter: a line `---`, `name:` and `description:`, a line `---`";
            return Err(refuse(1, None, what.into()));
        }
        let lines: Vec<&str> = lines.collect();
        let Some(end) = lines.iter().position(|line| line.trim_end() == "---") else {
            return Err(refuse(1, None, "the front matter has no end: a second line `---`".into()));
        };
        let (front, body) = (lines[..end].concat(), lines[end + 1..].concat());
        let yaml = YamlLoader::load_from_str(&front).map_err(|error| {
            refuse(error.marker().line() + 1, None, format!("the front matter is no YAML: {}", error.info()))
        })?;
        let front = yaml.into_iter().next().unwrap_or(Yaml::Null);
        let word = |key: &str| match &front[key] {
            Yaml::String(word) if !word.trim().is_empty() => Ok(word.trim().to_owned()),
            Yaml::BadValue => Err(refuse(1, Some(key), "is missing in the front matter".into())),
            _ => Err(refuse(1, Some(key), "is a text in the front matter".into())),
        };
        let (name, description) = (word("name")?, word("description")?);
        if !is_skill_name(&name) {
            let what = format!("`{name}` is not lower-case letters, digits and single dashes, at most 64");
            return Err(refuse(1, Some("name"), what));
        }
        if description.chars().count() > LONGEST {
            return Err(refuse(1, Some("description"), format!("has at most {LONGEST} characters")));
        }
        Ok(SkillText { name, description, body })
    }
}

fn is_skill_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.len() <= 64 && name.split('-').all(|part| !part.is_empty() && part.chars().all(plain))
}

/// How an agent was given a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SkillBy {
    /// As a folder where its program looks for skills: the model sees name and description, and opens the rest where it wants to.
    Mounted,
    /// As a part of the prompt, since its program knows no skills.
    Appended,
}

/// The skill of an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SkillUsed {
    /// Its name, by its front matter.
    pub name: String,
    /// Digest of all its files: paths, contents, which may be run.
    pub digest: Digest,
    /// How it was given.
    pub by: SkillBy,
    /// Whether its text came before the model: lines of the body of `SKILL.md` stood in a request. Left out where that is not
    /// known: it was part of the prompt, the agent has no model, or the body has no line that tells it from the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened: Option<bool>,
    /// Seconds from the agent's start to the first such request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened_s: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::SkillText;

    const GOOD: &str =
        "---\nname: read-meters\ndescription: >\n  How to read\n  meters.\n---\n# Meters\n\nRead them.\n";

    fn refusal(text: &str) -> String {
        SkillText::parse("skill/SKILL.md", text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn a_skill_has_a_name_a_description_and_a_body() {
        let skill = SkillText::parse("SKILL.md", GOOD.as_bytes()).unwrap();
        assert_eq!((skill.name.as_str(), skill.description.as_str()), ("read-meters", "How to read meters."));
        assert_eq!(skill.body, "# Meters\n\nRead them.\n");
        let windows = GOOD.replace('\n', "\r\n");
        assert_eq!(SkillText::parse("SKILL.md", windows.as_bytes()).unwrap().name, "read-meters");
    }

    #[test]
    fn front_matter_that_is_none_is_told_with_its_line_and_key() {
        let wrongs = [
            "# Meters\n".to_owned(),
            GOOD.replace("meters.\n---\n", "meters.\n"),
            GOOD.replace("name: read-meters\n", ""),
            GOOD.replace("read-meters", "[a]"),
            GOOD.replace("read-meters", "Read_Meters"),
            GOOD.replace("description: >\n  How to read\n  meters.", "description: ''"),
            GOOD.replace("name: read-meters", "name: \"read"),
            GOOD.replace("How to read", &"x".repeat(2000)),
        ];
        insta::assert_snapshot!(wrongs.map(|text| refusal(&text)).join("\n"));
    }
}
