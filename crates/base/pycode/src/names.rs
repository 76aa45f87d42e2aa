//! The names that a tree offers to `import`, read from its paths alone.

use std::collections::BTreeMap;

/// What an importable top-level name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TopLevelKind {
    /// A folder with `.py` files below it and no `__init__.py`: a regular module or package of that name elsewhere on
    /// `sys.path` wins over it.
    Namespace,
    /// A file.
    Module,
    /// A folder with `__init__.py`.
    Package,
}

/// A name that `import` finds under an import root.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TopLevelName {
    /// The name.
    pub name: String,
    /// File, package or namespace folder.
    pub kind: TopLevelKind,
}

/// The top-level importable names under `import_root` (`"."` or a folder such as `"src"`), given the tree's relative
/// paths with `/` between their parts. Sorted by name, each once; where a name is several things, the one that Python
/// prefers. Extension modules (`name.cpython-311-x86_64-linux-gnu.so`, `name.so`) count, stubs (`.pyi`) don't.
pub fn top_level_names<P: AsRef<str>>(paths: &[P], import_root: &str) -> Vec<TopLevelName> {
    let root: Vec<&str> = parts(import_root).collect();
    let mut found: BTreeMap<String, TopLevelKind> = BTreeMap::new();
    for path in paths {
        let path: Vec<&str> = parts(path.as_ref()).collect();
        let Some(rest) = path.strip_prefix(root.as_slice()) else { continue };
        let (name, kind) = match rest {
            [file] => match module_name(file) {
                Some(name) => (name, TopLevelKind::Module),
                None => continue,
            },
            [folder, file] if module_name(file) == Some("__init__") => (*folder, TopLevelKind::Package),
            [folder, .., file] if module_name(file).is_some() => (*folder, TopLevelKind::Namespace),
            _ => continue,
        };
        if is_identifier(name) && name != "__init__" {
            let entry = found.entry(name.to_owned()).or_insert(kind);
            *entry = (*entry).max(kind);
        }
    }
    found.into_iter().map(|(name, kind)| TopLevelName { name, kind }).collect()
}

fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".")
}

fn module_name(file: &str) -> Option<&str> {
    if let Some(stem) = file.strip_suffix(".py") {
        return Some(stem);
    }
    let stem = file.strip_suffix(".so").or_else(|| file.strip_suffix(".pyd"))?;
    Some(stem.split('.').next().unwrap_or(stem))
}

fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|first| first.is_alphabetic() || first == '_')
        && chars.all(|c| c.is_alphanumeric() || c == '_')
}
