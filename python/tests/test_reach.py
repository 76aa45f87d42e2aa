"""Which lines run, by case: in a process of its own, since what follows lines stays for good."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from infradev_probe.reach import Places

LIBRARY = """\
VALUE = 1


def direct(x):
    if x:
        return 1
    return 2


def threaded():
    return 3
"""

DRIVER = """\
import json, os, sys, threading
sys.path[:0] = [{kit!r}, {here!r}]
{before}
from infradev_probe.reach import Reach

reach = Reach([{here!r} + "/library.py"])
reach.start()
with reach.shared():
    import library
told = []
for case in (
    lambda: library.direct(True),
    lambda: library.direct(False),
    lambda: [thread := threading.Thread(target=library.threaded), thread.start(), thread.join()],
    lambda: os.waitpid(os.posix_spawn("/bin/true", ["true"], {{}}), 0),
):
    with reach.case():
        case()
    told.append(reach.take())
print(json.dumps(told))
"""


@pytest.mark.parametrize("before", ["", "if hasattr(sys, 'monitoring'): sys.monitoring.use_tool_id(1, 'other')"])
def test_lines_belong_to_the_case_in_which_they_run_and_what_is_imported_to_all(tmp_path: Path, before: str) -> None:
    import json

    (tmp_path / "library.py").write_text(dedent(LIBRARY))
    kit = str(Path(__file__).parent.parent)
    code = DRIVER.format(kit=kit, here=str(tmp_path), before=before)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    yes, no, thread, process = json.loads(ran.stdout)
    lines = [{line for _, line in case["own"]} for case in (yes, no, thread, process)]
    assert {5, 6} <= lines[0] and 7 not in lines[0]
    assert {5, 7} <= lines[1] and 6 not in lines[1]
    assert 11 in lines[2]
    assert {line for _, line in yes["shared"]} >= {1, 4, 10}, "told once"
    assert no["shared"] == thread["shared"] == []
    assert [case["wide"] for case in (yes, no, thread, process)] == [False, False, False, True]


def test_a_file_is_known_by_whatever_path_leads_to_it(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg/module.py").touch()
    (tmp_path / "linked").symlink_to("pkg")
    places = Places([str(tmp_path / "other.py"), str(tmp_path / "pkg/module.py")])
    for path in ("pkg/module.py", "tests/../pkg/module.py", "linked/module.py"):
        assert places.of(f"{tmp_path}/{path}") == 1
    assert places.of(f"{tmp_path}/pkg/absent.py") is None
    assert places.of("<string>") is None


SPAWNS = """\
import multiprocessing, sys
sys.path[:0] = [{kit!r}, {here!r}]
from infradev_probe.reach import Reach

if __name__ == "__main__":
    reach = Reach([{here!r} + "/library.py"])
    reach.start()
    import library
    told = []
    context = multiprocessing.get_context({how!r})
    with reach.case():
        pass
    told.append(reach.take()["wide"])
    with reach.case():
        process = context.Process(target=library.threaded)
        process.start()
        process.join()
    told.append(reach.take()["wide"])
    with reach.case():
        pass
    told.append(reach.take()["wide"])
    pool = context.Pool(1)
    told.append(reach.take()["wide"])
    pool.terminate()
    print(told)
"""


@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver"])
def test_a_case_that_starts_a_process_of_multiprocessing_may_reach_anything(tmp_path: Path, how: str) -> None:
    (tmp_path / "library.py").write_text(dedent(LIBRARY))
    kit = str(Path(__file__).parent.parent)
    (tmp_path / "spawns.py").write_text(SPAWNS.format(kit=kit, here=str(tmp_path), how=how))
    ran = subprocess.run([sys.executable, str(tmp_path / "spawns.py")], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    # a pool that lives: what later cases run in it is not told
    assert ran.stdout.strip() == "[False, True, False, True]"


COMPILED = """\
import torch


@torch.compile(backend="eager")
def decorated(x):
    return x * 3


@torch.jit.script
def scripted(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def plain(x):
    return x - 1


called = torch.compile(plain, backend="eager")
"""

COMPILED_DRIVER = """\
import json, sys
sys.path[:0] = [{kit!r}, {here!r}]
import torch
from infradev_probe.reach import Reach

reach = Reach([{here!r} + "/compiled.py"])
reach.start()
with reach.shared():
    import compiled
told = []
for function in (compiled.decorated, compiled.scripted, compiled.called):
    with reach.case():
        value = function(torch.ones(2)).tolist()
    told.append([value, sorted(line for _, line in reach.take()["own"])])
print(json.dumps(told))
"""


def test_what_torch_would_compile_runs_as_it_is_written(tmp_path: Path) -> None:
    import json

    (tmp_path / "compiled.py").write_text(COMPILED)
    kit = str(Path(__file__).parent.parent)
    code = COMPILED_DRIVER.format(kit=kit, here=str(tmp_path))
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    (tripled, decorated), (more, scripted), (less, called) = json.loads(ran.stdout)
    assert (tripled, more, less) == ([3.0, 3.0], [2.0, 2.0], [0.0, 0.0])
    assert 6 in decorated and 11 in scripted and 15 in called


CHILD_DRIVER = """\
import json, os, subprocess, sys
sys.path[:0] = [{kit!r}, {here!r}]
from infradev_probe.reach import Reach

reach = Reach([{here!r} + "/library.py"])
reach.start()
with reach.shared():
    subprocess.run({program})
    import library
with reach.case():
    library.direct(True)
print(json.dumps(reach.take()["wide"]))
"""


@pytest.mark.parametrize(("program", "wide"), [("[sys.executable, '-c', '']", True), ("['/bin/true']", False)])
def test_a_python_that_a_module_starts_may_have_told_every_case_anything(tmp_path: Path, program: str, wide: bool) -> None:
    import json

    (tmp_path / "library.py").write_text(dedent(LIBRARY))
    code = CHILD_DRIVER.format(kit=str(Path(__file__).parent.parent), here=str(tmp_path), program=program)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) is wide
