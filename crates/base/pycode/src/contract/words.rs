//! The command-line flags, environment variables and string keys that a file knows.

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{CmpOp, Expr, ExprCall, Stmt};
use ruff_text_size::Ranged;

use super::outline::{Outline, Word};
use super::reflected::names_of;
use crate::definitions::dotted;
use crate::module::Module;

/// Notes them in the file's outline.
pub(super) fn read_words(module: &Module, outline: &mut Outline) {
    let mut words = Words { module, outline: &mut *outline, within: Vec::new(), in_function: false };
    words.visit_body(module.body());
    // What gives such a dictionary holds its keys; where nothing of the file does, its class.
    let typed = |base: &String| base.rsplit('.').next() == Some("TypedDict");
    for (name, class) in outline.classes.iter().filter(|(_, class)| class.bases.iter().any(typed)) {
        for (field, variable) in &class.variables {
            let word = Word { line: variable.line, within: name.clone() };
            outline.keys.entry(field.clone()).or_insert(word);
        }
    }
}

/// Flags, environment variables and keys.
struct Words<'m, 'o> {
    module: &'m Module,
    outline: &'o mut Outline,
    within: Vec<String>,
    in_function: bool,
}

impl Words<'_, '_> {
    fn word(&self, expr: &Expr) -> Option<(String, Word)> {
        let text = expr.as_string_literal_expr()?.value.to_str().to_owned();
        Some((text, self.word_at(expr.start().to_usize())))
    }

    fn word_at(&self, at: usize) -> Word {
        Word { line: self.module.line_column(at).0, within: self.within.join(".") }
    }
}

/// Whether a dotted name is the process's environment.
fn is_environ(expr: &Expr) -> bool {
    dotted(expr).last() == Some(&"environ")
}

/// The variable that a statement fills.
fn holder(statement: &Stmt) -> Option<&str> {
    let mut target = match statement {
        Stmt::Assign(assign) => assign.targets.first()?,
        Stmt::AnnAssign(assign) => &assign.target,
        Stmt::AugAssign(assign) => &assign.target,
        Stmt::Expr(e) => &e.value.as_call_expr()?.func.as_attribute_expr()?.value,
        _ => return None,
    };
    while let Expr::Subscript(subscript) = target {
        target = &subscript.value;
    }
    target.as_name_expr().map(|name| name.id.as_str())
}

impl<'a> Visitor<'a> for Words<'_, '_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        let name = match statement {
            Stmt::FunctionDef(function) => Some(function.name.as_str()),
            Stmt::ClassDef(class) => Some(class.name.as_str()),
            _ if self.in_function => None,
            _ => holder(statement),
        };
        if !self.in_function {
            self.constant(statement);
        }
        let around = self.in_function;
        self.in_function |= statement.is_function_def_stmt();
        let pushed = name.map(|name| self.within.push(name.to_owned())).is_some();
        visitor::walk_stmt(self, statement);
        if pushed {
            self.within.pop();
        }
        self.in_function = around;
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Call(call) => self.call(call),
            Expr::Subscript(subscript) => {
                let is_attribute = names_of(&subscript.value).is_some();
                if is_environ(&subscript.value) {
                    self.environment(&subscript.slice);
                } else if let Some((text, word)) = self.word(&subscript.slice).filter(|_| !is_attribute) {
                    self.outline.keys.entry(text).or_insert(word);
                }
            }
            Expr::Compare(compare) => {
                let is_in = matches!(compare.ops[..], [CmpOp::In | CmpOp::NotIn]);
                if is_in && compare.comparators.first().is_some_and(is_environ) {
                    self.environment(&compare.left);
                }
            }
            Expr::Dict(dict) => {
                let keys: Vec<_> =
                    dict.items.iter().filter_map(|item| self.word(item.key.as_ref()?)).collect();
                for (text, word) in keys {
                    self.outline.keys.entry(text).or_insert(word);
                }
            }
            _ => {}
        }
        visitor::walk_expr(self, expr);
    }
}

impl Words<'_, '_> {
    /// Notes what stands for the name of an environment variable: a string, or a name that holds one.
    fn environment(&mut self, name: &Expr) {
        if let Some((text, word)) = self.word(name) {
            self.outline.environment.entry(text).or_insert(word);
            return;
        }
        let path = dotted(name).join(".");
        if !path.is_empty() {
            let word = self.word_at(name.start().to_usize());
            self.outline.environment_by_name.entry(path).or_insert(word);
        }
    }

