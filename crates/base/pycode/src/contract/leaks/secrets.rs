//! What golden's code holds that its reader may not learn: statements, numbers, messages, names, comments, docstrings.

use std::collections::{BTreeMap, HashMap, HashSet};

use infradev_model::GoldenLine;
use ruff_python_ast::helpers::is_docstring_stmt;
use ruff_python_ast::token::TokenKind;
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Alias, Expr, ExprContext, Keyword, Number as Literal, Operator, Stmt};
use ruff_text_size::Ranged;

use super::NGRAM;
use super::bound::Bound;
use super::calls::other_forms;
use super::conditions;
use super::messages;
use super::number::{self, Number};
use super::prose::Passage;
use super::spelling::{self, Role, Text};
use super::statement::{self, Part, Statement};
use crate::definitions::blocks;
use crate::module::Module;

/// Fewest tokens of a run that brackets and quotes make as long as [`NGRAM`].
pub(super) const SHORTEST_RUN: usize = 6;

/// What added lines hold, each with the first place where it stands.
#[derive(Debug, Clone, Default)]
pub(super) struct Secrets {
    /// Tokens in a row.
    pub(super) runs: HashMap<Vec<String>, GoldenLine>,
    pub(super) statements: Vec<Statement>,
    /// As golden spells them.
    pub(super) numbers: BTreeMap<Number, (String, GoldenLine)>,
    pub(super) messages: BTreeMap<String, GoldenLine>,
    pub(super) names: BTreeMap<String, GoldenLine>,
    /// Names that functions bind for themselves.
    pub(super) locals: HashSet<String>,
    /// Names of all else: of definitions, parameters, attributes, keywords, keys.
    pub(super) interface: HashSet<String>,
    pub(super) passages: Vec<Passage>,
}

/// A Python file of golden's and base's version of it.
pub(super) struct Source<'m> {
    pub(super) module: &'m Module,
    /// The lines of base's version, without the space around them.
    pub(super) old: HashSet<&'m str>,
    /// Whether the documentation of a qualified name is part of the interface.
    pub(super) is_listed: &'m dyn Fn(&str) -> bool,
}

impl Secrets {
    /// Adds what a file holds.
    pub(super) fn read(&mut self, source: Source<'_>) {
        let mut reader = Reader { source, secrets: self, scopes: Vec::new(), qualified: Vec::new() };
        reader.comments();
        reader.documentation(reader.source.module.body());
        reader.visit_body(reader.source.module.body());
    }
}

struct Reader<'m, 's> {
    source: Source<'m>,
    secrets: &'s mut Secrets,
    /// The names that the functions around bind.
    scopes: Vec<HashSet<String>>,
    /// The names of the classes and functions around.
    qualified: Vec<String>,
}

