"""Whether hollow files keep golden's signatures, by CPython's own parser. Shares no code with what made them.

Reads a list of JSON documents, one a line: {"what", "golden", "hollow", "hollowed"}, where `golden` and `hollow` are files and
`hollowed` the functions that should raise. Walks both trees side by side: everything outside of the bodies of these functions
must be the same, node by node, and each body must be golden's docstring and a raise. Prints one line for each breach.
"""

from __future__ import annotations

import ast
import json
import sys
from collections import Counter
from pathlib import Path

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def is_generator(function: ast.AST) -> bool:
    """Whether a function yields in its own scope."""
    waiting = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.Lambda, ast.GeneratorExp)):
            waiting.extend(ast.iter_child_nodes(node))
    return False


def is_hollow(golden: ast.AST, hollow: ast.AST) -> bool:
    """Golden's docstring if it has one, a raise of NotImplementedError, and where golden yields a yield that is not reached."""
    body = list(hollow.body)
    docstring = ast.get_docstring(golden, clean=False)
    if docstring is not None:
        if ast.get_docstring(hollow, clean=False) != docstring:
            return False
        body = body[1:]
    if is_generator(golden):
        if len(body) != 2 or ast.unparse(body.pop()) not in ("yield", "(yield)"):
            return False
    if len(body) != 1 or not isinstance(body[0], ast.Raise):
        return False
    exception = body[0].exc
    return isinstance(exception, ast.Call) and ast.unparse(exception.func) == "NotImplementedError"


class Comparison:
    def __init__(self, expected: list[str]) -> None:
        self.expected = Counter(expected)
        self.found: Counter[str] = Counter()
        self.breaches: list[str] = []

    def compare(self, golden: object, hollow: object, scope: str) -> None:
        if type(golden) is not type(hollow):
            self.breaches.append(f"{scope}: {type(golden).__name__} became {type(hollow).__name__}")
        elif isinstance(golden, list):
            if len(golden) != len(hollow):
                self.breaches.append(f"{scope}: {len(golden)} nodes became {len(hollow)}")
            for one, other in zip(golden, hollow):
                self.compare(one, other, scope)
        elif isinstance(golden, FUNCTIONS):
            name = f"{scope}{golden.name}"
            self.fields(golden, hollow, name, leave_out={"body"})
            if ast.dump(ast.Module(golden.body, [])) == ast.dump(ast.Module(hollow.body, [])):
                return
            if is_hollow(golden, hollow):
                self.found[name] += 1
                return
            self.compare(golden.body, hollow.body, f"{name}.<locals>.")
        elif isinstance(golden, ast.ClassDef):
            self.fields(golden, hollow, scope, leave_out={"body"})
            self.compare(golden.body, hollow.body, f"{scope}{golden.name}.")
        elif isinstance(golden, ast.AST):
            self.fields(golden, hollow, scope, leave_out=set())
        elif golden != hollow:
            self.breaches.append(f"{scope}: {golden!r} became {hollow!r}")

    def fields(self, golden: ast.AST, hollow: ast.AST, scope: str, leave_out: set[str]) -> None:
        for field in golden._fields:
            if field not in leave_out:
                self.compare(getattr(golden, field, None), getattr(hollow, field, None), scope)


def main() -> None:
    for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        golden = ast.parse(Path(one["golden"]).read_bytes())
        try:
            hollow = ast.parse(Path(one["hollow"]).read_bytes())
        except SyntaxError as error:
            print(f"{one['what']}: does not parse: {error}")
            continue
        comparison = Comparison(one["hollowed"])
        comparison.compare(golden, hollow, "")
        for name in (comparison.expected - comparison.found) + (comparison.found - comparison.expected):
            told, seen = comparison.expected[name], comparison.found[name]
            comparison.breaches.append(f"{name}: hollow {told} times by its maker's list, {seen} times in its tree")
        for breach in comparison.breaches:
            print(f"{one['what']}: {breach}")


main()
