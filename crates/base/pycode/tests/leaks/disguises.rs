//! Golden in a disguise: a condition turned round, the names of another language, letters of another alphabet, another coding.

use super::{leaks_of, shown};

const BASE: &str = "\
class Sequence:
    tokens: list
    block_size = 16
def evict(block): pass
";

const GOLDEN: &str = "\
class Sequence:
    tokens: list
    block_size = 16
def evict(block): pass

class PrefixNode:
    def __init__(self, block):
        self.block = block

class PrefixCache:
    def __init__(self, block_size):
        self._by_key = {}
        self.block_size = block_size

    def match(self, tokens):
        found_nodes = []
        for start in range(0, len(tokens) - self.block_size + 1, self.block_size):
            before = found_nodes[-1].id if found_nodes else -1
            node = self._by_key.get((before, tuple(tokens[start : start + self.block_size])))
            if node is None:
                break
            found_nodes.append(node)
        return found_nodes

    def register(self, seq):
        full = seq.computed // self.block_size
        if seq.epoch != self.epoch or full == len(seq.chain):
            return
        if not (seq.pinned and seq.rows > self.wanted) and self.ready:
            self.evicted.append(seq)
        node = self._by_key.get(seq.key)

class _AllToAll:
    pass
";

fn found(text: &str) -> Vec<(&'static str, Option<u32>)> {
    let found = leaks_of(GOLDEN, BASE, "", text);
    found.iter().map(|finding| (finding.rule.name(), finding.golden.as_ref().map(|at| at.line))).collect()
}

#[test]
fn a_condition_is_found_turned_round() {
    for text in [
        "seq.epoch != self.epoch or full == len(seq.chain)",
        "if not (seq.epoch == self.epoch and full != len(seq.chain)): return",
        "if seq.epoch == self.epoch and full != len(seq.chain): go on",
        "if full == len(seq.chain) or seq.epoch != self.epoch: return",
        "if len(seq.chain) == full or self.epoch != seq.epoch: return",
        "if not seq.epoch == self.epoch or not full != len(seq.chain): return",
        "if (s.epoch !== self.epoch || n === len(s.chain)) return;",
        "if (s.epoch != self.epoch || n == len(s.chain)) return;",
    ] {
        let text = format!("So:\n\n`{text}`\n");
        assert!(found(&text).contains(&("body-line", Some(27))), "{text} {:?}", found(&text));
    }
    for text in [
        "if self.ready and (not seq.pinned or seq.rows <= self.wanted): go on",
        "if (seq.rows <= self.wanted or not seq.pinned) and self.ready: go on",
        "if not self.ready or (seq.pinned and seq.rows > self.wanted): return",
    ] {
        assert!(found(text).contains(&("body-line", Some(29))), "{text} {:?}", found(text));
    }
}

#[test]
fn a_name_is_found_in_the_spelling_of_another_language() {
    for (text, line) in [
        ("```js\nconst block = this.byKey.get(key);\n```", 12),
        ("```\nfoundNodes.push(block)\n```", 16),
        ("Keep them in byKey.", 12),
        ("`by_key`", 12),
        ("`prefix_node`", 6),
        ("A prefix_node for each.", 6),
        ("`ByKey`", 12),
        ("    BY_KEY[k]", 12),
        ("`FoundNodes`", 16),
    ] {
        assert!(found(text).contains(&("private-name", Some(line))), "{text} {:?}", found(text));
    }
}

