"""Running a program and measuring it: wall time, CPU of its whole tree, its own peak memory."""

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
    """User and system time of it and of its descendants; 0 where nobody asked."""
    peak_bytes: int
    """Its own high-water mark of resident memory, descendants apart."""
    stdout: bytes


def run(command: Sequence[str | Path], cwd: Path, env: Mapping[str, str], watched: bool = False) -> Ran:
    """Runs a program to its end. One that fails ends the benchmark: its figures would mean nothing."""
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
    cpu = Watched(child.pid) if watched else None
    said: list[bytes] = []
    assert child.stdout and child.stderr
    reader = threading.Thread(target=lambda pipe: said.append(pipe.read()), args=(child.stderr,))
    reader.start()
    stdout = child.stdout.read()
    reader.join()
    child.wait()
    wall = time.monotonic() - begin
    if child.returncode != 0:
        tail = (stdout + said[0]).decode(errors="replace")[-3000:]
        sys.exit(f"{' '.join(map(str, command))}\nended with {child.returncode}:\n{tail}")
    return Ran(wall, cpu.stop() if cpu else 0.0, peak.stop(), stdout)


class Watched:
    """CPU of all that descends from a process, by looking every 50 ms: a killed one's is in no parent's account. What a process
    used after the last look at it is missed."""

    def __init__(self, root: int) -> None:
        self.root = root
        self.ticks: dict[tuple[int, str], int] = {}
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    def follow(self) -> None:
        while not self.over.wait(0.05):
            self.look()

    def look(self) -> None:
        found: dict[int, tuple[int, str, int]] = {}
        for folder in os.scandir("/proc"):
            if not folder.name.isdigit():
                continue
            try:
                with open(f"/proc/{folder.name}/stat", "rb") as file:
                    # The name may hold anything; what follows its closing bracket is fields 3 and on (proc(5)).
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            found[int(folder.name)] = (int(fields[1]), fields[19].decode(), int(fields[11]) + int(fields[12]))
        ours = {self.root}
        grown = True
        while grown:
            further = {pid for pid, (parent, _, _) in found.items() if parent in ours} - ours
            grown = bool(further)
            ours |= further
        for pid in ours & found.keys():
            _, started, ticks = found[pid]
            self.ticks[pid, started] = ticks

    def stop(self) -> float:
        self.over.set()
        self.thread.join()
        return sum(self.ticks.values()) / os.sysconf("SC_CLK_TCK")


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

    def grade(
        self, pack: Path, patches: str | Path, watched: bool = False
    ) -> tuple[Ran, dict[str, Any], list[dict[str, Any]]]:
        """Grades; what it cost, its document, the records of its trials."""
        words = [self.program, "grade", pack, "--patches", patches, "--json"]
        ran = run(words, cwd=pack, env={"INFRADEV_HOME": str(self.home)}, watched=watched)
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
