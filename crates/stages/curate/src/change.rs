//! What a commit changed, by class of path and by syntax tree.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use infradev_git::{ChangedFile, Entry};
use infradev_model::{
    Checks, Definitions, Device, Evidence, Facts, Hollowable, LeftOutBecause, Lines, Needs,
};
use infradev_patch::is_collected;
use infradev_pycode::{Ask, DefinitionKind, Module, ParseError, Shape, Shapes};

use crate::guess;
use crate::message::Message;
use crate::paths::{PathClass, classify};

/// More source files than this are no task but a reorganisation.
pub const MOST_SOURCE_FILES: usize = 100;

/// Files of a list that are named.
const NAMED: usize = 8;

/// The files of a commit, by class.
pub struct Sorted<'a> {
    files: Vec<(PathClass, String, &'a ChangedFile)>,
}

impl<'a> Sorted<'a> {
    /// Sorts the files of a commit. A path that is no UTF-8 can't be named in a task and counts as data.
    pub fn of(entry: &'a Entry) -> Sorted<'a> {
        let sort = |file: &'a ChangedFile| {
            let path = String::from_utf8_lossy(&file.path).into_owned();
            let odd = std::str::from_utf8(&file.path).is_err();
            // A submodule is another project's code, and a link is what it leads to.
            let class = match (file.modes.0.max(file.modes.1), file.modes.1) {
                (0o160000, _) => PathClass::Vendored,
                (_, 0o120000) => PathClass::Data,
                _ if odd => PathClass::Data,
                _ => classify(&path),
            };
            (class, path, file)
        };
        Sorted { files: entry.files.iter().map(sort).collect() }
    }

    fn of_class(&self, class: PathClass) -> impl Iterator<Item = (&str, &'a ChangedFile)> {
        self.files.iter().filter(move |(c, _, _)| *c == class).map(|(_, path, file)| (path.as_str(), *file))
    }

    fn named(&self, class: PathClass) -> Vec<String> {
        self.of_class(class).map(|(path, _)| path.to_owned()).take(NAMED).collect()
    }

    /// Paths of its source files.
    pub fn sources(&self) -> BTreeSet<String> {
        self.of_class(PathClass::Source).map(|(path, _)| path.to_owned()).collect()
    }

    fn lines(&self, wanted: impl Fn(PathClass) -> bool) -> Lines {
        let mut lines = Lines::default();
        for (_, _, file) in self.files.iter().filter(|(class, _, _)| wanted(*class)) {
            let (added, deleted) = file.lines.unwrap_or_default();
            lines.files += 1;
            lines.added += added;
            lines.deleted += deleted;
        }
        lines
    }

    /// Why it is no candidate, as far as paths say so.
    pub fn left_out(&self, entry: &Entry) -> Option<LeftOutBecause> {
        let sources = self.of_class(PathClass::Source).count();
        let tested = self
            .of_class(PathClass::Test)
            .any(|(path, file)| is_collected(path.as_bytes()) && file.new_blob.is_some());
        if entry.parents.is_empty() {
            Some(LeftOutBecause::NoParent)
        } else if self.files.is_empty() {
            Some(LeftOutBecause::Empty)
        } else if sources == 0 {
            Some(LeftOutBecause::NoSource)
        } else if !tested {
            Some(LeftOutBecause::NoTests)
        } else if sources > MOST_SOURCE_FILES {
            Some(LeftOutBecause::TooLarge)
        } else {
            None
        }
    }

    /// The blobs that [`facts`] reads.
    pub fn blobs(&self) -> impl Iterator<Item = &str> {
        let read = self
            .files
            .iter()
            .filter(|(class, _, _)| matches!(class, PathClass::Source | PathClass::Test | PathClass::Script));
        read.flat_map(|(_, _, file)| {
            [file.old_blob.as_deref(), file.new_blob.as_deref()].into_iter().flatten()
        })
    }
}

/// Contents of blobs by id, and the shapes of those that were parsed.
#[derive(Default)]
pub struct Blobs {
    /// Contents.
    pub contents: HashMap<String, Vec<u8>>,
    /// Shapes; empty for what does not parse.
    shapes: HashMap<String, Arc<Shapes>>,
}

/// Shapes that are kept at once.
const KEPT: usize = 4000;

impl Blobs {
    /// Lets go of contents, and of shapes where there are too many.
    pub fn begin_chunk(&mut self) {
        self.contents.clear();
        if self.shapes.len() > KEPT {
            self.shapes.clear();
        }
    }

