//! One walk over golden that shows each operator the statements and expressions it may spoil.

use std::cell::OnceCell;

use infradev_model::Operator;
use ruff_python_ast::token::TokenKind;
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{
    Decorator, Expr, ExprAttribute, ExprCall, Keyword, Parameters, Stmt, StmtClassDef, StmtFunctionDef,
};
use ruff_text_size::{Ranged, TextRange, TextSize};

use super::groups::Groups;
use super::imports::Imports;
use super::lines::AddedLines;
use super::ranks::Ranks;
use super::take_back::BaseCalls;
use super::{Edit, caches, collectives, constants, drops, flags, groups, quiet, swaps, take_back, tensors};
use crate::definitions::is_jit_kernel;
use crate::module::{Module, Span};

/// All edits that the operators propose for added lines.
pub(super) fn edits(module: &Module, base: Option<&Module>, added: &AddedLines) -> Vec<Edit> {
    let mut walk = Walk {
        site: Site {
            module,
            base_calls: base.map(BaseCalls::of).unwrap_or_default(),
            required: drops::Required::of(module),
            scopes: Vec::new(),
            groups: OnceCell::new(),
            ranks: OnceCell::new(),
            imports: Imports::of(module),
        },
        edits: Edits { added, found: Vec::new() },
    };
    walk.visit_body(module.body());
    walk.edits.found
}

/// Where the walk is.
pub(super) struct Site<'a> {
    pub(super) module: &'a Module,
    pub(super) base_calls: BaseCalls<'a>,
    pub(super) required: drops::Required<'a>,
    scopes: Vec<Opened<'a>>,
    groups: OnceCell<Groups<'a>>,
    /// Of the module's own statements.
    ranks: OnceCell<Ranks<'a>>,
    imports: Imports<'a>,
}

enum Opened<'a> {
    Class(&'a StmtClassDef),
    Function(&'a StmtFunctionDef, OnceCell<Ranks<'a>>),
}

impl<'a> Site<'a> {
    /// The innermost function, if the walk is in one.
    pub(super) fn function(&self) -> Option<&'a StmtFunctionDef> {
        self.scopes.iter().rev().find_map(|scope| match scope {
            Opened::Function(function, _) => Some(*function),
            Opened::Class(_) => None,
        })
    }

    /// The innermost function's `__qualname__`, empty outside of functions.
    pub(super) fn function_name(&self) -> String {
        let last = self.scopes.iter().rposition(|scope| matches!(scope, Opened::Function(..)));
        let mut name = String::new();
        let scopes = &self.scopes[..last.map_or(0, |last| last + 1)];
        for (at, scope) in scopes.iter().enumerate() {
            match scope {
                Opened::Class(class) => name.push_str(&format!("{}.", class.name)),
                Opened::Function(function, _) => {
                    name.push_str(&function.name);
                    if at + 1 < scopes.len() {
                        name.push_str(".<locals>.");
                    }
                }
            }
        }
        name
    }

    /// The innermost function's text, or the module's.
    pub(super) fn function_text(&self) -> &'a str {
        self.function().map_or(self.module.source(), |function| self.module.text(function))
    }

    /// Whether the innermost function makes its object.
    pub(super) fn in_constructor(&self) -> bool {
        let name = self.function().map(|function| function.name.as_str());
        matches!(name, Some("__init__" | "__post_init__" | "__new__" | "__init_subclass__" | "__set_name__"))
    }

    /// The class whose method the innermost function is, if it is one.
    pub(super) fn class(&self) -> Option<&'a StmtClassDef> {
        let last = self.scopes.iter().rposition(|scope| matches!(scope, Opened::Function(..)))?;
        match self.scopes[..last].last()? {
            Opened::Class(class) => Some(*class),
            Opened::Function(..) => None,
        }
    }

    /// Whether something holds of the ranks that the innermost function names, one around it, or the module.
    pub(super) fn ranks(&self, holds: impl Fn(&Ranks<'a>) -> bool) -> bool {
        let of_function = |scope: &Opened<'a>| match scope {
            Opened::Function(function, ranks) => holds(ranks.get_or_init(|| Ranks::of(&function.body))),
            Opened::Class(_) => false,
        };
        self.scopes.iter().any(of_function) || holds(self.ranks.get_or_init(|| Ranks::of(self.module.body())))
    }

    /// Whether the innermost function is compiled from its source: its arithmetic is of addresses, and no swap of it lasts.
    fn in_kernel(&self) -> bool {
        self.function().is_some_and(is_jit_kernel)
    }

    /// The process groups that the file names.
    pub(super) fn groups(&self) -> &Groups<'a> {
        self.groups.get_or_init(|| Groups::of(self.module))
    }

    /// What the file's imports bind.
    pub(super) fn imports(&self) -> &Imports<'a> {
        &self.imports
    }

    pub(super) fn text(&self, ranged: &impl Ranged) -> &'a str {
        self.module.text(ranged)
    }

    /// An expression's text that stays one whatever stands beside it.
    pub(super) fn operand(&self, expr: &Expr) -> String {
        let text = self.text(expr);
        match expr {
            Expr::Name(_) | Expr::Attribute(_) | Expr::Subscript(_) | Expr::Call(_) => text.to_owned(),
            _ => format!("({text})"),
        }
    }

    /// The tokens of an operator between two operands, parentheses around them left out.
    pub(super) fn operator(&self, left: TextSize, right: TextSize) -> Option<TextRange> {
        let around = |kind: TokenKind| {
            matches!(
                kind,
                TokenKind::Lpar | TokenKind::Rpar | TokenKind::Comment | TokenKind::NonLogicalNewline
            )
        };
        let between = self.module.tokens().in_range(TextRange::new(left, right));
        let mut tokens = between.iter().filter(|token| !around(token.kind()));
        let first = tokens.next()?;
        Some(TextRange::new(first.start(), tokens.next_back().unwrap_or(first).end()))
    }

    /// From the dot of a method call to its end: what to cut for the receiver to stay.
    pub(super) fn method_part(&self, call: &ExprCall) -> Option<TextRange> {
        let attribute = call.func.as_attribute_expr()?;
        Some(TextRange::new(self.dot(attribute)?, call.end()))
    }

    fn dot(&self, attribute: &ExprAttribute) -> Option<TextSize> {
        let between = TextRange::new(attribute.value.end(), attribute.attr.start());
        let dot = self.module.tokens().in_range(between).iter().rev().find(|t| t.kind() == TokenKind::Dot);
        dot.map(Ranged::start)
    }

    /// Where the first keyword of a kind starts in a part.
    pub(super) fn keyword(&self, kind: TokenKind, part: TextRange) -> Option<TextSize> {
        self.module.tokens().in_range(part).iter().find(|token| token.kind() == kind).map(Ranged::start)
    }

    /// Where the bracket of a subscript opens, searched between the value's end and the subscript's.
    pub(super) fn opening_bracket(&self, part: TextRange) -> TextSize {
        let tokens = self.module.tokens().in_range(part);
        tokens.iter().find(|token| token.kind() == TokenKind::Lsqb).map_or(part.start(), Ranged::start)
    }

    /// An argument of a call, or an element of a list, with the comma after it.
    pub(super) fn argument_part(&self, argument: &impl Ranged, call: &impl Ranged) -> TextRange {
        let after = self.module.tokens().in_range(TextRange::new(argument.end(), call.end()));
        match after.iter().find(|t| !matches!(t.kind(), TokenKind::Comment | TokenKind::NonLogicalNewline)) {
            Some(comma) if comma.kind() == TokenKind::Comma => TextRange::new(argument.start(), comma.end()),
            _ => argument.range(),
        }
    }
}

