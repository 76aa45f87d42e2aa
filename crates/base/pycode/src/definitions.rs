//! What a file defines: functions, methods and classes by qualified name, wherever they stand.

use ruff_python_ast::helpers::{map_callable, map_subscript};
use ruff_python_ast::token::TokenKind;
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Stmt, StmtClassDef, StmtFunctionDef};
use ruff_text_size::{Ranged, TextRange, TextSize};

use crate::module::{Module, Span};
use crate::stub;

/// What a definition is, by where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DefinitionKind {
    /// `class`.
    Class,
    /// `def` in a module or in a function.
    Function,
    /// `def` directly in a class.
    Method,
}

/// The part of a property that a method plays, where another method of the same name exists beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Accessor {
    /// `@name.getter`.
    Getter,
    /// `@name.setter`.
    Setter,
    /// `@name.deleter`.
    Deleter,
}

/// One `def` or `class`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// The name as Python's `__qualname__` has it: `Outer.method`, `outer.<locals>.inner`.
    pub qualified_name: String,
    /// Function, method or class.
    pub kind: DefinitionKind,
    /// Set on `@name.setter` and its like, which share a qualified name with their property.
    pub accessor: Option<Accessor>,
    /// From the first decorator to the end of the body.
    pub span: Span,
    /// Line of the `def` or `class` keyword, from 1.
    pub line: usize,
    /// The text from `def`, `async def` or `class` up to the colon, which is left out.
    pub signature: String,
    /// The text of each decorator, without its `@`.
    pub decorators: Vec<String>,
    /// `async def`.
    pub is_async: bool,
    /// Yields in its own scope (an asynchronous generator is `is_async` as well).
    pub is_generator: bool,
    /// Decorated with `overload`.
    pub is_overload: bool,
    /// Decorated with `abstractmethod` or one of its kin.
    pub is_abstract: bool,
    /// A method of a class whose bases name `Protocol`, with nothing but `...`, `pass` or a docstring in it.
    pub is_protocol_stub: bool,
    /// Compiled from its own source by triton, numba, TorchScript and the like (`@triton.jit`, `@njit`, …).
    pub is_jit_kernel: bool,
}

impl Module {
    /// Every definition, in the order of the text: inside classes, functions, `if`, `try`, `with`, loops and `match`.
    pub fn definitions(&self) -> Vec<Definition> {
        let mut found = Vec::new();
        walk(self.body(), &Scope::module(), &mut |site| {
            found.push(self.definition(site));
            true
        });
        found
    }

    fn definition(&self, site: &Site<'_, '_>) -> Definition {
        let keyword = self.keyword_start(site);
        let decorators = site.decorators();
        let function = site.function();
        Definition {
            qualified_name: site.qualified_name.clone(),
            kind: site.kind(),
            accessor: site.accessor(),
            span: site.range().into(),
            line: self.line_column(keyword).0,
            signature: self.signature(site).to_owned(),
            decorators: decorators.iter().map(|d| self.text(&d.expression).to_owned()).collect(),
            is_async: function.is_some_and(|f| f.is_async),
            is_generator: function.is_some_and(is_generator),
            is_overload: function.is_some_and(is_overload),
            is_abstract: function.is_some_and(is_abstract),
            is_protocol_stub: function.is_some_and(|f| site.in_protocol() && stub::is_stub(&f.body)),
            is_jit_kernel: function.is_some_and(is_jit_kernel),
        }
    }

    /// Where `def`, `async` or `class` stands, after the decorators.
    pub(crate) fn keyword_start(&self, site: &Site<'_, '_>) -> usize {
        let name = site.name_range().start();
        let start = site.decorators().last().map_or(site.range().start(), |d| d.range().end());
        let keywords = [TokenKind::Def, TokenKind::Async, TokenKind::Class];
        let tokens = self.tokens().in_range(TextRange::new(start, name));
        tokens.iter().find(|t| keywords.contains(&t.kind())).map_or(name, Ranged::start).to_usize()
    }

    /// The text from the keyword up to the colon.
    pub(crate) fn signature(&self, site: &Site<'_, '_>) -> &str {
        let colon = self.colon(site.header_end());
        self.source()[self.keyword_start(site)..colon].trim_end()
    }