    /// Notes the string that a statement outside of functions gives a name.
    fn constant(&mut self, statement: &Stmt) {
        let (target, value) = match statement {
            Stmt::Assign(assign) => (assign.targets.first(), Some(&*assign.value)),
            Stmt::AnnAssign(assign) => (Some(&*assign.target), assign.value.as_deref()),
            _ => return,
        };
        let name = target.and_then(Expr::as_name_expr);
        let text = value.and_then(Expr::as_string_literal_expr);
        if let (Some(name), Some(text)) = (name, text) {
            let around = self.within.iter().map(String::as_str);
            let path = around.chain([name.id.as_str()]).collect::<Vec<_>>().join(".");
            self.outline.constants.entry(path).or_insert_with(|| text.value.to_str().to_owned());
        }
    }

    fn call(&mut self, call: &ExprCall) {
        let callee = dotted(&call.func);
        let method = call.func.as_attribute_expr();
        let name = method.map(|method| method.attr.as_str()).or(callee.last().copied());
        let environment = callee.last() == Some(&"getenv")
            || method.is_some_and(|method| {
                is_environ(&method.value) && ["get", "setdefault", "pop"].contains(&method.attr.as_str())
            });
        let is_attributes = method.is_some_and(|method| names_of(&method.value).is_some());
        if name == Some("add_argument") {
            self.argument(call);
        } else if name == Some("add_parser") {
            self.command(call);
        } else if name == Some("add_subparsers") {
            let dest = call.arguments.find_keyword("dest").and_then(|dest| self.word(&dest.value));
            if let Some((attribute, word)) = dest {
                let given = Word { within: "add_subparsers".to_owned(), ..word };
                self.outline.arguments.entry(attribute).or_insert(given);
            }
        } else if environment {
            let first = call.arguments.args.first();
            let first = first.or_else(|| call.arguments.find_keyword("key").map(|keyword| &keyword.value));
            if let Some(first) = first {
                self.environment(first);
            }
        } else if callee == ["dict"] || (name == Some("update") && method.is_some() && !is_attributes) {
            for keyword in &call.arguments.keywords {
                let Some(key) = &keyword.arg else { continue };
                let word = self.word_at(key.start().to_usize());
                self.outline.keys.entry(key.to_string()).or_insert(word);
            }
        }
    }

    /// A sub-command and its other names.
    fn command(&mut self, call: &ExprCall) {
        let aliases = call.arguments.find_keyword("aliases").map(|keyword| match &keyword.value {
            Expr::List(list) => &list.elts[..],
            Expr::Tuple(tuple) => &tuple.elts[..],
            _ => &[],
        });
        let names = call.arguments.args.iter().take(1).chain(aliases.unwrap_or_default());
        let words: Vec<(String, Word)> = names.filter_map(|name| self.word(name)).collect();
        for (text, word) in words {
            self.outline.commands.entry(text).or_insert(word);
        }
    }

    /// The flags of an argument, and the attribute under which its value is found.
    fn argument(&mut self, call: &ExprCall) {
        let words: Vec<(String, Word)> =
            call.arguments.args.iter().filter_map(|argument| self.word(argument)).collect();
        let Some((first, word)) = words.iter().find(|(text, _)| text.starts_with("--")).or(words.first())
        else {
            return;
        };
        let keyword = |name: &str| call.arguments.find_keyword(name).map(|keyword| &keyword.value);
        let dest = keyword("dest").and_then(|dest| self.word(dest)).map(|(text, _)| text);
        let attribute = dest.unwrap_or_else(|| first.trim_start_matches('-').replace('-', "_"));
        let given = Word { line: word.line, within: first.clone() };
        self.outline.arguments.entry(attribute).or_insert(given);
        // Such an action makes a flag of its own to turn it off.
        let both =
            keyword("action").is_some_and(|action| dotted(action).last() == Some(&"BooleanOptionalAction"));
        for (text, word) in words.into_iter().filter(|(text, _)| text.starts_with('-')) {
            if let Some(name) = text.strip_prefix("--").filter(|_| both) {
                self.outline.flags.entry(format!("--no-{name}")).or_insert_with(|| word.clone());
            }
            self.outline.flags.entry(text).or_insert(word);
        }
    }
}
