//! How objects of a class are made: by its own constructor, or by the nearest one of the classes that it comes from.

use super::outline::Class;
use super::tree::{Object, SourceTree};

/// Bases of Python's own that have no constructor with parameters.
const BARE: [&str; 4] = ["object", "ABC", "Generic", "Protocol"];
/// Bases of others whose subclasses take their annotated variables, those of the classes between included.
const RECORDS: [&str; 2] = ["BaseModel", "TypedDict"];
/// Most classes that are looked at.
const MOST: usize = 64;

/// A class, or a base that the tree does not have, by its last name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Ancestor {
    Class(Object),
    Foreign(String),
}

/// The parameters by which an object of a class is made, `(size: int, *, fast: bool = False)`. `None` where they are those of a base
/// that the tree does not have.
pub(crate) fn making(tree: &SourceTree<'_>, class: &Object) -> Option<String> {
    let mut ancestors = Vec::new();
    collect(tree, &[class], &mut ancestors);
    // A class that two others come from stands behind both.
    let is_last = |at: usize| !ancestors[at + 1..].contains(&ancestors[at]);
    let ancestors: Vec<&Ancestor> =
        (0..ancestors.len()).filter(|at| is_last(*at)).map(|at| &ancestors[at]).collect();
    let takes_fields = ancestors.iter().any(|ancestor| match ancestor {
        Ancestor::Foreign(name) => RECORDS.contains(&name.as_str()),
        Ancestor::Class(_) => false,
    });
    for (at, ancestor) in ancestors.iter().enumerate() {
        let object = match ancestor {
            Ancestor::Foreign(name) if BARE.contains(&name.as_str()) => continue,
            Ancestor::Foreign(_) => return None,
            Ancestor::Class(object) => object,
        };
        let outline = tree.outline(&object.file)?;
        let read = outline.classes.get(&object.name)?;
        for constructor in ["__init__", "__new__"] {
            if let Some(function) = outline.functions.get(&format!("{}.{constructor}", object.name)) {
                return Some(function.signature.split(" -> ").next().unwrap_or_default().to_owned());
            }
            // `__init__ = another`.
            if read.variables.contains_key(constructor) {
                return None;
            }
        }
        if read.is_record || takes_fields {
            return Some(fields(tree, &ancestors[at..], takes_fields));
        }
    }
    Some("()".to_owned())
}

/// A class, the last one of a way to it, then what it comes from and what that comes from.
fn collect(tree: &SourceTree<'_>, way: &[&Object], ancestors: &mut Vec<Ancestor>) {
    let Some(&class) = way.last() else { return };
    ancestors.push(Ancestor::Class(class.clone()));
    let Some(outline) = tree.outline(&class.file) else { return };
    let Some(read) = outline.classes.get(&class.name) else { return };
    for base in &read.bases {
        if ancestors.len() >= MOST {
            return;
        }
        match based_on(tree, class, base) {
            Some(object) if way.contains(&&object) => {}
            Some(object) => collect(tree, &[way, &[&object]].concat(), ancestors),
            // What a call makes of names has its fields in the class itself.
            None if base.is_empty() && read.is_record => {}
            None => {
                let last = base.rsplit('.').next().unwrap_or(base);
                // What a class that is a record by its base alone takes is read off itself.
                if !(read.is_record && last == "NamedTuple") {
                    ancestors.push(Ancestor::Foreign(last.to_owned()));
                }
            }
        }
    }
}

/// The class of the tree that a base's name means where a class is defined.
fn based_on(tree: &SourceTree<'_>, class: &Object, base: &str) -> Option<Object> {
    let is_class = |object: &Object| {
        object != class
            && tree.outline(&object.file).is_some_and(|outline| outline.classes.contains_key(&object.name))
    };
    let beside = class.name.rsplit_once('.').map(|(around, _)| format!("{around}.{base}"));
    let names = beside.into_iter().chain([base.to_owned()]);
    names.filter(|name| !name.is_empty()).find_map(|name| tree.meant(&class.file, &name).filter(is_class))
}

/// The fields of a record and of the records that it comes from, theirs first.
fn fields(tree: &SourceTree<'_>, ancestors: &[&Ancestor], takes_fields: bool) -> String {
    let mut fields: Vec<(String, String)> = Vec::new();
    for ancestor in ancestors.iter().rev() {
        let Ancestor::Class(object) = ancestor else { continue };
        let Some(outline) = tree.outline(&object.file) else { continue };
        let Some(class) = outline.classes.get(&object.name).filter(|class| class.is_record || takes_fields)
        else {
            continue;
        };
        for (name, text) in own_fields(class) {
            match fields.iter_mut().find(|(known, _)| *known == name) {
                Some(known) => known.1 = text,
                None => fields.push((name, text)),
            }
        }
    }
    format!("({})", fields.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(", "))
}

fn own_fields(class: &Class) -> impl Iterator<Item = (String, String)> {
    class.fields.iter().filter_map(|field| {
        let variable = class.variables.get(field)?;
        let text = match (&variable.declared, variable.optional) {
            (Some(declared), _) => format!("{field}: {declared}"),
            (None, true) => format!("{field}=..."),
            (None, false) => field.clone(),
        };
        Some((field.clone(), text))
    })
}
