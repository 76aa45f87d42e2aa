//! A skill's folder: read, checked, laid for an agent, and known again where its text passes by.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use infradev_model::{Digest, DigestBuilder, SkillText};

use crate::error::AgentError;
use crate::object::Object;

/// The file that makes a folder a skill.
const ENTRY: &str = "SKILL.md";
/// Bytes of all files of a skill.
const LARGEST: u64 = 64 << 20;
/// Files and folders of a skill.
const MOST: usize = 10_000;

/// A skill, read once: what is given to agents is what was read, whatever becomes of the folder.
#[derive(Debug, Clone)]
pub struct Skill {
    /// `SKILL.md`.
    pub text: SkillText,
    /// Of paths, contents and which may be run.
    pub digest: Digest,
    files: Vec<SkillFile>,
}

#[derive(Debug, Clone)]
struct SkillFile {
    path: PathBuf,
    bytes: Vec<u8>,
    runs: bool,
}

impl Skill {
    /// Reads a skill's folder. A link within it counts as what it leads to.
    ///
    /// # Errors
    /// No `SKILL.md`, none with name and description, a link out of the folder, what is neither file nor folder, or too much.
    pub fn read(folder: &Path) -> Result<Skill, AgentError> {
        let missing = |_| AgentError::NoFolder { path: folder.to_owned() };
        let root = folder.canonicalize().map_err(missing)?;
        let refuse = |path: &Path, what: &str, hint: &str| AgentError::Skill {
            path: path.to_owned(),
            what: what.to_owned(),
            hint: hint.to_owned(),
        };
        if !root.is_dir() {
            return Err(refuse(folder, "is no folder", "give the folder that holds SKILL.md"));
        }
        if !root.join(ENTRY).exists() {
            let hint =
                "a skill is a folder with SKILL.md: front matter with name and description, then what to do";
            return Err(refuse(folder, "holds no SKILL.md", hint));
        }
        let mut files = Vec::new();
        let mut walk = Walk { root: &root, shown: folder, files: &mut files, bytes: 0, seen: 0 };
        walk.folder(Path::new(""), 0)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let mut digest = DigestBuilder::new("infradev skill v1");
        for file in &files {
            digest.part("path", file.path.as_os_str().as_encoded_bytes());
            digest.part(if file.runs { "program" } else { "file" }, &file.bytes);
        }
        let entry = files.iter().find(|file| file.path == Path::new(ENTRY));
        let bytes = entry.map(|file| file.bytes.as_slice()).unwrap_or_default();
        let text = SkillText::parse(&folder.join(ENTRY).display().to_string(), bytes)?;
        Ok(Skill { text, digest: digest.finish(), files })
    }

    /// Lays its files into a new folder, readable by everyone.
    pub(crate) fn lay(&self, into: &Path) -> std::io::Result<()> {
        let open = |path: &Path, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode));
        fs::create_dir_all(into)?;
        open(into, 0o755)?;
        for file in &self.files {
            let mut below = into.to_owned();
            for part in file.path.parent().into_iter().flat_map(Path::components) {
                below.push(part);
                if !below.exists() {
                    fs::create_dir(&below)?;
                    open(&below, 0o755)?;
                }
            }
            let path = into.join(&file.path);
            fs::write(&path, &file.bytes)?;
            open(&path, if file.runs { 0o755 } else { 0o644 })?;
        }
        Ok(())
    }

    /// As a part of a prompt, for an agent whose program knows no skills; `folder` is where its files are seen.
    pub fn as_prompt(&self, folder: &str) -> String {
        let SkillText { name, description, body } = &self.text;
        let others = match self.files.len() {
            1 => String::new(),
            _ => format!("Its other files are in `{folder}`.\n\n"),
        };
        format!("## Skill: {name}\n\n{description}\n\n{others}{}\n", body.trim())
    }
}

struct Walk<'a> {
    root: &'a Path,
    shown: &'a Path,
    files: &'a mut Vec<SkillFile>,
    bytes: u64,
    seen: usize,
}

