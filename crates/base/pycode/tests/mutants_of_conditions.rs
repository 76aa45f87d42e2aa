//! Mutants of flags, paths, guards, branches, keyword arguments, state and decorators.

mod mutating;

use infradev_model::Operator;
use mutating::{lines_of, table};

#[test]
fn a_flag_is_taken_for_off() {
    table(
        Operator::IgnoredFlag,
        &[
            ("if self.config.overlap:\n    x = x + 1", &["if False:"]),
            ("if flag and x > 0:\n    x = x + 1", &["if False and x > 0:"]),
            ("y = 1 if flag else 2", &["y = 1 if False else 2"]),
            ("if x is not None:\n    x = x + 1", &["if False:"]),
            ("if x is None:\n    x = 1", &["if True:"]),
            ("y = make(x, fused=flag)", &["y = make(x, fused=False)"]),
            ("y = make(x, fused=self.use_fused)", &["y = make(x, fused=False)"]),
            ("if getattr(args, \"fused\", False):\n    x = 1", &["if False:"]),
            ("y = autocast(x, enabled=self.config.amp)", &["y = autocast(x, enabled=False)"]),
            ("y = dropout(x, training=self.training)", &["y = dropout(x, training=False)"]),
            ("y = attend(x, is_causal=self.causal)", &["y = attend(x, is_causal=False)"]),
            ("y = make(x, scale=x)", &[]),
            ("return self.on and x > 1", &["return False and x > 1"]),
            // What the guard's or the other flag's mutant does already.
            ("if self.done:\n    return None", &[]),
            (
                "if self.done or not flag:\n    return None",
                &["if False or not flag:", "if self.done or not False:"],
            ),
            ("if self.a and self.b:\n    x = 1", &["if False and self.b:"]),
            ("if self.a or self.b:\n    x = 1", &["if False or self.b:", "if self.a or False:"]),
        ],
    );
}

#[test]
fn a_flag_that_golden_adds_to_a_condition_is_taken_for_off() {
    let base = "def f(a, b):\n    if (\n        a\n    ):\n        return g(a, b)\n    return 1\n";
    let golden = base.replace("        a\n    )", "        a\n        and b\n    )");
    assert_eq!(lines_of(Operator::IgnoredFlag, base, &golden), ["and False"]);
}

#[test]
fn one_path_is_always_taken() {
    table(
        Operator::FallbackAlways,
        &[
            ("if is_available(x):\n    y = fast(x)\nelse:\n    y = slow(x)", &["if False:", "if True:"]),
            (
                "y = fast(x) if n > 2 else slow(x)",
                &["y = fast(x) if False else slow(x)", "y = fast(x) if True else slow(x)"],
            ),
            // Off is the flag's own mutant.
            ("if flag:\n    y = 1\nelse:\n    y = 2", &["if True:"]),
            ("if n > 2:\n    y = 1", &["if False:", "if True:"]),
            ("if n > 2:\n    return 1", &[]),
            ("try:\n    y = fast(x)\nexcept ImportError:\n    y = x", &["raise ImportError"]),
            (
                "try:\n    y = fast(x)\n    z = y\nexcept (KeyError, OSError):\n    y = x\nexcept Own:\n    return x",
                &["raise KeyError", "raise Own.__new__(Own)"],
            ),
            ("try:\n    y = fast(x)\nexcept ImportError:\n    logger.info(x)", &[]),
            ("try:\n    y = fast(x)\nexcept ImportError as e:\n    y = x\n    raise E from e", &[]),
            ("try:\n    y = fast(x)\nfinally:\n    y = x", &[]),
            (
                "if n > 2:\n    y = 1\nelif n > 1:\n    y = 2\nelif n > 0:\n    raise E",
                &["if False:", "if True:", "elif True:"],
            ),
        ],
    );
}

#[test]
fn a_guard_is_gone() {
    table(
        Operator::DropGuard,
        &[
            ("if x < 0:\n    raise ValueError(\"negative\")", &["pass"]),
            ("if x is None:\n    logger.info(\"nothing\")\n    return None", &["pass"]),
            ("for y in x:\n    if y:\n        continue\n    use(y)", &["pass"]),
            ("assert x > 0, \"positive\"", &["pass"]),
            ("if x < 0:\n    x = 0", &[]),
            ("if x < 0:\n    return 1\nelse:\n    x = 2", &[]),
        ],
    );
}

#[test]
fn a_branch_is_gone() {
    table(
        Operator::DropBranch,
        &[
            ("if a > 1:\n    x = 1\nelse:\n    x = 2", &[""]),
            ("if a > 1:\n    x = 1\nelif a > 2:\n    x = 2\nelse:\n    x = 3", &["", ""]),
            ("if a > 1:\n    x = 1", &[]),
            ("while a > 1:\n    a = f(a)\nelse:\n    x = 2", &[""]),
            ("for a in x:\n    if a > 1:\n        break\nelse:\n    x = 2", &[""]),
            ("try:\n    a = f(x)\nexcept OSError:\n    a = 1\nelse:\n    x = 2", &[""]),
            ("for a in x:\n    f(a)", &[]),
        ],
    );
}

#[test]
fn a_keyword_argument_is_left_out() {
    table(
        Operator::DropKeyword,
        &[
            ("y = f(x, scale=2)", &["y = f(x, )"]),
            ("y = f(x, flag=True)", &[]),
            ("y = f(scale=2, bias=3)", &["y = f( bias=3)", "y = f(scale=2, )"]),
            ("y = f(x, help=\"words\", **rest)", &[]),
            ("y = zip(x, x, strict=True)", &[]),
            ("y = torch.empty(3, device=x.device)", &[]),
            ("raise E(code=3)", &[]),
        ],
    );
}

#[test]
fn an_argument_without_a_default_is_not_left_out() {
    let golden = "def f(a, b=1):\n    return a + b\n\n\ny = f(a=g(1), b=2)\n";
    assert_eq!(lines_of(Operator::DropKeyword, "", golden), ["y = f(a=g(1), )"]);
}

#[test]
fn state_keeps_its_old_value() {
    table(
        Operator::DropReset,
        &[
            ("self.total = 0", &["pass"]),
            ("self.blocks.clear()", &["pass"]),
            ("self.grad.zero_()", &["pass"]),
            ("del self.blocks[x]", &["pass"]),
            ("self.reset_state()", &["pass"]),
            ("self.total += 1", &["pass"]),
            ("total = 0", &[]),
            ("self.m[:] = 0", &["pass"]),
            ("self.m[..., 1:] = float(\"-inf\")", &["pass"]),
            ("counts[0:n] = -1", &["pass"]),
            ("self.m[:] = x", &[]),
            ("self.m[0] = 0", &[]),
        ],
    );
    let constructor = "class A:\n    def __init__(self):\n        self.total = 0\n        self.other = 1\n";
    assert_eq!(lines_of(Operator::DropReset, "", constructor), [""; 0]);
}

#[test]
fn a_decorator_is_gone() {
    let golden = "@torch.no_grad()\n@functools.wraps(g)\ndef f(x):\n    return x\n\n\nclass A:\n    @property\n    def g(self):\n        return 1\n";
    assert_eq!(lines_of(Operator::DropDecorator, "", golden), [""]);
}
