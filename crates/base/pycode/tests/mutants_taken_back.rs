//! Hunks, files and calls as base had them; files added, deleted and broken.

mod mutating;

use infradev_model::{Mutant, Operator};
use infradev_pycode::{MutationSource, mutants};
use mutating::{lines_of, mutants_between};

fn of_file(base: Option<&str>, golden: Option<&str>) -> Vec<Mutant> {
    mutants(&MutationSource { path: "pkg/module.py", base, golden }).unwrap()
}

#[test]
fn each_hunk_that_behaves_is_taken_back_alone() {
    let base = "import os\n\n\ndef f(x):\n    y = g(x)\n    return y\n\n\ndef h(x):\n    return x\n";
    let golden = "import os\n\n\ndef f(x):\n    \"\"\"Words.\"\"\"\n    y = k(x)\n    return y\n\n\n# Words.\ndef h(x):\n    z = x\n    return (z)\n";
    let found: Vec<(u32, String)> = mutants_between(base, golden)
        .into_iter()
        .filter(|mutant| mutant.operator == Operator::TakeBackHunk)
        .map(|mutant| (mutant.line, mutant.replacement.unwrap()))
        .collect();
    assert_eq!(found, [(5, "    y = g(x)\n".to_owned()), (12, "    return x\n".to_owned())]);
}

#[test]
fn a_hunk_that_only_removes_is_an_empty_span_where_the_lines_were() {
    let base = "def f(x):\n    check(x)\n    return x\n\n\nA = 1\n";
    let golden = "def f(x):\n    return x\n\n\nA = 2\n";
    let found = mutants_between(base, golden);
    let hunk = found.iter().find(|mutant| mutant.operator == Operator::TakeBackHunk).unwrap();
    assert_eq!((hunk.start, hunk.end, hunk.line), (10, 10, 2));
    assert_eq!(hunk.replacement.as_deref(), Some("    check(x)\n"));
    assert_eq!(hunk.function.as_deref(), Some("f"));
}

#[test]
fn a_hunk_that_is_no_python_without_the_others_is_left_out() {
    let base = "def f(x):\n    a(x)\n    b(x)\n    c(x)\n";
    let golden = "def f(x):\n    if x:\n        a(x)\n    b(x)\n    if x:\n        c(x)\n";
    let found = mutants_between(base, golden);
    assert!(found.iter().all(|mutant| mutant.text(golden).is_none_or(|text| !text.contains("if x:\n    b"))));
    let base = "try:\n    a()\nexcept E:\n    b()\n";
    let golden = "if x:\n    a()\nelse:\n    b()\n";
    assert_eq!(lines_of(Operator::TakeBackHunk, base, golden), [""; 0]);
    assert_eq!(lines_of(Operator::TakeBackFile, base, golden), [base.trim()]);
}

#[test]
fn a_new_file_without_a_statement_has_no_mutants() {
    for text in ["", "\n", "# Words.\n"] {
        assert_eq!(of_file(None, Some(text)), [], "{text:?}");
    }
    // One whose statements are gone has its own back.
    assert_eq!(of_file(Some("A = 1\n"), Some("")).len(), 1);
    assert_eq!(of_file(None, Some("A = 1\n"))[0].operator, Operator::TakeBackFile);
}

#[test]
fn a_change_without_behaviour_has_no_mutants() {
    let base = "import os\n\n\nclass A:\n    x: int = 1\n\n    def f(self, a, b=(1)):\n        logger.info('a')\n        raise ValueError('no')\n";
    let golden = "'''Words.'''\nfrom __future__ import annotations\nimport os\nimport typing\n\n__all__ = ['A']\n\n\nclass A:\n    '''A.'''\n\n    x: float = 1\n\n    def f(self, a: int, b: int = 1) -> None:\n        # why\n        logger.info('b')\n        logger.debug('c')\n        note: str\n        raise ValueError(f'{a} is not right')\n";
    assert_eq!(mutants_between(base, golden), []);
}

#[test]
fn imports_that_something_asks_of_behave() {
    let tried = "try:\n    import apex\n    HAVE = True\nexcept ImportError:\n    HAVE = False\n";
    let base = tried.replace("import apex", "import transformer_engine");
    assert_eq!(
        lines_of(Operator::TakeBackHunk, &base, tried),
        ["import transformer_engine\n    HAVE = True"]
    );
    let exported = mutants(&MutationSource {
        path: "pkg/__init__.py",
        base: Some("from .a import A\n"),
        golden: Some("from .a import A\nfrom .b import B\n"),
    });
    assert_eq!(exported.unwrap().len(), 1, "what a package exports is used elsewhere");
}

#[test]
fn a_call_is_made_as_base_made_it() {
    let base = "def f(x):\n    y = scale(x)\n    z = old(x, y)\n    return y, z\n";
    let golden = "def f(x):\n    y = scale(x, 2)\n    z = new(x, y)\n    note(z)\n    return y, z\n";
    assert_eq!(lines_of(Operator::TakeBackCall, base, golden), ["y = scale(x)", "z = old(x, y)", "pass"]);
}

#[test]
fn a_file_that_golden_adds_is_missing_and_one_that_it_deletes_is_back() {
    let added = of_file(None, Some("def f():\n    return g()\n"));
    let [missing] = &added[..] else { panic!("{added:?}") };
    assert_eq!((missing.operator, missing.replacement.as_deref()), (Operator::TakeBackFile, None));
    let deleted = of_file(Some("A = 1\n"), None);
    let [back] = &deleted[..] else { panic!("{deleted:?}") };
    assert_eq!((back.start, back.end, back.text("").as_deref()), (0, 0, Some("A = 1\n")));
    assert_eq!(of_file(None, None), []);
}

#[test]
fn what_is_no_python_is_named() {
    let broken = |base, golden| mutants(&MutationSource { path: "pkg/module.py", base, golden }).unwrap_err();
    assert_eq!(broken(None, Some("def f(:\n")).file, "pkg/module.py");
    assert_eq!(broken(Some("def f(:\n"), None).line, 1);
    // Base may be broken where golden is not: nothing is taken back to it.
    let found = of_file(Some("def f(:\n"), Some("def f(x):\n    return x + g(1)\n"));
    assert!(found.iter().all(|mutant| mutant.operator > Operator::TakeBackFile), "{found:?}");
    assert!(!found.is_empty());
}
