//! What an agent wrote, looked at file by file: one that could not be read as what it is called costs itself, not the round.

use std::collections::BTreeMap;
use std::path::Path;

use infradev_executor::GoldenChange;
use infradev_model::{AdversarialSpec, Class, Classified, Ignored, SealedTask, is_name};
use infradev_store::load_adversarial;

use super::{Draft, RoundsError};

/// The folder of adversarial patches.
const ADVERSARIAL: &str = "adversarial/";

/// A path as it is told to people and agents: on one line.
pub(super) fn shown(path: &str) -> String {
    path.chars()
        .flat_map(|c| {
            let escaped: Vec<char> = if c.is_control() { c.escape_default().collect() } else { vec![c] };
            escaped
        })
        .collect()
}

/// Whether a file that a role may write has a name that no task's file has.
pub(super) fn misnamed(path: &str) -> bool {
    match path.strip_prefix(ADVERSARIAL).and_then(|name| name.strip_suffix(".toml")) {
        Some(name) => !is_name(name),
        None => path.contains(char::is_control),
    }
}

/// Drops adversarial patches that cannot be read, and what belongs to none; what the draft had in their place stays.
pub(super) fn drop_malformed(draft: &Draft, written: &mut BTreeMap<String, Option<String>>) -> Vec<Ignored> {
    let mut ignored = Vec::new();
    while let Some((path, why)) = malformed(draft, written) {
        written.remove(&path);
        ignored.push(Ignored { path: format!("task/{path}"), why });
    }
    ignored
}

/// Drops adversarial patches that cannot be made of golden, or that base does not take: one of them would keep all others from being
/// tried. What the draft had in their place stays.
pub(super) fn drop_underivable(
    draft: &Draft,
    written: &mut BTreeMap<String, Option<String>>,
    task: &SealedTask,
    tree: &Path,
) -> Result<Vec<Ignored>, RoundsError> {
    let mut ignored = Vec::new();
    if !written.keys().any(|path| path.starts_with(ADVERSARIAL)) {
        return Ok(ignored);
    }
    let place = tempfile::tempdir().map_err(RoundsError::io(tempfile::env::temp_dir()))?;
    let laid = SealedTask { folder: place.path().to_owned(), ..task.clone() };
    let change = GoldenChange::on(&laid, tree)?;
    while let Some(file) = underivable(draft, written, &change, place.path())? {
        ignored.push(file);
    }
    Ok(ignored)
}

/// Takes the first of those written that cannot be derived out of them, and says why.
fn underivable(
    draft: &Draft,
    written: &mut BTreeMap<String, Option<String>>,
    change: &GoldenChange<'_>,
    place: &Path,
) -> Result<Option<Ignored>, RoundsError> {
    let mut after = draft.clone();
    after.take_files(written);
    after.write_into(place)?;
    // What the draft itself has wrong is not the agent's.
    let Ok(all) = load_adversarial(&place.join(ADVERSARIAL)) else { return Ok(None) };
    for adversarial in &all {
        let description = format!("{ADVERSARIAL}{}.toml", adversarial.name);
        let diff = adversarial.spec.patch.as_ref().map(|name| format!("{ADVERSARIAL}{name}"));
        let files = || std::iter::once(&description).chain(&diff);
        let Some(named) = files().find(|file| written.contains_key(*file)) else { continue };
        let Err(error) = change.check_adversarial(adversarial) else { continue };
        if error.class() != Class::BadInput {
            return Err(error.into());
        }
        let why = error.to_string().replace(&format!("{}/", place.display()), "task/");
        let hint = error.hint().map(|hint| format!(" ({hint})")).unwrap_or_default();
        let why = format!("is dropped, since it cannot be made: {why}{hint}");
        let path = format!("task/{named}");
        files().for_each(|file| {
            written.remove(file);
        });
        return Ok(Some(Ignored { path, why }));
    }
    Ok(None)
}

