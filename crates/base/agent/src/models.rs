//! The models that an attempt is of: its own, and those that its agent's file names beside.

use hyper::StatusCode;
use infradev_model::AgentSpec;

use crate::object::Object;
use crate::request::Refused;

/// Names of models that may be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Models(Vec<String>);

impl Models {
    /// None where no model is named, and none is asked then.
    pub(crate) fn of(agent: &AgentSpec, model: Option<&str>) -> Option<Models> {
        let helpers = agent.model.iter().flat_map(|model| &model.helpers);
        let model = model?.to_owned();
        Some(Models(std::iter::once(model).chain(helpers.cloned()).collect()))
    }

    /// Refuses a model that is none of them: its tokens would be another one's than the record says.
    pub(crate) fn permit(&self, asked: Option<&str>) -> Result<(), Refused> {
        let status = StatusCode::FORBIDDEN;
        let Some(asked) = asked else {
            let what = "the request names no model".to_owned();
            return Err(Refused { method: Some("model"), target: "none".to_owned(), status, what });
        };
        if self.0.iter().any(|known| is_of(known, asked)) {
            return Ok(());
        }
        let target: String = asked.chars().take(200).collect();
        let what = format!(
            "the model `{target}` is not passed on: this attempt is of {}; `helpers` in the agent's file may name others",
            self.0.join(", ")
        );
        Err(Refused { method: Some("model"), target, status, what })
    }
}

/// Whether a name that is asked is the known one, without its provider or with its variant as programs write them.
fn is_of(known: &str, asked: &str) -> bool {
    // Claude Code's way to ask for a longer context.
    let known = known.split_once('[').map_or(known, |(name, _)| name);
    let known = known.strip_prefix("models/").unwrap_or(known);
    let provided = || known.strip_suffix(asked).is_some_and(|provider| provider.ends_with('/'));
    !asked.is_empty() && (known == asked || provided())
}

/// The model that a request is for: in Gemini's path, or in its body.
pub(crate) fn named<'a>(path: &'a str, asked: &'a Object<'_>) -> Option<&'a str> {
    let in_path = path.rsplit_once("/models/").and_then(|(_, rest)| rest.split_once(':'));
    let name = in_path.map(|(model, _)| model).or_else(|| asked.text("model"))?;
    Some(bare(name))
}

/// The model in a request's body where that is another one than the one it is for: which of the two counts would be the host's choice.
pub(crate) fn another<'a>(model: Option<&str>, asked: &'a Object<'_>) -> Option<&'a str> {
    asked.text("model").filter(|other| model.is_some_and(|model| model != bare(other)))
}

/// A name as Gemini writes it elsewhere.
fn bare(name: &str) -> &str {
    name.strip_prefix("models/").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_known_with_or_without_its_provider_and_by_no_other_part_of_its_name() {
        for (known, asked, is) in [
            ("ok", "ok", true),
            ("ok", "gpt-5-pro", false),
            ("openai/gpt-5", "gpt-5", true),
            ("gpt-5", "openai/gpt-5", false),
            ("gpt-5-mini", "mini", false),
            ("gpt-5", "gpt-5-pro", false),
            ("claude-sonnet-4-5[1m]", "claude-sonnet-4-5", true),
            ("models/gemini-2.5-pro", "gemini-2.5-pro", true),
            ("a/", "", false),
        ] {
            assert_eq!(is_of(known, asked), is, "{known} {asked}");
        }
    }

    #[test]
    fn the_model_stands_in_geminis_path_and_in_the_body_of_all_others() {
        let asked = Object::read(r#"{"model":"b"}"#).unwrap();
        assert_eq!(named("/v1/messages", &asked), Some("b"));
        assert_eq!(named("/v1beta/models/a:generateContent", &asked), Some("a"));
        assert_eq!(named("/v1/messages", &Object::read(r#"{"model":["b"]}"#).unwrap()), None);
        for (path, body, other) in [
            ("/v1/messages", r#"{"model":"b"}"#, None),
            ("/v1beta/models/b:generateContent", r#"{"model":"models/b"}"#, None),
            ("/v1beta/models/b:generateContent", "{}", None),
            ("/v1beta/models/b:generateContent", r#"{"model":"models/c"}"#, Some("models/c")),
        ] {
            let asked = Object::read(body).unwrap();
            assert_eq!(another(named(path, &asked), &asked), other, "{path} {body}");
        }
    }
}