impl Walk<'_> {
    fn folder(&mut self, below: &Path, depth: usize) -> Result<(), AgentError> {
        let shown = self.shown.join(below);
        let refuse = |path: &Path, what: &str, hint: &str| {
            Err(AgentError::Skill { path: path.to_owned(), what: what.to_owned(), hint: hint.to_owned() })
        };
        // A link within the folder may lead back above itself.
        if depth > 32 {
            return refuse(&shown, "is more than 32 folders deep", "a link may lead back to where it lies");
        }
        let failed = || AgentError::io(format!("read {}", shown.display()));
        for entry in fs::read_dir(self.root.join(below)).map_err(failed())? {
            let name = entry.map_err(failed())?.file_name();
            let path = below.join(&name);
            let (host, shown) = (self.root.join(&path), self.shown.join(&path));
            let Ok(real) = host.canonicalize() else {
                return refuse(
                    &shown,
                    "is a link that leads nowhere",
                    "a skill's links lead to its own files",
                );
            };
            if !real.starts_with(self.root) {
                let hint = "a skill is given whole, and nothing else: copy what it needs into its folder";
                return refuse(&shown, "leads out of the skill's folder", hint);
            }
            let data = fs::metadata(&real).map_err(failed())?;
            self.seen += 1;
            if self.seen > MOST {
                return refuse(self.shown, "holds more than 10,000 files", "is it the folder of one skill?");
            }
            if data.is_dir() {
                self.folder(&path, depth + 1)?;
            } else if data.is_file() {
                self.bytes += data.len();
                if self.bytes > LARGEST {
                    return refuse(self.shown, "holds more than 64 MiB", "is it the folder of one skill?");
                }
                let bytes = fs::read(&real).map_err(failed())?;
                let runs = data.permissions().mode() & 0o100 != 0;
                self.files.push(SkillFile { path, bytes, runs });
            } else {
                return refuse(&shown, "is neither file nor folder", "a skill holds files and folders");
            }
        }
        Ok(())
    }
}

/// The folder's own name for a skill at a place, where that is plain.
pub(crate) fn place(folder: &str, name: &str) -> PathBuf {
    let plain = |part: &Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    Path::new(folder).components().filter(plain).collect::<PathBuf>().join(name)
}

/// By what a skill's text is known in what is asked of a model: lines that stand in the body of `SKILL.md` and nowhere else
/// that the model is shown unasked.
#[derive(Debug, Clone)]
pub(crate) struct Sign {
    lines: Vec<String>,
}

/// Lines that are looked for.
const LINES: usize = 16;
/// Lines of them that a request must hold: one alone may stand elsewhere too.
const ENOUGH: usize = 2;
/// Shorter lines tell nothing.
const SHORTEST: usize = 16;

impl Sign {
    /// None where no line tells the skill's body from its description and from the prompt.
    pub(crate) fn of(skill: &SkillText, prompt: &str) -> Option<Sign> {
        let tells = |line: &&str| {
            line.chars().count() >= SHORTEST && !skill.description.contains(*line) && !prompt.contains(*line)
        };
        let mut lines: Vec<&str> = skill.body.lines().map(str::trim).filter(tells).collect();
        lines.dedup();
        let step = lines.len().div_ceil(LINES).max(1);
        let lines: Vec<String> = lines.into_iter().step_by(step).map(str::to_owned).collect();
        (!lines.is_empty()).then_some(Sign { lines })
    }

    /// Whether a request shows the model the skill's body, or a good part of it.
    pub(crate) fn stands_in(&self, asked: &Object<'_>) -> bool {
        let mut left: Vec<&str> = self.lines.iter().map(String::as_str).collect();
        let wanted = left.len().saturating_sub(ENOUGH.min(left.len()));
        asked.texts(&mut |text| left.retain(|line| !text.contains(*line)));
        left.len() <= wanted
    }
}

