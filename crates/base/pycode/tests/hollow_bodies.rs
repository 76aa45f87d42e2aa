//! Golden made hollow, on fixtures and on programs made up by proptest.

use infradev_pycode::{Module, QualifiedName, Reason, Variant, hollow};
use proptest::prelude::*;

const BASE: &str = include_str!("fixtures/cache_base.py");
const GOLDEN: &str = include_str!("fixtures/cache_golden.py");
const NO_BASE: &[(&str, &str)] = &[];

fn hollow_of(base: &str, golden: &str) -> String {
    let result = hollow(&[("m.py", base)], &[("m.py", golden)], Variant::Full).expect("hollows");
    result.files[0].1.clone()
}

fn shown(variant: Variant) -> String {
    let result = hollow(&[("cache.py", BASE)], &[("cache.py", GOLDEN)], variant).expect("hollows");
    let hollowed: Vec<String> = result.hollowed.iter().map(|name| format!("hollowed {name}")).collect();
    let kept: Vec<String> = result.kept.iter().map(|(name, why)| format!("kept {name}: {why}")).collect();
    format!("{}\n\n{}\n\n{}", hollowed.join("\n"), kept.join("\n"), result.files[0].1)
}

#[test]
fn a_hollow_file_keeps_interfaces_stubs_kernels_and_what_base_had() {
    insta::assert_snapshot!(shown(Variant::Full));
}

#[test]
fn the_keep_init_variant_leaves_constructors_and_nothing_else() {
    let full = hollow(&[("c.py", BASE)], &[("c.py", GOLDEN)], Variant::Full).expect("hollows");
    let keep = hollow(&[("c.py", BASE)], &[("c.py", GOLDEN)], Variant::KeepInit).expect("hollows");
    let spared: Vec<&QualifiedName> =
        full.hollowed.iter().filter(|name| !keep.hollowed.contains(name)).collect();
    assert_eq!(spared.iter().map(|name| name.name.as_str()).collect::<Vec<_>>(), ["Cache.Entry.__init__"]);
    assert!(keep.kept.contains(&(spared[0].clone(), Reason::Constructor)));
}

#[test]
fn a_module_function_named_like_a_constructor_is_hollowed_in_both_variants() {
    let result =
        hollow(NO_BASE, &[("m.py", "def __init__(x):\n    return x\n")], Variant::KeepInit).expect("hollows");
    assert_eq!(result.hollowed.len(), 1);
}

#[test]
fn a_change_without_new_functions_is_not_applicable_and_passes_through() {
    let golden = "def f(x):\n    return x + 1\n\nLIMIT = 3\n";
    let result = hollow(&[("m.py", "def f(x):\n    return x\n")], &[("m.py", golden)], Variant::Full)
        .expect("hollows");
    assert!(!result.is_applicable());
    assert_eq!(result.files, [("m.py".to_owned(), golden.to_owned())]);
}

#[test]
fn windows_line_endings_and_tabs_are_kept() {
    let golden = "class A:\r\n\tdef each(self):\r\n\t\tfor x in self:\r\n\t\t\tyield x\r\n\r\nx = 1\r\n";
    assert_eq!(
        hollow_of("", golden),
        "class A:\r\n\tdef each(self):\r\n\t\traise NotImplementedError(\"hollow: A.each\")\r\n\t\tyield\r\n\r\nx = 1\r\n"
    );
}

#[test]
fn a_body_continued_by_a_backslash_stays_one_logical_line() {
    assert_eq!(
        hollow_of("", "def f(): \\\n    yield 1\n"),
        "def f(): \\\n    raise NotImplementedError(\"hollow: f\"); yield\n"
    );
}

#[test]
fn a_file_without_a_final_newline_stays_so() {
    assert_eq!(
        hollow_of("", "def f():\n    return 1"),
        "def f():\n    raise NotImplementedError(\"hollow: f\")"
    );
}

#[test]
fn a_byte_order_mark_stays_in_front() {
    assert_eq!(
        hollow_of("", "\u{feff}def f(): return 1\n"),
        "\u{feff}def f(): raise NotImplementedError(\"hollow: f\")\n"
    );
}

#[test]
fn a_yield_in_a_nested_function_or_lambda_makes_no_generator() {
    let golden = "def f():\n    def g():\n        yield 1\n    h = lambda: (yield)\n    return g, h\n";
    assert_eq!(hollow_of("", golden), "def f():\n    raise NotImplementedError(\"hollow: f\")\n");
}

#[test]
fn an_added_function_inside_an_old_one_is_hollowed_in_place() {
    let base = "def train(step):\n    return step()\n";
    let golden = "def train(step):\n    def timed():\n        return step()\n    return timed()\n";
    let result = hollow(&[("m.py", base)], &[("m.py", golden)], Variant::Full).expect("hollows");
    assert_eq!(result.hollowed[0].name, "train.<locals>.timed");
    assert_eq!(
        result.files[0].1,
        "def train(step):\n    def timed():\n        raise NotImplementedError(\"hollow: train.<locals>.timed\")\n    return timed()\n"
    );
}

