//! Messages: strings that say something in words, and the pieces of those with values in them.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, FStringPart, FStringValue, InterpolatedStringElement};

use crate::module::Module;

/// Shortest message that is told by itself, in characters.
const MESSAGE: usize = 12;

/// Whether a string is a message: long enough, and more than a word.
pub(super) fn tells(text: &str) -> bool {
    text.chars().count() >= MESSAGE && text.trim().contains(' ')
}

/// What stands between the values of an f-string, without the space around it. Literals that follow each other are one.
pub(super) fn pieces(string: &FStringValue) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut add = |piece: Option<&str>| match (piece, pieces.last_mut()) {
        (Some(piece), Some(last)) => last.push_str(piece),
        _ => pieces.push(String::new()),
    };
    for part in string {
        match part {
            FStringPart::Literal(literal) => add(Some(&literal.value)),
            FStringPart::FString(string) => string.elements.iter().for_each(|element| match element {
                InterpolatedStringElement::Literal(literal) => add(Some(&literal.value)),
                InterpolatedStringElement::Interpolation(_) => add(None),
            }),
        }
    }
    pieces.iter().map(|piece| piece.trim().to_owned()).collect()
}

/// All strings of a Python file and the pieces of its f-strings; none of what does not parse.
pub(super) fn strings(text: &str) -> Vec<String> {
    let mut strings = Strings::default();
    if let Ok(module) = Module::parse("", text) {
        strings.visit_body(module.body());
    }
    strings.0
}

#[derive(Default)]
struct Strings(Vec<String>);

impl<'a> Visitor<'a> for Strings {
    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::StringLiteral(string) => self.0.push(string.value.to_str().to_owned()),
            Expr::FString(string) => self.0.extend(pieces(&string.value)),
            _ => {}
        }
        visitor::walk_expr(self, expr);
    }
}
