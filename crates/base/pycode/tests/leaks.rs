//! What a text gives away of golden, in whatever spelling, and what it may say.

use infradev_model::{Contract, ContractFinding};
use infradev_pycode::contract::{Leaks, Texts, without_allowed};
use proptest::prelude::*;

#[path = "leaks/algorithms.rs"]
mod algorithms;
#[path = "leaks/disguises.rs"]
mod disguises;
#[path = "leaks/messages.rs"]
mod messages;
#[path = "leaks/names.rs"]
mod names;
#[path = "leaks/spellings.rs"]
mod spellings;
#[path = "leaks/statements.rs"]
mod statements;

const BASE: &str = "\
import torch

def old(x):
    width = 640
    return x * 31
";

const GOLDEN: &str = r#"import torch

LIMIT = 31
_WINDOW = 4096

def old(x):
    width = 640
    return x * 31

def gather(x: int, seed_of: int = 12345) -> int:
    """Say how many there are of these in all of the world, and nothing of those who are elsewhere."""
    by_rank = sorted(x, key=len)
    total = x * _WINDOW # not told
    raise ValueError('there is no such thing')

def _starts(counts, limit, group):
    """Turn the sizes of neighbouring groups into the row at which each of them begins."""
    # The running total has a group's own rows in it,
    # so that these are taken off again afterwards.
    offsets = torch.cumsum(counts, dim=0) - counts
    scaled = counts.float().mul(1e-6).clamp_(max=3 << 20)
    if offsets[-1] >= limit * group.size:
        offsets = offsets.roll(
            shifts=1,  # the last one comes first
            dims=0,
        )
    while pending := group.poll():
        pending.wait()
    kept = [row for row in offsets.tolist() if row > limit]
    return kept, scaled, 8 * 1024

def _count(self, row, *args, **kwargs):
    self.slots[row] += 1
    return self.func(*args, **kwargs)
"#;

const CONTRACT: &str = "\
schema = 1

[[name]]
name = \"m.gather\"
kind = \"function\"
signature = \"(x: int, seed_of: int = 12345) -> int\"
about = \"How many there are.\"
";

fn with_leaks<T>(contract: &Contract, ask: impl FnOnce(&Leaks) -> T) -> T {
    let file = |text: &str| [("m.py".to_owned(), text.to_owned())];
    ask(&Leaks::of(&Texts {
        base: &file(BASE),
        golden: &file(GOLDEN),
        tests: &["def test(): gather(1, wanted=77)"],
        base_has_word: &|word| word == "elsewhere_in_base",
        contract,
        listed: &[("m.py".to_owned(), "gather".to_owned())],
    }))
}

fn contract(more: &str) -> (Contract, String) {
    let text = format!("{CONTRACT}{more}");
    (Contract::parse("contract.toml", text.as_bytes()).expect("a contract"), text)
}

fn leaks(text: &str) -> Vec<ContractFinding> {
    with_leaks(&contract("").0, |leaks| leaks.find("spec.md", text))
}

/// What a text gives away of a file of golden's, where base's version and a test are these.
fn leaks_of(golden: &str, base: &str, test: &str, text: &str) -> Vec<ContractFinding> {
    let file = |text: &str| [("m.py".to_owned(), text.to_owned())];
    let leaks = Leaks::of(&Texts {
        base: &file(base),
        golden: &file(golden),
        tests: &[test],
        base_has_word: &|_| false,
        contract: &Contract::default(),
        listed: &[],
    });
    leaks.find("spec.md", text)
}

fn shown(findings: &[ContractFinding]) -> String {
    let line = |finding: &ContractFinding| {
        format!("{} {finding}\n  hint: {}\n", finding.rule.name(), finding.hint.as_deref().unwrap_or("none"))
    };
    findings.iter().map(line).collect()
}

#[test]
fn what_the_user_sees_of_each_leak() {
    let mut told = String::new();
    for text in [
        "One.\n`total = x * _WINDOW`",
        "by_rank\n=\nsorted(x, key=len)",
        "It raises 'there is no such thing'.",
        "A total of all; `total` is golden's word.",
        "Begin with offsets=torch.cumsum(counts,0)-counts\nand go on.",
        "- `begin = torch.cumsum(sizes, 0) - sizes`",
        "In windows of 4 KiB,\nand of 4,096 or 2**12.",
        "First turn the sizes of neighbouring groups into the row at which each begins.",
        // Base's, public, of a signature, of a listed docstring, or of plain English.
        "return x * 31, gather, 12345, total, how many there are of these in all of the world, and nothing",
    ] {
        told += &format!("# {text}\n{}\n", shown(&leaks(text)));
    }
    insta::assert_snapshot!(told);
}