#[cfg(test)]
mod tests {
    use infradev_model::Classified;
    use serde_json::json;

    use super::*;

    const ENTRY_TEXT: &str = "---\nname: meters\ndescription: How to read the meters of a machine.\n---\n# Meters\n\n\
        First look at the loopback's bytes.\nThen look at the group's memory.\nSay what you saw.\n";

    fn skill(change: impl FnOnce(&Path)) -> Result<Skill, AgentError> {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("meters");
        fs::create_dir_all(root.join("scripts")).unwrap();
        fs::write(root.join(ENTRY), ENTRY_TEXT).unwrap();
        fs::write(root.join("scripts/read.sh"), "echo 1\n").unwrap();
        fs::set_permissions(root.join("scripts/read.sh"), fs::Permissions::from_mode(0o700)).unwrap();
        change(&root);
        Skill::read(&root)
    }

    #[test]
    fn a_skill_is_laid_as_it_was_read_and_its_digest_knows_each_part_of_it() {
        let whole = skill(|_| ()).unwrap();
        let again = skill(|_| ()).unwrap();
        assert_eq!(whole.digest, again.digest);
        let changes: [&dyn Fn(&Path); 3] = [
            &|root| fs::write(root.join("scripts/read.sh"), "echo 2\n").unwrap(),
            &|root| fs::rename(root.join("scripts"), root.join("programs")).unwrap(),
            &|root| {
                let locked = fs::Permissions::from_mode(0o600);
                fs::set_permissions(root.join("scripts/read.sh"), locked).unwrap();
            },
        ];
        for change in changes {
            assert_ne!(skill(change).unwrap().digest, whole.digest);
        }
        let laid = tempfile::tempdir().unwrap();
        let into = laid.path().join("laid");
        whole.lay(&into).unwrap();
        assert_eq!(Skill::read(&into).unwrap().digest, whole.digest);
        assert_eq!(fs::metadata(into.join("scripts/read.sh")).unwrap().permissions().mode() & 0o777, 0o755);
    }

    #[test]
    fn a_folder_that_is_no_skill_or_leads_out_of_itself_is_refused() {
        let refused = |change: &dyn Fn(&Path)| {
            let error = skill(change).unwrap_err();
            assert!(error.hint().is_some() || matches!(error, AgentError::Format(_)), "{error}");
            error.to_string()
        };
        let link = |target: &'static str| {
            move |root: &Path| std::os::unix::fs::symlink(target, root.join("link")).unwrap()
        };
        assert!(refused(&|root| fs::remove_file(root.join(ENTRY)).unwrap()).contains("holds no SKILL.md"));
        assert!(refused(&|root| fs::write(root.join(ENTRY), "# Meters\n").unwrap()).contains("front matter"));
        assert!(refused(&link("/etc/passwd")).contains("link: leads out of the skill's folder"));
        assert!(refused(&link("../..")).contains("leads out"));
        assert!(refused(&link("nowhere")).contains("leads nowhere"));
        assert!(refused(&link(".")).contains("folders deep"));
        assert!(
            skill(|root| std::os::unix::fs::symlink("scripts/read.sh", root.join("link")).unwrap()).is_ok()
        );
    }

    #[test]
    fn a_skill_is_known_by_lines_of_its_body_alone() {
        let text = skill(|_| ()).unwrap().text;
        let sign = Sign::of(&text, "Say what you saw.").unwrap();
        let shown = |text: &str| {
            let asked = json!({"messages": [{"content": [{"text": text}]}]}).to_string();
            sign.stands_in(&Object::read(&asked).unwrap())
        };
        assert!(!shown(&text.description) && !shown("Say what you saw."));
        assert!(!shown("First look at the loopback's bytes."), "one line may stand elsewhere");
        assert!(shown(
            "     3\tFirst look at the loopback's bytes.\n     4\tThen look at the group's memory.\n"
        ));
        assert!(Sign::of(&text, &text.body).is_none(), "the prompt holds it all");
    }
}
