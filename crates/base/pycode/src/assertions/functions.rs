//! The functions of a test file: tests, and helpers that assert for them.

use ruff_python_ast::{Expr, ExprCall, Stmt, StmtFunctionDef};
use rustc_hash::{FxHashMap, FxHashSet};

use super::locals::Locals;
use crate::definitions::blocks;

/// A function of a module, or a method of a class of it. Functions within are part of it.
pub(super) struct Function<'a> {
    pub(super) node: &'a StmtFunctionDef,
    /// As pytest names it within its file: `test_a`, `TestB::test_a`.
    pub(super) name: String,
    pub(super) in_class: bool,
    pub(super) locals: Locals<'a>,
}

impl Function<'_> {
    pub(super) fn is_test(&self) -> bool {
        self.node.name.starts_with("test")
    }
}

/// All functions of a module, what stands outside of any, and its imports.
pub(super) struct Functions<'a> {
    pub(super) all: Vec<Function<'a>>,
    pub(super) outside: Locals<'a>,
    /// Names that imports bind.
    pub(super) imported: FxHashSet<&'a str>,
    by_name: FxHashMap<&'a str, usize>,
    classes: FxHashSet<&'a str>,
}

impl<'a> Functions<'a> {
    pub(super) fn of(body: &'a [Stmt]) -> Functions<'a> {
        let mut functions = Functions {
            all: Vec::new(),
            outside: Locals::of_module(body),
            imported: FxHashSet::default(),
            by_name: FxHashMap::default(),
            classes: FxHashSet::default(),
        };
        functions.collect(body, "", false);
        for (at, function) in functions.all.iter().enumerate() {
            functions.by_name.insert(function.node.name.as_str(), at);
        }
        functions
    }

    fn collect(&mut self, body: &'a [Stmt], prefix: &str, in_class: bool) {
        for statement in body {
            match statement {
                Stmt::FunctionDef(node) => self.all.push(Function {
                    node,
                    name: format!("{prefix}{}", node.name),
                    in_class,
                    locals: Locals::of(&node.body),
                }),
                Stmt::ClassDef(class) => {
                    self.classes.insert(class.name.as_str());
                    self.collect(&class.body, &format!("{prefix}{}::", class.name), true);
                }
                Stmt::Import(import) => self.imported.extend(import.names.iter().map(|alias| {
                    let bound = alias.asname.as_ref().unwrap_or(&alias.name).as_str();
                    bound.split('.').next().unwrap_or(bound)
                })),
                Stmt::ImportFrom(import) => self.imported.extend(
                    import.names.iter().map(|alias| alias.asname.as_ref().unwrap_or(&alias.name).as_str()),
                ),
                other => blocks(other).into_iter().for_each(|block| self.collect(block, prefix, in_class)),
            }
        }
    }

    /// The function of this file that a call calls: by its name, or as a method of `self`, `cls` or a class of the file.
    pub(super) fn called(&self, call: &ExprCall) -> Option<usize> {
        let (name, method) = match &*call.func {
            Expr::Name(name) => (name.id.as_str(), false),
            Expr::Attribute(attribute) => {
                let of = attribute.value.as_name_expr()?.id.as_str();
                if !matches!(of, "self" | "cls") && !self.classes.contains(of) {
                    return None;
                }
                (attribute.attr.as_str(), true)
            }
            _ => return None,
        };
        let found = *self.by_name.get(name)?;
        (self.all[found].in_class == method).then_some(found)
    }
}
