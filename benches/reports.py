"""Reports of a large run: how fast it is read, how long a page takes, how much memory that needs.

The run is written as the store lays runs out: a grade document, a folder a trial with its record and its patch, the task's texts. It has
no journal: a run without one is read as one of which nothing was begun.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import random
import subprocess
import time
from pathlib import Path
from statistics import median
from typing import Any, Callable

from processes import Infradev, Peak, run

TASKS, ARMS, ATTEMPTS = 40, 25, 10
OFFICIAL, PROBES = 150, 50
#: Cases of an unresolved submission that fail.
FAILING = 20

TESTS = "from stack import layer\n\n\n" + "\n\n".join(
    f"def test_{at}():\n    got = layer({at})\n    assert got == {at}" for at in range(OFFICIAL)
)


def golden() -> str:
    lines = [f"def part_{at}(value, offset):\n    shifted = value * {at} + offset\n    return shifted - offset * {at}\n" for at in range(100)]
    body = "".join("+" + line + "\n" for line in "\n".join(lines).splitlines())
    count = body.count("\n")
    return f"--- /dev/null\n+++ b/stack/parts.py\n@@ -0,0 +1,{count} @@\n{body}"


def patch(rng: random.Random) -> str:
    """Golden with some lines of its own, and a test file."""
    lines = golden().splitlines()
    for at in rng.sample(range(3, len(lines)), 60):
        lines[at] = f"+    other = {rng.randrange(1000)} - value + offset"
    tests = "".join(f"+def test_own_{at}():\n+    assert part_{at}(1, 2) == {at}\n" for at in range(10))
    return "\n".join(lines) + f"\n--- /dev/null\n+++ b/tests/test_own.py\n@@ -0,0 +1,20 @@\n{tests}"


def detail(at: int, rng: random.Random) -> dict[str, Any]:
    kinds = [
        ("AssertionError", f"assert {rng.randrange(100)} == {at}", "tests/test_layer.py", 6 + 5 * at),
        ("AssertionError", f"Tensor-likes are not close!\n\nMismatched elements: {rng.randrange(9)} / 64", "tests/test_layer.py", 6 + 5 * at),
        ("RuntimeError", f"mat1 and mat2 shapes cannot be multiplied ({at}x3 and {rng.randrange(9)}x5)", "stack/layer.py", 40 + at % 7),
        ("AttributeError", f"'Layer' object has no attribute 'part_{at % 9}' at 0x7f{rng.randrange(1 << 32):08x}", "stack/layer.py", 12),
    ]
    exception, message, file, line = kinds[at % len(kinds)]
    return {"exception": exception, "message": message, "file": file, "line": line}


def official(at: int) -> str:
    return f"tests/test_layer.py::test_{at}"


def probe(at: int) -> str:
    return f"probes/judge_layer.py::promise_{at}[world=2]"


CHECKS = ("numbers", "state", "memory", "traffic", "condition")


def judgement(at: int, failed: bool) -> dict[str, Any]:
    made = [{"kind": "close", "ok": not failed, "expected": "float32 [0.25]", "got": "float32 [0.5]", "detail": "off by 0.25 at [0]"}]
    rejection = {"rejection": "substantive"} if failed else {}
    return {"seed": 1, "checks": CHECKS[at % len(CHECKS)], "traits": ["cuda-graph"], "expectations": made, "ranks": [], "text": "", **rejection}


def write(runs: Path, submissions: int, rng: random.Random) -> Path:
    """One run of ``grade`` over so many submissions, 200 cases each on two ranks."""
    run = "grade-20260101-000000-0000"
    folder = runs / run
    (folder / "trials").mkdir(parents=True)
    (folder / "sealed").mkdir()
    command = ["infradev", "grade", "--patches", "predictions.jsonl"]
    facts = {"schema": 1, "id": run, "verb": "grade", "pack": "large", "command": command, "plan": "0" * 64, "started": 1_767_225_600}
    (folder / "run.json").write_text(json.dumps(facts))
    sandbox = {"kind": "namespaces", "uid_separation": True, "memory_limit": "cgroup-v2", "network": "isolated"}
    good = {"outcome": "passed"}
    passing = [json.dumps({"suite": "official", "id": official(at), "vector": [good, good], "duration_s": 0.01, "launch": 0}) for at in range(OFFICIAL)]
    passing += [
        json.dumps({"suite": "probe", "id": probe(at), "vector": [good], "duration_s": 0.01, "launch": 0, "judgement": judgement(at, False)})
        for at in range(PROBES)
    ]
    grades = []
    for number in range(submissions):
        task, arm, attempt = number % TASKS, number // TASKS % ARMS, number // TASKS // ARMS + 1
        key = hashlib.blake2b(str(number).encode(), digest_size=32).hexdigest()
        cases, failing = list(passing), []
        resolved = rng.random() < 0.4
        if not resolved:
            for at in rng.sample(range(OFFICIAL + PROBES), FAILING):
                if at < OFFICIAL:
                    case = {"suite": "official", "id": official(at)}
                    vector = [{"outcome": "failed", "detail": detail(at, rng)}, {"outcome": "peer_abort"}]
                    kept = {**case, "vector": vector, "duration_s": 0.01, "launch": 0}
                else:
                    case = {"suite": "probe", "id": probe(at - OFFICIAL)}
                    what = {"exception": "infradev_probe.expect.ExpectationFailed", "message": f"off by {rng.random()}", "file": "probes/judge_layer.py", "line": at}
                    vector = [{"outcome": "failed", "detail": what}]
                    kept = {**case, "vector": vector, "duration_s": 0.01, "launch": 0, "judgement": judgement(at - OFFICIAL, True)}
                cases[at] = json.dumps(kept)
                failing.append({**case, "world": 2, "word": "failed", "vector": vector, "fail_to_pass": True})
        trial = folder / "trials" / key
        trial.mkdir()
        head = json.dumps({"schema": 1, "inputs": {"world": 2, "tree": "0" * 64}})[:-1]
        (trial / "result.json").write_text(head + ', "cases": [' + ",\n".join(cases) + "]}")
        (trial / "patch.diff").write_text(patch(rng))
        failed = [len([one for one in failing if one["suite"] == suite]) for suite in ("official", "probe")]
        scores = {"official": {"passed": OFFICIAL - failed[0], "of": OFFICIAL}, "probe": {"passed": PROBES - failed[1], "of": PROBES}}
        grades.append(
            {
                "task": f"task-{task}", "submission": f"agent-{arm}#{attempt}", "verdict": "resolved" if resolved else "unresolved",
                "passed": OFFICIAL + PROBES - sum(failed), "of": OFFICIAL + PROBES, "suites": scores, "without_probes": False,
                "fail_to_pass": {"passed": 0, "of": 0}, "pass_to_pass": {"passed": 0, "of": 0}, "wall_s": 60.0, "fault": None,
                "reasons": [f"{sum(failed)} cases fail"] if failing else [], "failing": failing, "tampering": [], "sandbox": sandbox, "trials": [key],
            }
        )  # fmt: skip
    known = [{"task": f"task-{at}", "area": "training", "kind": "feature", "repository": f"ada/stack-{at % 3}", "traits": ["moe"] if at % 4 else ["cuda-graph"]} for at in range(TASKS)]
    (folder / "grade.json").write_text(json.dumps({"schema": 1, "run": run, "tasks": known, "submissions": grades}))
    for at in range(TASKS):
        texts = {"schema": 1, "task": f"task-{at}", "roots": ["tests"], "golden": golden(), "official": {"tests/test_layer.py": TESTS}}
        (folder / "sealed" / f"task-{at}.json").write_text(json.dumps(texts))
    (folder / "finished.json").write_text('{"schema": 1, "finished": 1767229200}')
    return folder


def page(address: str, path: str) -> tuple[float, bytes]:
    began = time.monotonic()
    connection = http.client.HTTPConnection(address, timeout=600)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        raise SystemExit(f"{path}: {answer.status} {body[:200]!r}")
    return time.monotonic() - began, body


def links(body: bytes, start: str) -> list[str]:
    return [part.split('"')[0] for part in body.decode().split(f'href="{start}')[1:]]


def reports(infradev: Infradev, scratch: Path, submissions: int, show: Callable[..., None]) -> None:
    folder = write(scratch / "runs", submissions, random.Random(1))
    cases = submissions * (OFFICIAL + PROBES)
    environment = {"INFRADEV_HOME": str(scratch / "home")}
    told = [run([infradev.program, "report", folder, "--json"], cwd=scratch, env=environment) for _ in range(3)]
    wall, peak = median(ran.wall_s for ran in told), max(ran.peak_bytes for ran in told)
    rows = [
        ("cases a second", f"{cases / wall:,.0f}", "> 50,000"),
        ("wall", f"{wall:.1f} s", ""),
        ("peak memory", f"{peak / 1e6:,.0f} MB", ""),
        ("memory a submission", f"{peak / submissions / 1e3:.0f} kB", ""),
    ]
    command = [str(infradev.program), "serve", str(folder), "--sealed"]
    served = subprocess.Popen(command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    watched = Peak(served.pid)
    try:
        assert served.stdout
        address = served.stdout.readline().removeprefix("http://").rstrip("/\n")
        _, index = page(address, "/index.html")
        tasks, pages = links(index, "tasks/")[:20], links(index, "submissions/")
        kinds = {
            "index": ["/index.html"] * 5,
            "task": [f"/tasks/{name}" for name in tasks],
            "submission": [f"/submissions/{name}" for name in random.Random(2).sample(pages, min(200, len(pages)))],
            "progress": ["/progress.html"] * 5,
        }
        for kind, paths in kinds.items():
            took = [page(address, path) for path in paths]
            times = [seconds for seconds, _ in took]
            size = max(len(body) for _, body in took)
            rows.append((f"page: {kind}", f"{1000 * median(times):.0f} ms, at most {1000 * max(times):.0f}, {size / 1e3:,.0f} kB", "< 200 ms"))
    finally:
        served.terminate()
        served.wait()
    rows.append(("peak memory of serve", f"{watched.stop() / 1e6:,.0f} MB", ""))
    show(f"A report of {submissions:,} submissions, {OFFICIAL + PROBES} cases each, {FAILING} of them failing in six of ten", ("", "found", "target"), rows)
