//! Which texts count as the same tree.

use infradev_pycode::ast_equal;
use proptest::prelude::*;

fn equal(a: &str, b: &str) -> bool {
    ast_equal(a, b).expect("both parse")
}

#[test]
fn comments_docstrings_quotes_parentheses_and_lines_do_not_count() {
    let a = "'''Words.'''\nimport os\n\ndef f(a, b = 1):\n    \"Other words.\"\n    # why\n    return (a + b)*2, 'x' 'y'\n";
    let b = "import os\ndef f(a,\n      b=1): return ((a + b) * 2, \"xy\")\n";
    assert!(equal(a, b));
}

#[test]
fn a_body_of_words_equals_a_body_of_pass() {
    assert!(equal("class A:\n    'Words.'\n", "class A:\n    pass\n"));
    assert!(equal("def f():\n    'Words.'\n", "def f(): pass\n"));
}

#[test]
fn a_string_that_is_no_docstring_counts() {
    assert!(!equal("def f():\n    x = 1\n    'a'\n", "def f():\n    x = 1\n    'b'\n"));
}

#[test]
fn else_with_one_if_equals_elif() {
    let nested = "if a:\n    x\nelse:\n    if b:\n        y\n    else:\n        if c:\n            z\n        else:\n            w\n";
    let flat = "if a:\n    x\nelif b:\n    y\nelif c:\n    z\nelse:\n    w\n";
    assert!(equal(nested, flat));
    assert!(!equal(nested, &flat.replace("elif c", "if c")));
    assert!(!equal(
        "if a:\n    x\nelse:\n    if b:\n        y\n    z\n",
        "if a:\n    x\nelif b:\n    y\n    z\n"
    ));
}

#[test]
fn what_behaves_differently_differs() {
    let pairs = [
        ("x = 1", "x = 2"),
        ("x = 1", "x = 1.0"),
        ("x = True", "x = 1"),
        ("x = 'a'", "x = b'a'"),
        ("f(a=1)", "f(b=1)"),
        ("f(*a)", "f(a)"),
        ("a - (b - c)", "a - b - c"),
        ("async def f(): pass", "def f(): pass"),
        ("@a\ndef f(): pass", "def f(): pass"),
        ("def f(x: int): pass", "def f(x: str): pass"),
        ("def f(x, /): pass", "def f(x): pass"),
        ("for x in y: pass", "for x in y: pass\nelse: z"),
        ("x,", "x"),
    ];
    for (a, b) in pairs {
        assert!(!equal(a, b), "{a:?} and {b:?}");
    }
}

#[test]
fn a_text_that_does_not_parse_is_named_with_its_place() {
    let error = ast_equal("x = 1\n", "x = 1\ny = (2\nz").expect_err("b is broken");
    assert_eq!((error.file.as_str(), error.line > 1), ("b", true));
    assert!(ast_equal("def f(:", "def f(:").is_err());
}

/// An expression as two texts of the same tree, formatted apart.
fn expression() -> impl Strategy<Value = (String, String)> {
    let leaf = prop_oneof![
        (0u32..2000).prop_map(|n| (n.to_string(), format!("({n:#x})"))),
        "[a-e]".prop_map(|name| (name.clone(), format!("(\n {name} # {name}\n)"))),
        "[a-z ]{0,5}".prop_map(|text| (format!("'{text}'"), format!("(\"\"\"{text}\"\"\" '')"))),
    ];
    leaf.prop_recursive(4, 32, 3, |inner| {
        prop_oneof![
            (
                inner.clone(),
                inner.clone(),
                prop_oneof!["[-+*%]", Just("and".to_owned()), Just("==".to_owned())]
            )
                .prop_map(|(l, r, op)| (
                    format!("({} {op} {})", l.0, r.0),
                    format!("(({})\t{op}  (  {}))", l.1, r.1)
                )),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| (
                format!("f({}, k={})", a.0, b.0),
                format!("f (\n  {},\n  k = {} , )", a.1, b.1)
            )),
            prop::collection::vec(inner.clone(), 1..3).prop_map(|items| {
                let side = |pick: fn(&(String, String)) -> &str, glue: &str| {
                    items.iter().map(pick).collect::<Vec<_>>().join(glue)
                };
                (format!("[{}]", side(|i| &i.0, ",")), format!("[ {} ,\n]", side(|i| &i.1, " ,\n")))
            }),
            inner.prop_map(|e| (format!("(lambda x: {})", e.0), format!("((lambda  x :({})))", e.1))),
        ]
    })
}

proptest! {
    #[test]
    fn any_formatting_of_a_tree_is_equal_and_any_change_of_a_value_is_not(
        (plain, wild) in expression(), words in "[a-z ]{0,12}", indent in 1usize..9,
    ) {
        let pad = " ".repeat(indent);
        let a = format!("def f(a, b):\n    if a:\n        return {plain}\n    b = {plain}\n");
        let b = format!("'''{words}'''\n\n# {words}\ndef f( a ,\tb ):\n{pad}'{words}'\n\n{pad}if (a) :  return {wild} # {words}\n{pad}b={wild};\n");
        prop_assert!(equal(&a, &b), "{}\n{}", a, b);
        let longer = format!("{b}{pad}b = 1\n");
        prop_assert!(!equal(&a, &longer));
        prop_assert!(!equal(&a, &b.replace("if (a)", "if (b)")));
    }
}
