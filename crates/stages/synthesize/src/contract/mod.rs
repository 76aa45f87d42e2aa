//! `contract.toml` drafted from golden's signatures.

use std::fmt::Write;

use infradev_executor::DraftedName;

/// The text of a drafted `contract.toml`.
///
/// What golden says of a name stands in comments, which no prompt shows: an author states what a caller has to know, and no
/// algorithm.
pub fn draft(names: &[DraftedName]) -> String {
    let mut text = "schema = 1\n# A draft from golden's signatures. Say in `about` what a caller has to know: shapes, types, meaning; no \
                    algorithm.\n"
        .to_owned();
    if names.is_empty() {
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