#[test]
fn a_function_moved_from_a_file_that_golden_removes_keeps_its_body() {
    let body = "    total = 0\n    for x in xs:\n        total += x\n    return total\n";
    let base = format!("def sum_of(xs):\n    'Old words.'\n{body}");
    let golden =
        format!("class Sums:\n    @staticmethod\n    def of(xs):\n{}", body.replace("    ", "        "));
    let result = hollow(&[("old.py", base)], &[("new.py", golden.clone())], Variant::Full).expect("hollows");
    assert_eq!(result.files[0].1, golden);
    let from = QualifiedName { path: "old.py".into(), name: "sum_of".into() };
    assert_eq!(result.kept[0].1, Reason::Moved(from));
}

#[test]
fn a_one_line_body_is_not_called_moved_when_neither_name_nor_parameters_agree() {
    let base = "def get(self, key):\n    return None\n";
    let result = hollow(&[("m.py", base)], &[("n.py", "def put(x):\n    return None\n")], Variant::Full);
    assert_eq!(result.expect("hollows").hollowed.len(), 1);
}

#[test]
fn what_importing_calls_stays_across_files_and_through_instances() {
    let registry = "class Registry:\n    def __init__(self):\n        self.names = {}\n\n    def add(self, f):\n        self.note(f)\n        return f\n\n    def note(self, f):\n        self.names[f.__name__] = f\n\n    def find(self, name):\n        return self.names[name]\n";
    let user = "from .registry import Registry\n\nREGISTRY = Registry()\n\n\n@REGISTRY.add\ndef relu(x):\n    return max(x, 0)\n\n\nif __name__ == \"__main__\":\n    relu(1)\n";
    let result = hollow(NO_BASE, &[("ops/registry.py", registry), ("ops/user.py", user)], Variant::Full)
        .expect("hollows");
    let hollowed: Vec<&str> = result.hollowed.iter().map(|name| name.name.as_str()).collect();
    assert_eq!(hollowed, ["Registry.find", "relu"]);
    assert!(result.kept.iter().all(|(_, why)| *why == Reason::RunsOnImport));
}

#[test]
fn variables_that_name_each_other_do_not_loop() {
    let golden = "a = b()\nb = a()\na.run()\ndef run():\n    return 1\n";
    assert!(hollow_of("", golden).contains("hollow: run"));
}

#[test]
fn hooks_of_class_creation_stay() {
    let golden = "class Base:\n    def __init_subclass__(cls):\n        cls.seen = True\n\nclass Child(Base):\n    pass\n\nclass Kind(Enum):\n    A = 1\n    def __init__(self, value):\n        self.half = value / 2\n";
    let result = hollow(NO_BASE, &[("m.py", golden)], Variant::Full).expect("hollows");
    assert_eq!(result.kept.len(), 2);
    assert_eq!(result.files[0].1, golden);
}

#[test]
fn compiled_kernels_are_known_by_their_decorators_and_ignored_ones_are_python() {
    let kernels = [
        "triton.jit",
        "jit",
        "numba.njit(cache=True)",
        "numba.cuda.jit",
        "torch.jit.script",
        "partial(jax.jit, static_argnums=0)",
    ];
    for decorator in kernels {
        let golden = format!("@{decorator}\ndef f(x):\n    return x + 1\n");
        let result = hollow(NO_BASE, &[("m.py", golden.as_str())], Variant::Full).expect("hollows");
        assert_eq!(result.kept.first().map(|(_, why)| why), Some(&Reason::JitKernel), "{decorator}");
    }
    for decorator in ["torch.jit.ignore", "functools.cache", "torch.compile", "partial(wrap, 3)"] {
        let golden = format!("@{decorator}\ndef f(x):\n    return x + 1\n");
        let result = hollow(NO_BASE, &[("m.py", golden.as_str())], Variant::Full).expect("hollows");
        assert_eq!(result.hollowed.len(), 1, "{decorator}");
    }
}

#[test]
fn files_that_do_not_parse_are_listed_and_passed_on() {
    let golden = [("a.py", "def f(:\n"), ("b.py", "def g():\n    return 1\n"), ("data.txt", "def h(:")];
    let result = hollow(&[("b.py", "x = = 1\n")], &golden, Variant::Full).expect("hollows");
    let files: Vec<(&str, &str)> = result.files.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect();
    assert_eq!(files, golden);
    let unparsed: Vec<&str> = result.unparsed.iter().map(|error| error.file.as_str()).collect();
    assert_eq!(unparsed, ["b.py", "a.py"]);
}

