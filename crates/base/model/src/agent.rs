//! `agents/<name>.toml`: a coding agent as data. How it is installed, started, given its model, and what its output means.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::format::{self, FormatError};
use crate::inside::HOSTS;
use crate::pack::is_name;

/// The schema version of an agent's file that this program reads.
pub const AGENT_SCHEMA: u32 = 1;

/// What may stand in braces in a command, a variable or a file of an agent.
pub const PLACEHOLDERS: [&str; 8] =
    ["agent", "base_url", "command", "home", "key", "model", "out", "prompt_file"];

/// A coding agent.
///
/// In `run.command`, `run.env`, `run.files` and `probe` these stand for what is known at the start: `{agent}` the folder of its
/// installation, `{model}`, `{base_url}` and `{key}` what it is told of its model (the key is a placeholder: the real one stays
/// on the host), `{prompt_file}`, `{out}` a folder whose files are kept, `{home}`, `{command}` what `--command` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentSpec {
    /// Version of this file's format.
    pub schema: u32,
    /// Its name, as `--agent` takes it.
    pub name: String,
    /// The version that is installed, exactly.
    pub version: String,
    /// Where it comes from; nothing is installed where this is left out.
    #[serde(default)]
    pub install: AgentInstall,
    /// A command whose output must hold `version`: run once after the installation, and before each run where nothing is
    /// installed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probe: Vec<String>,
    /// How it is started.
    pub run: AgentRun,
    /// How it is given its model; left out for a program that needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<AgentModel>,
    /// Where it looks for skills.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skills: Option<AgentSkills>,
}

/// Where an agent comes from: at most one of `npm`, `uv` and `folder`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentInstall {
    /// A package of npm's registry. Its install scripts are not run; `node` comes from the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub npm: Option<String>,
    /// A package of the Python index, installed by uv.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uv: Option<String>,
    /// The Python versions that `uv` may take, such as `>=3.10`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// A folder that is used as it is, relative to this file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
}

/// How an agent is started. It runs in the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentRun {
    /// Program and arguments.
    pub command: Vec<String>,
    /// How the prompt reaches it.
    #[serde(default)]
    pub prompt: PromptBy,
    /// What its standard output means.
    #[serde(default)]
    pub output: OutputFormat,
    /// Its environment variables, beside those of the task.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Read-only files that are laid for it: absolute path, or one that begins with `{home}`; not in the workspace, nor where
    /// the sandbox has something already.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
}

/// How the prompt reaches an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PromptBy {
    /// On standard input.
    #[default]
    Stdin,
    /// As the last argument.
    Argument,
    /// Only in the file that `{prompt_file}` names.
    File,
}

/// What an agent's standard output means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OutputFormat {
    /// Nothing: the exit code alone says how it ended.
    #[default]
    Text,
    /// Claude Code's `stream-json`: the last `result` says how it ended, `is_error` is no success.
    ClaudeStreamJson,
    /// Codex's `exec --json`: `turn.completed` or `turn.failed`.
    CodexJsonl,
    /// Qwen Code's `stream-json`: Claude Code's events, each with one kind of content.
    QwenStreamJson,
    /// Gemini CLI's `stream-json`: `result` says how it ended.
    GeminiStreamJson,
    /// OpenHands' `--headless --json`: an error is an event.
    OpenhandsJsonl,
    /// Text; mini-swe-agent's own trajectory lies in `{out}/trajectory.json`.
    MiniTrajectory,
}

/// The language that an agent speaks with its model's endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Wire {
    /// Anthropic's messages.
    AnthropicMessages,
    /// OpenAI's responses.
    OpenaiResponses,
    /// OpenAI's chat completions, which many servers speak.
    OpenaiChat,
    /// Gemini's `generateContent`.
    GeminiGenerate,
}

/// How an agent is given its model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentModel {
    /// What it speaks.
    pub wire: Wire,
    /// Its endpoint where `--base-url` names none. The agent itself sees a proxy of ours under the same path.
    pub base_url: String,
    /// Variables of the host of which the first that is set holds the key. It never reaches the agent.
    #[serde(default)]
    pub key_env: Vec<String>,
    /// Models that it may ask beside the one that it is given. Others are refused: a record is of the model that it names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub helpers: Vec<String>,
    /// Words that its program takes for a model of its own choice, and the model that may be meant: `--model` is refused with such a
    /// word, since a record is of the model that it names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub aliases: BTreeMap<String, String>,
}

