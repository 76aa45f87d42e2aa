//! What two versions of a file are compared by: its outermost functions and its classes, each with a digest that docstrings,
//! comments and layout leave alone.

use std::hash::{DefaultHasher, Hash, Hasher};

use ruff_python_ast::comparable::{
    ComparableArguments, ComparableDecorator, ComparableExpr, ComparableParameters, ComparableStmt,
};
use ruff_python_ast::{Stmt, StmtFunctionDef};

use crate::definitions::{
    Accessor, DefinitionKind, Node, Scope, is_abstract, is_jit_kernel, is_overload, walk,
};
use crate::module::Module;
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
}

/// The shapes of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shapes {
    /// Digest of the statements of the module that are neither functions nor classes.
    pub module: u64,
    /// In the order of the text.
    pub definitions: Vec<Shape>,
}

impl Module {
    /// The outermost functions, the classes and their methods, each with its digest.
    pub fn shapes(&self) -> Shapes {
        let mut definitions = Vec::new();
        walk(self.body(), &Scope::module(), &mut |site| {
            let (digest, body, has_body) = match site.node {
                Node::Function(function) => {
                    let body = of_statements(stub::after_docstring(&function.body));
                    let stubbed = stub::is_stub(&function.body)
                        || stub::raises_not_implemented(&function.body)
                        || is_overload(function)
                        || is_abstract(function)
                        || is_jit_kernel(function);
                    (of_function(function, body), body, !stubbed)
                }
                Node::Class(class) => {
                    let mut hasher = DefaultHasher::new();
                    for decorator in &class.decorator_list {
                        ComparableDecorator::from(decorator).hash(&mut hasher);
                    }
                    if let Some(arguments) = class.arguments.as_deref() {
                        ComparableArguments::from(arguments).hash(&mut hasher);
                    }
                    own_statements(stub::after_docstring(&class.body)).hash(&mut hasher);
                    (hasher.finish(), 0, false)
                }
            };
            definitions.push(Shape {
                qualified_name: site.qualified_name.clone(),
                kind: site.kind(),
                accessor: site.accessor(),
                digest,
                body,
                has_body,
            });
            matches!(site.node, Node::Class(_))
        });
        Shapes { module: own_statements(stub::after_docstring(self.body())), definitions }
    }
}

fn of_function(function: &StmtFunctionDef, body: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
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
    let mut hasher = DefaultHasher::new();
    for statement in own {
        ComparableStmt::from(statement).hash(&mut hasher);
    }
    hasher.finish()
}

fn of_statements(body: &[Stmt]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for statement in body {
        ComparableStmt::from(statement).hash(&mut hasher);
    }
    hasher.finish()
}
