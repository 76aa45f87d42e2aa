//! What an agent left in its folder of answers. It is read as strangers' files are: bounded, no link followed.

use std::fs;
use std::path::Path;

use infradev_model::{GivenLabel, Ignored, Label};
use serde::Deserialize;

use crate::OpenCases;

/// Bytes of one answer.
const ANSWER: u64 = 16 << 10;
/// Characters of a reason.
const WHY: usize = 500;
/// How many files that answer nothing are told by name.
const BESIDE: usize = 8;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    label: Label,
    why: String,
}

/// The file of the case at this place, without its folder.
pub(crate) fn file(at: usize) -> String {
    format!("{:03}.toml", at + 1)
}

/// Labels that count, and answers that do not.
pub(crate) fn read(open: &OpenCases, folder: &Path, who: &str) -> (Vec<GivenLabel>, Vec<Ignored>) {
    let (mut labels, mut ignored) = (Vec::new(), Vec::new());
    // A link in the folder's place would lead where the agent itself could not look.
    if !fs::symlink_metadata(folder).is_ok_and(|data| data.is_dir()) {
        let why = "is no folder any more: nothing of it is taken".to_owned();
        return (labels, vec![Ignored { path: "answers".to_owned(), why }]);
    }
    for (at, case) in open.cases.iter().enumerate() {
        let name = file(at);
        let answer = match answer(&folder.join(&name)) {
            None => continue,
            Some(Ok(answer)) => answer,
            Some(Err(why)) => {
                ignored.push(Ignored { path: format!("answers/{name}"), why });
                continue;
            }
        };
        if let Some(why) = case.ruled.refuses(answer.label) {
            let why = format!("{} is not taken: {why}", answer.label.word());
            ignored.push(Ignored { path: format!("answers/{name}"), why });
            continue;
        }
        labels.push(GivenLabel {
            task: open.task.clone(),
            submission: open.submission.clone(),
            case: case.case.clone(),
            world: Some(case.world),
            label: answer.label,
            why: answer.why,
            by: who.to_owned(),
            agent: true,
        });
    }
    ignored.extend(beside(open.cases.len(), folder));
    (labels, ignored)
}

/// One answer; none where no file is there.
fn answer(path: &Path) -> Option<Result<Answer, String>> {
    let data = fs::symlink_metadata(path).ok()?;
    if !data.is_file() {
        return Some(Err("is no plain file".to_owned()));
    }
    if data.len() > ANSWER {
        return Some(Err("is larger than 16 KiB".to_owned()));
    }
    let text = match fs::read(path).map(String::from_utf8) {
        Ok(Ok(text)) => text,
        Ok(Err(_)) => return Some(Err("is not UTF-8".to_owned())),
        Err(_) => return Some(Err("cannot be read".to_owned())),
    };
    let parsed: Result<Answer, _> = toml::from_str(&text);
    Some(match parsed {
        Err(error) => Err(format!("is no answer: {}", error.message())),
        // On one line, so that a file of labels stays one that a person can read.
        Ok(Answer { label, why }) => {
            let why: String =
                why.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(WHY).collect();
            match why.is_empty() {
                true => Err("does not say why".to_owned()),
                false => Ok(Answer { label, why }),
            }
        }
    })
}

/// Files that answer no case.
fn beside(cases: usize, folder: &Path) -> Vec<Ignored> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| (0..cases).all(|at| file(at) != *name)).collect();
    names.sort();
    names.truncate(BESIDE);
    let why = "has the number of no case".to_owned();
    let ignored = |name: String| Ignored { path: format!("answers/{}", shown(&name)), why: why.clone() };
    names.into_iter().map(ignored).collect()
}

fn shown(name: &str) -> String {
    name.chars().take(100).flat_map(char::escape_default).collect()
}

#[cfg(test)]
mod tests {
    use infradev_model::{Labelled, LabelledBy};

    use super::*;
    use crate::OpenCase;

    fn open(labels: &[Option<Label>]) -> OpenCases {
        let case = |label: &Option<Label>| OpenCase {
            case: "tests/test_a.py::test_it".to_owned(),
            world: 2,
            told: String::new(),
            ruled: Labelled {
                label: *label,
                by: LabelledBy::Rule,
                rule: "none".to_owned(),
                evidence: String::new(),
                ruled: None,
            },
        };
        let cases = labels.iter().map(case).collect();
        OpenCases { task: "t".to_owned(), submission: "codex#1".to_owned(), patch: None, cases }
    }

    #[test]
    fn what_is_no_answer_is_told_by_its_file_and_the_others_are_taken() {
        let folder = tempfile::tempdir().unwrap();
        let secret = tempfile::NamedTempFile::new().unwrap();
        fs::write(secret.path(), "label = 'structural/state'\nwhy = 'of the host'\n").unwrap();
        let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
        write("001.toml", b"label = 'structural/state'\nwhy = '''the\n[[label]]\nfirst  call\n'''\n");
        write("002.toml", b"label = 'structural/states'\nwhy = 'x'\n");
        write("003.toml", b"label = 'numerical/precision'\nwhy = 'x'\n");
        write("004.toml", b"label = 'structural/state'\nwhy = 'x'\n");
        write("005.toml", b"\xff");
        write("006.toml", &[b'#'; 20 << 10]);
        std::os::unix::fs::symlink(secret.path(), folder.path().join("007.toml")).unwrap();
        write("008.toml", b"label = 'structural/state'\nwhy = ' '\n");
        write("notes\n.md", b"");
        let mut given = vec![None; 9];
        given[3] = Some(Label::Undetermined);
        let (labels, ignored) = read(&open(&given), folder.path(), "command 1");
        assert_eq!(labels.len(), 1);
        assert_eq!(labels[0].why, "the [[label]] first call");
        assert_eq!((labels[0].by.as_str(), labels[0].agent, labels[0].world), ("command 1", true, Some(2)));
        let told: Vec<String> = ignored.iter().map(|one| format!("{} {}", one.path, one.why)).collect();
        insta::assert_snapshot!(told.join("\n"));
    }

    #[test]
    fn a_link_in_the_place_of_the_folder_is_not_entered() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write(elsewhere.path().join("001.toml"), "label = 'structural/state'\nwhy = 'x'\n").unwrap();
        let link = folder.path().join("answers");
        std::os::unix::fs::symlink(elsewhere.path(), &link).unwrap();
        let (labels, ignored) = read(&open(&[None]), &link, "command 1");
        assert!(labels.is_empty());
        assert_eq!(ignored[0].why, "is no folder any more: nothing of it is taken");
    }
}