impl<'m> Reader<'m, '_> {
    fn line(&self, ranged: &impl Ranged) -> usize {
        self.source.module.line_column(ranged.start().to_usize()).0
    }

    fn golden(&self, ranged: &impl Ranged) -> GoldenLine {
        GoldenLine { file: self.source.module.path().to_owned(), line: self.line(ranged) as u32 }
    }

    /// Whether any line of a range is added.
    fn is_added(&self, ranged: &impl Ranged) -> bool {
        self.source.module.text(ranged).lines().any(|line| !self.source.old.contains(line.trim()))
    }

    /// Whether the line on which a range begins is added.
    fn begins_on_added(&self, ranged: &impl Ranged) -> bool {
        let line = self.source.module.source().lines().nth(self.line(ranged) - 1).unwrap_or_default();
        !self.source.old.contains(line.trim())
    }

    /// The text of a range without comments.
    fn code(&self, ranged: &impl Ranged) -> String {
        let (module, range) = (self.source.module, ranged.range());
        let mut text = String::new();
        let mut from = range.start().to_usize();
        for token in module.tokens().in_range(range) {
            if token.kind() == TokenKind::Comment {
                text.push_str(&module.source()[from..token.start().to_usize()]);
                from = token.end().to_usize();
            }
        }
        text + &module.source()[from..range.end().to_usize()]
    }

    /// Comments on added lines; those that follow each other are one.
    fn comments(&mut self) {
        let module = self.source.module;
        let mut last = None;
        for token in module.tokens().iter().filter(|token| token.kind() == TokenKind::Comment) {
            if !self.begins_on_added(token) {
                continue;
            }
            let (line, text) = (self.line(token), module.text(token));
            match self.secrets.passages.last_mut() {
                Some(passage) if last == Some(line - 1) => {
                    passage.text.push('\n');
                    passage.text.push_str(text);
                }
                _ => {
                    let golden = self.golden(token);
                    self.secrets.passages.push(Passage { text: text.to_owned(), golden });
                }
            }
            last = Some(line);
        }
    }

    /// The docstring of what these statements are the body of, unless the contract lists that.
    fn documentation(&mut self, body: &[Stmt]) {
        let Some(docstring) = body.first().filter(|statement| is_docstring_stmt(statement)) else { return };
        let name = self.qualified.join(".");
        let name = name.strip_suffix(".__init__").unwrap_or(&name);
        if self.is_added(docstring) && !(self.source.is_listed)(name) {
            let text = self.source.module.text(docstring).to_owned();
            let golden = self.golden(docstring);
            self.secrets.passages.push(Passage { text, golden });
        }
    }

    /// A statement; `others` are further ways to write it.
    fn statement(&mut self, ranged: &impl Ranged, part: Part, others: Vec<String>) {
        if self.scopes.is_empty() || !self.is_added(ranged) {
            return;
        }
        let (text, golden) = (self.code(ranged), self.golden(ranged));
        let runs = if part == Part::Value { Vec::new() } else { runs_of(&text) };
        let locals: HashSet<String> = self.scopes.iter().flatten().cloned().collect();
        let texts = [vec![text], others].concat();
        self.secrets.statements.extend(Statement::of(&texts, part, &locals, golden.clone()));
        for run in runs {
            self.secrets.runs.entry(run).or_insert_with(|| golden.clone());
        }
    }

    /// An expression, with its calls in whichever form, or the operands of a condition.
    fn value(&mut self, value: &Expr, part: Part) {
        let mut others = other_forms(self.source.module, value);
        others.extend(conditions::other_forms(self.source.module, value));
        self.statement(value, part, others);
    }

    /// A statement with the value that it gives; `to_name` says that it gives it to a plain name, if to anything.
    fn around(&mut self, whole: &impl Ranged, value: Option<&Expr>, to_name: bool) {
        let is_around = to_name && value.is_some_and(|value| !self.is_short_operation(value));
        let part = if is_around { Part::Around } else { Part::Whole };
        self.statement(whole, part, Vec::new());
        if let Some(value) = value {
            self.value(value, Part::Value);
        }
    }

    /// Whether a value computes something, in too few tokens to be told without what it is given to.
    fn is_short_operation(&self, value: &Expr) -> bool {
        matches!(value, Expr::BinOp(_) | Expr::BoolOp(_) | Expr::Compare(_))
            && statement::is_short(&self.code(value))
    }

    fn name(&mut self, name: &str, ranged: &impl Ranged) {
        if name.chars().count() > 2 && self.begins_on_added(ranged) {
            let golden = self.golden(ranged);
            self.secrets.names.entry(name.to_owned()).or_insert(golden);
        }
    }

    /// A name that is bound here: the function's own, or one that others may use.
    fn bound(&mut self, name: &str, ranged: &impl Ranged) {
        self.name(name, ranged);
        let names =
            if self.scopes.is_empty() { &mut self.secrets.interface } else { &mut self.secrets.locals };
        names.insert(name.to_owned());
    }

    fn number(&mut self, number: Number, ranged: &impl Ranged) {
        if number.tells() && self.is_added(ranged) {
            let spelled = (self.source.module.text(ranged).to_owned(), self.golden(ranged));
            self.secrets.numbers.entry(number).or_insert(spelled);
        }
    }

    fn message(&mut self, text: &str, ranged: &impl Ranged) {
        if messages::tells(text) && self.is_added(ranged) {
            let golden = self.golden(ranged);
            self.secrets.messages.entry(text.to_owned()).or_insert(golden);
        }
    }

    fn function(&mut self, function: &'m ruff_python_ast::StmtFunctionDef) {
        self.bound(&function.name, &function.name);
        for parameter in function.parameters.iter() {
            self.bound(parameter.name(), &parameter.name());
        }
        let mut own = Bound::default();
        own.visit_body(&function.body);
        own.0.extend(function.parameters.iter().map(|parameter| parameter.name().as_str().to_owned()));
        self.scopes.push(own.0);
        self.qualified.push(function.name.as_str().to_owned());
        self.documentation(&function.body);
        self.visit_body(&function.body);
        self.qualified.pop();
        self.scopes.pop();
    }
}

/// Runs of tokens that are too long to stand in a text.
fn runs_of(text: &str) -> Vec<Vec<String>> {
    let mut tokens = spelling::tokens(text, Text::Code);
    tokens.retain(|token| token.role == Role::Plain);
    let mut runs = Vec::new();
    for at in 0..tokens.len() {
        let weight = |length: usize| tokens[at..at + length].iter().map(|token| token.weight).sum::<usize>();
        let lengths = SHORTEST_RUN..=NGRAM.min(tokens.len() - at);
        if let Some(length) = lengths.into_iter().find(|length| weight(*length) >= NGRAM) {
            let run: Vec<String> = tokens[at..at + length].iter().map(|token| token.text.clone()).collect();
            let names: HashSet<&String> = run.iter().filter(|token| statement::is_telling(token)).collect();
            if names.len() > 1 {
                runs.push(run);
            }
        }
    }
    runs
}

