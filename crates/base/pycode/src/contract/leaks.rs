//! Whether a text gives golden's code away: its statements, its numbers and messages, the names it chose, long runs of tokens.

use std::collections::{BTreeMap, HashSet};

use infradev_model::{ContractFinding, ContractRule};
use ruff_python_ast::helpers::is_docstring_stmt;
use ruff_python_ast::token::TokenKind;
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, ExprContext, Stmt};
use ruff_text_size::Ranged;

use crate::definitions::blocks;
use crate::module::Module;

/// How many tokens in a row are too many.
pub const NGRAM: usize = 8;
/// Fewest tokens of a statement that is told by itself.
const SHORT: usize = 4;
/// Shortest message that is told by itself, in characters.
const MESSAGE: usize = 12;

/// What golden's code has that a reader of the task may not learn.
#[derive(Debug, Clone, Default)]
pub struct Leaks {
    runs: HashSet<Vec<String>>,
    statements: BTreeMap<Vec<String>, String>,
    numbers: BTreeMap<String, String>,
    messages: BTreeMap<String, String>,
    names: BTreeMap<String, String>,
}

impl Leaks {
    /// Reads it off golden's files. What stands in `known` (texts of base and of the tests) or whose words are `public` gives nothing
    /// away. `golden` and `base` are `(path, text)`; a file that does not parse is passed over.
    pub fn of(
        base: &[(String, String)],
        golden: &[(String, String)],
        known: &[&str],
        is_public: &dyn Fn(&str) -> bool,
    ) -> Leaks {
        let mut leaks = Leaks::default();
        for (path, text) in golden.iter().filter(|(path, _)| path.ends_with(".py")) {
            let Ok(module) = Module::parse(path, text) else { continue };
            let before = base.iter().find(|(known, _)| known == path).map_or("", |(_, text)| text);
            let old: HashSet<&str> = before.lines().map(str::trim).collect();
            let mut secret = Secret { module: &module, old, leaks: &mut leaks, depth: 0 };
            secret.visit_body(module.body());
        }
        leaks.messages.retain(|message, _| !known.iter().any(|text| text.contains(message.as_str())));
        let known: Vec<Vec<String>> =
            known.iter().map(|text| lex(text).into_iter().map(|t| t.text).collect()).collect();
        let mut runs: HashSet<&[String]> = HashSet::new();
        let mut words: HashSet<&str> = HashSet::new();
        for tokens in &known {
            words.extend(tokens.iter().map(String::as_str));
            for length in SHORT..=NGRAM {
                runs.extend(tokens.windows(length));
            }
        }
        leaks.runs.retain(|run| !runs.contains(run.as_slice()));
        leaks.statements.retain(|statement, _| {
            if statement.len() <= NGRAM {
                !runs.contains(statement.as_slice())
            } else {
                !statement.windows(NGRAM).all(|run| runs.contains(run))
            }
        });
        leaks.numbers.retain(|number, _| !words.contains(number.as_str()));
        leaks.names.retain(|name, _| !words.contains(name.as_str()) && !is_public(name));
        leaks
    }

