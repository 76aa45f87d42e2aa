//! What of a file behaves: a key that is equal for texts that differ only in what no run shows.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use ruff_python_ast::comparable::ComparableModModule;
use ruff_python_ast::helpers::is_docstring_stmt;
use ruff_python_ast::visitor::transformer::{Transformer, walk_expr, walk_stmt};
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprNoneLiteral, ModModule, Stmt, StmtAssign, StmtPass, Suite};

use super::quiet;
use super::walk::segments;
use crate::equality::{drop_docstring, fold_elif};
use crate::module::{ParseError, parse_bounded};

/// A hash of the file's syntax tree, left out what does not behave: docstrings, annotations outside of classes, text for
/// people, `__all__`, what is for type checkers alone, `pass` beside other statements, and imports whose name is not
/// used (outside of `__init__.py` and of `try`, which asks whether a module is there).
pub(super) fn key(path: &str, source: &str) -> Result<u64, ParseError> {
    let mut module = parse_bounded(path, source)?.into_syntax();
    if module.body.first().is_some_and(is_docstring_stmt) {
        module.body.remove(0);
    }
    let exported = exported(&module.body);
    tidy(&mut module.body, false);
    Behave { in_class: false }.visit_body(&mut module.body);
    if !path.ends_with("__init__.py") {
        drop_unused_imports(&mut module, exported);
    }
    let mut hasher = DefaultHasher::new();
    ComparableModModule::from(&module).hash(&mut hasher);
    Ok(hasher.finish())
}

struct Behave {
    in_class: bool,
}

impl Transformer for Behave {
    fn visit_stmt(&self, statement: &mut Stmt) {
        match statement {
            Stmt::FunctionDef(function) => {
                drop_docstring(&mut function.body);
                function.returns = None;
            }
            Stmt::ClassDef(class) => drop_docstring(&mut class.body),
            Stmt::If(conditional) => fold_elif(&mut conditional.elif_else_clauses),
            Stmt::Assert(assert) => assert.msg = None,
            Stmt::Raise(raise) => {
                if let Some(Expr::Call(call)) = raise.exc.as_deref_mut() {
                    call.arguments.args.iter_mut().filter(|a| is_words(a)).for_each(|a| *a = none());
                }
            }
            Stmt::AnnAssign(assign) if !self.in_class => {
                // Without a value it declares only, and `tidy` has dropped it.
                if let Some(value) = assign.value.take() {
                    *statement = Stmt::Assign(StmtAssign {
                        node_index: Default::default(),
                        range: assign.range,
                        targets: vec![(*assign.target).clone()],
                        value,
                    });
                }
            }
            Stmt::AnnAssign(assign) if !is_marker(&assign.annotation) => *assign.annotation = none(),
            _ => {}
        }
        let in_class = match statement {
            Stmt::ClassDef(_) => true,
            Stmt::FunctionDef(_) => false,
            _ => self.in_class,
        };
        for block in blocks_mut(statement) {
            tidy(block, in_class);
        }
        walk_stmt(&Behave { in_class }, statement);
    }

    fn visit_expr(&self, expr: &mut Expr) {
        if let Expr::Call(call) = expr {
            match segments(&call.func).as_slice() {
                ["cast"] | ["typing" | "t", "cast"] if call.arguments.args.len() == 2 => {
                    let value = call.arguments.args[1].clone();
                    *expr = value;
                    return self.visit_expr(expr);
                }
                _ => {
                    let quiet = |k: &ruff_python_ast::Keyword| {
                        k.arg.as_ref().is_some_and(|name| quiet::is_words_keyword(name)) && is_words(&k.value)
                    };
                    call.arguments.keywords.retain(|keyword| !quiet(keyword));
                }
            }
        }
        walk_expr(self, expr);
    }

    fn visit_parameter(&self, parameter: &mut ruff_python_ast::Parameter) {
        parameter.annotation = None;
    }
}

/// Annotations that change what a class does with its field.
fn is_marker(annotation: &Expr) -> bool {
    let name = match annotation {
        Expr::Subscript(subscript) => segments(&subscript.value),
        other => segments(other),
    };
    matches!(name.last().copied(), Some("ClassVar" | "InitVar" | "KW_ONLY"))
}

fn is_words(expr: &Expr) -> bool {
    match expr {
        Expr::StringLiteral(_) | Expr::FString(_) => true,
        Expr::BinOp(sum) => is_words(&sum.left) || is_words(&sum.right),
        Expr::Call(call) => call.func.as_attribute_expr().is_some_and(|f| is_words(&f.value)),
        _ => false,
    }
}

