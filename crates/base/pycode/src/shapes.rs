//! What two versions of a file are compared by: its outermost functions and its classes, each with a digest that docstrings,
//! comments and layout leave alone.

use std::hash::{Hash, Hasher};

use ruff_python_ast::comparable::{
    ComparableArguments, ComparableDecorator, ComparableExpr, ComparableParameters, ComparableStmt,
};
use ruff_python_ast::token::{Token, TokenKind};
use ruff_python_ast::{Stmt, StmtFunctionDef};
use ruff_text_size::Ranged;
use rustc_hash::FxHasher;

use crate::definitions::{
    Accessor, DefinitionKind, Node, Scope, is_abstract, is_jit_kernel, is_overload, walk,
};
use crate::module::{Module, Span};
use crate::stub;

/// One outermost function, method or class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// The name as Python's `__qualname__` has it.
    pub qualified_name: String,
    /// Function, method or class.
    pub kind: DefinitionKind,
    /// Set on `@name.setter` and its like.
    pub accessor: Option<Accessor>,
    /// Equal for equal code: of a function its decorators, signature and body, of a class its decorators, bases and those
    /// statements that are neither functions nor classes. Good within one run of a program.
    pub digest: u64,
    /// Of a function, the digest of its body alone.
    pub body: u64,
    /// A function with a body of its own to take out: no stub, overload, abstract method or compiled kernel.
    pub has_body: bool,
    /// Of a function its parameters, of a class the names that its own statements bind: what a caller can set.
    pub settable: u32,
}

/// The shapes of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shapes {
    /// Digest of the statements of the module that are neither functions nor classes.
    pub module: u64,
    /// In the order of the text.
    pub definitions: Vec<Shape>,
    /// Options of a command line that it adds: calls of `add_argument`.
    pub options: u32,
    /// A digest of each line that holds code, sorted: no comment, docstring or blank line, and no indent.
    pub lines: Vec<u64>,
}

impl Module {
    /// The outermost functions, the classes and their methods, each with its digest.
    pub fn shapes(&self) -> Shapes {
        let mut definitions = Vec::new();
        walk(self.body(), &Scope::module(), &mut |site| {
            let (digest, body, has_body, settable) = match site.node {
                Node::Function(function) => {
                    let body = of_statements(stub::after_docstring(&function.body));
                    let stubbed = stub::is_stub(&function.body)
                        || stub::raises_not_implemented(&function.body)
                        || is_overload(function)
                        || is_abstract(function)
                        || is_jit_kernel(function);
                    (of_function(function, body), body, !stubbed, function.parameters.iter().count() as u32)
                }
                Node::Class(class) => {
                    let mut hasher = FxHasher::default();
                    for decorator in &class.decorator_list {
                        ComparableDecorator::from(decorator).hash(&mut hasher);
                    }
                    if let Some(arguments) = class.arguments.as_deref() {
                        ComparableArguments::from(arguments).hash(&mut hasher);
                    }
                    own_statements(stub::after_docstring(&class.body)).hash(&mut hasher);
                    (hasher.finish(), 0, false, bound(&class.body))
                }
            };
            definitions.push(Shape {
                qualified_name: site.qualified_name.clone(),
                kind: site.kind(),
                accessor: site.accessor(),
                digest,
                body,
                has_body,
                settable,
            });
            matches!(site.node, Node::Class(_))
        });
        let options = self.source().matches(".add_argument(").count() as u32;
        let module = own_statements(stub::after_docstring(self.body()));
        Shapes { module, definitions, options, lines: self.code_lines() }
    }

    /// Digests of the lines that hold code, sorted.
    fn code_lines(&self) -> Vec<u64> {
        let source = self.source();
        let mut ends = source.match_indices('\n').map(|(at, _)| at).chain([source.len()]);
        let (mut begin, mut end) = (0, ends.next().unwrap_or_default());
        // Where the code of the line that is read ends; 0 where it has none so far.
        let mut code = 0;
        let mut lines = Vec::new();
        let mut close = |begin: usize, code: usize| {
            if code > begin {
                let mut hasher = FxHasher::default();
                source.as_bytes()[begin..code].trim_ascii().hash(&mut hasher);
                lines.push(hasher.finish());
            }
        };
        let mut alone = true;
        let tokens: &[Token] = self.tokens();
        for (at, token) in tokens.iter().enumerate() {
            match token.kind() {
                TokenKind::Newline | TokenKind::Indent | TokenKind::Dedent => {
                    alone = true;
                    continue;
                }
                TokenKind::NonLogicalNewline | TokenKind::Comment | TokenKind::EndOfFile => continue,
                // A string that is a statement of its own says something to readers only.
                TokenKind::String
                    if alone
                        && tokens.get(at + 1).is_none_or(|next| {
                            matches!(next.kind(), TokenKind::Newline | TokenKind::EndOfFile)
                        }) =>
                {
                    continue;
                }
                _ => alone = false,
            }
            let span = Span::from(token.range());
            while span.start > end {
                close(begin, code);
                begin = end + 1;
                end = ends.next().unwrap_or(source.len());
            }
            // A token of several lines, such as a text.
            while span.end > end {
                close(begin, end);
                begin = end + 1;
                end = ends.next().unwrap_or(source.len());
            }
            code = span.end;
        }
        close(begin, code);
        lines.sort_unstable();
        lines
    }
}

/// How many names the statements of a class bind themselves: fields of a dataclass, attributes.
fn bound(body: &[Stmt]) -> u32 {
    let binds = |statement: &&Stmt| matches!(statement, Stmt::AnnAssign(_) | Stmt::Assign(_));
    body.iter().filter(binds).count() as u32
}

fn of_function(function: &StmtFunctionDef, body: u64) -> u64 {
    let mut hasher = FxHasher::default();
    for decorator in &function.decorator_list {
        ComparableDecorator::from(decorator).hash(&mut hasher);
    }
    function.is_async.hash(&mut hasher);
    function.name.as_str().hash(&mut hasher);
    ComparableParameters::from(&function.parameters).hash(&mut hasher);
    function.returns.as_deref().map(ComparableExpr::from).hash(&mut hasher);
    body.hash(&mut hasher);
    hasher.finish()
}

fn own_statements(body: &[Stmt]) -> u64 {
    let own = body.iter().filter(|s| !matches!(s, Stmt::FunctionDef(_) | Stmt::ClassDef(_)));
    let mut hasher = FxHasher::default();
    for statement in own {
        ComparableStmt::from(statement).hash(&mut hasher);
    }
    hasher.finish()
}

fn of_statements(body: &[Stmt]) -> u64 {
    let mut hasher = FxHasher::default();
    for statement in body {
        ComparableStmt::from(statement).hash(&mut hasher);
    }
    hasher.finish()
}