    fn text(&self, id: &str) -> String {
        self.contents.get(id).map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
    }

    fn shapes(&mut self, path: &str, id: Option<&str>) -> Result<Arc<Shapes>, ParseError> {
        let Some(id) = id else { return Ok(Arc::default()) };
        if let Some(known) = self.shapes.get(id) {
            return Ok(known.clone());
        }
        let shapes = Arc::new(Module::parse(path, &self.text(id))?.shapes());
        self.shapes.insert(id.to_owned(), shapes.clone());
        Ok(shapes)
    }
}

/// Definitions of one file that differ.
#[derive(Default)]
struct Differing {
    added: Vec<(String, Shape)>,
    changed: Vec<(String, Shape)>,
    removed: Vec<Shape>,
    /// Statements outside of functions and classes differ somewhere.
    loose: bool,
}

impl Differing {
    fn add(&mut self, path: &str, base: &Shapes, golden: &Shapes) {
        let key = |shape: &Shape| (shape.qualified_name.clone(), shape.kind, shape.accessor);
        let before: HashMap<_, &Shape> = base.definitions.iter().map(|shape| (key(shape), shape)).collect();
        let after: HashSet<_> = golden.definitions.iter().map(key).collect();
        for shape in &golden.definitions {
            match before.get(&key(shape)) {
                None => self.added.push((path.to_owned(), shape.clone())),
                Some(old) if old.digest != shape.digest => {
                    self.changed.push((path.to_owned(), shape.clone()))
                }
                Some(_) => {}
            }
        }
        self.removed.extend(base.definitions.iter().filter(|shape| !after.contains(&key(shape))).cloned());
        self.loose |= base.module != golden.module;
    }

    fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty() && !self.loose
    }
}

fn is_function(shape: &Shape) -> bool {
    shape.kind != DefinitionKind::Class
}

fn simple(shape: &Shape) -> &str {
    shape.qualified_name.rsplit('.').next().unwrap_or(&shape.qualified_name)
}

/// Facts about a commit, or why it is no candidate after all.
pub fn facts(sorted: &Sorted<'_>, message: &Message, blobs: &mut Blobs) -> Result<Facts, LeftOutBecause> {
    let mut unparsed = Vec::new();
    let mut differing = Differing::default();
    let mut pair = |path: &str, file: &ChangedFile, into: &mut Differing, blobs: &mut Blobs| {
        let base = blobs.shapes(path, file.old_blob.as_deref());
        let golden = blobs.shapes(path, file.new_blob.as_deref());
        match (base, golden) {
            (Ok(base), Ok(golden)) => into.add(path, &base, &golden),
            (Err(error), _) | (_, Err(error)) => {
                into.loose = true;
                unparsed.push(error.to_string());
            }
        }
    };
    for (path, file) in sorted.of_class(PathClass::Source) {
        pair(path, file, &mut differing, blobs);
    }
    if differing.is_empty() {
        return Err(LeftOutBecause::NoCode);
    }
    let (mut tests_added, mut tests_changed) = (0, 0);
    let mut asked = Asking::default();
    for (path, file) in sorted.of_class(PathClass::Test) {
        let mut tests = Differing::default();
        pair(path, file, &mut tests, blobs);
        let is_test = |(_, shape): &&(String, Shape)| is_function(shape) && simple(shape).starts_with("test");
        if is_collected(path.as_bytes()) {
            tests_added += tests.added.iter().filter(is_test).count() as u32;
            tests_changed += tests.changed.iter().filter(is_test).count() as u32;
        }
        let Some(blob) = file.new_blob.as_deref().filter(|_| is_collected(path.as_bytes())) else { continue };
        let differing = tests.added.iter().chain(&tests.changed);
        let names: HashSet<String> =
            differing.filter(|(_, s)| is_function(s)).map(|(_, s)| s.qualified_name.clone()).collect();
        let text = blobs.text(blob);
        if let Ok(module) = Module::parse(path, &text) {
            asked.read(path, &module, &names);
        }
        asked.launches(path, &text);
    }
    for (path, file) in sorted.of_class(PathClass::Script) {
        if let Some(blob) = file.new_blob.as_deref().filter(|_| path.contains("test")) {
            asked.launches(path, &blobs.text(blob));
        }
    }
    let (definitions, hollow) = count(&differing);
    let paths: Vec<String> = sorted.sources().into_iter().collect();
    let rest = |class| !matches!(class, PathClass::Source | PathClass::Test);
    unparsed.truncate(NAMED);
    Ok(Facts {
        source: sorted.lines(|class| class == PathClass::Source),
        tests: sorted.lines(|class| class == PathClass::Test),
        other: sorted.lines(rest),
        definitions,
        tests_added,
        tests_changed,
        needs: asked.needs(),
        native: sorted.named(PathClass::Native),
        dependencies: sorted.named(PathClass::Dependency),
        area: guess::area(message.of_change(), &paths),
        kind: guess::kind(message.of_change(), Some(&definitions)),
        checks: asked.checks(),
        hollow,
        unparsed,
    })
}

