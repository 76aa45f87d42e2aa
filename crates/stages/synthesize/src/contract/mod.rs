//! `contract.toml` drafted from golden's signatures.

use std::fmt::Write;

use infradev_executor::DraftedName;
use infradev_model::ContractFinding;

/// The text of a drafted `contract.toml`. `unread` are the tests and probes that could not be read.
///
/// What golden says of a name stands in comments, which no prompt shows: an author states what a caller has to
/// know, and no algorithm.
pub fn draft(names: &[DraftedName], unread: &[ContractFinding]) -> String {
    let mut text = "schema = 1\n# A draft from golden's signatures. Say in `about` what a caller has to know: shapes, types, meaning; no \
                    algorithm.\n"
        .to_owned();
    for ContractFinding { file, line, what, .. } in unread {
        let _ = writeln!(text, "# Not read, {file}:{line}: {}", what.replace(char::is_control, " "));
    }
    if names.is_empty() && unread.is_empty() {
        text.push_str("# No official test and no observer touches a name that the change adds.\n");
    }
    for DraftedName { listed, golden_says, touched: (file, line) } in names {
        let _ = write!(text, "\n# touched at {file}:{line}\n");
        if let Some(says) = golden_says {
            let _ = writeln!(text, "# golden says: {}", says.trim());
        }
        let _ = write!(text, "[[name]]\nname = {}\nkind = {}\n", quoted(&listed.name), quoted(kind(listed)));
        if let Some(signature) = &listed.signature {
            let _ = writeln!(text, "signature = {}", quoted(signature));
        }
        let _ = writeln!(text, "about = {}", quoted(&listed.about));
    }
    text
}

fn kind(listed: &infradev_model::ContractName) -> &'static str {
    use infradev_model::NameKind;
    match listed.kind {
        NameKind::Module => "module",
        NameKind::Class => "class",
        NameKind::Function => "function",
        NameKind::Method => "method",
        NameKind::Attribute => "attribute",
        NameKind::Setting => "setting",
        NameKind::Flag => "flag",
        NameKind::Variable => "variable",
    }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use infradev_model::{ContractFinding, ContractRule};

    use super::draft;

    #[test]
    fn a_draft_without_names_says_whether_all_tests_were_read() {
        assert!(
            draft(&[], &[])
                .ends_with("# No official test and no observer touches a name that the change adds.\n")
        );
        let finding =
            ContractFinding::new("tests/test_m.py", 3, ContractRule::Unread, "not valid Python".to_owned());
        let text = draft(&[], &[finding]);
        assert!(text.ends_with("# Not read, tests/test_m.py:3: not valid Python\n"), "{text}");
        assert!(!text.contains("No official test"), "{text}");
    }
}
