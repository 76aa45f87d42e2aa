//! Algorithms that golden uses and a text names.

use infradev_model::{Contract, ContractFinding};
use infradev_pycode::contract::{Leaks, Texts};

use super::{CONTRACT, shown};

const BASE: &str = "\
def first_fit(requests):
    return requests

class Store:
    # Nothing is forgotten.
    pass
";

const GOLDEN: &str = r#"
import heapq
from bisect import bisect_left
from functools import lru_cache

def first_fit(requests):
    return requests

class Store:
    def __init__(self):
        self.free_list = []
        self.node = RadixTree()

class LRUCache:
    """Kept by Ryser's formula."""

def mean(rows):
    # One pass (Welford).
    at = bisect_left(rows, 0)
    heapq.heappush(rows, at)
    return kahan_total(rows)

def route(rows):
    # Divided by the Floyd-Rivest algorithm, and what is left of it by a treap
    # sort.
    return rows

IDLE: OrderedDict[int, None] = OrderedDict()
"#;

fn found(text: &str, tests: &[&str], contract: &Contract) -> Vec<ContractFinding> {
    let file = |text: &str| [("m.py".to_owned(), text.to_owned())];
    let leaks = Leaks::of(&Texts {
        base: &file(BASE),
        golden: &file(GOLDEN),
        tests,
        base_has_word: &|word| word == "Gather",
        contract,
        listed: &[],
    });
    let mut found = leaks.find("spec.md", text);
    found.retain(|finding| finding.rule.name() == "algorithm");
    found
}

#[test]
fn an_algorithm_that_golden_uses_is_found_by_each_of_its_names() {
    for (text, passage, name, line) in [
        ("Sum with Kahan's method.", "Kahan's", "Kahan summation", 21),
        ("use a compensated summation", "compensated summation", "Kahan summation", 21),
        ("Means by **Welford**.", "Welford", "Welford's algorithm", 18),
        ("a binary\nsearch for it", "binary search", "binary search", 3),
        ("in a min-heap", "min-heap", "priority queue", 2),
        ("Results are memoized.", "memoized", "memoisation", 4),
        ("evict the least recently used", "least recently used", "LRU", 4),
        ("keep LRUs of blocks", "LRUs", "LRU", 4),
        ("a `FreeList` of them", "FreeList", "free list", 11),
        ("Radix trees hold them.", "Radix trees", "radix tree", 12),
        ("in an `OrderedDict` of them", "OrderedDict", "ordered dictionary", 28),
        ("in an ordered mapping", "ordered mapping", "ordered dictionary", 28),
        // Of no catalogue.
        ("As Ryser found, it", "Ryser", "Ryser's", 15),
        ("with Floyd–Rivest", "Floyd–Rivest", "Floyd-Rivest", 24),
        ("by a treap-sort", "treap-sort", "treap sort", 24),
    ] {
        let found = found(text, &[], &Contract::default());
        let [finding] = found.as_slice() else { panic!("{text}\n{}", shown(&found)) };
        assert_eq!(finding.passage.as_deref(), Some(passage), "{text}");
        assert!(finding.what.contains(&format!(" is named here: {name}: ")), "{text}\n{}", finding.what);
        assert_eq!(finding.golden.as_ref().map(|at| at.line), Some(line), "{text}");
    }
}

#[test]
fn an_algorithm_that_anyone_may_know_or_golden_does_not_use_is_no_finding() {
    let entry = "\n[[name]]\nname = \"m.LRUCache\"\nkind = \"class\"\nabout = \"Rows.\"\n";
    let listed =
        Contract::parse("contract.toml", format!("{CONTRACT}{entry}").as_bytes()).expect("a contract");
    for text in [
        // Base has it.
        "Requests are placed by first fit.",
        // Golden does not.
        "Not by a Merkle tree, a Bloom filter or two-phase commit.",
        // Words of them in two sentences, or in other senses.
        "It is binary. Search for it in the tree. Sort them after.",
        "a heap of tokens in a list that is free",
        "a ryser is no person",
    ] {
        assert_eq!(shown(&found(text, &[], &Contract::default())), "", "{text}");
    }
    let text = "Evicted by LRU.";
    assert_eq!(found(text, &[], &Contract::default()).len(), 1);
    assert_eq!(shown(&found(text, &["def test_lru_order(): pass"], &Contract::default())), "");
    assert_eq!(shown(&found(text, &[], &listed)), "");
}

#[test]
fn what_the_user_sees_of_an_algorithm() {
    insta::assert_snapshot!(shown(&found("One.\nKeep them in a radix tree.", &[], &Contract::default())));
}
