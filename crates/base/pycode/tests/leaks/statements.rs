//! Statements in another library's words, and short ones with other names.

use super::{leaks_of, shown};

/// What a text has of a function of golden's with this one statement.
fn found(statement: &str, known: &str, text: &str) -> String {
    let golden = format!("def f(self, seq, budget, cached, counts, rows):\n    {statement}\n");
    let mut found = leaks_of(&golden, known, "", text);
    found.retain(|finding| matches!(finding.rule.name(), "body-line" | "long-ngram"));
    shown(&found)
}

#[test]
fn a_call_of_one_library_is_found_as_another_s_and_as_a_method() {
    let forms = [
        "counts.cumsum(0) - counts",
        "torch.cumsum(counts, 0) - counts",
        "np.cumsum(counts, 0) - counts",
        "numpy.cumsum(counts, axis=0) - counts",
        "jnp.cumsum(counts, 0) - counts",
        "jax.numpy.cumsum(counts, 0) - counts",
        "np .cumsum(\n  counts, 0) - counts",
        r"np\.cumsum(counts, 0) - counts",
        "`np`.`cumsum(counts, 0)` - counts",
    ];
    for golden in &forms[..5] {
        for text in forms {
            for text in [text.to_owned(), text.replace("counts", "n")] {
                let found = found(&format!("offsets = {golden}"), "", &format!("Do\n{text}"));
                assert!(found.contains("a statement of golden's stands here"), "{golden}: {text}\n{found}");
            }
        }
        for text in ["xp.cumsum(n, 0) - n", "np.cumprod(n, 0) - n", "np.cumsum(n, 0) - m", "np. cumsum of n"]
        {
            assert_eq!(found(&format!("offsets = {golden}"), "", text), "", "{golden}: {text}");
        }
        for known in &forms[..5] {
            let known = format!("def g(counts):\n    return {known}\n");
            assert_eq!(found(&format!("offsets = {golden}"), &known, "np.cumsum(n, 0) - n"), "", "{known}");
        }
    }
}

#[test]
fn an_operation_too_short_by_itself_is_found_with_other_names_where_it_is_assigned() {
    for (golden, text) in [
        ("budget -= seq.length - cached", "room -= seq.length - known"),
        ("budget -= seq.length - cached", "`left -= s.length − n`"),
        ("room = seq.length - cached", "left = s.length - known"),
        ("room = last = seq.length - cached", "left = end = s.length - known"),
        ("fits = seq.length <= budget", "it_does = s.length ≤ room"),
        ("return seq.length - cached", "return s.length - known"),
    ] {
        let found_there = found(golden, "", text);
        assert!(found_there.contains("stands here with other names"), "{golden}: {text}\n{found_there}");
        let known = format!("def g(seq, known):\n    {golden}\n");
        assert_eq!(found(golden, &known, text), "", "{golden}: {text}");
    }
}

#[test]
fn short_assignments_that_any_code_has_are_nobody_s() {
    for (golden, text) in [
        ("self.x = x", "self.x = x"),
        ("x = x + 1", "x = x + 1"),
        ("budget = budget + 1", "x = x + 1"),
        ("budget -= cached + 1", "x -= y + 1"),
        ("budget -= len(seq) - cached", "n -= len(x) - m"),
        ("size = rows.shape[0] - 1", "n = x.shape[0] - 1"),
        ("tokens = seq.encode(rows)", "out = model.encode(x)"),
        ("budget = seq.length", "n = x.length"),
        ("return seq.length", "return x.length"),
        ("budget -= seq.length - cached", "room -= seq.length + known"),
        ("budget -= seq.length - cached", "room -= seq.length - room"),
        ("budget -= seq.length - cached", "The room is seq.length - known."),
        ("return self.func(*args, **kwargs)", "return func(*args, **kwargs)"),
    ] {
        assert_eq!(found(golden, "", text), "", "{golden}: {text}");
    }
}

#[test]
fn an_attribute_of_self_is_found_as_a_name() {
    let lookup = "node = self._by_key.get((seq, tuple(rows[budget : budget + self.size])))";
    for (golden, text) in [
        ("del self._idle[rows]", "del idle[rows]"),
        ("self._holders[rows] = 1", "```\nif rows:\n    holders[rows] = 1\n```"),
        ("self._holders[rows] += 1", "holders[r] += 1"),
        ("self._holders[rows] += 1", "`self.holders[rows] += 1`"),
        ("self._free.extendleft(self._idle)", "`free.extendleft(idle)`, `kept.clear()`"),
        ("self._free.extendleft(self._idle)", "self._free.extendleft(idle)"),
        (lookup, "entry = table.get((prev, tuple(tokens[i : i + size])))"),
        (lookup, "entry = self._by_key.get((prev, tuple(tokens[i : i + size])))"),
        (lookup, "by_key.get((seq, tuple(rows[budget : budget + size])))"),
        ("self.pool.retain([self.block, rows])", "blocks.retain([mine, theirs])"),
    ] {
        let found_there = found(golden, "", text);
        assert!(
            found_there.contains("a statement of golden's stands here"),
            "{golden}: {text}\n{found_there}"
        );
        let known = format!("def g(self, seq, budget, rows):\n    {golden}\n");
        assert_eq!(found(golden, &known, text), "", "{golden}: {text}");
    }
}

#[test]
fn a_few_words_that_attributes_of_self_may_be_are_nobody_s() {
    let lookup = "node = self._by_key.get((seq, tuple(rows[budget : budget + self.size])))";
    for (golden, text) in [
        ("self._kept.clear()", "`kept.clear()`"),
        ("self.rows = rows", "rows = rows"),
        ("self.on_evict(rows)", "on_evict(rows)"),
        ("self.state[seq] = budget", "state[key] = value"),
        ("del self._idle[rows]", "del spare[rows]"),
        ("self._holders[rows] += 1", "seen[key] += 1"),
        ("self._free.extendleft(self._idle)", "left.extendleft(right)"),
        ("self._free.extendleft(self._idle)", "engine.free.extendleft(idle)"),
        ("if rows in self._idle:\n        pass", "It is asked whether rows in idle: then they are held."),
        (lookup, "entry = table.get((prev, tuple(tokens[i : i + i])))"),
        (lookup, "entry = table.get((prev, list(tokens[i : i + size])))"),
        ("self.total = self.total + self.size * rows", "x = x + y * z"),
    ] {
        assert_eq!(found(golden, "", text), "", "{golden}: {text}");
    }
}
