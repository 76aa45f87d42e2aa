//! Mutants of operators and constants, and where there are none.

mod mutating;

use infradev_model::Operator;
use mutating::{lines_of, method, mutants_between, table};

#[test]
fn comparisons_are_swapped() {
    table(
        Operator::SwapComparison,
        &[
            ("y = a < b", &["y = a <= b"]),
            ("y = a >= b", &["y = a > b"]),
            ("y = (a) == (b)", &["y = (a) != (b)"]),
            ("y = a not in b", &["y = a in b"]),
            ("y = a < b <= c", &["y = a <= b <= c", "y = a < b < c"]),
            ("y = a is not b", &["y = a is b"]),
            ("y = a is None", &[]),
            // Both paths are forced already.
            ("y = 1 if a == b else 2", &[]),
        ],
    );
}

#[test]
fn boolean_operators_are_swapped() {
    table(
        Operator::SwapBoolean,
        &[
            ("y = f(a) and b", &["y = True and b", "y = f(a) or b", "y = f(a) and True"]),
            (
                "y = f(a) or f(b) or f(c)",
                &[
                    "y = False or f(b) or f(c)",
                    "y = f(a) and f(b) and f(c)",
                    "y = f(a) or False or f(c)",
                    "y = f(a) or f(b) or False",
                ],
            ),
            ("y = not f(a)", &["y =  f(a)"]),
        ],
    );
}

#[test]
fn arithmetical_operators_are_swapped() {
    table(
        Operator::SwapArithmetic,
        &[
            ("y = a + b", &["y = a - b"]),
            ("y = (a * b) // c", &["y = (a / b) // c", "y = (a * b) * c"]),
            ("y += a", &["y -= a"]),
            ("self.y += a", &[]),
            ("y = a % b", &["y = a // b"]),
            ("y = \"a\" + b", &[]),
            ("y = [a] * b", &[]),
            ("y = \"%s\" % b", &[]),
            ("y = a @ b", &[]),
        ],
    );
}

#[test]
fn constants_are_swapped() {
    table(
        Operator::SwapConstant,
        &[
            ("y = 0", &["y = 1"]),
            ("y = f(True)", &["y = f(False)"]),
            ("y = 0.5", &["y = 1.0"]),
            ("y = 1e-5", &["y = 2e-5"]),
            ("y = \"word\"", &[]),
            ("self.epoch = 0", &[]),
            ("self.total += 1", &[]),
            ("total += 1", &["total += 2"]),
            ("y = x[0] + shape[-1]", &[]),
            ("y = x[1:]", &["y = x[2:]"]),
            ("y = f\"{x:.3f} {1}\"", &[]),
        ],
    );
}

#[test]
fn what_fails_at_once_or_differs_in_time_alone_is_not_swapped() {
    table(
        Operator::SwapConstant,
        &[
            ("y = x.view(-1)", &[]),
            ("y = x.reshape(n, -1).sum(-1)", &["y = x.reshape(n, -1).sum(-2)"]),
            ("y = x.expand(-1, 4)", &["y = x.expand(-1, 5)"]),
            ("y = torch.reshape(x, (-1, n))", &[]),
            ("y = x.unflatten(1, (n, -1))", &["y = x.unflatten(2, (n, -1))"]),
            ("await asyncio.sleep(0)", &[]),
            ("time.sleep(0.05)", &[]),
            ("y = os.read(fd, 4096)", &[]),
            ("y = sock.recv(64 * 1024)", &[]),
            ("y = sock.recv(8)", &["y = sock.recv(9)"]),
            ("y = open(x, buffering=1 << 20)", &[]),
        ],
    );
}

#[test]
fn a_compiled_kernel_has_no_swaps_but_its_branches() {
    let golden = "@triton.jit\ndef kernel(x, n: tl.constexpr):\n    if n > 2:\n        y = x * 2 + 1\n    else:\n        y = x.to(tl.float32)\n";
    let mut kinds: Vec<Operator> =
        mutants_between("", golden).into_iter().map(|mutant| mutant.operator).collect();
    kinds.sort();
    kinds.dedup();
    let expected =
        [Operator::TakeBackHunk, Operator::WrongDtype, Operator::FallbackAlways, Operator::DropBranch];
    assert_eq!(kinds, expected);
}

#[test]
fn there_are_none_in_what_is_said_to_people_and_to_type_checkers() {
    let quiet = [
        "logger.info(\"%d\", x + 1)",
        "logging.getLogger(__name__).warning(f\"{x}\")",
        "warnings.warn(\"slow\", stacklevel=2)",
        "print(x + 1)",
        "log_single_rank(logger, logging.INFO, x + 1)",
        "print_rank_0(x > 1)",
        "torch.cuda.nvtx.range_push(\"x\")",
        "'''Words.'''",
        "y: int",
        "pass",
    ];
    for statement in quiet {
        let (base, golden) = (method("a = 1"), method(&format!("a = 1\n{statement}")));
        assert_eq!(mutants_between(&base, &golden), [], "{statement}");
    }
    let repr = "class A:\n    def __repr__(self):\n        return f(self.a + 1)\n";
    for golden in [
        repr,
        "if TYPE_CHECKING:\n    import torch\n    x = 1 + 1\n",
        "__all__ = [\"a\", \"b\"]\n",
        "if __name__ == \"__main__\":\n    main(1)\n",
    ] {
        let kinds: Vec<Operator> = mutants_between("a = 1\n", &format!("a = 1\n{golden}"))
            .into_iter()
            .map(|mutant| mutant.operator)
            .filter(|operator| !matches!(operator, Operator::TakeBackHunk | Operator::TakeBackFile))
            .collect();
        assert_eq!(kinds, [], "{golden}");
    }
}

#[test]
fn what_is_only_named_like_talk_behaves() {
    for statement in
        ["parser.error(\"no\")", "y = tl.cast(x, tl.float32)", "y = log_sum_exp(x, 1)", "self.info(x)"]
    {
        let (base, golden) = (method("a = 1"), method(&format!("a = 1\n{statement}")));
        assert_ne!(mutants_between(&base, &golden), [], "{statement}");
    }
    let (base, golden) = (method("y = tl.cast(a, b)"), method("y = tl.cast(x, b)"));
    assert_eq!(lines_of(Operator::TakeBackHunk, &base, &golden).len(), 1);
}

#[test]
fn the_function_that_holds_a_mutant_is_named() {
    let golden = "A = 1\n\n\nclass Layer:\n    def forward(self, x):\n        def inner():\n            return x + self.n\n\n        return inner() * self.n\n";
    let found: Vec<(u32, Option<String>)> = mutants_between("", golden)
        .into_iter()
        .filter(|m| m.operator == Operator::SwapArithmetic || m.operator == Operator::SwapConstant)
        .map(|m| (m.line, m.function))
        .collect();
    let expected = [
        (1, None),
        (7, Some("Layer.forward.<locals>.inner".to_owned())),
        (9, Some("Layer.forward".to_owned())),
    ];
    assert_eq!(found, expected);
    assert_eq!(lines_of(Operator::SwapConstant, "", golden), ["A = 2"]);
}
