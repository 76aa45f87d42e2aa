//! Whether a signature that a contract lists is golden's, by the names of parameters and by which of them may be left out.

use super::outline::{Parameter, read_parameters};
use crate::module::Module;

/// A signature as Python writes it, `(a: int, *, b=3) -> int`. `None` where it is no such thing.
pub(crate) fn parse_signature(signature: &str) -> Option<Vec<Parameter>> {
    let text = format!("def f{signature}: ...\n");
    let module = Module::parse("signature", &text).ok()?;
    let [ruff_python_ast::Stmt::FunctionDef(function)] = module.body() else { return None };
    Some(read_parameters(&module, &function.parameters, false).0)
}

/// What sets one list of parameters apart from another, in words; `None` where a caller can't tell them apart. Annotations and
/// the values of defaults are no part of it.
pub(crate) fn difference(listed: &[Parameter], golden: &[Parameter]) -> Option<String> {
    let is_open =
        |parameters: &[Parameter]| parameters.iter().any(|parameter| parameter.text.starts_with('*'));
    if is_open(listed) || is_open(golden) {
        return None;
    }
    let names = |parameters: &[Parameter]| parameters.iter().map(|p| p.name.clone()).collect::<Vec<_>>();
    if names(listed) != names(golden) {
        return Some(format!(
            "its parameters are ({}), golden's are ({})",
            names(listed).join(", "),
            names(golden).join(", ")
        ));
    }
    let apart = listed.iter().zip(golden).find(|(listed, golden)| listed.optional != golden.optional)?;
    let word = if apart.1.optional { "has a default" } else { "has no default" };
    Some(format!("golden's parameter `{}` {word}", apart.1.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_differ_by_names_and_by_what_may_be_left_out() {
        let differ =
            |a: &str, b: &str| difference(&parse_signature(a).unwrap(), &parse_signature(b).unwrap());
        assert_eq!(differ("(a: int, b=1) -> int", "(a, b: int = 2)"), None);
        assert_eq!(differ("(a, *args)", "(b)"), None, "what takes anything is not compared");
        assert_eq!(differ("(a)", "(b)").unwrap(), "its parameters are (a), golden's are (b)");
        assert_eq!(differ("(a)", "(a=1)").unwrap(), "golden's parameter `a` has a default");
        assert!(parse_signature("str = 3").is_none());
    }
}
