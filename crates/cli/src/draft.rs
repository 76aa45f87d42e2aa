//! Drafts of a task's files from what its commit says and touches. What is guessed says so.

use std::collections::BTreeSet;
use std::fmt::Write;

use infradev_git::CommitInfo;
use infradev_model::{Area, Candidate, Evidence, Kind, Pull};
use infradev_patch::{Change, Patch, is_collected, looks_like_test};

/// Longest id that is made from a subject.
const ID_LENGTH: usize = 48;

/// What a change touches of the tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestPart {
    /// Test files that it adds or changes.
    pub official: Vec<String>,
    /// Test trees that hold them.
    pub roots: Vec<String>,
}

impl TestPart {
    /// Reads it off a patch. A path that is no UTF-8 can't be named in task.toml and is passed over.
    pub fn of(patch: &Patch) -> TestPart {
        let mut official: BTreeSet<String> = BTreeSet::new();
        let mut roots: BTreeSet<String> = BTreeSet::new();
        for file in patch.files.iter().filter(|file| looks_like_test(&file.new_path)) {
            let Ok(path) = std::str::from_utf8(&file.new_path) else { continue };
            let parts: Vec<&str> = path.split('/').collect();
            let folders = &parts[..parts.len() - 1];
            if let Some(depth) = folders.iter().position(|part| *part == "tests" || *part == "test") {
                roots.insert(parts[..=depth].join("/"));
            }
            if is_collected(&file.new_path) && file.change != Change::Delete {
                official.insert(path.to_string());
            }
        }
        let inner = |root: &String| roots.iter().any(|other| root.starts_with(&format!("{other}/")));
        let outer = roots.iter().filter(|root| !inner(root)).cloned().collect();
        TestPart { official: official.into_iter().collect(), roots: outer }
    }
}

/// A subject without numbers and merge words.
pub fn title(info: &CommitInfo) -> String {
    infradev_curate::read_message(&info.subject, &info.body).title
}

/// An id from a title: `[MoE] Fix the x (core)` → `fix-the-x-core`.
pub fn id(title: &str) -> String {
    let mut rest = title.trim();
    while rest.starts_with('[')
        && let Some(end) = rest.find(']')
    {
        rest = rest[end + 1..].trim_start();
    }
    let mut id = String::new();
    for word in
        rest.to_lowercase().split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty())
    {
        if id.len() + word.len() + 1 > ID_LENGTH && !id.is_empty() {
            break;
        }
        if !id.is_empty() {
            id.push('-');
        }
        id.push_str(word);
    }
    id.truncate(ID_LENGTH);
    id
}

/// What task.toml says.
#[derive(Debug)]
pub struct TaskDraft<'a> {
    /// The id.
    pub id: &'a str,
    /// The title.
    pub title: &'a str,
    /// A guess.
    pub area: Area,
    /// A guess.
    pub kind: Kind,
    /// What speaks for the guesses, a line each.
    pub because: Vec<String>,
    /// The environment's name.
    pub environment: &'a str,
    /// World sizes.
    pub worlds: &'a [u32],
    /// GPUs of a trial.
    pub gpus: u32,
    /// Full commit ids.
    pub base: &'a str,
    /// The change.
    pub head: &'a str,
    /// Tests.
    pub tests: &'a TestPart,
    /// Folders of the tree for `sys.path`.
    pub import_roots: &'a [String],
}