    /// What of it stands in a text; `file` names the text in findings.
    pub fn find(&self, file: &str, text: &str) -> Vec<ContractFinding> {
        let tokens = lex(text);
        let mut findings = Vec::new();
        let mut report = |line: usize, rule: ContractRule, what: String| {
            findings.push(ContractFinding { file: file.to_owned(), line: line as u32, rule, what });
        };
        let words: Vec<String> = tokens.iter().map(|token| token.text.clone()).collect();
        let mut covered = 0;
        for at in 0..words.len() {
            let Some(run) = words.get(at..at + NGRAM) else { break };
            if at < covered || !self.runs.contains(run) {
                continue;
            }
            // One finding for a long run, not one for each of its parts.
            let mut end = at + NGRAM;
            while words.get(end + 1 - NGRAM..=end).is_some_and(|next| self.runs.contains(next)) {
                end += 1;
            }
            covered = end;
            let shown = words[at..end].join(" ");
            report(
                tokens[at].line,
                ContractRule::LongNgram,
                format!("{} tokens of golden's code stand here in a row: `{shown}`", end - at),
            );
        }
        for (statement, place) in self.statements.iter().filter(|(statement, _)| statement.len() < NGRAM) {
            if let Some(at) = words.windows(statement.len()).position(|window| window == statement.as_slice())
            {
                let shown = statement.join(" ");
                let what = format!("a statement of golden's stands here: `{shown}` ({place})");
                report(tokens[at].line, ContractRule::BodyLine, what);
            }
        }
        for token in &tokens {
            if let Some(place) = self.numbers.get(&token.text) {
                let what = format!("a number of golden's code stands here: {} ({place})", token.text);
                report(token.line, ContractRule::Constant, what);
            }
            if let Some(place) = self.names.get(&token.text)
                && (token.is_code || is_compound(&token.text))
            {
                let what = format!("a name that golden chose stands here: `{}` ({place})", token.text);
                report(token.line, ContractRule::PrivateName, what);
            }
        }
        for (message, place) in &self.messages {
            if let Some(at) = text.find(message.as_str()) {
                let line = text[..at].matches('\n').count() + 1;
                let what = format!("a message of golden's code stands here: \"{message}\" ({place})");
                report(line, ContractRule::Constant, what);
            }
        }
        findings.sort();
        findings.dedup();
        findings
    }
}

/// Whether a word can't be one of plain English: `by_expert`, `PrefixNode`.
fn is_compound(word: &str) -> bool {
    let inner = word.trim_matches('_');
    inner.contains('_') || inner.len() < word.len() || inner.chars().filter(|c| c.is_uppercase()).count() > 1
}

/// A token of code or of prose: a word, a number or one other character.
struct Token {
    text: String,
    line: usize,
    /// It makes up a span of code by itself: `` `word` ``.
    is_code: bool,
}

fn lex(text: &str) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut line = 1;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if c == '\n' {
            line += 1;
        }
        if c.is_whitespace() || c == '`' {
            continue;
        }
        let is_word = c.is_alphanumeric() || c == '_';
        let mut end = at + c.len_utf8();
        while let Some((next, c)) = chars.peek().copied() {
            let number = text[at..].starts_with(|c: char| c.is_ascii_digit());
            let point = number && c == '.' && text[next + 1..].starts_with(|c: char| c.is_ascii_digit());
            if !is_word || !(c.is_alphanumeric() || c == '_' || point) {
                break;
            }
            end = next + c.len_utf8();
            chars.next();
        }
        let is_code = text[..at].ends_with('`') && text[end..].starts_with('`');
        tokens.push(Token { text: text[at..end].to_owned(), line, is_code });
    }
    tokens
}

/// Collects what added statements hold.
struct Secret<'m, 'l> {
    module: &'m Module,
    /// The lines of base's version.
    old: HashSet<&'m str>,
    leaks: &'l mut Leaks,
    /// How many functions are around.
    depth: usize,
}

impl Secret<'_, '_> {
    /// Whether any line of a range is added.
    fn is_added(&self, ranged: &impl Ranged) -> bool {
        self.module.text(ranged).lines().any(|line| !self.old.contains(line.trim()))
    }

    fn place(&self, ranged: &impl Ranged) -> String {
        let (line, _) = self.module.line_column(ranged.start().to_usize());
        format!("{}:{line}", self.module.path())
    }

    /// Tokens of a range without comments.
    fn tokens(&self, ranged: &impl Ranged) -> Vec<String> {
        let mut text = String::new();
        for token in self.module.tokens().in_range(ranged.range()) {
            let skipped = [TokenKind::Comment, TokenKind::NonLogicalNewline, TokenKind::Newline];
            if !skipped.contains(&token.kind()) {
                text.push_str(self.module.text(token));
                text.push(' ');
            }
        }
        lex(&text).into_iter().map(|token| token.text).collect()
    }

