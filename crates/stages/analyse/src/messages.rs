//! What the type and message of an exception tell of its kind. The words are those of torch, numpy and pytest.

use infradev_model::{Detail, Expectation, Label};

use crate::labelling::Ruled;

/// Words of exceptions on shape, layout or type of a tensor.
const SHAPES: [&str; 23] = [
    "size mismatch",
    "shape",
    "dtype",
    "data type",
    "scalar type",
    "must match the size",
    "size of tensor",
    "sizes of tensors",
    "same size",
    "same number of dimensions",
    "dimension out of range",
    "out of bounds for dimension",
    "is out of bounds for axis",
    "contiguous",
    "stride",
    "view size is not compatible",
    "cannot be multiplied",
    "could not be broadcast",
    "memory format",
    "split sizes",
    "split_sizes",
    "storage_offset",
    "element size",
];

/// Words of exceptions on persistent state, or on the life of a CUDA graph.
const STATES: [&str; 20] = [
    "cuda graph",
    "cudagraph",
    "stream is capturing",
    "during capture",
    "capture_begin",
    "state_dict",
    "missing key(s)",
    "unexpected key(s)",
    "has not been initialized",
    "already initialized",
    "already been initialized",
    "is not initialized",
    "backward through the graph a second time",
    "modified by an inplace operation",
    "has already been freed",
    "already been closed",
    "not in use",
    "double free",
    "freed twice",
    "use after free",
];

/// Exceptions whose message names a thing: a word in it says nothing of what went wrong.
const NAMING: [&str; 8] = [
    "AttributeError",
    "ImportError",
    "ModuleNotFoundError",
    "NameError",
    "UnboundLocalError",
    "NotImplementedError",
    "KeyError",
    "SyntaxError",
];

/// A rank raised an exception: structural, of the kind that its message tells.
pub fn exception(detail: &Detail) -> Ruled {
    let text = format!("{} {}", detail.exception, first_line(&detail.message)).to_lowercase();
    let kind = detail.exception.rsplit('.').next().unwrap_or_default();
    // `got an unexpected keyword argument 'dtype'` and `'torch.dtype' object is not iterable` are about an interface.
    let interface = ["argument", "object is not", "object does not", "not subscriptable"];
    let of_interface = kind == "TypeError" && interface.iter().any(|words| text.contains(words));
    let naming = NAMING.contains(&kind) || of_interface;
    let holds = |words: &[&str]| {
        let found = words.iter().find(|word| !naming && text.contains(**word));
        found.map(|word| (*word).to_owned())
    };
    let name = if detail.exception.is_empty() { "an exception" } else { detail.exception.as_str() };
    if let Some(word) = holds(&STATES) {
        return ("exception-state", Some(Label::State), format!("{name} that says `{word}`"));
    }
    if let Some(word) = holds(&SHAPES) {
        return ("exception-shape", Some(Label::Shape), format!("{name} that says `{word}`"));
    }
    ("exception", Some(Label::Execution), format!("raised {name}"))
}

/// What an assertion's message tells of what it checks.
pub fn assertion(detail: &Detail) -> Option<(Label, String)> {
    let message = first_line(&detail.message);
    let says = |word: &str| message.contains(word).then(|| format!("the assertion says `{word}`"));
    for word in ["DID NOT RAISE", "DID NOT WARN", "Regex pattern did not match", "does not match"] {
        if let Some(said) = says(word) {
            return Some((Label::ErrorPath, said));
        }
    }
    for word in [
        "attribute 'shape' do not match",
        "attribute 'dtype' do not match",
        "attribute 'stride()'",
        "shapes ",
    ] {
        if let Some(said) = says(word) {
            return Some((Label::Shape, said));
        }
    }
    for word in
        ["are not close", "are not equal!", "Not equal to tolerance", "Arrays are not equal", "almost equal"]
    {
        if let Some(said) = says(word) {
            return Some((Label::Undetermined, said));
        }
    }
    compared(&detail.message)
}