#[test]
fn golden_is_found_in_each_of_its_spellings() {
    for (rule, line, golden, text) in spellings::SPELLINGS.iter().copied() {
        let found = leaks(text);
        let is_it = |finding: &&ContractFinding| {
            finding.rule.name() == rule
                && finding.line == line
                && finding.golden.as_ref().is_some_and(|at| at.file == "m.py" && at.line == golden)
        };
        let finding = found.iter().find(is_it);
        let finding =
            finding.unwrap_or_else(|| panic!("{rule} {line} m.py:{golden} in {text}\n{}", shown(&found)));
        assert!(finding.hint.is_some() && finding.passage.is_some(), "{text}");
    }
}

#[test]
fn texts_that_say_what_and_not_how_are_clean() {
    for text in [
        "Each rank sends its tokens to those that asked for them and gets as many back; counts of a few bytes may travel besides.",
        "Offsets are in rows, not in bytes. The first is 0, and the last is the sum of all that come before it.",
        "With a factor of 1.0 nothing is dropped; with 0.5 half of the rows stay, with 2 or 4 all of them do.",
        "Write `x = x + 1`, `self.x = x`, `self.rows = []` or `return x` as you like; `return None` where there is nothing.",
        "At `ep = 2` and 4 ranks a group has 2, at `ep = 4` it has 1; 9 experts cannot be divided over them.",
        "```python\nfrom m import gather\n\nassert gather(tokens, seed_of=12345) >= 0\n```",
        "- int64 counts stay int64, fp8 weights go as uint8\n- an H200 is not asked for\n- Python 3.10.2 or later, see section 1.2.3",
        "| ranks | tokens | result |\n|---|---|---|\n| 1 | 3 | as before |\n| 2 | 0 | zeros |",
        "Of equal rows the earlier one stays: the order within a group is that in which they came, whatever the number of ranks.",
        "`old` still gives `x * 31`, and its width is 640 as before; the tests ask for 77.",
        "Gradients agree with those of one process up to 1e-5 relative, in float32, and up to 1 % in bfloat16.",
        "Say how many there are of these in all of the world, and nothing of those who are elsewhere.",
        "`sorted(names, key=str)` or any other stable order will do. The total of all rows does not change.",
        "Shapes that differ are refused: `q.shape[0] == k.shape[0]` holds, and `logits.view(-1, hidden)` is contiguous.",
        "What is pending when the group is closed is waited for; a poll that finds nothing returns at once.",
        "Before:\n\n    rows [T] --all-gather--> [N*T] --select own--> experts --scatter--> [T]\n\nAfter, the same without the gather.",
        "The last one comes first in the ring. If all ranks hold nothing, none of them hangs, and no row is written twice.",
        "The row at which a group begins follows from the sizes of the groups before it; how it is found is left to you.",
        "`begin = torch.zeros(n, dtype=torch.int64)` is one way to start; `len(rows) - 1` is the last row.",
        "`self.group = group`, `{name: t.shape for name, t in model.state_dict().items()}`, `f(*xs, **of)` and *so* on.",
        "Of 4 and 96 rows, on ranks 1 100 and 2 200 of 3 000; the 11th, in 3D; **bold**, _set_ and <b>small</b> &amp; plain.",
        "Wrap it: `return func(*args, **kwargs)`, or `super().__init__(*args, **kwargs)` for a class.",
        "Raises ValueError where there is no group of that size (see `torch.distributed.new_group`), on all ranks alike.",
        "",
    ] {
        assert_eq!(shown(&leaks(text)), "", "{text}");
    }
}

#[test]
fn a_name_that_only_a_function_of_golden_s_has_is_no_interface() {
    let found = |entry: &str| {
        let (contract, text) = contract(entry);
        shown(&with_leaks(&contract, |leaks| leaks.find_in_contract("contract.toml", &contract, &text)))
    };
    let entry = |signature: &str, about: &str| {
        format!(
            "\n[[name]]\nname = \"m.Plan\"\nkind = \"class\"\nsignature = \"{signature}\"\nabout = \"{about}\"\n"
        )
    };
    for (signature, about) in [
        ("(total: int)", ""),
        ("(by_rank: list[int])", ""),
        ("", "The by_rank of it."),
        ("", "`scaled`"),
        ("kept: int; rows: int", ""),
    ] {
        let found = found(&entry(signature, about));
        assert_eq!(found.lines().count(), 2, "{signature} {about} {found}");
        let line = if about.is_empty() { 12 } else { 13 };
        assert!(found.starts_with(&format!("private-name contract.toml:{line}: ")), "{found}");
    }
    // Of the tree, of the interface, of a test, or of plain English.
    for (signature, about) in [
        ("(elsewhere_in_base: int, width: int)", ""),
        ("(counts: int, limit: int = 3, group: object = None)", ""),
        ("(wanted: int)", ""),
        ("(size: int)", "A total that is kept, and scaled."),
    ] {
        assert_eq!(found(&entry(signature, about)), "", "{signature} {about}");
    }
}

