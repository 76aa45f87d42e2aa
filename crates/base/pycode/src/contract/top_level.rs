//! Names of a module itself: its variables and what it imports.

use std::collections::BTreeMap;

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Expr, Stmt};
use ruff_text_size::Ranged;

use super::made::made_class;
use super::outline::{Outline, Variable, declared};
use super::reflected::literal;
use crate::definitions::dotted;
use crate::module::Module;

/// Notes them in the file's outline.
pub(super) fn read_top_level(module: &Module, outline: &mut Outline) {
    TopLevel { module, outline }.visit_body(module.body());
}

/// Variables and imports, also under `if` and `try`.
struct TopLevel<'m, 'o> {
    module: &'m Module,
    outline: &'o mut Outline,
}

impl<'a> Visitor<'a> for TopLevel<'_, '_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        let line = self.module.line_column(statement.start().to_usize()).0;
        match statement {
            Stmt::FunctionDef(_) | Stmt::ClassDef(_) => return,
            Stmt::Assign(assign) => {
                for target in &assign.targets {
                    let Some(name) = top_level_name(target) else { continue };
                    match made_class(self.module, &assign.value) {
                        Some(class) => {
                            self.outline.classes.entry(name.to_owned()).or_insert(class);
                        }
                        None => {
                            let variable = Variable { line, declared: None, optional: true };
                            self.outline.variables.entry(name.to_owned()).or_insert(variable);
                        }
                    }
                }
            }
            Stmt::AnnAssign(assign) => {
                if let Some(target) = assign.target.as_name_expr() {
                    let declared = Some(declared(self.module, assign));
                    let variable = Variable { line, declared, optional: true };
                    self.outline.variables.entry(target.id.to_string()).or_insert(variable);
                }
            }
            _ => add_imports(statement, &mut self.outline.imports, &mut self.outline.stars),
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, _: &'a Expr) {}
}

/// The name of a module that a target binds: `name`, `globals()["name"]`.
fn top_level_name(target: &Expr) -> Option<&str> {
    match target {
        Expr::Name(name) => Some(&name.id),
        Expr::Subscript(subscript) => {
            let call = subscript.value.as_call_expr()?;
            let is_globals = dotted(&call.func) == ["globals"];
            literal(&subscript.slice).filter(|name| is_globals && !name.contains('.'))
        }
        _ => None,
    }
}

/// What an import statement binds, with leading dots where it is relative.
pub(super) fn add_imports(statement: &Stmt, imports: &mut BTreeMap<String, String>, stars: &mut Vec<String>) {
    match statement {
        Stmt::Import(import) => {
            for alias in &import.names {
                match &alias.asname {
                    Some(name) => imports.insert(name.to_string(), alias.name.to_string()),
                    None => {
                        let first = alias.name.split('.').next().unwrap_or_default();
                        imports.insert(first.to_owned(), first.to_owned())
                    }
                };
            }
        }
        Stmt::ImportFrom(import) => {
            let module = import.module.as_ref().map_or("", |module| module.as_str());
            let from = format!("{}{module}", ".".repeat(import.level as usize));
            for alias in &import.names {
                if alias.name.as_str() == "*" {
                    stars.push(from.clone());
                    continue;
                }
                let gap = if from.is_empty() || from.ends_with('.') { "" } else { "." };
                let name = alias.asname.as_ref().unwrap_or(&alias.name);
                imports.insert(name.to_string(), format!("{from}{gap}{}", alias.name));
            }
        }
        _ => {}
    }
}
