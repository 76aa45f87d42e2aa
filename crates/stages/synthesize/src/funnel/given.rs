//! Mutants that somebody else made, as data.

use infradev_executor::{GoldenChange, ReadyTask};
use infradev_model::{Mutant, Operator};
use serde::Deserialize;

use super::FunnelError;

/// One of them: golden's text of a file with one span replaced.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    file: String,
    /// First byte of the span, and the byte after its last.
    start: usize,
    end: usize,
    /// Absent where the file is removed.
    replacement: Option<String>,
    operator: Operator,
}

/// Reads a JSON list of mutants: `file`, `start`, `end` (bytes), `replacement`, `operator`. Only files that the change touches
/// can be mutated.
///
/// # Errors
/// [`FunnelError::Given`], with the number of the entry.
pub fn given_mutants(ready: &ReadyTask, path: &str, bytes: &[u8]) -> Result<Vec<Mutant>, FunnelError> {
    let wrong = |why: String| FunnelError::Given { path: path.to_string(), why };
    let given: Vec<Given> = serde_json::from_slice(bytes).map_err(|error| wrong(error.to_string()))?;
    let files = GoldenChange::of(ready)?.files();
    let mut mutants = Vec::new();
    for (index, given) in given.into_iter().enumerate() {
        let number = index + 1;
        let golden =
            files.iter().find(|file| file.path == given.file).and_then(|file| file.golden.as_deref());
        let Some(golden) = golden else {
            return Err(wrong(format!("mutant {number}: the change holds no {}", given.file)));
        };
        if given.start > given.end || golden.get(given.start..given.end).is_none() {
            return Err(wrong(format!(
                "mutant {number}: {}..{} is no span of {}, which has {} bytes",
                given.start,
                given.end,
                given.file,
                golden.len()
            )));
        }
        let mut mutant = Mutant {
            line: golden[..given.start].matches('\n').count() as u32 + 1,
            file: given.file,
            start: given.start,
            end: given.end,
            replacement: given.replacement,
            operator: given.operator,
            function: None,
            digest: Mutant::digest_of("", None),
        };
        mutant.digest = Mutant::digest_of(&mutant.file, mutant.text(golden).as_deref());
        mutants.push(mutant);
    }
    Ok(mutants)
}
