//! Agents by name: those that are shipped, and a user's own.

use std::path::{Path, PathBuf};

use infradev_model::{AgentSpec, FormatError};

use crate::error::AgentError;

/// The shipped files.
const SHIPPED: [(&str, &str); 7] = [
    ("claude-code", include_str!("../../../../agents/claude-code.toml")),
    ("codex", include_str!("../../../../agents/codex.toml")),
    ("command", include_str!("../../../../agents/command.toml")),
    ("gemini-cli", include_str!("../../../../agents/gemini-cli.toml")),
    ("mini-swe-agent", include_str!("../../../../agents/mini-swe-agent.toml")),
    ("openhands", include_str!("../../../../agents/openhands.toml")),
    ("qwen-code", include_str!("../../../../agents/qwen-code.toml")),
];

/// An agent's file, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownAgent {
    /// What it says.
    pub spec: AgentSpec,
    /// The file; none for a shipped one.
    pub file: Option<PathBuf>,
}

/// Whether a user's agent is installed as the shipped one of that name is.
pub(crate) fn installs_as_shipped(spec: &AgentSpec) -> bool {
    let shipped = SHIPPED.iter().find(|(name, _)| *name == spec.name);
    let shipped = shipped.and_then(|(_, text)| AgentSpec::parse("", text.as_bytes()).ok());
    shipped.is_some_and(|shipped| shipped.install == spec.install)
}

/// Finds an agent: a file where `wanted` ends with `.toml`; else by name among the files of `own` (a file or a folder of them),
/// which win, and the shipped ones.
///
/// # Errors
/// No such agent, or a file that is not as it should be.
pub fn find(wanted: &str, own: Option<&Path>) -> Result<KnownAgent, AgentError> {
    if wanted.ends_with(".toml") {
        return read(Path::new(wanted));
    }
    let all = all(own)?;
    let names: Vec<String> = all.iter().map(|agent| agent.spec.name.clone()).collect();
    all.into_iter().find(|agent| agent.spec.name == wanted).ok_or_else(|| {
        let near = names.iter().map(|name| (strsim::jaro_winkler(wanted, name), name));
        let near = near.filter(|(score, _)| *score > 0.8).max_by(|a, b| a.0.total_cmp(&b.0));
        let nearest = near.map(|(_, name)| name.clone());
        AgentError::Unknown { name: wanted.to_owned(), nearest, known: names }
    })
}

/// All agents by name, a user's own in place of shipped ones of the same name.
///
/// # Errors
/// A file that is not as it should be.
pub fn all(own: Option<&Path>) -> Result<Vec<KnownAgent>, AgentError> {
    let mut agents = Vec::new();
    if let Some(own) = own {
        for file in files(own)? {
            agents.push(read(&file)?);
        }
    }
    for (name, text) in SHIPPED {
        if !agents.iter().any(|agent| agent.spec.name == name) {
            let spec = AgentSpec::parse(&format!("agents/{name}.toml"), text.as_bytes())?;
            agents.push(KnownAgent { spec, file: None });
        }
    }
    agents.sort_by(|a, b| a.spec.name.cmp(&b.spec.name));
    Ok(agents)
}

fn files(own: &Path) -> Result<Vec<PathBuf>, AgentError> {
    if !own.is_dir() {
        return Ok(vec![own.to_owned()]);
    }
    let list = std::fs::read_dir(own).map_err(AgentError::io(format!("list {}", own.display())))?;
    let mut files: Vec<PathBuf> = list.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "toml"));
    files.sort();
    Ok(files)
}

fn read(file: &Path) -> Result<KnownAgent, AgentError> {
    let unread = |error: std::io::Error| {
        let error = FormatError::new(&file.display().to_string(), None, format!("cannot be read: {error}"));
        error.advise("--agent and --agents take a file that is there, or the name of an agent")
    };
    let bytes = std::fs::read(file).map_err(unread)?;
    let spec = AgentSpec::parse(&file.display().to_string(), &bytes)?;
    let file = std::path::absolute(file).map_err(AgentError::io(format!("resolve {}", file.display())))?;
    Ok(KnownAgent { spec, file: Some(file) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_file_parses_and_is_called_as_its_file() {
        for (name, _) in SHIPPED {
            assert_eq!(find(name, None).unwrap().spec.name, name);
        }
        assert_eq!(all(None).unwrap().len(), SHIPPED.len());
    }

    #[test]
    fn an_own_file_wins_over_the_shipped_one_and_a_name_that_is_close_is_offered() {
        let folder = tempfile::tempdir().unwrap();
        let text = "schema = 1\nname = \"codex\"\nversion = \"9\"\n[run]\ncommand = [\"mine\"]\n";
        std::fs::write(folder.path().join("any.toml"), text).unwrap();
        assert_eq!(find("codex", Some(folder.path())).unwrap().spec.version, "9");
        let error = find("claude-kode", None).unwrap_err();
        assert_eq!(infradev_model::Classified::hint(&error).unwrap(), "did you mean `claude-code`?");
    }

    #[test]
    fn a_file_that_is_not_there_is_bad_input() {
        for (wanted, own) in [("/nope.toml", None), ("codex", Some(Path::new("/nope")))] {
            let error = find(wanted, own).unwrap_err();
            assert_eq!(infradev_model::Classified::class(&error), infradev_model::Class::BadInput);
            assert!(error.to_string().starts_with("/nope"), "{error}");
        }
    }
}