/// The first file of those written that is wrong, with why.
fn malformed(draft: &Draft, written: &BTreeMap<String, Option<String>>) -> Option<(String, String)> {
    let kept = draft.files().iter().filter(|(path, _)| !written.contains_key(*path));
    let new = written.iter().filter_map(|(path, text)| Some((path, text.as_ref()?)));
    let after: BTreeMap<&str, &str> = kept
        .chain(new.clone())
        .filter_map(|(path, text)| Some((path.strip_prefix(ADVERSARIAL)?, text.as_str())))
        .collect();
    let read = |name: &str, text: &str| {
        let spec = AdversarialSpec::parse(&format!("{ADVERSARIAL}{name}"), text.as_bytes());
        spec.map_err(|error| error.to_string())
    };
    let wrong = |name: &str, text: &str| -> Option<String> {
        if name.ends_with(".toml") {
            return match read(name, text) {
                Err(why) => Some(format!("cannot be read: {why}")),
                Ok(spec) => spec
                    .patch
                    .filter(|patch| !after.contains_key(patch.as_str()))
                    .map(|patch| format!("there is no file `{}` beside it", shown(&patch))),
            };
        }
        let belongs = after
            .iter()
            .filter(|(other, _)| other.ends_with(".toml"))
            .any(|(other, text)| read(other, text).is_ok_and(|spec| spec.patch.as_deref() == Some(name)));
        (!belongs).then(|| "no NAME.toml beside it names this file as its `patch`".to_owned())
    };
    // Descriptions first: what the draft has in place of a bad one may name a diff that was written.
    let (descriptions, others): (Vec<_>, Vec<_>) = new.partition(|(path, _)| path.ends_with(".toml"));
    descriptions.into_iter().chain(others).find_map(|(path, text)| {
        let why = wrong(path.strip_prefix(ADVERSARIAL)?, text)?;
        Some((path.clone(), why))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "schema = 1\npromise = \"p\"\npatch = \"a.patch\"\n";

    fn left(draft: &[(&str, &str)], written: &[(&str, &str)]) -> (Vec<String>, Vec<Ignored>) {
        let own = |files: &[(&str, &str)]| -> BTreeMap<String, String> {
            files.iter().map(|(path, text)| ((*path).to_string(), (*text).to_string())).collect()
        };
        let draft = Draft::from(own(draft));
        let mut written = own(written).into_iter().map(|(path, text)| (path, Some(text))).collect();
        let ignored = drop_malformed(&draft, &mut written);
        (written.into_keys().collect(), ignored)
    }

    #[test]
    fn a_patch_that_cannot_be_read_is_dropped_with_the_diff_that_belongs_to_it_alone() {
        let outside = "schema = 1\npromise = \"p\"\ntake_back = [\"../../etc/passwd\"]\n";
        let written = [
            ("adversarial/a.toml", GOOD),
            ("adversarial/a.patch", "diff"),
            ("adversarial/b.toml", outside),
            ("adversarial/c.patch", "diff"),
            ("adversarial/d.toml", "schema = 1\npromise = \"p\"\npatch = \"d.patch\"\n"),
            ("probes/judge_a.py", ""),
        ];
        let (kept, ignored) = left(&[], &written);
        assert_eq!(kept, ["adversarial/a.patch", "adversarial/a.toml", "probes/judge_a.py"]);
        let why = |path: &str| ignored.iter().find(|file| file.path == path).unwrap().why.clone();
        assert!(why("task/adversarial/b.toml").contains("is not a path inside the tree"), "{ignored:?}");
        assert!(why("task/adversarial/c.patch").contains("names this file as its `patch`"), "{ignored:?}");
        assert_eq!(why("task/adversarial/d.toml"), "there is no file `d.patch` beside it");
    }

    #[test]
    fn what_the_draft_had_stays_where_what_is_written_over_it_cannot_be_read() {
        let draft = [("adversarial/a.toml", GOOD), ("adversarial/a.patch", "diff")];
        let written = [("adversarial/a.toml", "schema = 1\n"), ("adversarial/a.patch", "another diff")];
        let (kept, ignored) = left(&draft, &written);
        assert_eq!((kept, ignored.len()), (vec!["adversarial/a.patch".to_string()], 1));
    }

    #[test]
    fn names_are_told_on_one_line_and_odd_ones_are_known() {
        assert_eq!(shown("adversarial/new\nline.toml"), "adversarial/new\\nline.toml");
        assert!(misnamed("adversarial/new\nline.toml") && misnamed("adversarial/A.toml"));
        assert!(misnamed("probes/judge_\u{1b}.py"));
        assert!(!misnamed("adversarial/a-1.toml") && !misnamed("spec.md"));
    }
}
