//! `infradev probe-gaps`: what a maintainer runs on a branch, with no pack and no task.

mod branch;
mod ground;

use branch::Branch;

const PRICE: &str = "def total(items):\n    return sum(items)\n";

const REBATE: &str = "\
def total(items, rebate=0.0, least=0):
    if rebate < 0:
        raise ValueError(\"a rebate is not negative\")
    whole = sum(items)
    if whole >= least:
        whole = whole - whole * rebate
    return whole


def label(items):
    return \"%d items\" % len(items)
";

const TESTS: &str = "\
from shop.price import total


def test_total():
    assert total([1, 2]) == 3


def test_rebate():
    assert total([10, 10], rebate=0.5) == 10
";

/// A repository with a branch that adds a rebate.
fn rebate() -> Branch {
    let branch = Branch::of(&[("src/shop/price.py", PRICE)]);
    branch.write("src/shop/price.py", REBATE);
    branch.write("tests/test_price.py", TESTS);
    branch
}

#[test]
fn lines_that_no_test_notices_are_listed_as_text_markdown_and_sarif() {
    let branch = rebate();
    // The work tree as it lies there: nothing is committed yet.
    let said = branch.gaps(&["--markdown", "gaps.md", "--sarif", "gaps.sarif"]).exits(0);
    insta::assert_snapshot!("text", said.out);
    insta::assert_snapshot!("markdown", branch.ground.read("gaps.md"));
    insta::assert_snapshot!("sarif", branch.ground.read("gaps.sarif"));
    branch.commit("rebate");
    branch.gaps(&["--fail-on-gap", "--head", "rebate"]).exits(1);
}

#[test]
fn a_sarif_message_holds_the_code_itself_but_for_placeholders_and_links() {
    let branch = rebate();
    branch.write(
        "src/shop/price.py",
        "def total(items):\n    names = {\"`\": sum, \"n\": 1}\n    return {\"`\": sum, \"n\": 1}[\"`\"](items)\n",
    );
    branch.write(
        "tests/test_price.py",
        "from shop.price import total\n\n\ndef test_total():\n    assert total([3]) == 3\n",
    );
    branch.gaps(&["--sarif", "gaps.sarif"]).exits(0);
    let sarif: serde_json::Value = serde_json::from_str(&branch.ground.read("gaps.sarif")).unwrap();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let messages: Vec<&str> =
        results.iter().map(|result| result["message"]["text"].as_str().unwrap()).collect();
    let ends = "1 test runs it and passes. The mutant: return {{\"`\": sum, \"n\": 2}}[\"`\"] (items)";
    assert!(messages.iter().any(|message| message.ends_with(ends)), "{messages:#?}");
}

#[test]
fn a_gap_at_the_end_of_a_file_stands_on_a_line_that_it_has() {
    let branch = rebate();
    branch.write("src/shop/price.py", "def total(items):\n    return sum(items)\n\n\nRATE = 1\n");
    branch.commit("a rate");
    branch.git(&["checkout", "-q", "-b", "without"]);
    branch.write("src/shop/price.py", PRICE);
    branch.write(
        "tests/test_price.py",
        "from shop.price import total\n\n\ndef test_total():\n    assert total([3]) == 3\n",
    );
    let document = branch.gaps(&["--base", "rebate", "--json"]).exits(0).json();
    let gaps = document["gaps"].as_array().unwrap();
    assert!(!gaps.is_empty(), "{document:#}");
    let lines = PRICE.lines().count() as u64;
    for gap in gaps {
        assert!(gap["line"].as_u64() <= Some(lines) && gap["end_line"].as_u64() <= Some(lines), "{gap:#}");
    }
}

#[test]
fn a_gap_of_a_file_that_the_change_empties_stands_on_the_whole_file() {
    let branch = rebate();
    branch.write("src/shop/legacy.py", "RATE = 1\n");
    branch.commit("a rate");
    branch.git(&["checkout", "-q", "-b", "without"]);
    branch.write("src/shop/legacy.py", "");
    let document = branch.gaps(&["--base", "rebate", "--json", "--", "tests/test_price.py"]).exits(0).json();
    let gap = document["gaps"].as_array().unwrap().iter().find(|gap| gap["file"] == "src/shop/legacy.py");
    let gap = gap.unwrap_or_else(|| panic!("{document:#}"));
    assert_eq!((&gap["line"], &gap["end_line"]), (&0.into(), &0.into()));
    let said =
        branch.gaps(&["--base", "rebate", "--sarif", "gaps.sarif", "--", "tests/test_price.py"]).exits(0);
    assert!(said.out.contains("src/shop/legacy.py\n file  \n"), "{}", said.out);
    let sarif: serde_json::Value = serde_json::from_str(&branch.ground.read("gaps.sarif")).unwrap();
    let place = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "src/shop/legacy.py");
    assert!(place.get("region").is_none(), "{place}");
}

