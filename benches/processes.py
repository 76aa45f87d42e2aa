"""Running a program and measuring it: wall time, CPU of it and of all that it waited for, its own peak memory."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping, Sequence

# Threads fight over cores otherwise; torchrun sets the first itself from two ranks on.
THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Ran:
    """What a program cost."""

    wall_s: float
    cpu_s: float
    """User and system time of it and of every descendant that was waited for."""
    peak_bytes: int
    """Its own high-water mark of resident memory, descendants apart."""
    stdout: bytes


def run(command: Sequence[str | Path], cwd: Path, env: Mapping[str, str], allowed: Sequence[int] = (0,)) -> Ran:
    """Runs a program to its end. One that ends otherwise than allowed ends the benchmark: its figures would mean nothing."""
    begin = time.monotonic()
    child = subprocess.Popen(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, **THREADS, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    peak = Peak(child.pid)
    said: list[bytes] = []
    assert child.stdout and child.stderr
    reader = threading.Thread(target=lambda pipe: said.append(pipe.read()), args=(child.stderr,))
    reader.start()
    stdout = child.stdout.read()
    reader.join()
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.monotonic() - begin
    code = child.returncode = os.waitstatus_to_exitcode(status)
    if code not in allowed:
        tail = (stdout + said[0]).decode(errors="replace")[-3000:]
        sys.exit(f"{' '.join(map(str, command))}\nended with {code}:\n{tail}")
    return Ran(wall, usage.ru_utime + usage.ru_stime, peak.stop(), stdout)


class Peak:
    """Follows a process's VmHWM until it is gone: the kernel keeps the maximum, so only growth after the last look is missed."""

    def __init__(self, pid: int) -> None:
        self.seen = 0
        self.over = threading.Event()
        self.status = Path(f"/proc/{pid}/status")
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    def follow(self) -> None:
        while not self.over.wait(0.02):
            try:
                found = re.search(r"^VmHWM:\s+(\d+) kB", self.status.read_text(), re.MULTILINE)
            except OSError:
                return
            if found:
                self.seen = max(self.seen, int(found.group(1)) * 1024)

    def stop(self) -> int:
        self.over.set()
        self.thread.join()
        return self.seen


class Infradev:
    """The program under measurement, with a home of the benchmark's own."""

    def __init__(self, program: Path, home: Path) -> None:
        self.program = program.resolve()
        self.home = home.resolve()

    def grade(self, pack: Path, patches: str | Path, *more: str) -> tuple[Ran, dict[str, Any], list[dict[str, Any]]]:
        """Grades; what it cost, its document, the records of its trials."""
        words = [self.program, "grade", pack, "--patches", patches, "--json", *more]
        ran = run(words, cwd=pack, env={"INFRADEV_HOME": str(self.home)})
        document = json.loads(ran.stdout)
        trials = []
        for grade in document["submissions"]:
            if grade["verdict"] != "resolved":
                sys.exit(f"{grade['task']} · {grade['submission']} is {grade['verdict']}: {grade['reasons'][:3]}")
            for key in grade["trials"]:
                folder = self.home / "runs" / document["run"] / "trials" / key
                trials.append(json.loads((folder / "result.json").read_text()))
        return ran, document, trials

    def environment_with(self, package: str) -> Path:
        """The built environment that holds a package."""
        for record in sorted(self.home.glob("envs/*/infradev-env.json")):
            if package in json.loads(record.read_text())["packages"]:
                return record.parent
        sys.exit(f"no environment below {self.home} holds {package}")