fn none() -> Expr {
    Expr::NoneLiteral(ExprNoneLiteral { node_index: Default::default(), range: Default::default() })
}

/// The blocks of a statement, of a definition too.
fn blocks_mut(statement: &mut Stmt) -> Vec<&mut Suite> {
    match statement {
        Stmt::FunctionDef(s) => vec![&mut s.body],
        Stmt::ClassDef(s) => vec![&mut s.body],
        Stmt::If(s) => std::iter::once(&mut s.body)
            .chain(s.elif_else_clauses.iter_mut().map(|clause| &mut clause.body))
            .collect(),
        Stmt::For(s) => vec![&mut s.body, &mut s.orelse],
        Stmt::While(s) => vec![&mut s.body, &mut s.orelse],
        Stmt::With(s) => vec![&mut s.body],
        Stmt::Match(s) => s.cases.iter_mut().map(|case| &mut case.body).collect(),
        Stmt::Try(s) => {
            let mut blocks = vec![&mut s.body];
            for ruff_python_ast::ExceptHandler::ExceptHandler(handler) in &mut s.handlers {
                blocks.push(&mut handler.body);
            }
            blocks.push(&mut s.orelse);
            blocks.push(&mut s.finalbody);
            blocks
        }
        _ => Vec::new(),
    }
}

/// Drops the statements of a block that do nothing; `pass` stays where nothing else does.
fn tidy(block: &mut Suite, in_class: bool) {
    if block.is_empty() {
        return;
    }
    block.retain(|statement| match statement {
        Stmt::Pass(_) => false,
        Stmt::Expr(expr) => {
            !quiet::is_talk_statement(statement)
                && !expr.value.is_string_literal_expr()
                && !expr.value.is_ellipsis_literal_expr()
        }
        Stmt::AnnAssign(assign) => assign.value.is_some() || in_class,
        Stmt::If(conditional) => {
            !(quiet::is_for_type_checkers(&conditional.test) && conditional.elif_else_clauses.is_empty())
        }
        Stmt::ImportFrom(import) => import.module.as_ref().is_none_or(|name| name.as_str() != "__future__"),
        other => !quiet::is_declaration(other),
    });
    if block.is_empty() {
        block.push(Stmt::Pass(StmtPass { node_index: Default::default(), range: Default::default() }));
    }
}

/// The names in `__all__`.
fn exported(body: &[Stmt]) -> HashSet<String> {
    struct Strings(HashSet<String>);
    impl<'a> Visitor<'a> for Strings {
        fn visit_expr(&mut self, expr: &'a Expr) {
            if let Expr::StringLiteral(literal) = expr {
                self.0.insert(literal.value.to_str().to_owned());
            }
            visitor::walk_expr(self, expr);
        }
    }
    let mut strings = Strings(HashSet::new());
    body.iter().filter(|statement| quiet::is_declaration(statement)).for_each(|s| strings.visit_stmt(s));
    strings.0
}

fn drop_unused_imports(module: &mut ModModule, mut used: HashSet<String>) {
    struct Names<'u>(&'u mut HashSet<String>);
    impl<'a> Visitor<'a> for Names<'_> {
        fn visit_expr(&mut self, expr: &'a Expr) {
            if let Expr::Name(name) = expr {
                self.0.insert(name.id.to_string());
            }
            visitor::walk_expr(self, expr);
        }
    }
    Names(&mut used).visit_body(&module.body);
    drop_imports(&mut module.body, &used, false);
}

fn drop_imports(block: &mut Suite, used: &HashSet<String>, in_try: bool) {
    if block.is_empty() {
        return;
    }
    for statement in block.iter_mut() {
        let in_try = in_try || statement.is_try_stmt();
        blocks_mut(statement).into_iter().for_each(|inner| drop_imports(inner, used, in_try));
        if in_try {
            continue;
        }
        let keep = |alias: &ruff_python_ast::Alias| {
            let bound = alias.asname.as_ref().unwrap_or(&alias.name).as_str();
            let bound = bound.split('.').next().unwrap_or(bound);
            bound == "*" || used.contains(bound)
        };
        match statement {
            Stmt::Import(import) => import.names.retain(keep),
            Stmt::ImportFrom(import) => import.names.retain(keep),
            _ => {}
        }
    }
    block.retain(|statement| match statement {
        Stmt::Import(import) => !import.names.is_empty(),
        Stmt::ImportFrom(import) => !import.names.is_empty(),
        _ => true,
    });
    if block.is_empty() {
        block.push(Stmt::Pass(StmtPass { node_index: Default::default(), range: Default::default() }));
    }
}