#[test]
fn a_change_of_which_no_test_runs_a_line_is_said_to_be_that() {
    let branch = rebate();
    branch.write("tests/test_price.py", "def test_nothing_of_it():\n    assert 1 + 1 == 2\n");
    let said = branch.gaps(&[]).exits(0);
    let note = "note: no line of the change ran in any test: what the tests import may be another copy of it";
    assert!(said.out.contains(note), "{}", said.out);
}

#[test]
fn where_golden_s_own_session_ends_badly_by_a_hook_that_is_said() {
    let branch = rebate();
    branch.write("tests/conftest.py", "def pytest_sessionfinish(session):\n    session.exitstatus = 3\n");
    let said = branch.gaps(&[]).exits(0);
    let note = "note: at world size 1 a conftest or a plugin ends golden's own pytest with exit 3, after the last test: a \
                mutant that nothing else notices passes";
    assert!(said.out.contains(note), "{}", said.out);
}

#[test]
fn a_file_that_moves_from_tests_into_the_code_is_read_as_gone_and_new() {
    let branch = rebate();
    let shared = "RATES = [1, 2, 3, 4]\n\n\ndef rate(number):\n    return RATES[number]\n";
    branch.write("tests/rates.py", shared);
    branch.commit("rates of tests");
    branch.git(&["checkout", "-q", "-b", "moved"]);
    std::fs::remove_file(branch.ground.path().join("shop/tests/rates.py")).unwrap();
    branch.write("src/shop/rates.py", shared);
    branch.write(
        "tests/test_rates.py",
        "from shop.rates import rate\n\n\ndef test_rate():\n    assert rate(2) == 3\n",
    );
    let document = branch.gaps(&["--base", "rebate", "--json"]).exits(0).json();
    let mutants = document["change"]["mutants"].as_array().unwrap();
    assert!(mutants.iter().any(|record| record["mutant"]["file"] == "src/shop/rates.py"), "{document:#}");
}

#[test]
fn a_branch_whose_every_line_is_noticed_has_no_gap() {
    let branch = rebate();
    branch.write("src/shop/price.py", "def total(items):\n    return sum(items) * 2\n");
    branch.write(
        "tests/test_price.py",
        "from shop.price import total\n\n\ndef test_total():\n    assert total([3, 2]) == 10\n",
    );
    let document = branch.gaps(&["--fail-on-gap", "--json"]).exits(0).json();
    assert_eq!(document["gaps"].as_array().unwrap().len(), 0, "{document:#}");
    assert_eq!(document["head"], "work tree");
    let said = branch.gaps(&[]).exits(0);
    assert!(said.out.starts_with("1 test notices each of "), "{}", said.out);
}

