"""Which lines run, by case: in a process of its own, since what follows lines stays for good."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

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