#[test]
fn letters_that_look_like_latin_ones_and_words_in_another_coding_hide_nothing() {
    for text in [
        "node = self._by_k\u{435}y.get((before, tuple(t\u{43e}kens[start : start + self.block_size])))",
        "n\u{3bf}de = self._by_key.get((b\u{435}fore, tuple(tokens[start : start + self.block_size])))",
        // The same in base64, in one word and in three lines, and in hexadecimal digits.
        "See `bm9kZSA9IHNlbGYuX2J5X2tleS5nZXQoKGJlZm9yZSwgdHVwbGUodG9rZW5zW3N0YXJ0IDogc3RhcnQgKyBzZWxmLmJsb2NrX3NpemVdKSkp`",
        "```\nbm9kZSA9IHNlbGYuX2J5X2tleS5nZXQoKGJlZm9y\nZSwgdHVwbGUodG9rZW5zW3N0YXJ0IDogc3RhcnQg\nKyBzZWxmLmJsb2NrX3NpemVdKSkp\n```",
        "6e6f6465203d2073656c662e5f62795f6b65792e67657428286265666f72652c207475706c6528746f6b656e735b7374617274203a207374617274202b2073656c662e626c6f636b5f73697a655d292929",
    ] {
        assert!(found(text).contains(&("body-line", Some(19))), "{text} {:?}", found(text));
    }
    // Where it stands is the place of the word.
    let whole = leaks_of(
        GOLDEN,
        BASE,
        "",
        "One.\n\n6e6f6465203d2073656c662e5f62795f6b65792e67657428286265666f72652c",
    );
    assert!(!whole.is_empty() && whole.iter().all(|finding| finding.line == 3), "{}", shown(&whole));
}

#[test]
fn what_any_text_may_say_beside_these_rules_is_clean() {
    for text in [
        "A node of a prefix is found by key; prefix nodes are never freed before those found later.",
        "The prefix node's block, by-key lookups, found nodes: none of these names is asked for.",
        "PrefixNodes of other engines, a GraphCache, PyTorch and NumPy; `blockSize` of the config is `block_size`.",
        "`evict(block)` gives `block.tokens`; a `Sequence` has `tokens`, and `blockSize` is 16 in JavaScript.",
        "If the epochs differ, or all full blocks are known, nothing happens.",
        "After a reset `seq.epoch` is no longer that of the cache, and `full == 0` of what is asked for.",
        "Return early `if a != b or done:`; `if not (x and y): return` is the same as `if not x or not y: return`.",
        "`if (a && b || !c) return;`, `x == y and n > 0`, `node is None or node.block is None`.",
        "Full blocks are those of which all tokens are computed; `len(seq.chain)` of them are known.",
        "In \u{3bc}s and \u{b5}s; \u{3b1} = 0.5, \u{3a3} over all ranks, \u{394}t, 2\u{3c0}r, \u{3b5}-greedy, \u{3bb} of 0.9.",
        "\u{41a}\u{43e}\u{434} \u{441} \u{431}\u{43b}\u{43e}\u{43a}\u{430}\u{43c}\u{438}: \u{43d}\u{438}\u{447}\u{435}\u{433}\u{43e} \u{43d}\u{435} \u{43c}\u{435}\u{43d}\u{44f}\u{435}\u{442}\u{441}\u{44f}.",
        "Caf\u{e9}, na\u{ef}ve, \u{201c}quotes\u{201d} \u{2013} and a table \u{2502} of rows.",
        "The digest is d41d8cd98f00b204e9800998ecf8427e; the commit 7f1216dde0a9eef1a71762353ddd43daf6e8a191.",
        "`gradient_accumulation_steps`, https://example.org/a/very/long/path/to/some/page, 5683b15a-a4fb-4b7b-9204-d976a4b790bd",
        // Base64 of a sentence that anybody may say.
        "VGhlIGJsb2NrcyBvZiBhIHNlcXVlbmNlIHN0YXkgd2hlcmUgdGhleSBhcmUu",
        "`all_to_all` of torch.distributed, or `allToAll` in other libraries, may be used.",
        "Shapes: `tokens` [T], int64; `block_size` 16 by default; `match(tokens)` gives a list.",
        "`match(tokens: list[int]) -> list`; errors: ValueError where `tokens` is empty; defaults: `block_size=16`.",
    ] {
        let found = shown(&leaks_of(GOLDEN, BASE, "", text));
        assert_eq!(found, "", "{text}");
    }
}
