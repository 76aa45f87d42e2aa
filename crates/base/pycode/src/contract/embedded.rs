//! Code that stands in a string: what `exec` or `python -c` runs.

use crate::module::Module;

/// The code that a text is, if it is Python that imports something.
pub(crate) fn code_in(text: &str) -> Option<Module> {
    let imports = |line: &str| line.starts_with("import ") || line.starts_with("from ");
    let is_likely = text.split(['\n', ';']).any(|line| imports(line.trim_start()));
    is_likely.then(|| Module::parse("string", &dedented(text)).ok()).flatten()
}

/// A text without the indent that all of its lines share, as `textwrap.dedent` gives it.
fn dedented(text: &str) -> String {
    let indent = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let filled = text.lines().filter(|line| !line.trim().is_empty());
    let shared = filled.map(indent).min().unwrap_or_default();
    text.lines().map(|line| line.get(shared..).unwrap_or_default()).collect::<Vec<_>>().join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_told_from_prose_by_an_import_that_parses() {
        for code in ["import a; a.b()", "\n    from a import b\n\n    b()\n  ", "if x:\n    import a\n"] {
            let code = code.to_owned();
            assert!(code_in(&code).is_some(), "{code}");
        }
        for other in ["from here to there", "a = 1", "import the goods first", "é\n"] {
            assert!(code_in(other).is_none(), "{other}");
        }
    }
}
