//! Hollow patches: golden with the outermost functions that the change added raising `NotImplementedError`, all
//! interfaces in place (design: Hollow; the paper's hollow patch).

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use infradev_model::{Class, Classified};
use ruff_python_ast::comparable::ComparableStmt;
use ruff_python_ast::{Parameters, Stmt, StmtFunctionDef};
use ruff_text_size::Ranged;

use crate::definitions::{
    Accessor, DefinitionKind, Scope, Site, is_abstract, is_generator, is_jit_kernel, is_overload, walk,
};
use crate::equality::{normalised_body, same_statements};
use crate::import_time::runs_on_import;
use crate::module::{Module, ParseError, Span};
use crate::replace::replace_spans;
use crate::stub;

/// Which constructors are hollowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Variant {
    /// All functions that the change added.
    Full,
    /// `__init__`, `__post_init__`, `__new__`, `__init_subclass__` and `__set_name__` keep their bodies, so that a
    /// rejection comes from behaviour and not from an object that can't be made.
    KeepInit,
}

/// A definition of a file of the tree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QualifiedName {
    /// The file, as the caller named it.
    pub path: String,
    /// The name in it as `__qualname__` has it.
    pub name: String,
}

impl fmt::Display for QualifiedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.path, self.name)
    }
}

/// Why an added function keeps its body.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// `@overload`.
    Overload,
    /// An abstract method with nothing in it.
    AbstractStub,
    /// A method of a protocol with nothing in it.
    ProtocolStub,
    /// Nothing in it but `...`, `pass` or a docstring, or it raises `NotImplementedError` in golden.
    Stub,
    /// Compiled from its source by triton, numba, TorchScript or the like.
    JitKernel,
    /// The same body stands in base under this name: moved or renamed.
    Moved(QualifiedName),
    /// A constructor, in the variant that keeps them.
    Constructor,
    /// Called while its module is imported (a decorator, a registration): raising there would break the import.
    RunsOnImport,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Overload => f.write_str("an overload"),
            Reason::AbstractStub => f.write_str("an abstract stub"),
            Reason::ProtocolStub => f.write_str("a protocol stub"),
            Reason::Stub => f.write_str("nothing in it to hollow"),
            Reason::JitKernel => f.write_str("a compiled kernel"),
            Reason::Moved(from) => write!(f, "moved or renamed from {from}"),
            Reason::Constructor => f.write_str("a constructor"),
            Reason::RunsOnImport => f.write_str("runs on import"),
        }
    }
}

/// Golden's files made hollow.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hollowed {
    /// Every golden file that was given, in that order: path and text, changed or not.
    pub files: Vec<(String, String)>,
    /// The functions that raise now. Empty where the change adds none: hollow is not applicable.
    pub hollowed: Vec<QualifiedName>,
    /// The added functions that were left as they are, and why.
    pub kept: Vec<(QualifiedName, Reason)>,
    /// Files that did not parse, in base or in golden; golden's text of them is passed on as it is.
    pub unparsed: Vec<ParseError>,
}

impl Hollowed {
    /// Whether the change added a function that could be hollowed.
    pub fn is_applicable(&self) -> bool {
        !self.hollowed.is_empty()
    }
}

/// A hollow file that broke: a fault of this crate, never of the input.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HollowError {
    /// The hollow text is not Python any more.
    #[error("the hollow text of a valid file does not parse: {0}")]
    Unparseable(ParseError),
    /// A signature, a decorator or a definition got lost.
    #[error("hollowing {path} changed its definitions: expected `{expected}`, found `{found}`")]
    SignatureLost {
        /// The file.
        path: String,
        /// Name and signature in golden.
        expected: String,
        /// What stands there now.
        found: String,
    },
}

impl Classified for HollowError {
    fn class(&self) -> Class {
        Class::Fault
    }

    fn hint(&self) -> Option<String> {
        Some("this is a defect of InfraDev; report it with the file".to_owned())
    }
}

const CONSTRUCTORS: [&str; 5] = ["__init__", "__post_init__", "__new__", "__init_subclass__", "__set_name__"];