    /// The first colon at or after the end of a header.
    fn colon(&self, header_end: TextSize) -> usize {
        let colon = self.tokens().after(header_end).iter().find(|t| t.kind() == TokenKind::Colon);
        colon.map_or(header_end, Ranged::start).to_usize()
    }
}

/// Where a definition stands.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    prefix: String,
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Module,
    Class { protocol: bool },
    Function,
}

impl Scope {
    pub(crate) fn module() -> Scope {
        Scope { prefix: String::new(), place: Place::Module }
    }
}

/// A definition met by [`walk`].
pub(crate) struct Site<'a, 's> {
    pub(crate) qualified_name: String,
    pub(crate) node: Node<'a>,
    scope: &'s Scope,
}

#[derive(Clone, Copy)]
pub(crate) enum Node<'a> {
    Function(&'a StmtFunctionDef),
    Class(&'a StmtClassDef),
}

impl<'a> Site<'a, '_> {
    pub(crate) fn function(&self) -> Option<&'a StmtFunctionDef> {
        match self.node {
            Node::Function(function) => Some(function),
            Node::Class(_) => None,
        }
    }

    pub(crate) fn kind(&self) -> DefinitionKind {
        match (self.node, self.scope.place) {
            (Node::Class(_), _) => DefinitionKind::Class,
            (Node::Function(_), Place::Class { .. }) => DefinitionKind::Method,
            (Node::Function(_), _) => DefinitionKind::Function,
        }
    }

    pub(crate) fn in_protocol(&self) -> bool {
        self.scope.place == Place::Class { protocol: true }
    }

    pub(crate) fn accessor(&self) -> Option<Accessor> {
        let function = self.function()?;
        function.decorator_list.iter().find_map(|decorator| match &decorator.expression {
            Expr::Attribute(attribute) => match (attribute.value.as_name_expr(), attribute.attr.as_str()) {
                (Some(of), "setter") if of.id == function.name.id => Some(Accessor::Setter),
                (Some(of), "getter") if of.id == function.name.id => Some(Accessor::Getter),
                (Some(of), "deleter") if of.id == function.name.id => Some(Accessor::Deleter),
                _ => None,
            },
            _ => None,
        })
    }

    fn decorators(&self) -> &'a [ruff_python_ast::Decorator] {
        match self.node {
            Node::Function(f) => &f.decorator_list,
            Node::Class(c) => &c.decorator_list,
        }
    }

    fn range(&self) -> TextRange {
        match self.node {
            Node::Function(f) => f.range(),
            Node::Class(c) => c.range(),
        }
    }

    fn name_range(&self) -> TextRange {
        match self.node {
            Node::Function(f) => f.name.range(),
            Node::Class(c) => c.name.range(),
        }
    }

    fn header_end(&self) -> TextSize {
        match self.node {
            Node::Function(f) => f.returns.as_ref().map_or(f.parameters.end(), |r| r.end()),
            Node::Class(c) => {
                let parameters = c.type_params.as_ref().map_or(c.name.end(), |t| t.end());
                c.arguments.as_ref().map_or(parameters, |a| a.end())
            }
        }
    }
}

/// Visits every definition in the order of the text; `visit` says whether to look inside the one it was given.
pub(crate) fn walk<'a>(body: &'a [Stmt], scope: &Scope, visit: &mut dyn FnMut(&Site<'a, '_>) -> bool) {
    for statement in body {
        match statement {
            Stmt::FunctionDef(function) => {
                let qualified_name = format!("{}{}", scope.prefix, function.name);
                let inner = Scope { prefix: format!("{qualified_name}.<locals>."), place: Place::Function };
                if visit(&Site { qualified_name, node: Node::Function(function), scope }) {
                    walk(&function.body, &inner, visit);
                }
            }
            Stmt::ClassDef(class) => {
                let qualified_name = format!("{}{}", scope.prefix, class.name);
                let protocol = bases(class).any(|base| base.last().is_some_and(|name| *name == "Protocol"));
                let inner = Scope { prefix: format!("{qualified_name}."), place: Place::Class { protocol } };
                if visit(&Site { qualified_name, node: Node::Class(class), scope }) {
                    walk(&class.body, &inner, visit);
                }
            }
            other => {
                for block in blocks(other) {
                    walk(block, scope, visit);
                }
            }
        }
    }
}