/// Counts definitions. A function that stood elsewhere with the same name and body was moved, which adds nothing.
fn count(differing: &Differing) -> (Definitions, Hollowable) {
    let gone: HashSet<(&str, u64)> =
        differing.removed.iter().filter(|s| is_function(s)).map(|s| (simple(s), s.body)).collect();
    let moved = |shape: &Shape| is_function(shape) && gone.contains(&(simple(shape), shape.body));
    let (mut definitions, mut hollow) = (Definitions::default(), Hollowable::default());
    for (_, shape) in &differing.added {
        match (is_function(shape), moved(shape)) {
            (false, _) => definitions.classes_added += 1,
            (true, true) => hollow.kept += 1,
            (true, false) => {
                definitions.functions_added += 1;
                if shape.has_body {
                    hollow.functions += 1;
                } else {
                    hollow.kept += 1;
                }
            }
        }
    }
    for (_, shape) in &differing.changed {
        if is_function(shape) {
            definitions.functions_changed += 1;
        } else {
            definitions.classes_changed += 1;
        }
    }
    (definitions, hollow)
}

/// What the tests of one commit ask for.
#[derive(Default)]
struct Asking {
    found: Vec<(Ask, Evidence)>,
}

impl Asking {
    fn read(&mut self, path: &str, module: &Module, changed: &HashSet<String>) {
        for asked in module.asks(changed) {
            self.found.push((asked.ask, Evidence { what: asked.text, place: path.to_owned() }));
        }
    }

    /// Reads `torchrun --nproc_per_node=4` in a script or a docstring.
    fn launches(&mut self, path: &str, text: &str) {
        for words in ["nproc_per_node", "nproc-per-node"] {
            for rest in text.split(words).skip(1) {
                let rest = rest.trim_start_matches(['=', ' ', '"', '\'']);
                let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
                if let Ok(ranks @ 2..=64) = digits.parse::<u32>() {
                    let evidence = Evidence { what: format!("{words}={ranks}"), place: path.to_owned() };
                    self.found.push((Ask::Ranks(ranks), evidence));
                }
            }
        }
    }

    fn few(&self, wanted: impl Fn(&Ask) -> bool) -> Vec<Evidence> {
        let mut shown: Vec<Evidence> = Vec::new();
        for (_, evidence) in self.found.iter().filter(|(ask, _)| wanted(ask)) {
            if shown.len() < 3 && !shown.contains(evidence) {
                shown.push(evidence.clone());
            }
        }
        shown
    }

    fn needs(&self) -> Needs {
        let sizes: BTreeSet<u32> = self
            .found
            .iter()
            .filter_map(|(ask, _)| match ask {
                Ask::Ranks(size) | Ask::Gpus(size) => Some(*size),
                _ => None,
            })
            .collect();
        let world = sizes.last().copied().unwrap_or(1);
        let is = |wanted: Ask| self.found.iter().any(|(ask, _)| *ask == wanted);
        let on_gpus = |ask: &Ask| matches!(ask, Ask::Cuda | Ask::Gpus(_));
        let cuda = self.found.iter().any(|(ask, _)| on_gpus(ask));
        let largest = |ask: &Ask| matches!(ask, Ask::Ranks(size) | Ask::Gpus(size) if *size == world);
        let mut evidence = self.few(largest);
        evidence.extend(self.few(|ask| *ask == Ask::ProcessGroup).into_iter().take(1));
        evidence.extend(self.few(on_gpus).into_iter().take(1));
        Needs {
            world,
            worlds: sizes.into_iter().collect(),
            distributed: is(Ask::ProcessGroup),
            gpus: if cuda { world } else { 0 },
            device: if cuda { Device::Cuda } else { Device::Cpu },
            evidence,
        }
    }

    fn checks(&self) -> Checks {
        Checks {
            numbers: self.few(|ask| *ask == Ask::Numbers),
            resources: self.few(|ask| *ask == Ask::Resources),
        }
    }
}
