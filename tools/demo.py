"""The demonstration: accepts the core tasks, grades every patch that they bring, and checks the verdicts.

Exits 0 when each verdict is the right one, 1 when one is not, and with infradev's own code when it could not work.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Iterator

ROOT = Path(__file__).resolve().parent.parent


class Infradev:
    """The program under demonstration, with a home of the demonstration's own."""

    def __init__(self, program: Path, home: Path) -> None:
        self.program = program
        self.env = {**os.environ, "INFRADEV_HOME": str(home)}

    def json(self, *args: str, allowed: tuple[int, ...] = (0,)) -> dict[str, Any]:
        """What a verb prints with `--json`; its progress goes to this program's stderr."""
        print(f"\n$ infradev {' '.join(args)}", flush=True)
        done = subprocess.run([self.program, *args, "--json"], env=self.env, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
        if done.returncode not in allowed:
            sys.exit(done.returncode if done.returncode > 0 else 3)
        return json.loads(done.stdout)


def accepted(document: dict[str, Any]) -> Iterator[tuple[str, bool, str]]:
    """Task, whether all is right, what was found."""
    for task in document["tasks"]:
        rejected = task["rejected"]
        wrong = list(task["reasons"])
        wrong += [f"{name} is not rejected" for name, found in rejected.items() if found is False]
        wrong += [f"{name} does not fool the official tests" for name, fools in task["fools_official"].items() if not fools]
        found = f"{len(rejected)} patches rejected, {len(task['cases'])} probe cases"
        right = task["accepted"] and not wrong
        yield task["id"], right, found if right else "; ".join(wrong) or "not accepted"


def graded(patches: str, document: dict[str, Any]) -> Iterator[tuple[str, bool, str]]:
    """Task and patch, whether the verdict is right, the verdict."""
    for grade in document["submissions"]:
        official = grade["suites"]["official"]
        probe = grade["suites"]["probe"]
        right = grade["verdict"] == ("resolved" if patches == "golden" else "unresolved")
        if patches == "adversarial":
            right = right and official["passed"] == official["of"] and probe["passed"] < probe["of"]
        found = (
            f"{grade['verdict']:<11} official {official['passed']}/{official['of']}, "
            f"probes {probe['passed']}/{probe['of']}, {grade['wall_s']:.0f} s"
        )
        if not right:
            found += "".join(f"\n      {reason}" for reason in grade["reasons"][:4])
        yield f"{grade['task']} · {grade['submission']}", right, found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--infradev", type=Path, required=True, help="the program")
    parser.add_argument("--pack", default="packs/core", help="the pack [default: packs/core]")
    parser.add_argument("--home", type=Path, default=ROOT / "target/demo", help="where runs are kept [default: target/demo]")
    parser.add_argument("--runs", default="1", help="consecutive golden runs, N [default: 1]")
    options = parser.parse_args()
    infradev = Infradev(options.infradev.resolve(), options.home.resolve())
    begin = time.monotonic()
    os.chdir(ROOT)

    print("InfraDev's demonstration: each task is accepted, then each of its patches graded in a sandbox of its own.")
    print(f"Golden is run N = {options.runs} times here to be quick; `infradev accept` runs it 3 times, a release 29.")
    print("On two cores this takes some tens of minutes. Interrupted, the same command goes on where it was.", flush=True)

    infradev.json("doctor", allowed=(0,))
    rows: list[tuple[str, str, bool, str]] = []
    document = infradev.json("accept", options.pack, "--runs", options.runs, "--no-write", allowed=(0, 1))
    rows += [("accept", *row) for row in accepted(document)]
    for patches in ("golden", "base", "hollow", "adversarial"):
        document = infradev.json("grade", options.pack, "--patches", patches)
        rows += [("grade", *row) for row in graded(patches, document)]

    width = max(len(what) for _, what, _, _ in rows)
    print("\n       verb    what" + " " * (width - 4) + "  found")
    for verb, what, right, found in rows:
        print(f"{'right' if right else 'WRONG'}  {verb:<7} {what:<{width}}  {found}")
    wrong = sum(not right for _, _, right, _ in rows)
    print(f"\n{len(rows) - wrong} of {len(rows)} as they should be, in {(time.monotonic() - begin) / 60:.0f} min.")
    print(f"The runs are kept in {options.home}: INFRADEV_HOME={options.home} infradev run list")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