    fn statement(&mut self, ranged: &impl Ranged) {
        if self.depth == 0 || !self.is_added(ranged) {
            return;
        }
        let tokens = self.tokens(ranged);
        let is_name = |token: &&String| token.starts_with(|c: char| c.is_alphabetic() || c == '_');
        if tokens.len() < SHORT || tokens.iter().filter(is_name).count() < 2 {
            return;
        }
        self.leaks.runs.extend(tokens.windows(NGRAM).map(<[String]>::to_vec));
        let place = self.place(ranged);
        self.leaks.statements.entry(tokens).or_insert(place);
    }

    fn name(&mut self, name: &str, ranged: &impl Ranged) {
        let line = self.module.line_column(ranged.start().to_usize()).0;
        let text = self.module.source().lines().nth(line - 1).unwrap_or_default();
        if name.len() > 2 && !self.old.contains(text.trim()) {
            let place = self.place(ranged);
            self.leaks.names.entry(name.to_owned()).or_insert(place);
        }
    }
}

impl<'a> Visitor<'a> for Secret<'_, '_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Import(_) | Stmt::ImportFrom(_) => {}
            Stmt::FunctionDef(function) => {
                self.name(&function.name, &function.name);
                for parameter in function.parameters.iter() {
                    self.name(parameter.name(), &parameter.name());
                }
                self.depth += 1;
                self.visit_body(&function.body);
                self.depth -= 1;
            }
            Stmt::ClassDef(class) => {
                self.name(&class.name, &class.name);
                let depth = std::mem::take(&mut self.depth);
                self.visit_body(&class.body);
                self.depth = depth;
            }
            Stmt::Expr(_) if is_docstring_stmt(statement) => {}
            // A field with its default, or the module's own list of what it offers.
            Stmt::AnnAssign(assign) if self.depth == 0 => {
                if let Some(name) = assign.target.as_name_expr() {
                    self.name(&name.id, assign);
                }
            }
            Stmt::Assign(assign)
                if assign.targets.iter().any(|target| {
                    target.as_name_expr().is_some_and(|name| name.id.as_str() == "__all__")
                }) => {}
            Stmt::AnnAssign(assign) => {
                self.visit_expr(&assign.target);
                if let Some(value) = &assign.value {
                    self.statement(&**value);
                    self.visit_expr(value);
                }
            }
            _ => {
                let inner = blocks(statement);
                if inner.is_empty() {
                    self.statement(statement);
                } else {
                    for header in headers(statement) {
                        self.statement(header);
                    }
                }
                visitor::walk_stmt(self, statement);
            }
        }
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(name) if name.ctx == ExprContext::Store => self.name(&name.id, name),
            Expr::Attribute(attribute) if attribute.ctx == ExprContext::Store => {
                self.name(&attribute.attr, &attribute.attr);
            }
            Expr::NumberLiteral(number) if self.is_added(number) => {
                let text = self.module.text(number).to_owned();
                if tells(&text) {
                    let place = self.place(number);
                    self.leaks.numbers.entry(text).or_insert(place);
                }
            }
            Expr::StringLiteral(string) => {
                let text = string.value.to_str();
                if text.chars().count() >= MESSAGE && text.trim().contains(' ') && self.is_added(string) {
                    let place = self.place(string);
                    self.leaks.messages.entry(text.to_owned()).or_insert(place);
                }
            }
            _ => {}
        }
        visitor::walk_expr(self, expr);
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

/// Whether a number says something of the code it stands in: 0, 1, 2 and other small ones stand everywhere.
fn tells(number: &str) -> bool {
    let plain: String = number.chars().filter(|c| *c != '_').collect();
    match plain.parse::<f64>() {
        Ok(value) => value >= 10.0 || (value.fract() != 0.0 && value != 0.5),
        Err(_) => true,
    }
}
