//! Dotted names of a tree, followed through what its packages import and offer again.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use super::outline::Outline;
use crate::module::Module;

/// Longest chain of imports that is followed.
const LONGEST_CHAIN: usize = 24;

/// A tree whose files are read when they are asked for.
pub struct SourceTree<'a> {
    read: &'a dyn Fn(&str) -> Option<String>,
    roots: Vec<String>,
    outlines: RefCell<HashMap<String, Option<Rc<Outline>>>>,
}

/// What a dotted name stands for: a definition, a variable or a member in a file, or the file itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Object {
    /// Path in the tree.
    pub file: String,
    /// The name in it as `__qualname__` has it; empty for the file itself.
    pub name: String,
}

impl<'a> SourceTree<'a> {
    /// `read` gives the text of a path in the tree; `roots` are the folders that are on `sys.path`, `.` for the
    /// tree itself.
    pub fn new(read: &'a dyn Fn(&str) -> Option<String>, roots: &[String]) -> SourceTree<'a> {
        let roots = roots.iter().map(|root| root.trim_end_matches('/').trim_start_matches("./").to_owned());
        SourceTree { read, roots: roots.collect(), outlines: RefCell::default() }
    }

    /// What a file offers; `None` where there is no such file or it does not parse.
    pub fn outline(&self, file: &str) -> Option<Rc<Outline>> {
        if let Some(known) = self.outlines.borrow().get(file) {
            return known.clone();
        }
        let read = (self.read)(file).and_then(|text| Module::parse(file, &text).ok());
        let outline = read.map(|module| Rc::new(Outline::of(&module)));
        self.outlines.borrow_mut().insert(file.to_owned(), outline.clone());
        outline
    }

    /// The dotted name of a file: `ministack/moe/__init__.py` is `ministack.moe`. `None` below no root.
    pub fn module_name(&self, file: &str) -> Option<String> {
        let below = |root: &String| match root.as_str() {
            "" | "." => Some(file),
            root => file.strip_prefix(root)?.strip_prefix('/'),
        };
        let path = self.roots.iter().filter_map(below).min_by_key(|path| path.len())?;
        let path = path.strip_suffix(".py")?;
        Some(path.strip_suffix("/__init__").unwrap_or(path).replace('/', "."))
    }

    /// What a dotted name stands for.
    pub fn resolve(&self, name: &str) -> Option<Object> {
        self.resolve_within(name, LONGEST_CHAIN)
    }

    /// What a dotted name means in the code of a file.
    pub fn meant(&self, file: &str, name: &str) -> Option<Object> {
        let parts: Vec<&str> = name.split('.').collect();
        self.within(file, &parts, LONGEST_CHAIN)
    }

    fn resolve_within(&self, name: &str, chain: usize) -> Option<Object> {
        let parts: Vec<&str> = name.split('.').collect();
        let chain = chain.checked_sub(1)?;
        for split in (1..=parts.len()).rev() {
            let Some(file) = self.module_file(&parts[..split]) else { continue };
            if split == parts.len() {
                return Some(Object { file, name: String::new() });
            }
            return self.within(&file, &parts[split..], chain);
        }
        None
    }

    fn module_file(&self, parts: &[&str]) -> Option<String> {
        for root in &self.roots {
            let prefix = if root.is_empty() || root == "." { String::new() } else { format!("{root}/") };
            for ending in [".py", "/__init__.py"] {
                let path = format!("{prefix}{}{ending}", parts.join("/"));
                if self.outline(&path).is_some() {
                    return Some(path);
                }
            }
        }
        None
    }

    /// What a name means in a file.
    fn within(&self, file: &str, parts: &[&str], chain: usize) -> Option<Object> {
        let chain = chain.checked_sub(1)?;
        let outline = self.outline(file)?;
        let first = parts[0];
        let is_defined = outline.classes.contains_key(first)
            || outline.functions.contains_key(first)
            || outline.variables.contains_key(first);
        if is_defined {
            return self.member(file, &outline, parts, chain);
        }
        if let Some(target) = outline.imports.get(first) {
            let target = self.absolute(file, target)?;
            // `import package.module` binds the package, whose name may be that of the file itself.
            let full = [&target, &parts[1..].join(".")].map(String::as_str).join(".");
            return self.resolve_within(full.trim_end_matches('.'), chain);
        }
        outline.stars.iter().find_map(|star| {
            let target = self.absolute(file, star)?;
            self.resolve_within(&format!("{}.{}", target, parts.join(".")), chain)
        })
    }

    /// A member of a class, in the class itself or in a base; a function or variable by its name alone.
    fn member(&self, file: &str, outline: &Outline, parts: &[&str], chain: usize) -> Option<Object> {
        let whole = parts.join(".");
        let here = |name: String| Some(Object { file: file.to_owned(), name });
        if parts.len() == 1 || outline.functions.contains_key(&whole) || outline.classes.contains_key(&whole)
        {
            return here(whole);
        }
        let (owner, last) = whole.rsplit_once('.')?;
        let class = outline.classes.get(owner)?;
        if class.variables.contains_key(last) {
            return here(whole);
        }
        let chain = chain.checked_sub(1)?;
        class.bases.iter().find_map(|base| {
            let full = format!("{base}.{last}");
            let parts: Vec<&str> = full.split('.').collect();
            self.within(file, &parts, chain)
        })
    }

    /// A relative target made absolute from the file that imports it.
    fn absolute(&self, file: &str, target: &str) -> Option<String> {
        let dots = target.len() - target.trim_start_matches('.').len();
        if dots == 0 {
            return Some(target.to_owned());
        }
        let module = self.module_name(file)?;
        let mut package: Vec<&str> = module.split('.').collect();
        let up = if file.ends_with("/__init__.py") { dots - 1 } else { dots };
        package.truncate(package.len().checked_sub(up)?);
        let rest = &target[dots..];
        Some(package.into_iter().chain((!rest.is_empty()).then_some(rest)).collect::<Vec<_>>().join("."))
    }
}