#[test]
fn two_ranks_and_named_tests_are_run() {
    let branch = rebate();
    let at = branch.ground.path().join("shop/tests/test_price.py");
    std::fs::rename(at, branch.ground.path().join("shop/tests/test_renamed.py")).unwrap();
    branch.commit("rebate");
    branch.git(&["checkout", "-q", "-b", "again"]);
    branch.write("src/shop/price.py", &REBATE.replace("whole >= least", "whole > least"));
    // Nothing of the tests is touched now.
    let said = branch.gaps(&["--base", "rebate"]).exits(4);
    assert!(said.err.contains("the change against rebate touches no test file"), "{}", said.err);
    assert!(said.err.contains("hint: name the tests that should notice"), "{}", said.err);
    let document =
        branch.gaps(&["--base", "rebate", "--world", "2", "--json", "--", "tests"]).exits(0).json();
    let golden = &document["change"]["golden"][0];
    assert_eq!((golden["world"].as_u64(), golden["cases"].as_u64()), (Some(2), Some(3)));
    let one = ["--base", "rebate", "--json", "--", "tests/test_renamed.py::test_rebate"];
    let document = branch.gaps(&one).exits(0).json();
    assert_eq!(document["change"]["golden"][0]["cases"], 1);
}

#[test]
fn what_cannot_be_tried_is_said_with_what_to_do() {
    let branch = rebate();
    let said = branch.gaps(&["--", "-k", "total"]).exits(2);
    assert!(said.err.contains("-k: only paths and ids of tests are understood here"), "{}", said.err);
    let said = branch.gaps(&["--", "tests/test_nowhere.py"]).exits(4);
    assert!(said.err.contains("tests/test_nowhere.py: there is no such test file or folder"), "{}", said.err);
    for (path, why) in [("nowhere/a.sarif", "there is no folder nowhere"), ("shop", "it is a folder")] {
        for form in ["--sarif", "--markdown"] {
            let said = branch.gaps(&[form, path]).exits(4);
            assert!(said.err.contains(&format!("cannot write {path}: {why}")), "{}", said.err);
        }
    }
    assert!(!branch.ground.path().join("home/runs").exists(), "nothing was begun");
    for (option, module) in [("--preload", "nosuch"), ("--preload", "shop.price"), ("--plugin", "nosuch")] {
        let said = branch.gaps(&[option, module]).exits(4);
        let mine = format!("error: {option}: ");
        assert!(said.err.starts_with(&mine) && said.err.contains(module), "{}", said.err);
        assert!(said.err.contains("/bin/python"), "where it was looked for: {}", said.err);
        assert!(!said.err.contains(".toml"), "{}", said.err);
    }
    for option in ["--base=", "--head=", "--preload=", "--plugin="] {
        let said = branch.gaps(&[option]).exits(2);
        let told = format!("a value is required for '{option}");
        assert!(said.err.contains(told.trim_end_matches('=')), "{}", said.err);
    }
    for seconds in ["0", "-1", "nan", "inf", "4000", "soon"] {
        let said = branch.gaps(&[&format!("--timeout={seconds}")]).exits(2);
        assert!(said.err.contains("a number of seconds, 0.1 at least and 3600 at most"), "{}", said.err);
    }
    let said = branch.gaps(&["--base", "nowhere"]).exits(4);
    assert!(said.err.contains("nowhere"), "{}", said.err);
    let said = branch.ground.infradev(&["probe-gaps", "--repo", "shop", "--python", "no/python"]).exits(4);
    assert!(said.err.contains("no/python: there is no such program"), "{}", said.err);
    branch.ground.write(
        "m.json",
        "[{\"file\": \"src/shop/price.py\", \"start\": 0, \"end\": 99999, \"operator\": \"swap-constant\"}]",
    );
    let said = branch.gaps(&["--mutants", "m.json"]).exits(4);
    assert!(said.err.contains("m.json: mutant 1: 0..99999 is no span of src/shop/price.py"), "{}", said.err);
}

#[test]
fn a_new_file_that_no_test_misses_is_told_as_missing_and_one_without_a_statement_not_at_all() {
    let branch = rebate();
    branch.write("src/shop/later.py", "def later():\n    return 1\n");
    branch.write("src/shop/empty.py", "");
    branch.write("src/shop/comment.py", "# only a comment\n");
    branch.write("src/shop/__pycache__/price.cpython-311.pyc", "left behind");
    let said = branch.gaps(&["--sarif", "gaps.sarif"]).exits(0);
    let missing = "take-back-file: the file is missing\n         unchecked: this new file matters: where it is missing \
                   something goes wrong";
    assert!(said.out.contains(missing), "{}", said.out);
    for (shown, not) in [(&said.out, "empty.py"), (&said.out, "comment.py"), (&said.out, "__pycache__")] {
        assert!(!shown.contains(not), "{shown}");
    }
    let sarif = branch.ground.read("gaps.sarif");
    assert!(!sarif.contains("the file as it was before"), "{sarif}");
}