/// The value of an expression of numbers alone: `16 << 20`, `4 * 1024`, `10 ** -6`.
fn value_of(module: &Module, expr: &Expr) -> Option<Number> {
    match expr {
        Expr::NumberLiteral(literal) if !matches!(literal.value, Literal::Complex { .. }) => {
            let text = module.text(literal);
            // `1.` and `1.e3` are Python's only.
            let text = text.replace(".e", ".0e").replace(".E", ".0e");
            number::folded(text.trim_end_matches('.'), 0).map(|(_, value)| value)
        }
        Expr::UnaryOp(unary) => value_of(module, &unary.operand),
        Expr::BinOp(operation) => {
            let (left, right) = (value_of(module, &operation.left)?, value_of(module, &operation.right)?);
            match operation.op {
                Operator::Mult => left.times(right),
                Operator::Pow => left.power(right, operation.right.is_unary_op_expr()),
                Operator::LShift => left.shifted(right),
                _ => None,
            }
        }
        _ => None,
    }
}

impl<'m> Visitor<'m> for Reader<'m, '_> {
    fn visit_stmt(&mut self, statement: &'m Stmt) {
        match statement {
            Stmt::Import(import) => import.names.iter().for_each(|alias| self.visit_alias(alias)),
            Stmt::ImportFrom(import) => import.names.iter().for_each(|alias| self.visit_alias(alias)),
            Stmt::FunctionDef(function) => self.function(function),
            Stmt::ClassDef(class) => {
                self.bound(&class.name, &class.name);
                let scopes = std::mem::take(&mut self.scopes);
                self.qualified.push(class.name.as_str().to_owned());
                self.documentation(&class.body);
                self.visit_body(&class.body);
                self.qualified.pop();
                self.scopes = scopes;
            }
            Stmt::Expr(_) if is_docstring_stmt(statement) => {}
            // A field with its default, or the module's own list of what it offers.
            Stmt::AnnAssign(assign) if self.scopes.is_empty() => {
                if let Some(name) = assign.target.as_name_expr() {
                    self.bound(&name.id, assign);
                }
            }
            Stmt::Assign(assign)
                if assign.targets.iter().any(|target| {
                    target.as_name_expr().is_some_and(|name| name.id.as_str() == "__all__")
                }) => {}
            Stmt::AnnAssign(assign) => {
                self.visit_expr(&assign.target);
                if let Some(value) = &assign.value {
                    self.value(value, Part::Whole);
                    self.visit_expr(value);
                }
            }
            _ => {
                match statement {
                    Stmt::Assign(assign) => {
                        let to_name = assign.targets.iter().all(Expr::is_name_expr);
                        self.around(statement, Some(&assign.value), to_name);
                    }
                    Stmt::AugAssign(assign) => {
                        self.around(statement, Some(&assign.value), assign.target.is_name_expr());
                    }
                    Stmt::Return(returned) => self.around(statement, returned.value.as_deref(), true),
                    _ if blocks(statement).is_empty() => self.statement(statement, Part::Whole, Vec::new()),
                    _ => headers(statement).into_iter().for_each(|header| self.value(header, Part::Whole)),
                }
                visitor::walk_stmt(self, statement);
            }
        }
    }

    fn visit_expr(&mut self, expr: &'m Expr) {
        match expr {
            Expr::Name(name) if name.ctx == ExprContext::Store => self.bound(&name.id, name),
            Expr::Attribute(attribute) => {
                self.secrets.interface.insert(attribute.attr.as_str().to_owned());
                if attribute.ctx == ExprContext::Store {
                    self.name(&attribute.attr, &attribute.attr);
                }
            }
            Expr::NumberLiteral(_) | Expr::BinOp(_) => {
                if let Some(value) = value_of(self.source.module, expr) {
                    self.number(value, expr);
                    // Of a power or a shift only the value tells; factors do by themselves.
                    if !expr.as_bin_op_expr().is_some_and(|operation| operation.op == Operator::Mult) {
                        return;
                    }
                }
            }
            Expr::StringLiteral(string) => {
                let text = string.value.to_str();
                self.message(text, string);
                if text.chars().all(|c| c.is_alphanumeric() || c == '_') {
                    self.secrets.interface.insert(text.to_owned());
                }
            }
            Expr::FString(string) => {
                messages::pieces(&string.value).iter().for_each(|piece| self.message(piece, string));
            }
            _ => {}
        }
        visitor::walk_expr(self, expr);
    }

    fn visit_keyword(&mut self, keyword: &'m Keyword) {
        self.secrets.interface.extend(keyword.arg.as_ref().map(|name| name.as_str().to_owned()));
        visitor::walk_keyword(self, keyword);
    }

    fn visit_alias(&mut self, alias: &'m Alias) {
        let names = alias.name.split('.').chain(alias.asname.as_ref().map(|name| name.as_str()));
        self.secrets.interface.extend(names.map(str::to_owned));
    }
}

/// The expressions that stand before the blocks of a compound statement.
fn headers(statement: &Stmt) -> Vec<&Expr> {
    match statement {
        Stmt::If(s) => {
            let clauses = s.elif_else_clauses.iter().filter_map(|clause| clause.test.as_ref());
            std::iter::once(&*s.test).chain(clauses).collect()
        }
        Stmt::While(s) => vec![&s.test],
        Stmt::For(s) => vec![&s.iter],
        Stmt::With(s) => s.items.iter().map(|item| &item.context_expr).collect(),
        Stmt::Match(s) => vec![&s.subject],
        _ => Vec::new(),
    }
}