/// Makes golden hollow. `base` and `golden` are `(path, text)` of the files that golden adds, changes or removes, each as
/// it is in that tree. A function is added where the same file of base has no definition of that qualified name and no
/// file of base has its body (compared as by [`crate::ast_equal`]; a body of one simple statement counts as moved only
/// with the same name or parameters). Of nested added functions the outermost is hollowed, also inside a function that
/// base has. Generators, coroutines and context managers stay what they are: they raise when they are first run.
///
/// Files whose path doesn't end in `.py` are passed on. The result is parsed again and its signatures compared.
pub fn hollow(
    base: &[(impl AsRef<str>, impl AsRef<str>)],
    golden: &[(impl AsRef<str>, impl AsRef<str>)],
    variant: Variant,
) -> Result<Hollowed, HollowError> {
    let mut result = Hollowed::default();
    let mut broken_in_base = HashSet::new();
    let mut base_modules = Vec::new();
    for (path, text) in base.iter().map(|(path, text)| (path.as_ref(), text.as_ref())) {
        if !path.ends_with(".py") {
            continue;
        }
        match Module::parse(path, text) {
            Ok(module) => base_modules.push(module),
            Err(error) => {
                broken_in_base.insert(path.to_owned());
                result.unparsed.push(error);
            }
        }
    }
    let known = Known::of(&base_modules);

    let mut golden_modules = Vec::new();
    for (path, text) in golden.iter().map(|(path, text)| (path.as_ref(), text.as_ref())) {
        if !path.ends_with(".py") || broken_in_base.contains(path) {
            continue;
        }
        match Module::parse(path, text) {
            Ok(module) => golden_modules.push(module),
            Err(error) => result.unparsed.push(error),
        }
    }
    let on_import = runs_on_import(&golden_modules);

    let mut texts = HashMap::new();
    for module in &golden_modules {
        let edits = edits_of(module, &known, &on_import, variant, &mut result);
        if !edits.is_empty() {
            let spans = edits.iter().map(|(span, _)| *span).collect::<Vec<_>>();
            let text = replace_spans(module.source(), edits);
            check(module, &text, &spans)?;
            texts.insert(module.path().to_owned(), text);
        }
    }
    result.files = golden
        .iter()
        .map(|(path, text)| {
            let path = path.as_ref().to_owned();
            let text = texts.remove(&path).unwrap_or_else(|| text.as_ref().to_owned());
            (path, text)
        })
        .collect();
    Ok(result)
}

/// The replacements that make one file hollow; records what was hollowed and what was kept.
fn edits_of(
    module: &Module,
    known: &Known<'_>,
    on_import: &HashSet<QualifiedName>,
    variant: Variant,
    result: &mut Hollowed,
) -> Vec<(Span, String)> {
    let mut edits = Vec::new();
    walk(module.body(), &Scope::module(), &mut |site| {
        let Some(function) = site.function() else { return true };
        if known.has(module.path(), site) {
            return true;
        }
        let name = QualifiedName { path: module.path().to_owned(), name: site.qualified_name.clone() };
        match reason_to_keep(site, function, known, variant).or_else(|| {
            let runs = on_import.contains(&name);
            runs.then_some(Reason::RunsOnImport)
        }) {
            Some(reason) => result.kept.push((name, reason)),
            None => {
                edits.push(hollow_body(module, &site.qualified_name, function));
                result.hollowed.push(name);
            }
        }
        false
    });
    edits
}

fn reason_to_keep(
    site: &Site<'_, '_>,
    function: &StmtFunctionDef,
    known: &Known<'_>,
    variant: Variant,
) -> Option<Reason> {
    if is_overload(function) {
        return Some(Reason::Overload);
    }
    if stub::is_stub(&function.body) {
        return Some(if is_abstract(function) {
            Reason::AbstractStub
        } else if site.in_protocol() {
            Reason::ProtocolStub
        } else {
            Reason::Stub
        });
    }
    if stub::raises_not_implemented(&function.body) {
        return Some(Reason::Stub);
    }
    if is_jit_kernel(function) {
        return Some(Reason::JitKernel);
    }
    let constructor = site.kind() == DefinitionKind::Method && CONSTRUCTORS.contains(&function.name.as_str());
    if variant == Variant::KeepInit && constructor {
        return Some(Reason::Constructor);
    }
    known.moved_from(function).map(Reason::Moved)
}