/// The blocks of a compound statement that opens no scope.
pub(crate) fn blocks(statement: &Stmt) -> Vec<&[Stmt]> {
    match statement {
        Stmt::If(s) => std::iter::once(&s.body[..])
            .chain(s.elif_else_clauses.iter().map(|clause| &clause.body[..]))
            .collect(),
        Stmt::For(s) => vec![&s.body, &s.orelse],
        Stmt::While(s) => vec![&s.body, &s.orelse],
        Stmt::With(s) => vec![&s.body],
        Stmt::Match(s) => s.cases.iter().map(|case| &case.body[..]).collect(),
        Stmt::Try(s) => {
            let mut blocks: Vec<&[Stmt]> = vec![&s.body];
            for ruff_python_ast::ExceptHandler::ExceptHandler(handler) in &s.handlers {
                blocks.push(&handler.body);
            }
            blocks.push(&s.orelse);
            blocks.push(&s.finalbody);
            blocks
        }
        _ => Vec::new(),
    }
}

/// The dotted names of a class's bases: `typing.Protocol[T]` is `["typing", "Protocol"]`.
pub(crate) fn bases(class: &StmtClassDef) -> impl Iterator<Item = Vec<&str>> {
    class.arguments.iter().flat_map(|arguments| arguments.args.iter()).map(|base| dotted(map_subscript(base)))
}

/// The segments of a dotted name; empty for anything else.
pub(crate) fn dotted(expr: &Expr) -> Vec<&str> {
    match expr {
        Expr::Name(name) => vec![name.id.as_str()],
        Expr::Attribute(attribute) => {
            let mut segments = dotted(&attribute.value);
            if !segments.is_empty() {
                segments.push(attribute.attr.as_str());
            }
            segments
        }
        _ => Vec::new(),
    }
}

/// The dotted name that a decorator applies, through a call and `functools.partial`.
pub(crate) fn decorator_name(decorator: &ruff_python_ast::Decorator) -> Vec<&str> {
    let name = dotted(map_callable(&decorator.expression));
    if name.last() == Some(&"partial")
        && let Expr::Call(call) = &decorator.expression
        && let Some(first) = call.arguments.args.first()
    {
        return dotted(first);
    }
    name
}

/// Whether a decorator's last segment is one of `names`.
pub(crate) fn is_decorated(function: &StmtFunctionDef, names: &[&str]) -> bool {
    function.decorator_list.iter().any(|d| decorator_name(d).last().is_some_and(|last| names.contains(last)))
}

pub(crate) fn is_overload(function: &StmtFunctionDef) -> bool {
    is_decorated(function, &["overload"])
}

pub(crate) fn is_abstract(function: &StmtFunctionDef) -> bool {
    is_decorated(
        function,
        &["abstractmethod", "abstractproperty", "abstractclassmethod", "abstractstaticmethod"],
    )
}

/// Whether a decorator compiles the function from its source. `torch.jit.ignore` and `torch.jit.unused` leave it Python.
pub(crate) fn is_jit_kernel(function: &StmtFunctionDef) -> bool {
    function.decorator_list.iter().any(|decorator| {
        let name = decorator_name(decorator);
        matches!(
            name.as_slice(),
            [.., "jit", "script" | "script_method" | "export"]
                | [
                    ..,
                    "jit" | "njit" | "pjit" | "vectorize" | "guvectorize" | "stencil" | "cfunc" | "prim_func"
                ]
                | ["cute" | "gluon" | "cutile" | "ct", .., "kernel"]
        )
    })
}

/// Whether a function yields in its own scope.
pub(crate) fn is_generator(function: &StmtFunctionDef) -> bool {
    struct Yields(bool);
    impl<'a> Visitor<'a> for Yields {
        fn visit_stmt(&mut self, statement: &'a Stmt) {
            if !self.0 && !matches!(statement, Stmt::FunctionDef(_) | Stmt::ClassDef(_)) {
                visitor::walk_stmt(self, statement);
            }
        }
        fn visit_expr(&mut self, expr: &'a Expr) {
            match expr {
                Expr::Yield(_) | Expr::YieldFrom(_) => self.0 = true,
                Expr::Lambda(_) => {}
                _ => visitor::walk_expr(self, expr),
            }
        }
    }
    let mut yields = Yields(false);
    yields.visit_body(&function.body);
    yields.0
}
