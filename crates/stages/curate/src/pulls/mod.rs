//! Descriptions and labels of pull requests, asked of GitHub once and kept.

mod github;
mod kept;

use std::collections::BTreeMap;
use std::path::Path;

use infradev_model::{Candidate, Pull, PullsRead};

use crate::area::area;
use crate::error::CurateError;
use crate::kind::{Made, kind};
use crate::told::Told;
pub use github::Endpoint;
use kept::Kept;

/// Where pull requests are asked for.
#[derive(Debug, Clone)]
pub struct Forge {
    /// GitHub, or a server that speaks as it does.
    pub endpoint: Endpoint,
    /// `owner/name`.
    pub repository: String,
}

/// The `owner/name` of a repository on GitHub, from the url that it was cloned from.
pub fn github_name(url: &str) -> Option<String> {
    let rest = ["https://github.com/", "ssh://git@github.com/", "git@github.com:", "git://github.com/"]
        .iter()
        .find_map(|start| url.strip_prefix(start))?;
    let rest = rest.trim_end_matches('/');
    let name = rest.strip_suffix(".git").unwrap_or(rest);
    is_repository(name).then(|| name.to_owned())
}

/// Whether this is `owner/name`.
pub fn is_repository(name: &str) -> bool {
    let plain = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    name.split_once('/').is_some_and(|(owner, name)| plain(owner) && plain(name))
}

/// Adds to candidates what GitHub says of them, and guesses area and kind anew with it. What can't be had is said, not failed:
/// messages of commits stand in. `sources` has the source files of a commit.
///
/// # Errors
/// What is kept can't be read or written.
pub fn add(
    forge: &Forge,
    folder: &Path,
    candidates: &mut [Candidate],
    sources: &dyn Fn(&str) -> Vec<String>,
) -> Result<PullsRead, CurateError> {
    let mut kept = Kept::open(folder, &forge.repository)?;
    let number = |candidate: &Candidate| candidate.number.as_deref()?.strip_prefix('#')?.parse::<u64>().ok();
    let mut wanted: Vec<u64> =
        candidates.iter().filter_map(number).filter(|number| !kept.has(*number)).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let mut stopped = None;
    if !wanted.is_empty() {
        let asked = github::ask(forge, &wanted, &mut |found: BTreeMap<u64, Option<Pull>>| kept.add(found));
        match asked {
            Ok(()) => {}
            Err(github::Failed::Kept(error)) => return Err(error),
            Err(github::Failed::Told(told)) => stopped = Some(told.to_string()),
        }
    }
    let (mut known, mut absent) = (0, 0);
    for candidate in candidates {
        let Some(number) = number(candidate) else { continue };
        match kept.get(number) {
            Some(Some(pull)) => {
                known += 1;
                let paths = sources(&candidate.commit);
                apply(candidate, pull.clone(), &paths);
            }
            Some(None) => absent += 1,
            None => {}
        }
    }
    Ok(PullsRead { repository: forge.repository.clone(), known, absent, stopped })
}

fn apply(candidate: &mut Candidate, pull: Pull, paths: &[String]) {
    let told = Told { title: &candidate.title, body: &pull.body, labels: &pull.labels };
    candidate.facts.kind = kind(&told, Some(&Made::of(&candidate.facts)));
    candidate.facts.area = area(&told, paths);
    candidate.pull = Some(pull);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_s_name_is_read_from_the_urls_that_git_takes() {
        for url in
            ["https://github.com/a-b/c.d", "git@github.com:a-b/c.d.git", "ssh://git@github.com/a-b/c.d.git/"]
        {
            assert_eq!(github_name(url).as_deref(), Some("a-b/c.d"), "{url}");
        }
        for url in
            ["https://example.org/a/b", "https://github.com/a", "https://github.com/a/b/c", "/home/x/y"]
        {
            assert_eq!(github_name(url), None, "{url}");
        }
    }
}