/// The edits proposed so far.
pub(super) struct Edits<'a> {
    added: &'a AddedLines,
    found: Vec<Edit>,
}

impl Edits<'_> {
    pub(super) fn replace(&mut self, operator: Operator, what: &impl Ranged, text: impl Into<String>) {
        let span = Span::from(what.range());
        if self.added.hold(span) {
            self.found.push(Edit { span, text: Some(text.into()), operator });
        }
    }

    /// Whether an operator has proposed something for just this part.
    pub(super) fn has(&self, operator: Operator, what: &impl Ranged) -> bool {
        let span = Span::from(what.range());
        self.found.iter().any(|edit| edit.operator == operator && edit.span == span)
    }

    /// Whether a part lies on added lines, so that what is proposed for it counts.
    pub(super) fn take(&self, what: &impl Ranged) -> bool {
        self.added.hold(Span::from(what.range()))
    }

    /// The text is cut out; where a statement stood, use [`Edits::drop`].
    pub(super) fn cut(&mut self, operator: Operator, what: TextRange) {
        self.replace(operator, &what, "");
    }

    /// `pass` stands for a statement.
    pub(super) fn drop(&mut self, operator: Operator, statement: &Stmt) {
        self.replace(operator, statement, "pass");
    }
}

/// The name that a call calls: the last segment, also of `x[0].name(…)`; empty for anything else.
pub(super) fn callee(call: &ExprCall) -> &str {
    match &*call.func {
        Expr::Name(name) => name.id.as_str(),
        Expr::Attribute(attribute) => attribute.attr.as_str(),
        _ => "",
    }
}

/// The names in an expression like `a.b().c[0].d`, first to last; starts where the chain stops being one.
pub(super) fn segments(expr: &Expr) -> Vec<&str> {
    match expr {
        Expr::Name(name) => vec![name.id.as_str()],
        Expr::Attribute(attribute) => {
            let mut segments = segments(&attribute.value);
            segments.push(attribute.attr.as_str());
            segments
        }
        Expr::Call(call) => segments(&call.func),
        Expr::Subscript(subscript) => segments(&subscript.value),
        _ => Vec::new(),
    }
}