/// Where an agent looks for skills.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentSkills {
    /// The folder, absolute or below `{home}`; outside the workspace, so that no skill enters a patch.
    pub folder: String,
}

impl AgentSpec {
    /// Parses and checks an agent's file.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<AgentSpec, FormatError> {
        let spec: AgentSpec = format::toml(file, bytes)?;
        let text = format::utf8(file, bytes)?;
        spec.check(file).map_err(|error| error.locate(text))?;
        Ok(spec)
    }

    fn check(&self, file: &str) -> Result<(), FormatError> {
        format::schema(file, self.schema, AGENT_SCHEMA)?;
        let refuse = |key: &str, what: String| Err(FormatError::new(file, Some(key), what));
        if !is_name(&self.name) {
            return refuse("name", "is lower-case letters, digits, dashes and underscores".into());
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
        if self.version.is_empty() || !self.version.chars().all(plain) {
            return refuse("version", format!("`{}` is not one exact version", self.version));
        }
        let install = &self.install;
        let ways = [&install.npm, &install.uv, &install.folder].iter().filter(|way| way.is_some()).count();
        if ways > 1 {
            return refuse("install", "names at most one of `npm`, `uv` and `folder`".into());
        }
        if install.python.is_some() && install.uv.is_none() {
            return refuse("install.python", "goes with `uv`".into());
        }
        if self.run.command.is_empty() {
            return refuse("run.command", "names a program".into());
        }
        for path in self.run.files.keys() {
            misplaced(path).map_or(Ok(()), |what| refuse("run.files", format!("`{path}` {what}")))?;
            let above = |other: &&String| *other != path && Path::new(path).starts_with(other);
            if let Some(other) = self.run.files.keys().find(above) {
                return refuse("run.files", format!("`{path}` lies below the file `{other}`"));
            }
        }
        let folder = self.skills.as_ref().map(|skills| skills.folder.as_str());
        if let Some((folder, what)) = folder.and_then(|folder| Some((folder, misplaced(folder)?))) {
            return refuse("skills.folder", format!("`{folder}` {what}"));
        }
        if let Some(what) = self.model.as_ref().and_then(|model| no_endpoint(&model.base_url)) {
            return refuse("model.base_url", what.to_owned());
        }
        let texts = self.run.command.iter().map(|text| ("run.command", text));
        let texts = texts.chain(self.run.env.values().map(|text| ("run.env", text)));
        let texts = texts
            .chain(self.run.files.iter().flat_map(|(path, text)| [("run.files", path), ("run.files", text)]));
        let texts = texts.chain(self.skills.iter().map(|skills| ("skills.folder", &skills.folder)));
        for (key, text) in texts.chain(self.probe.iter().map(|text| ("probe", text))) {
            if let Some(unknown) = unknown_placeholder(text) {
                let known = PLACEHOLDERS.map(|name| format!("{{{name}}}")).join(", ");
                return refuse(key, format!("`{{{unknown}}}` is no placeholder; known are {known}"));
            }
            if self.model.is_none() && ["{model}", "{base_url}", "{key}"].iter().any(|p| text.contains(p)) {
                return refuse(key, format!("`{text}` speaks of a model, and there is no [model]"));
            }
        }
        Ok(())
    }
}

/// Why a url is no endpoint's; none where it may be one. The url itself is not shown: it may hold a key.
fn no_endpoint(url: &str) -> Option<&'static str> {
    let scheme = |scheme: &&str| url.get(..scheme.len()).is_some_and(|own| own.eq_ignore_ascii_case(scheme));
    let Some(scheme) = ["http://", "https://"].into_iter().find(scheme) else {
        return Some("begins with http:// or https://");
    };
    let rest = &url[scheme.len()..];
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.is_empty() || url.contains(char::is_whitespace) {
        return Some("names a host");
    }
    if host.contains('@') {
        return Some("holds a name or a key: that goes into a variable that `key_env` names");
    }
    rest.contains(['?', '#']).then_some("ends with its path: no query, no fragment")
}