/// A random definition: its lines without indent, nested definitions indented by `unit`.
fn definition(unit: &'static str) -> impl Strategy<Value = Vec<String>> {
    let body = prop_oneof![
        Just(vec!["return 1".to_owned()]),
        Just(vec!["\"\"\"Words.\"\"\"".to_owned()]),
        Just(vec![
            "'''Words,".to_owned(),
            "on two lines.'''".to_owned(),
            "# why".to_owned(),
            "yield 2".to_owned()
        ]),
        Just(vec!["\"words\"; x = 1; return x  # done".to_owned()]),
        Just(vec!["if a:".to_owned(), format!("{unit}return b"), "else: return 'ü'".to_owned()]),
        Just(vec!["pass".to_owned()]),
        Just(vec!["x = (1,".to_owned(), "  2)".to_owned(), "yield x;".to_owned()]),
    ];
    let decorator = prop_oneof![
        Just(None),
        Just(Some("@property")),
        Just(Some("@wraps(lambda: (yield))")),
        Just(Some("@overload")),
        Just(Some("@triton.jit")),
    ];
    let header = prop_oneof![
        Just("def {}(a, b=1):".to_owned()),
        Just("async def {}(a, *, b: 'x' = {1: 2}) -> (int):  # why".to_owned()),
        Just("def {}(a: dict[str, int],\n  b=lambda: 1):".to_owned()),
        Just("def {}[T](a: T, b) -> T:".to_owned()),
        Just("class {}:".to_owned()),
        Just("class {}(Base, metaclass=M):".to_owned()),
    ];
    let leaf = (decorator, header, body, "[f-h]").prop_map(move |(decorator, header, body, name)| {
        let mut lines: Vec<String> = decorator.iter().map(|d| (*d).to_owned()).collect();
        let class = header.starts_with("class");
        lines.extend(header.replace("{}", &name).split('\n').map(str::to_owned));
        let body = if class { vec!["field: int = 1".to_owned()] } else { body };
        // The second line of a string is not code; indenting it does no harm.
        lines.extend(body.iter().map(|line| format!("{unit}{line}")));
        lines
    });
    leaf.prop_recursive(3, 24, 3, move |inner| {
        (prop::collection::vec(inner, 1..4), "[f-h]", any::<bool>(), any::<bool>()).prop_map(
            move |(inner, name, class, conditional)| {
                let mut lines =
                    vec![if class { format!("class {name}:") } else { format!("def {name}(a, b):") }];
                let indent = if conditional { unit.repeat(2) } else { unit.to_owned() };
                if conditional {
                    lines.push(format!("{unit}if a:"));
                }
                lines.extend(inner.into_iter().flatten().map(|line| format!("{indent}{line}")));
                lines
            },
        )
    })
}

fn program() -> impl Strategy<Value = String> {
    let with = |unit| prop::collection::vec(definition(unit), 1..5);
    (prop_oneof![with("    "), with("\t"), with("  ")], prop_oneof![Just("\n"), Just("\r\n")]).prop_map(
        |(definitions, newline)| {
            let lines: Vec<String> = definitions.into_iter().flatten().collect();
            lines.join(newline) + newline
        },
    )
}

proptest! {
    #[test]
    fn hollow_of_hollow_is_itself_and_keeps_every_outer_signature(base in program(), golden in program()) {
        prop_assert!(Module::parse("m.py", &golden).is_ok(), "the program itself must be valid:\n{golden}");
        for variant in [Variant::Full, Variant::KeepInit] {
            // `hollow` parses the result and compares the signatures itself.
            let once = hollow(&[("m.py", base.as_str())], &[("m.py", golden.as_str())], variant).expect("hollows");
            let twice = hollow(&[("m.py", base.clone())], &once.files, variant).expect("hollows again");
            prop_assert_eq!(&twice.files, &once.files);
            prop_assert!(twice.hollowed.is_empty());
            let names = |text: &str| -> Vec<String> {
                let module = Module::parse("m.py", text).expect("parses");
                let outer = |d: &infradev_pycode::Definition| !d.qualified_name.contains("<locals>");
                module.definitions().into_iter().filter(outer).map(|d| d.qualified_name + &d.signature).collect()
            };
            prop_assert_eq!(names(&golden), names(&once.files[0].1));
        }
    }

    #[test]
    fn a_file_equal_to_its_base_is_never_hollowed(golden in program()) {
        let pair = [("m.py", golden.as_str())];
        let result = hollow(&pair, &pair, Variant::Full).expect("hollows");
        prop_assert!(!result.is_applicable());
        prop_assert_eq!(&result.files[0].1, &golden);
    }

    #[test]
    fn no_text_makes_it_panic(text in "[ -~\n\t]{0,80}|(def |class |:|\n|    |yield|\"\"\"|\\(|\\)|f|\\\\\n|;|@){0,30}") {
        let _ = hollow(NO_BASE, &[("m.py", text.as_str())], Variant::Full).expect("no broken text");
    }
}