/// The call of a statement that is only a call.
pub(super) fn call_statement(statement: &Stmt) -> Option<&ExprCall> {
    statement.as_expr_stmt().and_then(|expr| expr.value.as_call_expr())
}

fn is_plain_index(index: &Expr) -> bool {
    match index {
        Expr::NumberLiteral(_) => true,
        Expr::UnaryOp(unary) => unary.operand.is_number_literal_expr(),
        _ => false,
    }
}

struct Walk<'a> {
    site: Site<'a>,
    edits: Edits<'a>,
}

impl<'a> Walk<'a> {
    fn visit_argument(&mut self, call: &ExprCall, argument: &'a Expr) {
        match constants::sizes(call, argument) {
            Some(sizes) => {
                sizes.iter().filter(|s| !constants::is_to_infer(s)).for_each(|s| self.visit_expr(s))
            }
            None if constants::is_kept(call, argument) => {}
            None => self.visit_expr(argument),
        }
    }
}

/// A keyword argument of words, or one that only asks for a check.
fn says_nothing(keyword: &Keyword) -> bool {
    keyword.arg.as_ref().is_some_and(|name| quiet::is_words_keyword(name) || name.as_str() == "strict")
}

impl<'a> Visitor<'a> for Walk<'a> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        if !self.edits.added.touch(Span::from(statement.range())) {
            return;
        }
        let (site, edits) = (&self.site, &mut self.edits);
        match statement {
            Stmt::FunctionDef(function) if quiet::is_for_people(&function.name) => return,
            Stmt::FunctionDef(function) => {
                drops::decorators(&function.decorator_list, edits);
                self.site.scopes.push(Opened::Function(function, OnceCell::new()));
                visitor::walk_stmt(self, statement);
                self.site.scopes.pop();
                return;
            }
            Stmt::ClassDef(class) => {
                drops::decorators(&class.decorator_list, edits);
                self.site.scopes.push(Opened::Class(class));
                visitor::walk_stmt(self, statement);
                self.site.scopes.pop();
                return;
            }
            Stmt::If(s) if quiet::is_for_type_checkers(&s.test) || quiet::is_main_guard(&s.test) => return,
            // What a raise says and what an import names is no one's operand.
            Stmt::Raise(_) | Stmt::Import(_) | Stmt::ImportFrom(_) | Stmt::TypeAlias(_) => return,
            _ if quiet::is_talk_statement(statement) || quiet::is_declaration(statement) => return,
            _ => {}
        }
        caches::statement(site, statement, edits);
        collectives::statement(site, statement, edits);
        drops::statement(site, statement, edits);
        flags::statement(site, statement, edits);
        if !site.in_kernel() {
            swaps::statement(site, statement, edits);
        }
        take_back::statement(statement, edits);
        tensors::statement(site, statement, edits);
        match statement {
            _ if swaps::is_label(statement) => {}
            Stmt::Assert(assert) => self.visit_expr(&assert.test),
            _ => visitor::walk_stmt(self, statement),
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        let is_touched = self.edits.added.touch(Span::from(expr.range()));
        if !is_touched || matches!(expr, Expr::FString(_) | Expr::TString(_)) {
            return;
        }
        // `x[0]` and `shape[-1]` are structure; another index fails at once.
        if let Expr::Subscript(subscript) = expr
            && is_plain_index(&subscript.slice)
        {
            return self.visit_expr(&subscript.value);
        }
        let (site, edits) = (&self.site, &mut self.edits);
        if let Expr::Call(call) = expr {
            collectives::call(site, call, edits);
            drops::call(site, call, edits);
            groups::call(site, call, edits);
            take_back::call(site, call, edits);
            tensors::call(site, call, edits);
        }
        collectives::expression(site, expr, edits);
        flags::expression(site, expr, edits);
        if !site.in_kernel() {
            swaps::expression(site, expr, edits);
        }
        tensors::expression(site, expr, edits);
        let Expr::Call(call) = expr else { return visitor::walk_expr(self, expr) };
        self.visit_expr(&call.func);
        call.arguments.args.iter().for_each(|argument| self.visit_argument(call, argument));
        for keyword in call.arguments.keywords.iter().filter(|keyword| !says_nothing(keyword)) {
            self.visit_argument(call, &keyword.value);
        }
    }

    fn visit_keyword(&mut self, keyword: &'a Keyword) {
        if !says_nothing(keyword) {
            visitor::walk_keyword(self, keyword);
        }
    }

    fn visit_annotation(&mut self, _: &'a Expr) {}

    fn visit_decorator(&mut self, _: &'a Decorator) {}

    fn visit_parameters(&mut self, parameters: &'a Parameters) {
        for parameter in parameters.iter_non_variadic_params() {
            if let Some(default) = parameter.default() {
                self.visit_expr(default);
            }
        }
    }
}
