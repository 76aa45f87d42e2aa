//! Hunks taken back as mutants.
use infradev_executor::{GoldenChange, ReadyTask};
use infradev_model::{Mutant, Operator};

/// Hunks.
pub fn interim(ready: &ReadyTask) -> Result<Vec<Mutant>, super::FunnelError> {
    let change = GoldenChange::of(ready)?;
    let files = change.files();
    let mut found = Vec::new();
    for taken in change.hunks()? {
        let Some(golden) = files.iter().find(|file| file.path == taken.at.file).and_then(|file| file.golden.clone()) else { continue };
        let Some(text) = taken.text else { continue };
        let pre = golden.bytes().zip(text.bytes()).take_while(|(a, b)| a == b).count();
        let room = golden.len().min(text.len()) - pre;
        let post = golden.bytes().rev().zip(text.bytes().rev()).take(room).take_while(|(a, b)| a == b).count();
        found.push(Mutant {
            file: taken.at.file.clone(), start: pre, end: golden.len() - post, line: taken.at.line,
            replacement: Some(text[pre..text.len() - post].to_string()), operator: Operator::TakeBackHunk, function: None,
            digest: Mutant::digest_of(&taken.at.file, Some(&text)),
        });
    }
    Ok(found)
}
