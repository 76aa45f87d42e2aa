"""What an attempt takes beside its agent's own time, and what eight side by side leave behind."""

from __future__ import annotations

import json
import os
from pathlib import Path
from statistics import median
from typing import Any, Callable

import packs
from processes import Infradev, run

ROOT = Path(__file__).resolve().parent.parent
#: The framework's own stack as the tree, an agent without a model that changes a file of it and leaves a daemon behind.
TASK = "weight-sync"
AGENT = "setsid sleep 1000 >/dev/null 2>&1 & head -c 100000 /dev/urandom > made.bin; echo '# seen' >> README.md"
ONE_BY_ONE = 15
SIDE_BY_SIDE = 8


def left(home: Path) -> dict[str, set[str]]:
    """What a machine has that an attempt could leave there: processes of the agent and of its sandbox, mounts, ports that are
    listened on."""
    processes = set()
    for folder in os.scandir("/proc"):
        if folder.name.isdigit():
            try:
                words = Path(f"/proc/{folder.name}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if words.startswith("sleep 1000") or str(home) in words:
                processes.add(f"{folder.name} {words}")
    mounts = set(Path("/proc/self/mounts").read_text().splitlines())
    ports = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if Path(table).exists():
            rows = [line.split() for line in Path(table).read_text().splitlines()[1:]]
            ports |= {row[1] for row in rows if row[3] == "0A"}  # LISTEN, proc(5)
    return {"processes": processes, "mounts": mounts, "ports": ports}


def attempted(infradev: Infradev, pack: Path, count: int, jobs: int) -> tuple[float, list[dict[str, Any]]]:
    """Wall of the command, and the records of its attempts."""
    words: list[str | Path] = [infradev.program, "attempt", pack, "--agent", "command", "--command", AGENT]
    words += ["-k", str(count), "--jobs", str(jobs), "--json"]
    ran = run(words, cwd=pack, env={"INFRADEV_HOME": str(infradev.home)})
    records: list[dict[str, Any]] = json.loads(ran.stdout)["submissions"]
    wrong = [record for record in records if record["ending"] != "finished" or not record["patch"]]
    if wrong:
        raise SystemExit(f"an attempt did not go as it should: {json.dumps(wrong[0])[:1000]}")
    return ran.wall_s, records


def attempts(infradev: Infradev, scratch: Path, core: Path, show: Callable[..., None], spread: Callable[[list[float]], tuple[str, str]]) -> None:
    pack = packs.core_at(scratch / "attempts", core, TASK, 2)
    attempted(infradev, pack, 1, 1)  # builds the environment
    before = left(infradev.home)
    rows = []
    for name, count, jobs in (("one by one", ONE_BY_ONE, 1), (f"{SIDE_BY_SIDE} side by side", SIDE_BY_SIDE, SIDE_BY_SIDE)):
        wall, records = attempted(infradev, pack, count, jobs)
        beside = [record["wall_s"] - record["agent_s"] for record in records]
        agents = median(record["agent_s"] for record in records)
        rows.append((f"{count} attempts, {name}", *spread(beside), "< 3000 ms", f"{1000 * agents:.0f} ms", f"{wall:.1f} s"))
    show(
        f"An attempt beside its agent's own time: workspace of {TASK}, sandbox, capture",
        ("", "median", "range", "target", "the agent", "all"),
        rows,
    )
    after = left(infradev.home)
    for what, known in before.items():
        new = after[what] - known
        print(f"  {what} left behind: {len(new)}")
        for one in sorted(new)[:5]:
            print(f"    {one[:160]}")