/// Both sides of an assertion that pytest wrote out: `assert 8 == 6`.
fn compared(message: &str) -> Option<(Label, String)> {
    let line = first_line(message);
    let (got, wanted) = line.strip_prefix("assert ")?.split_once(" == ")?;
    let sides = [got.trim(), wanted.trim()];
    if sides.iter().all(|side| {
        side.starts_with("torch.Size(") || side.starts_with("torch.float") || side.starts_with("torch.bfloat")
    }) {
        return Some((Label::Shape, "the assertion compares shapes or types of tensors".to_owned()));
    }
    // How many there are of something may be its shape, its state or a count of calls.
    let counted = message.contains("= len(") || message.contains("call_count");
    let of = |allowed: &str| sides.iter().all(|side| numbers(side, allowed));
    match () {
        () if counted => None,
        () if of("-+,[]() ") => {
            Some((Label::WrongAlgorithm, "the assertion compares whole numbers, which are exact".to_owned()))
        }
        () if of("-+,[]() .eE") => Some((Label::Undetermined, "the assertion compares numbers".to_owned())),
        () => None,
    }
}

/// Whether both sides of an equality that pytest wrote out are exact: whole numbers, texts, nothing at all. A fraction or a tensor may
/// be off by rounding alone.
pub fn is_exact(detail: &Detail) -> bool {
    let Some(line) = first_line(&detail.message).strip_prefix("assert ") else { return false };
    let fraction = |line: &str| {
        let bytes = line.as_bytes();
        bytes.windows(3).any(|three| {
            three[0].is_ascii_digit()
                && (three[1] == b'.' || three[1] == b'e')
                && (three[2].is_ascii_digit() || three[2] == b'-')
        })
    };
    line.contains(" == ") && !line.contains("tensor(") && !line.contains("array(") && !fraction(line)
}

/// What an expectation of a judge is plainly about, whatever its case is there to find out; none where that goes by the case.
pub fn expectation(made: &Expectation, checks: &str) -> Option<(About, &'static str)> {
    let numbers = matches!(checks, "numbers" | "precision");
    let floats = ["float", "bfloat"].iter().any(|kind| made.expected.starts_with(kind));
    match made.kind.as_str() {
        "raises" => Some((About::Label(Label::ErrorPath), "an error was expected")),
        "finishes" => Some((About::Label(Label::Liveness), "an end was expected")),
        _ if tells_shapes(&made.detail) => Some((About::Label(Label::Shape), "the shapes differ")),
        "equal" if is_type(&made.expected) && is_type(&made.got) => {
            Some((About::Label(Label::Shape), "it compares types"))
        }
        "equal" if numbers && is_names(&made.expected) && is_names(&made.got) => {
            Some((About::Label(Label::State), "it compares which there are, by name"))
        }
        "close" | "equal" if is_other(checks) && (made.kind == "close" || floats) => {
            Some((About::Numbers, "it compares values"))
        }
        _ => None,
    }
}

/// What an expectation is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// What this label says.
    Label(Label),
    /// Numbers, of which precision decides.
    Numbers,
}

/// A property that no comparison of values finds out. State, conditions and shapes show in values.
fn is_other(checks: &str) -> bool {
    matches!(checks, "memory" | "traffic" | "time" | "liveness" | "error")
}

/// The name of a tensor's type: `'bfloat16'`.
fn is_type(side: &str) -> bool {
    let name = side.trim().trim_matches('\'').trim_start_matches("torch.");
    let kinds = ["float", "bfloat", "int", "uint", "bool", "complex"];
    let kind = kinds.iter().find_map(|kind| name.strip_prefix(kind));
    side.trim().starts_with('\'')
        && kind.is_some_and(|width| width.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

/// A list of texts, or an empty one.
fn is_names(side: &str) -> bool {
    let Some(inner) = side.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) else {
        return false;
    };
    inner.is_empty() || inner.split(", ").all(|one| one.starts_with('\'') && one.ends_with('\''))
}

fn numbers(side: &str, allowed: &str) -> bool {
    side.chars().any(|c| c.is_ascii_digit())
        && side.chars().all(|c| c.is_ascii_digit() || allowed.contains(c))
}

/// Whether a judge's comparison found other shapes than it expected.
pub fn tells_shapes(detail: &str) -> bool {
    detail.contains(": shape (") || detail.contains("expected an array of shape")
}

/// Whether a judge's text of a value is of whole numbers, by its type or as Python writes them.
pub fn whole(value: &str) -> bool {
    let value = value.trim();
    ["int", "uint", "bool"].iter().any(|kind| value.starts_with(kind)) || numbers(value, "-+,[]() ")
}

/// A message's first line.
pub fn first_line(message: &str) -> &str {
    message.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
}