#[test]
fn where_there_is_no_change_or_no_case_of_an_id_that_is_said() {
    let branch = rebate();
    let said = branch.gaps(&["--", "tests/test_price.py::test_nowhere"]).exits(4);
    assert!(
        said.err.contains("tests/test_price.py::test_nowhere: the unmutated change has no test of this id"),
        "{}",
        said.err
    );
    assert!(said.err.contains("hint: ids are FILE::FUNCTION"), "{}", said.err);
    branch.commit("rebate");
    for (options, head) in
        [(&["--base", "HEAD"][..], "the work tree"), (&["--base", "HEAD", "--head", "rebate"], "rebate")]
    {
        let said = branch.gaps(options).exits(4);
        let none = format!("there is no change against HEAD: {head} holds what it held where it left HEAD");
        assert!(said.err.contains(&none), "{}", said.err);
        assert!(said.err.contains("hint: --base names the branch"), "{}", said.err);
    }
}

#[test]
fn tests_that_fail_before_any_mutation_stop_it_by_name() {
    let branch = rebate();
    branch.write("tests/test_price.py", &TESTS.replace("== 10", "== 11"));
    let said = branch.gaps(&[]).exits(4);
    assert!(said.err.contains("tests/test_price.py::test_rebate (AssertionError"), "{}", said.err);
    assert!(said.err.contains("--skip-failing"), "{}", said.err);
    let document = branch.gaps(&["--skip-failing", "--json"]).exits(0).json();
    assert_eq!(document["change"]["golden"][0]["cases"], 1);
}

#[test]
fn python_that_does_not_parse_is_listed_and_passed_over() {
    let branch = rebate();
    branch.write("src/shop/broken.py", "def (\n");
    branch.write("src/shop/data.json", "{}\n");
    let latin = b"# -*- coding: latin-1 -*-\nNAME = 'caf\xe9'\n";
    std::fs::write(branch.ground.path().join("shop/src/shop/latin.py"), latin).unwrap();
    let said = branch.gaps(&[]).exits(0);
    assert!(said.out.contains("passed over src/shop/broken.py: src/shop/broken.py:1:"), "{}", said.out);
    assert!(said.out.contains("passed over src/shop/data.json: not Python"), "{}", said.out);
    assert!(said.out.contains("passed over src/shop/latin.py: is no UTF-8"), "{}", said.out);
}

#[test]
fn a_submodule_of_the_change_is_passed_over_by_its_path() {
    let branch = rebate();
    let staged = |digit: &str| {
        let entry = format!("160000,{},vendored", digit.repeat(40));
        branch.git(&["update-index", "--add", "--cacheinfo", &entry]);
    };
    std::fs::create_dir(branch.ground.path().join("shop/vendored")).unwrap();
    branch.write(".gitmodules", "[submodule \"vendored\"]\n\tpath = vendored\n\turl = ../vendored\n");
    staged("1");
    let told = "passed over vendored: a submodule";
    let said = branch.gaps(&[]).exits(0);
    assert!(
        said.out.contains(told) && said.out.contains("passed over .gitmodules: not Python"),
        "{}",
        said.out
    );
    branch.git(&["add", ".gitmodules", "src", "tests"]);
    branch.git(&["commit", "-q", "-m", "vendored"]);
    let said = branch.gaps(&["--head", "rebate"]).exits(0);
    assert!(said.out.contains(told), "{}", said.out);
    staged("2");
    branch.git(&["commit", "-q", "-m", "moved"]);
    let said = branch.gaps(&["--base", "rebate~1", "--head", "rebate"]).exits(4);
    assert!(said.err.contains("touches submodules only (vendored)"), "{}", said.err);
}

