"""From what pytest's phases raised to one outcome of one case.

Two sources are kept apart: the exception that a phase raised, seen innermost, and the report that plugins and conftest
hooks have had their hands on. A skip or an expected failure is read from both; a report that calls a raised failure
passed is *rewritten*, and the exception wins.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest

from .failures import TRACE_LIMIT, bounded, describe, message_of, qualified, trace_of

_PHASES = ("setup", "call", "teardown")


class _Phase:
    __slots__ = ("error", "reports", "made", "logged", "duration", "seen")

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.reports: list[tuple[str, bool, Any]] = []  # (outcome, has wasxfail, report)
        self.made: str | None = None  # the outcome of the report as pytest's own plugins made it
        self.logged: set[str] = set()  # each outcome that was logged
        self.duration = 0.0
        self.seen = False  # pytest's runner came here


def _is_skip(error: BaseException) -> bool:
    unittest = sys.modules.get("unittest")
    return isinstance(error, pytest.skip.Exception) or (unittest is not None and isinstance(error, unittest.SkipTest))


class CaseRecord:
    """Collects the phases of one run of one case; :meth:`message` is the body of its report."""

    __slots__ = ("_id", "_root", "_phases", "_escaped")

    def __init__(self, number: str, root: str) -> None:
        self._id, self._root = number, root
        self._phases = {name: _Phase() for name in _PHASES}
        self._escaped: BaseException | None = None

    def raised(self, phase: str, error: BaseException) -> None:
        """The exception of a phase, straight from its innermost hook."""
        if self._phases[phase].error is None:
            self._phases[phase].error = error

    def called(self, call: pytest.CallInfo[Any]) -> None:
        """pytest's own record of the call; later exceptions (a skip that wraps one) don't displace a raw one."""
        phase = self._phases.get(call.when)
        if phase is not None:
            phase.seen, phase.duration = True, call.duration
            if phase.error is None and call.excinfo is not None:
                phase.error = call.excinfo.value

    def reported(self, report: Any, *, made: bool = False) -> None:
        """A report of this case as it stands now: once when ``made``, then each that is logged (subtests too)."""
        phase = self._phases.get(getattr(report, "when", None) or "")
        if phase is not None and report.nodeid == self._id:
            if made:
                phase.made = report.outcome
            else:
                phase.logged.add(report.outcome)
            phase.reports.append((report.outcome, hasattr(report, "wasxfail"), report))

    def escaped(self, error: BaseException) -> None:
        """The exception left pytest's runner altogether (pytest.exit, KeyboardInterrupt)."""
        self._escaped = error

    def _judge(self, name: str) -> tuple[str, bool]:
        """(outcome of a phase, whether its report was rewritten)."""
        phase = self._phases[name]
        outcomes = [(outcome, expected) for outcome, expected, _ in phase.reports]
        final = outcomes[-1] if outcomes else None
        error = phase.error
        if error is None:
            if not phase.seen:
                return "absent", False
            if any(outcome == "failed" for outcome, _ in outcomes):  # a strict xpass, a failed subtest
                return "failed", phase.made == "failed" and phase.logged == {"passed"}
            if final is None:
                return "absent", False
            if final == ("passed", True):
                return "xpassed", False
            return ("xfailed" if final[1] else final[0]), False
        if final == ("skipped", True):  # xfail: pytest's own evaluation of marks, and no way to pass
            return "xfailed", False
        natural = "skipped" if _is_skip(error) else "failed"
        # a failed subtest is logged as such before its case is logged as passed
        return natural, final is not None and final[0] == "passed" and natural not in phase.logged

    def message(self, wall_s: float) -> dict[str, Any]:
        """outcome, exception, message, file, line, duration_s, longrepr, rewritten."""
        judged = {name: self._judge(name) for name in _PHASES}
        rewritten = any(flag for _, flag in judged.values())
        setup, call, teardown = (judged[name][0] for name in _PHASES)
        source: str | None
        if self._escaped is not None:
            return self._body("failed", self._escaped, None, wall_s, rewritten)
        if setup == "failed":
            outcome, source = "error", "setup"
        elif setup in ("skipped", "xfailed"):
            outcome, source = setup, "setup"
        elif call == "failed":
            outcome, source = "failed", "call"
        elif teardown == "failed":
            outcome, source = "error", "teardown"
        elif "absent" in (setup, call):
            body = self._body("error", None, None, wall_s, True)
            body["message"] = "the case never came to pytest's own call phase: a hook took its place"
            return body
        else:
            outcome, source = call, "call"
        phase = self._phases[source]
        if outcome in ("error", "failed") and teardown == "failed" and source == "call":
            other = self._phases["teardown"].error
            if other is not None:
                sys.stderr.write(f"{self._id}: the teardown failed too: {message_of(other)}\n")
        report = next((r for o, _, r in reversed(phase.reports) if o == "failed"), None)
        report = report or (phase.reports[-1][2] if phase.reports else None)
        return self._body(outcome, phase.error, report, sum(p.duration for p in self._phases.values()), rewritten)

    def _body(
        self, outcome: str, error: BaseException | None, report: Any, duration: float, rewritten: bool
    ) -> dict[str, Any]:
        about: dict[str, Any] = {"exception": None, "message": "", "file": None, "line": None}
        text = ""
        if outcome not in ("passed", "xpassed"):
            if error is not None:
                about = describe(error, self._root)
                if _is_skip(error):
                    about["exception"] = qualified(type(error)).rsplit(".", 1)[-1]
                elif type(error).__name__ == "FixtureLookupError":  # its str is a tuple of internals
                    about["message"] = str(error.msg or f"fixture {error.argname!r} not found")  # type: ignore[attr-defined]
            try:
                text = str(report.longreprtext) if report is not None else ""
            except Exception:  # a repr of the code under test
                text = ""
            if not text and error is not None:
                text = trace_of(error)
            if error is None:
                about["message"] = bounded(text, 2_000)
        return {
            "outcome": outcome,
            **about,
            "duration_s": duration,
            "longrepr": bounded(text, TRACE_LIMIT),
            "rewritten": rewritten,
        }
