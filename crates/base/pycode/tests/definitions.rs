//! What a file defines, and where it fails to parse.

use infradev_model::{Class, Classified};
use infradev_pycode::{
    Accessor, DefinitionKind, Module, TopLevelKind, Variant, ast_equal, hollow, top_level_names,
};

const SOURCE: &str = r#"
import abc
from typing import Protocol, overload

@decorate(
    1,
)
async def outer[T](
    a: int, *, b: "str" = ":"  # a colon
) -> (
    int
):
    def inner(x): yield x
    class Local: pass
    return inner

class Box(Protocol[T], metaclass=abc.ABCMeta):
    @property
    def width(self) -> int: ...
    @width.setter
    def width(self, value): self._w = value
    @abc.abstractmethod
    def open(self): ...
    if FAST:
        @numba.njit
        def area(w, h): return w * h
    class Lid:
        @overload
        def fit(self, x: int) -> int: ...

try:
    def größe(): return 1
except ValueError:
    pass
else:
    match größe():
        case 1:
            def matched(): pass
"#;

#[test]
fn definitions_are_found_wherever_they_stand() {
    let module = Module::parse("box.py", SOURCE).expect("parses");
    let shown: Vec<String> = module
        .definitions()
        .iter()
        .map(|d| {
            let flags = [
                (d.is_async, "async"),
                (d.is_generator, "generator"),
                (d.is_overload, "overload"),
                (d.is_abstract, "abstract"),
                (d.is_protocol_stub, "protocol stub"),
                (d.is_jit_kernel, "kernel"),
                (d.accessor == Some(Accessor::Setter), "setter"),
            ];
            let flags: Vec<&str> = flags.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect();
            format!(
                "{:>2} {:?} {} {:?} {:?} [{}]",
                d.line,
                d.kind,
                d.qualified_name,
                d.signature,
                d.decorators,
                flags.join(", ")
            )
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn a_span_runs_from_the_first_decorator_to_the_end_of_the_body() {
    let source = "x = 1\n@a\n@b\ndef f():\n    return 1  # done\n";
    let module = Module::parse("f.py", source).expect("parses");
    let f = &module.definitions()[0];
    assert_eq!(f.kind, DefinitionKind::Function);
    assert_eq!(&source[f.span.range()], "@a\n@b\ndef f():\n    return 1");
}

#[test]
fn a_parse_error_names_file_line_column_and_what_is_wrong() {
    let error = Module::parse("stack/moe.py", "x = 1\nü = (2 +\n").expect_err("is broken");
    assert_eq!(error.file, "stack/moe.py");
    assert_eq!(error.class(), Class::BadInput);
    assert_eq!(error.to_string(), "stack/moe.py:3:1: not valid Python: unexpected EOF while parsing");
    let error = Module::parse("a.py", "a = 1\r\nä, b = 1 2\r\n").expect_err("is broken");
    assert_eq!((error.line, error.column), (2, 10));
}

#[test]
fn python_2_and_null_bytes_are_errors_not_panics() {
    for text in ["print 'a'\n", "\0", "def f():\nreturn 1\n", "if x:\n\ty\n        z\n", "'''open"] {
        assert!(Module::parse("a.py", text).is_err(), "{text:?}");
    }
    assert!(Module::parse("a.py", "").is_ok());
}

#[test]
fn a_text_nested_without_end_is_refused_and_one_nested_deeply_is_read() {
    let nests: [fn(usize) -> String; 5] = [
        |n| format!("def f():\n    return {}1\n", "-".repeat(n)),
        |n| format!("def f():\n    return {}1\n", "1 + ".repeat(n)),
        |n| format!("def f():\n    return a{}\n", ".a".repeat(n)),
        |n| format!("def f():\n    return {}1\n", "lambda: ".repeat(n)),
        |n| format!("def f():\n    return {}{}\n", "[".repeat(n), "]".repeat(n)),
    ];
    for nest in nests {
        let error = Module::parse("deep.py", &nest(20_000)).expect_err("is too deep");
        assert_eq!(error.line, 2);
        assert!(error.what.contains("levels deep"), "{error}");
        let deep = nest(240);
        let golden = [("deep.py", deep.as_str())];
        let base = [("deep.py", deep.replace("def f", "def g"))];
        assert_eq!(hollow(&base, &golden, Variant::Full).expect("hollows").kept.len(), 1);
        assert!(ast_equal(&deep, &format!("{deep}# the same")).expect("parse"));
    }
}

#[test]
fn the_names_of_a_tree_are_its_packages_namespaces_and_modules() {
    let paths = [
        "setup.py",
        "pretrain.py",
        "docs/images/logo.png",
        "docs/guide.md",
        "megatron/core/__init__.py",
        "tests/__init__.py",
        "tests/unit/test_a.py",
        "fast.cpython-311-x86_64-linux-gnu.so",
        "stubs.pyi",
        "my-scripts/run.py",
        "src/inner/__init__.py",
        "./tools/clean.py",
    ];
    let names = |root| {
        let found = top_level_names(&paths, root);
        found.into_iter().map(|n| format!("{} {:?}", n.name, n.kind)).collect::<Vec<_>>()
    };
    assert_eq!(
        names("."),
        [
            "fast Module",
            "megatron Namespace",
            "pretrain Module",
            "setup Module",
            "src Namespace",
            "tests Package",
            "tools Namespace"
        ]
    );
    assert_eq!(names("src/"), ["inner Package"]);
    assert_eq!(names("./src"), names("src"));
    assert!(names("nowhere").is_empty());
}

#[test]
fn a_package_wins_over_a_module_of_its_name_as_in_python() {
    let found = top_level_names(&["a.py", "a/__init__.py", "b/x.py", "b.py"], "");
    assert_eq!(
        found.iter().map(|n| n.kind).collect::<Vec<_>>(),
        [TopLevelKind::Package, TopLevelKind::Module]
    );
}
