//! What holds of the mutants of any change of a file.

use std::collections::HashSet;

use infradev_model::{Mutant, Operator};
use infradev_pycode::{MutationSource, ast_equal, mutants};
use proptest::prelude::*;

/// Statements that the operators look at, each at the level of a function's body.
const STATEMENTS: [&str; 24] = [
    "x = x + 1",
    "x = (x * 2).float() / world_size",
    "dist.all_reduce(x, group=self.tp_group)",
    "out = all_gather(x, group)",
    "if self.flag and not x:\n        return x",
    "if x > 0:\n        x = fast(x)\n    elif x is None:\n        x = 1\n    else:\n        x = slow(x)",
    "assert x, 'words'",
    "self.total = [0,\n        1,\n    ]",
    "handle.wait(); del x",
    "y = x.view(-1,\n        2)[rank * 2 : 4]",
    "with torch.no_grad():\n        self.buffer.copy_(x)",
    "for i in range(3): x = x - i",
    "logger.info('%s', x)",
    "self.cache[key] = x.detach().clone()",
    "y = f(x,  # why\n        a=1, b=x if x else None,\n    )",
    "def inner(a, *, b=2):\n        return a or b",
    "x = not x == 2",
    "\"\"\"Words.\"\"\"",
    "# a comment",
    "",
    "try:\n        x = g(x, mode='a')\n    except E:\n        x = 0.5",
    "lambda: x <= 3",
    "x = [i for i in x if i in self.seen]",
    "return x if x else (x, 1)",
];

/// A function of these statements. The comment that ends each line tells lines apart, so that no two diffs differ in what was
/// added: lines of the same mark in two texts are one.
fn function(parts: &[(&str, &[usize])]) -> String {
    let mut text = String::from("def f(self, x, group, rank, world_size, key):\n    pass\n");
    for (mark, statements) in parts {
        for (number, at) in statements.iter().enumerate() {
            let statement =
                if STATEMENTS[*at].is_empty() { String::new() } else { format!("    {}", STATEMENTS[*at]) };
            for (part, line) in statement.lines().enumerate() {
                text.push_str(&format!("{line}  # {mark} {number} {part}\n"));
            }
            if statement.is_empty() {
                text.push('\n');
            }
        }
    }
    text
}

fn statements() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0..STATEMENTS.len(), 0..8)
}

proptest! {
    #[test]
    fn every_mutant_parses_differs_and_touches_added_lines_only(
        before in statements(), added in statements(), after in statements(), removed in statements(),
    ) {
        let base = function(&[("before", &before), ("removed", &removed), ("after", &after)]);
        let golden = function(&[("before", &before), ("added", &added), ("after", &after)]);
        let source = MutationSource { path: "a.py", base: Some(&base), golden: Some(&golden) };
        let found = mutants(&source).unwrap();
        let mut digests = HashSet::new();
        let of_base: HashSet<&str> = base.lines().collect();
        for mutant in &found {
            let text = mutant.text(&golden).unwrap();
            prop_assert!(!ast_equal(&golden, &text).unwrap(), "{mutant:?}");
            prop_assert!(digests.insert(mutant.digest.clone()), "{mutant:?}");
            prop_assert_eq!(&mutant.digest, &Mutant::digest_of("a.py", Some(&text)));
            prop_assert_eq!(mutant.line as usize, golden[..mutant.start].matches('\n').count() + 1);
            if mutant.operator == Operator::TakeBackFile {
                prop_assert_eq!(&text, &base);
                continue;
            }
            if mutant.operator != Operator::TakeBackHunk {
                prop_assert!(!ast_equal(&base, &text).unwrap(), "{mutant:?} is base");
            }
            let start = golden[..mutant.start].rfind('\n').map_or(0, |at| at + 1);
            for line in golden[start..mutant.end.max(start)].lines().filter(|line| !line.trim().is_empty()) {
                prop_assert!(!of_base.contains(line), "{mutant:?} touches `{line}`, which base has");
            }
        }
        prop_assert_eq!(found, mutants(&source).unwrap());
    }

    #[test]
    fn any_text_is_mutated_or_refused(base in "\\PC{0,80}", golden in "[a-z0-9 =+().\\n:\\[\\],'\"#@]{0,120}") {
        if let Ok(found) = mutants(&MutationSource { path: "a.py", base: Some(&base), golden: Some(&golden) }) {
            for mutant in found {
                prop_assert!(mutant.text(&golden).is_some());
            }
        }
    }
}
