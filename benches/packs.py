"""Packs made for measuring: core with one world size and one calibration run; a small one without a framework."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

TASK = """\
schema = 1
id = "{id}"
title = "{title}"
area = "training"
kind = "feature"
environment = "cpu"
worlds = [{world}]

[tests]
official = ["tests/test_small.py"]
roots = ["tests"]

[timeouts]
collect = 300.0
case = 30.0
trial = 3600.0

[limits]
memory_mib = 8192

[acceptance]
runs = 1
"""

PACK = """\
schema = 1
name = "bench"
version = "0.1.0"
license = "Apache-2.0"

[source]
tree = "repo"

[environments.cpu]
python = "3.11"
lock = "judge.lock"
"""

OBSERVER = """\
from infradev_probe import observer


@observer
def double(x):
    from small import double

    return double(x)
"""

JUDGE = """\
from infradev_probe import case, expect


@case(worlds=[{world}], checks="numbers")
def doubles(worlds, rng):
    x = int(rng.integers(1, 1000))
    expect.equal(worlds.open().observe("observe_small.double", x=x), [2 * x] * {world})
"""


def core_at(root: Path, core: Path, task: str, world: int) -> Path:
    """A copy of core's one task at one world size."""
    pack = root / f"{task}-{world}"
    shutil.copytree(core, pack, ignore=shutil.ignore_patterns("tasks", "__pycache__", "acceptance.json"))
    folder = pack / "tasks" / task
    shutil.copytree(core / "tasks" / task, folder, ignore=shutil.ignore_patterns("__pycache__", "adversarial"))
    text = (folder / "task.toml").read_text()
    text = re.sub(r"^worlds = .*$", f"worlds = [{world}]", text, flags=re.MULTILINE)
    text = re.sub(r"^\[acceptance\]\nruns = .*$", "", text, flags=re.MULTILINE)
    (folder / "task.toml").write_text(text + "\n[acceptance]\nruns = 1\n")
    return pack


def added(path: str, text: str) -> str:
    """A diff that adds a file."""
    lines = text.splitlines()
    body = "".join(f"+{line}\n" for line in lines)
    head = f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n"
    return f"{head}@@ -0,0 +1,{len(lines)} @@\n{body}"


def small(root: Path, lock: Path, cases: int, world: int = 1, probe: bool = True) -> Path:
    """A task without a framework: a module of one function, a test of `cases` cases, a probe of one case."""
    pack = root / f"small-{cases}"
    folder = pack / "tasks" / "small"
    (pack / "repo" / "tests").mkdir(parents=True)
    (pack / "repo" / "README.md").write_text("A tree with nothing in it yet.\n")
    (pack / "repo" / "tests" / "__init__.py").write_text("")
    folder.mkdir(parents=True)
    (pack / "pack.toml").write_text(PACK)
    shutil.copy(lock, pack / "judge.lock")
    (folder / "task.toml").write_text(TASK.format(id="small", title="Double a number", world=world))
    (folder / "spec.md").write_text("Add `small.double`.\n")
    contract = '[[name]]\nname = "small.double"\nkind = "function"\nsignature = "(x)"\nabout = "twice x"\n'
    (folder / "contract.toml").write_text(f"schema = 1\n\n{contract}")
    (folder / "golden.patch").write_text(added("small.py", "def double(x):\n    return 2 * x\n"))
    test = f"""\
import pytest
from small import double


@pytest.mark.parametrize("x", range({cases}))
def test_double(x):
    assert double(x) == x + x
"""
    (folder / "official.patch").write_text(added("tests/test_small.py", test))
    if probe:
        (folder / "probes").mkdir()
        (folder / "probes" / "observe_small.py").write_text(OBSERVER)
        (folder / "probes" / "judge_small.py").write_text(JUDGE.format(world=world))
    return pack


def variants(root: Path, pack: Path, task: str, count: int) -> Path:
    """Patches that do golden's change and differ by a file that nobody reads, so that none is served another's record."""
    folder = root / f"variants-{pack.name}"
    golden = (pack / "tasks" / task / "golden.patch").read_text()
    for number in range(count):
        into = folder / f"v{number}"
        into.mkdir(parents=True)
        (into / f"{task}.patch").write_text(golden + added(f"variant-{number}.txt", f"{number}\n"))
    return folder