/// Folders of an agent's sandbox in which nothing of its file can be laid: its task's, ours, and what it sees of the host's `/etc`. Besides: [`HOSTS`].
const TAKEN: [&str; 12] = [
    "/workspace",
    "/out",
    "/infradev",
    "/opt/agent",
    "/opt/skills",
    "/etc/ssl",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/nvidia",
];

/// Why nothing can be laid for an agent at a path; none where it can.
fn misplaced(path: &str) -> Option<String> {
    let below = path.strip_prefix("{home}").unwrap_or(path);
    if !below.starts_with('/') {
        return Some("is neither absolute nor below {home}".to_owned());
    }
    let mut segments = below[1..].split('/');
    if below.contains('{') || segments.any(|segment| ["", ".", ".."].contains(&segment)) {
        return Some(
            "is no plain path: no `.`, `..`, `//` or `/` at its end, no placeholder but {home}".to_owned(),
        );
    }
    let taken = TAKEN.iter().chain(&HOSTS).find(|taken| Path::new(path).starts_with(taken))?;
    Some(format!(
        "lies in {taken}, which the sandbox has from elsewhere; put it below {{home}} or another folder"
    ))
}

/// The first word in braces that looks like a placeholder and is none. Other braces (JSON, TOML, a shell's) are left alone.
fn unknown_placeholder(text: &str) -> Option<&str> {
    text.split('{').skip(1).find_map(|rest| {
        let (word, _) = rest.split_once('}')?;
        let like = !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        (like && !PLACEHOLDERS.contains(&word)).then_some(word)
    })
}

#[cfg(test)]
mod tests {
    use super::AgentSpec;

    const GOOD: &str = "schema = 1\nname = \"mine\"\nversion = \"1.0\"\n[run]\ncommand = [\"mine\"]\n";

    fn refusal(text: &str) -> String {
        let error = AgentSpec::parse("mine.toml", text.as_bytes()).unwrap_err();
        let hint = crate::Classified::hint(&error).unwrap_or_default();
        format!("{error} [{hint}]")
    }

    #[test]
    fn what_is_wrong_in_an_agents_file_is_named_with_its_line_and_key() {
        AgentSpec::parse("mine.toml", GOOD.as_bytes()).unwrap();
        let wrongs = [
            GOOD.replace("command", "comand"),
            GOOD.replace("schema = 1", "schema = 2"),
            GOOD.replace("\"1.0\"", "\"^1.0\""),
            GOOD.replace("[\"mine\"]", "[\"mine\", \"{modle}\"]"),
            GOOD.replace("[\"mine\"]", "[\"mine\", \"{model}\"]"),
            GOOD.replace("[\"mine\"]", "[]"),
            format!("{GOOD}[run.files]\n\"config\" = \"\"\n"),
            format!("{GOOD}[run.files]\n\"/workspace/conftest.py\" = \"\"\n"),
            format!("{GOOD}[run.files]\n\"{{home}}/../x\" = \"\"\n"),
            format!("{GOOD}[run.files]\n\"/srv/{{model}}\" = \"\"\n"),
            format!("{GOOD}[run.files]\n\"/srv/a\" = \"\"\n\"/srv/a/b\" = \"\"\n"),
            format!("{GOOD}[skills]\nfolder = \"skills\"\n"),
            format!("{GOOD}[skills]\nfolder = \"/workspace/skills\"\n"),
            format!("{GOOD}[install]\nnpm = \"a\"\nuv = \"a\"\n"),
        ];
        let right =
            "[run.files]\n\"{home}/.a/b\" = \"\"\n\"{home}/.a/bc\" = \"\"\n\"/etc/mine/a.json\" = \"\"\n";
        AgentSpec::parse("mine.toml", format!("{GOOD}{right}").as_bytes()).unwrap();
        insta::assert_snapshot!(wrongs.map(|text| refusal(&text)).join("\n"));
    }
}