#[test]
fn where_no_mutant_is_possible_that_is_said() {
    let branch = rebate();
    branch.write("src/shop/price.py", &format!("# Prices.\n{PRICE}"));
    branch.write(
        "tests/test_price.py",
        "from shop.price import total\n\n\ndef test_total():\n    assert total([1]) == 1\n",
    );
    let said = branch.gaps(&["--fail-on-gap"]).exits(0);
    assert!(said.out.starts_with("no mutant can be made of this change"), "{}", said.out);
}

#[test]
fn what_is_only_moved_removed_or_linked_is_no_gap() {
    let branch = Branch::of(&[
        ("src/shop/price.py", PRICE),
        ("src/shop/gone.py", "LEFT = 1\n"),
        ("tests/test_gone.py", "from shop import gone\n\n\ndef test_gone():\n    assert gone.LEFT == 1\n"),
    ]);
    let folder = branch.ground.path().join("shop");
    std::fs::rename(folder.join("src/shop/price.py"), folder.join("src/shop/cost.py")).unwrap();
    for gone in ["src/shop/gone.py", "tests/test_gone.py"] {
        std::fs::remove_file(folder.join(gone)).unwrap();
    }
    branch.write("src/shop/rate.py", "def rate():\n    return 3\n");
    std::os::unix::fs::symlink("rate.py", folder.join("src/shop/link.py")).unwrap();
    let test = "from shop.cost import total\n\n\ndef test_total():\n    assert total([1]) == 1\n";
    branch.write("tests/test_cost.py", test);
    let sarif = ["--sarif", "gaps.sarif"];
    let said = branch.gaps(&sarif).exits(0);
    assert!(said.out.contains("passed over src/shop/gone.py: removed by the change"), "{}", said.out);
    assert!(said.out.contains("passed over src/shop/link.py: a link"), "{}", said.out);
    branch.commit("moved");
    for args in [&["--json"][..], &["--json", "--head", "rebate"]] {
        let document = branch.gaps(args).exits(0).json();
        let gaps = document["gaps"].as_array().unwrap();
        let mut files: Vec<&str> = gaps.iter().filter_map(|gap| gap["file"].as_str()).collect();
        files.dedup();
        assert_eq!(files, ["src/shop/rate.py"], "{document:#}");
    }
    let sarif: serde_json::Value = serde_json::from_str(&branch.ground.read("gaps.sarif")).unwrap();
    for result in sarif["runs"][0]["results"].as_array().unwrap() {
        let place = &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
        assert!(folder.join(place.as_str().unwrap()).is_file(), "{result:#}");
    }
}

#[test]
fn a_python_without_pytest_is_named_itself() {
    let branch = rebate();
    let bare = branch.ground.path().join("bare");
    let venv = ["-m", "venv", "--without-pip", bare.to_str().unwrap()];
    branch.ground.tool(branch.python.to_str().unwrap(), &venv).exits(0);
    let python = bare.join("bin/python");
    let all = ["probe-gaps", "--repo", "shop", "--python", python.to_str().unwrap()];
    let said = branch.ground.infradev(&all).exits(4);
    assert!(said.err.contains("bin/python: has no pytest, which runs the tests"), "{}", said.err);
    assert!(said.err.contains("hint: install pytest for this interpreter"), "{}", said.err);
    assert!(!said.err.contains("pack.toml"), "{}", said.err);
}

#[test]
fn from_a_folder_of_the_repository_its_tests_are_named_as_they_lie_there() {
    let branch = rebate();
    let python = branch.python.to_str().unwrap();
    let from = |folder: &str, tests: &[&str]| {
        let all = ["--quiet", "probe-gaps", "--repo", folder, "--python", python, "--json", "--"];
        branch.ground.infradev(&[&all[..], tests].concat()).exits(0).json()
    };
    for (folder, test) in [("shop/tests", "./test_old.py::test_old"), ("shop/tests", "."), ("shop", "tests")]
    {
        let document = from(folder, &[test]);
        let cases = document["change"]["golden"][0]["cases"].as_u64();
        let expected = if test.contains("::") { 1 } else { 3 };
        assert_eq!(cases, Some(expected), "{folder} {test}\n{document:#}");
    }
}
