"""What a rank may load of bytecode: an environment's own, and nothing that lies in the tree."""

from __future__ import annotations

import importlib.util
import os
import py_compile
import subprocess
import sys
from pathlib import Path

import pytest
from driver import KIT

SOURCE = "where = 'source'\n"
DOCTORED = "where = 'cached'\n"  # of the same length


def lay(folder: Path, name: str, mode: py_compile.PycInvalidationMode) -> None:
    """A module whose bytecode belongs to it by all that can be checked, and says something else."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    path.write_text(DOCTORED)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    py_compile.compile(str(path), invalidation_mode=mode, doraise=True)
    path.write_text(SOURCE)
    os.utime(path, (1_700_000_000, 1_700_000_000))


def words(tmp_path: Path, *names: str, tree: str = "tree") -> list[str]:
    """``where`` of each module, as a rank sees it that has ``site`` installed and ``tree`` under test."""
    code = f"""
import sys
sys.path[:0] = [{str(KIT)!r}, {str(tmp_path / "site")!r}]
from infradev_probe.rank_setup import _set_imports
_set_imports([{str(tmp_path / tree)!r}], {str(tmp_path / "private")!r})
import importlib, inspect
for name in {names!r}:
    module = importlib.import_module(name)
    assert inspect.getsource(module) == {SOURCE!r}
    print(module.where)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    return run.stdout.split()


def test_an_installed_module_comes_from_its_bytecode_and_one_of_the_tree_never(tmp_path: Path) -> None:
    for mode in (py_compile.PycInvalidationMode.TIMESTAMP, py_compile.PycInvalidationMode.UNCHECKED_HASH):
        lay(tmp_path / "tree" / "pkg", f"of_{mode.name.lower()}", mode)
    lay(tmp_path / "site", "single", py_compile.PycInvalidationMode.TIMESTAMP)
    lay(tmp_path / "site" / "lib" / "sub", "module", py_compile.PycInvalidationMode.TIMESTAMP)
    names = ("single", "lib.sub.module", "pkg.of_timestamp", "pkg.of_unchecked_hash")
    assert words(tmp_path, *names) == ["cached", "cached", "source", "source"]
    private = [path.name.split(".")[0] for path in (tmp_path / "private").rglob("*.pyc")]
    assert sorted(name for name in private if name.startswith("of_")) == ["of_timestamp", "of_unchecked_hash"]
    assert not {"single", "module"} & set(private)


def test_a_tree_below_what_is_installed_is_still_under_test(tmp_path: Path) -> None:
    lay(tmp_path / "site" / "tree", "within", py_compile.PycInvalidationMode.TIMESTAMP)
    assert words(tmp_path, "within", tree="site/tree") == ["source"]


@pytest.mark.parametrize("spoiled", ["time", "size", "magic", "torn", "hash"])
def test_bytecode_that_is_not_known_to_be_its_sources_is_left(tmp_path: Path, spoiled: str) -> None:
    hashed = py_compile.PycInvalidationMode.UNCHECKED_HASH
    lay(tmp_path / "site", "single", hashed if spoiled == "hash" else py_compile.PycInvalidationMode.TIMESTAMP)
    path = tmp_path / "site" / "single.py"
    cached = Path(importlib.util.cache_from_source(str(path)))
    data = bytearray(cached.read_bytes())
    if spoiled == "time":
        os.utime(path, (1_700_000_001, 1_700_000_001))
    elif spoiled == "size":
        data[12] ^= 1
    elif spoiled == "magic":
        data[0] ^= 1
    elif spoiled == "torn":
        del data[20:]
    cached.write_bytes(data)
    assert words(tmp_path, "single") == ["source"]


def test_a_traceback_names_where_a_module_lies_now(tmp_path: Path) -> None:
    lay(tmp_path / "built", "single", py_compile.PycInvalidationMode.TIMESTAMP)
    (tmp_path / "built").rename(tmp_path / "site")
    assert words(tmp_path, "single") == ["cached"]  # and inspect found the source