/// What stands in place of a body, after its docstring.
fn hollow_body(module: &Module, qualified_name: &str, function: &StmtFunctionDef) -> (Span, String) {
    let raise = format!("raise NotImplementedError(\"hollow: {qualified_name}\")");
    let body = &function.body;
    let kept = body.len() - stub::after_docstring(body).len();
    let first = body[kept].start().to_usize();
    let end = body[body.len() - 1].end().to_usize();
    match module.own_indent(first) {
        Some(indent) => {
            let mut text = raise;
            if is_generator(function) {
                // Unreachable; it keeps the function a generator.
                text.push_str(&format!("{}{indent}yield", module.newline()));
            }
            (Span { start: first, end: module.line_end(end) }, text)
        }
        None if is_generator(function) => (Span { start: first, end }, format!("{raise}; yield")),
        None => (Span { start: first, end }, raise),
    }
}

/// Parses the hollow text and compares every definition outside the replaced bodies, in order.
fn check(golden: &Module, text: &str, replaced: &[Span]) -> Result<(), HollowError> {
    let hollow = Module::parse(golden.path(), text).map_err(HollowError::Unparseable)?;
    let outside =
        |d: &crate::Definition| !replaced.iter().any(|s| s.start <= d.span.start && d.span.end <= s.end);
    let describe = |d: &crate::Definition| {
        let decorators: String = d.decorators.iter().map(|decorator| format!("@{decorator} ")).collect();
        let generator = if d.is_generator { " (generator)" } else { "" };
        format!("{}: {decorators}{}{generator}", d.qualified_name, d.signature)
    };
    let expected: Vec<String> = golden.definitions().iter().filter(|d| outside(d)).map(describe).collect();
    let found: Vec<String> = hollow.definitions().iter().map(describe).collect();
    for at in 0..expected.len().max(found.len()) {
        let (want, got) = (expected.get(at), found.get(at));
        if want != got {
            let text = |side: Option<&String>| side.cloned().unwrap_or_else(|| "nothing".to_owned());
            return Err(HollowError::SignatureLost {
                path: golden.path().to_owned(),
                expected: text(want),
                found: text(got),
            });
        }
    }
    Ok(())
}

/// The functions of base: by name in their file, and by body anywhere.
struct Known<'a> {
    names: HashSet<(String, String, Option<Accessor>)>,
    bodies: HashMap<u64, Vec<KnownBody<'a>>>,
}

struct KnownBody<'a> {
    name: QualifiedName,
    function: &'a StmtFunctionDef,
    body: Vec<Stmt>,
}

impl<'a> Known<'a> {
    fn of(modules: &'a [Module]) -> Known<'a> {
        let mut known = Known { names: HashSet::new(), bodies: HashMap::new() };
        for module in modules {
            walk(module.body(), &Scope::module(), &mut |site| {
                known.names.insert((module.path().to_owned(), site.qualified_name.clone(), site.accessor()));
                if let Some(function) = site.function() {
                    let name =
                        QualifiedName { path: module.path().to_owned(), name: site.qualified_name.clone() };
                    let body = normalised_body(&function.body);
                    let entry = KnownBody { name, function, body };
                    known.bodies.entry(digest(&entry.body)).or_default().push(entry);
                }
                true
            });
        }
        known
    }

    fn has(&self, path: &str, site: &Site<'_, '_>) -> bool {
        self.names.contains(&(path.to_owned(), site.qualified_name.clone(), site.accessor()))
    }

    fn moved_from(&self, function: &StmtFunctionDef) -> Option<QualifiedName> {
        let body = normalised_body(&function.body);
        let candidates = self.bodies.get(&digest(&body))?;
        let alike = |known: &&KnownBody<'_>| {
            same_statements(&known.body, &body)
                && (!is_one_simple_statement(&body)
                    || known.function.name.id == function.name.id
                    || parameter_names(&known.function.parameters) == parameter_names(&function.parameters))
        };
        candidates.iter().find(alike).map(|known| known.name.clone())
    }
}

fn digest(body: &[Stmt]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for statement in body {
        ComparableStmt::from(statement).hash(&mut hasher);
    }
    hasher.finish()
}

fn is_one_simple_statement(body: &[Stmt]) -> bool {
    body.len() == 1 && !ruff_python_ast::helpers::is_compound_statement(&body[0])
}

fn parameter_names(parameters: &Parameters) -> Vec<&str> {
    parameters.iter().map(|parameter| parameter.name().as_str()).collect()
}