impl TaskDraft<'_> {
    /// The text of task.toml.
    pub fn text(&self) -> String {
        let word = |value: serde_json::Result<serde_json::Value>| {
            value.ok().and_then(|value| value.as_str().map(str::to_string)).unwrap_or_default()
        };
        let (area, kind) = (word(serde_json::to_value(self.area)), word(serde_json::to_value(self.kind)));
        let worlds: Vec<String> = self.worlds.iter().map(u32::to_string).collect();
        let mut text = String::new();
        let _ = write!(
            text,
            "schema = 1\nid = {}\ntitle = {}\n# Guessed: check both.\n{}area = {}\nkind = {}\n\
             traits = []\nenvironment = {}\nworlds = [{}]\ngpus = {}\n\n[source]\nbase = {}\nhead = {}\n\n[tests]\n",
            quoted(self.id),
            quoted(self.title),
            self.because.iter().map(|line| format!("# {}\n", one_line(line))).collect::<String>(),
            quoted(&area),
            quoted(&kind),
            quoted(self.environment),
            worlds.join(", "),
            self.gpus,
            quoted(self.base),
            quoted(self.head),
        );
        let _ = writeln!(text, "official = {}", list(&self.tests.official));
        let _ = writeln!(text, "roots = {}", list(&self.tests.roots));
        let _ = writeln!(text, "import_roots = {}", list(self.import_roots));
        text.push_str(
            "# plugins = [\"pytest_asyncio\"]           # pytest plugins by name; none is loaded by itself\n\
             # env = { NAME = \"value\" }\n\
             # files = { \"/absolute/path\" = \"text\" }   # files that the tests look for\n",
        );
        text
    }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_string()).to_string()
}

fn list(items: &[String]) -> String {
    match items {
        [] => "[]".to_string(),
        [one] => format!("[{}]", quoted(one)),
        many => many.iter().fold("[\n".to_string(), |text, item| text + "    " + &quoted(item) + ",\n") + "]",
    }
}

/// What speaks for area, kind and world size, a line each.
pub fn because(area: &[Evidence], kind: &[Evidence], candidate: Option<&Candidate>) -> Vec<String> {
    let of = |name: &str, evidence: &[Evidence]| {
        let each: Vec<String> =
            evidence.iter().map(|evidence| format!("“{}” in {}", evidence.what, evidence.place)).collect();
        (!each.is_empty()).then(|| format!("{name}: {}", each.join("; ")))
    };
    let needs = candidate.and_then(|candidate| of("worlds", &candidate.facts.needs.evidence));
    [of("area", area), of("kind", kind), needs].into_iter().flatten().collect()
}

/// A text that stays within its comment.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// A draft of spec.md from a description: a pull request's, else the rest of a commit's message.
pub fn spec(title: &str, body: &str) -> String {
    let body = body.trim();
    let body = if body.is_empty() { "The commit says no more than its subject." } else { body };
    format!(
        "# {title}\n\n<!-- A draft from the change's description. An agent sees this text: say what is wanted, not how golden \
         does it. -->\n\n## What and why\n\n{body}\n\n## Data flow, before and after\n\n## Scope\n\n## Required \
         behaviours\n\n## Left to you\n\n## What must not regress\n\n## What the tests cover\n"
    )
}

/// description.md: the pull request's description where it is known, else the commit's message, which of a squash commit is the
/// same.
pub fn description(info: &CommitInfo, pull: Option<&Pull>) -> String {
    let (title, body) = match pull {
        Some(pull) => (pull.title.trim(), pull.body.trim()),
        None => (info.subject.trim(), info.body.trim()),
    };
    let gap = if body.is_empty() { "" } else { "\n\n" };
    format!("# {title}{gap}{body}\n")
}

/// An empty contract.toml.
pub const CONTRACT: &str = "\
schema = 1
# One entry for each name that the change adds and that tests or probes touch:
# [[name]]
# name = \"package.module.Name\"
# kind = \"class\"                 # module | class | function | method | attribute | setting | flag | variable
# signature = \"(hidden: int, *, group)\"
# about = \"shapes, types, meaning; no algorithm\"
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_leaves_out_tags_and_ends_at_a_word() {
        assert_eq!(id("[MoE] [dev] Fix the x (core)"), "fix-the-x-core");
        let long = id("Support heterogeneous pipeline stages with interleaved schedules and more words");
        assert_eq!(long, "support-heterogeneous-pipeline-stages-with");
        assert_eq!(id("Größe!"), "gr-e");
        assert_eq!(id("[only a tag]"), "");
    }
}