#[test]
fn a_contract_s_values_are_read_as_the_prompt_shows_them() {
    for (rule, line, golden, entry) in [
        ("body-line", 12, 20, r#"about = "Do: starts = counts.cumsum(0) \n- counts""#),
        ("body-line", 12, 20, r#"about = "Do: starts = counts\u002ecumsum(0) - \u0063ounts""#),
        ("body-line", 12, 20, "about = \"\"\"Do: starts = counts.cum\\\n  sum(0) - counts\"\"\""),
        ("body-line", 13, 20, "about = '''\nDo: starts = counts.<!--\n-->cumsum(0)\n - counts'''"),
        ("body-line", 12, 20, "signature = \"counts.cumsum(0)\"\nuntested = \"so\"\nabout = \"- counts\""),
        ("constant", 12, 4, r#"about = "Of 40\u00396 rows.""#),
        ("constant", 13, 4, "signature = \"(a)\"\nabout = \"\"\"\\\n  Of 40\\\n  96 rows.\"\"\""),
        ("private-name", 12, 12, r#"about = "The by\u005frank of it.""#),
        ("prose", 12, 17, r#"about = "Turn the sizes of neighbouring groups \u0069nto the row at which""#),
        // One that the file shows as it is stands there once.
        ("body-line", 14, 20, "about = '''\nDo\nstarts = counts.cumsum(0) - counts'''"),
    ] {
        let entry = format!("\n[[name]]\nname = \"m.plan\"\nkind = \"setting\"\n{entry}\n");
        let (contract, text) = contract(&entry);
        let found = with_leaks(&contract, |leaks| leaks.find_in_contract("contract.toml", &contract, &text));
        let is_it = |finding: &&ContractFinding| {
            (finding.rule.name(), finding.line) == (rule, line)
                && finding.golden.as_ref().is_some_and(|at| at.line == golden)
        };
        assert_eq!(found.iter().filter(is_it).count(), 1, "{entry}{}", shown(&found));
    }
}

#[test]
fn what_the_contract_allows_is_no_finding_and_what_it_allows_in_vain_is_one() {
    let text = "Windows of 4 KiB.\n\nThe row is offsets = torch.cumsum(counts, 0) - counts, and in `by_rank` they are.\n";
    let left = |allowed: &str| {
        let (contract, whole) = contract(allowed);
        let found = with_leaks(&contract, |leaks| {
            let mut found = leaks.find("spec.md", text);
            found.extend(leaks.find_in_contract("contract.toml", &contract, &whole));
            found
        });
        let sifted = without_allowed(found, &contract, &whole);
        assert!(sifted.allowed.iter().all(|passage| passage.why == "it is the file format's"));
        sifted
            .findings
            .iter()
            .map(|finding| format!("{} {finding}\n", finding.rule.name()))
            .collect::<String>()
    };
    let allow = |rule: &str, text: &str| {
        format!("\n[[allow]]\nrule = \"{rule}\"\ntext = \"{text}\"\nwhy = \"it is the file format's\"\n")
    };
    let all = [
        allow("constant", "4 KiB"),
        allow("body-line", "offsets=torch.cumsum( counts,0 ) - counts"),
        allow("private-name", "by_rank"),
    ];
    assert_eq!(left(&all.concat()), "");
    let others =
        [allow("constant", "4096"), allow("long-ngram", "by_rank"), allow("prose", "windows of 4 KiB")];
    insta::assert_snapshot!(
        [left(""), left(&all[..2].concat()), left(&(all.concat() + &others.concat()))].join("\n")
    );
}

#[test]
fn one_allowance_is_for_one_passage_and_what_it_allows_is_told() {
    let text = "Windows of 4 KiB, and of 4 KiB again.\nAt most 3 MiB\nof 8192 rows.\n";
    let sifted = |allowed: &[&str]| {
        let entry = |text: &&str| {
            format!("\n[[allow]]\nrule = \"constant\"\ntext = \"{text}\"\nwhy = \"the file format's\"\n")
        };
        let (contract, whole) = contract(&allowed.iter().map(entry).collect::<String>());
        let found = with_leaks(&contract, |leaks| leaks.find("spec.md", text));
        let sifted = without_allowed(found, &contract, &whole);
        let findings = sifted.findings.iter().map(|finding| format!("{finding}\n"));
        let allowed = sifted.allowed.iter().map(|passage| format!("{passage}\n"));
        findings.chain(allowed).collect::<String>()
    };
    insta::assert_snapshot!(
        [
            // All of the text, a part with two, each by itself, one of them within more.
            sifted(&["Windows of 4 KiB, and of 4 KiB again. At most 3 MiB of 8192 rows."]),
            sifted(&["at most 3 MiB of 8192"]),
            sifted(&["4 KiB", "3 MiB", "8192"]),
            sifted(&["Windows of 4 KiB, and", "of 8192", "At most 3 MiB"]),
        ]
        .join("\n")
    );
}

#[test]
fn a_statement_that_base_or_a_test_has_in_another_spelling_gives_nothing_away() {
    let file = |text: &str| [("m.py".to_owned(), text.to_owned())];
    let found = |base: &str, test: &str| {
        let leaks = Leaks::of(&Texts {
            base: &file(base),
            golden: &file(
                "def f(counts):\n    offsets = torch.cumsum(counts, dim=0) - counts\n    return offsets\n",
            ),
            tests: &[test],
            base_has_word: &|word| word == "offsets",
            contract: &Contract::default(),
            listed: &[],
        });
        leaks.find("spec.md", "begin = torch.cumsum(n, 0) - n").len()
    };
    assert_eq!(found("", ""), 1);
    assert_eq!(found("def g(a):\n    b = (torch.cumsum(a, 0)) - a\n", ""), 0);
    assert_eq!(found("def g(a):\n    b = a.cumsum(0) - a\n", ""), 0);
    assert_eq!(found("", "def test(a):\n    assert f(a) == torch.cumsum(\n        a, dim=0\n    ) - a\n"), 0);
}

#[test]
fn a_number_is_found_in_each_of_its_spellings_and_told_with_its_place() {
    let leaks = Leaks::of(&Texts {
        base: &[],
        golden: &[("m.py".to_owned(), "WIDTH = 12288\n".to_owned())],
        tests: &[],
        base_has_word: &|_| false,
        contract: &Contract::default(),
        listed: &[],
    });
    for text in [
        "12288",
        "12288bytes",
        "12288B",
        "12288ms",
        "12 288",
        "12\u{2009}288",
        "12&#8239;288 rows",
        "12&nbsp;288",
        "12\\,288",
        "12\\ 288",
        "12{,}288",
        "１２２８８",
        "１２，２８８",
        "12\u{200b}288",
        "**12288** rows",
        "12<!-- -->288",
        "12 kibibytes",
        "12 KiB",
        "12&#75;iB",
        "$3 \\times 2^{12}$",
        "$3 \\cdot 2^{12}$",
        "3 &times; 2<sup>12</sup>",
        "3 × 2¹²",
    ] {
        let found = leaks.find("spec.md", &format!("One\n<!-- of\nthese --> &lt; é\n{text}\n\nthen"));
        let places: Vec<(u32, &str)> =
            found.iter().map(|finding| (finding.line, finding.rule.name())).collect();
        assert_eq!(places, [(4, "constant")], "{text}\n{}", shown(&found));
    }
    for text in ["12 2880", "112 288", "12 28 8", "v12288a1", "1.2.288", "12, 288", "12\n288", "x12288"] {
        assert_eq!(shown(&leaks.find("spec.md", text)), "", "{text}");
    }
}

proptest! {
    #[test]
    fn any_text_is_searched_without_a_panic_and_findings_are_on_its_lines(text in "[\\PC\n`]{0,200}|[a-z0-9 ()=,.'\"\n>*+-]{0,120}") {
        for finding in leaks(&text) {
            prop_assert!(finding.line >= 1 && finding.line as usize <= text.lines().count().max(1));
        }
    }

    #[test]
    fn a_statement_of_golden_s_is_found_wherever_and_with_whatever_space_it_stands(
        before in "[A-Z][a-z ]{0,40}[.:]",
        gaps in proptest::collection::vec(prop_oneof![Just(""), Just(" "), Just("\n    "), Just("  ")], 13),
    ) {
        let tokens = ["offsets", "=", "torch", ".cumsum", "(", "counts", ",", "dim", "=", "0", ")", "-", "counts"];
        let spaced: String = tokens.iter().zip(&gaps).map(|(token, gap)| format!("{gap}{token}")).collect();
        let found = leaks(&format!("{before}\n{spaced}\n"));
        prop_assert!(found.iter().any(|finding| finding.rule.name() == "body-line"), "{}", spaced);
    }
}
