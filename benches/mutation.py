"""Seconds a mutant against mutmut and cosmic-ray, on fixtures/mutation, with two workers each.

mutmut's own mutants are handed to `infradev probe-gaps --mutants`, so that both run the same ones, and the verdicts are
compared one by one. cosmic-ray makes its own; a sample of them is timed. Our own mutants are also run the plain way, one
forked pytest over all tests each, to see that choosing tests by reach changes no verdict. Every tool runs the unmutated
tests first; bytecode is compiled for all of them, and each test process has one thread.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

from processes import THREADS, Infradev

ROOT = Path(__file__).resolve().parent.parent
FIXTURE = ROOT / "fixtures/mutation"
TOOLS = ["mutmut==3.8.1", "cosmic-ray==8.7.0", "pytest==9.2.0"]
WORKERS = 2
#: cosmic-ray starts pytest, and imports torch, for each mutant.
SAMPLE = 12
#: Of one process of mutmut or plain pytest: a mutant may take all there is, and infradev caps it by itself.
MOST_BYTES = 8 << 30

MUTMUT = '[tool.mutmut]\nsource_paths = ["tinylayers/"]\npytest_add_cli_args_test_selection = ["tests/"]\n'
COSMIC_RAY = """[cosmic-ray]
module-path = "tinylayers"
timeout = 60.0
excluded-modules = []
test-command = "PYTHON -m pytest -x -q -p no:cacheprovider tests"
[cosmic-ray.distributor]
name = "local"
"""

# In mutmut's folder: every mutant as (name, exit code, file, its whole text).
EXTRACT = """
import json, sys
from pathlib import Path
from mutmut.mutation import diff_apply
from mutmut.mutation.diff_apply import apply_mutant, find_mutant, walk_mutatable_files
from mutmut.mutation.diff_apply import SourceFileMutationData
found = []
for path in walk_mutatable_files():
    data = SourceFileMutationData(path=path)
    data.load()
    for name, code in data.exit_code_by_key.items():
        before = Path(path).read_text()
        apply_mutant(name)
        found.append([name, code, str(path), Path(path).read_text()])
        Path(path).write_text(before)
json.dump(found, sys.stdout)
"""

# One process: the framework imported once, a fork over all tests for each mutant, its verdict on stdout.
NAIVE = """
import json, os, sys
import torch, pytest
torch.set_num_threads(1)
root, mutants = os.getcwd(), json.load(sys.stdin)
verdicts = []
for file, text in mutants:
    pid = os.fork()
    if pid == 0:
        sys.dont_write_bytecode = True
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1); os.dup2(null, 2)
        import importlib.abc, importlib.util
        class Mutated(importlib.abc.MetaPathFinder, importlib.abc.Loader):
            name = file[:-3].replace("/", ".").removesuffix(".__init__")
            def find_spec(self, name, path, target=None):
                if name == self.name:
                    return importlib.util.spec_from_loader(name, self, origin=file, is_package=file.endswith("__init__.py"))
            def exec_module(self, module):
                module.__file__ = os.path.join(root, file)
                exec(compile(text, module.__file__, "exec"), module.__dict__)
        sys.meta_path.insert(0, Mutated())
        sys.path.insert(0, root)
        import signal
        signal.alarm(60)
        os._exit(int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "tests"])))
    verdicts.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
json.dump(verdicts, sys.stdout)
"""


def tools(home: Path) -> Path:
    """An environment with torch as the core pack has it, and the two tools; built once."""
    place = home / "mutation"
    marker = place / "tools.json"
    if not marker.is_file() or json.loads(marker.read_text()) != TOOLS:
        shutil.rmtree(place, ignore_errors=True)
        lock = ROOT / "packs/core/envs/cpu.lock"
        python = str(place / "bin/python")
        for command in (
            ["uv", "venv", "-q", "--no-project", "--python", "3.11", str(place)],
            ["uv", "pip", "sync", "-q", "--require-hashes", "--compile-bytecode", "--python", python, str(lock)],
            ["uv", "pip", "install", "-q", "--compile-bytecode", "--python", python, *TOOLS],
        ):
            subprocess.run(command, check=True)
        marker.write_text(json.dumps(TOOLS))
    return place


def environment() -> dict[str, str]:
    # Whoever switched bytecode off would compare unlike things.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**kept, **THREADS}


def cap_memory() -> None:
    """In a child, before it becomes the tool. RLIMIT_DATA counts private writable memory, since Linux 4.7 mapped too."""
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))


def copy(into: Path, python: Path) -> Path:
    shutil.copytree(FIXTURE, into, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([python, "-m", "compileall", "-q", "."], cwd=into, check=True, env=environment())
    return into


def repository(into: Path) -> Path:
    """A branch that adds the whole package."""
    shutil.copytree(FIXTURE, into, ignore=shutil.ignore_patterns("__pycache__"))

    def git(*words: str) -> None:
        own = ["-c", "user.name=bench", "-c", "user.email=bench@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *own, *words], cwd=into, check=True, stdout=subprocess.DEVNULL)

    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "nothing yet")
    git("checkout", "-q", "-b", "layers")
    git("add", "-A")
    git("commit", "-q", "-m", "layers")
    return into


def run_mutmut(folder: Path, bin: Path) -> tuple[float, list[list[Any]]]:
    (folder / "pyproject.toml").write_text(MUTMUT)
    begin = time.monotonic()
    command = [bin / "mutmut", "run", "--max-children", str(WORKERS)]
    ran = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, preexec_fn=cap_memory)
    wall = time.monotonic() - begin
    if ran.returncode != 0:
        sys.exit(f"mutmut ended with {ran.returncode}:\n{ran.stdout.decode(errors='replace')[-2000:]}{ran.stderr.decode()[-2000:]}")
    listed = subprocess.run([bin / "python", "-c", EXTRACT], cwd=folder, env=environment(), check=True, capture_output=True)
    return wall, json.loads(listed.stdout)


def as_mutant(file: str, golden: str, text: str) -> dict[str, Any]:
    """The span that differs; offsets are bytes."""
    old, new = golden.encode(), text.encode()
    head = len(os.path.commonprefix([old, new]))
    room = min(len(old), len(new)) - head
    tail = len(os.path.commonprefix([old[len(old) - room :][::-1], new[len(new) - room :][::-1]])) if room else 0
    replacement = new[head : len(new) - tail].decode()
    return {"file": file, "start": head, "end": len(old) - tail, "replacement": replacement, "operator": "swap-constant"}


def run_ours(infradev: Infradev, repo: Path, python: Path, given: Path | None) -> tuple[float, dict[str, Any]]:
    command: list[Any] = [infradev.program, "--quiet", "probe-gaps", "--repo", repo, "--python", python, "--jobs", str(WORKERS), "--json"]
    if given is not None:
        command += ["--mutants", given]
    begin = time.monotonic()
    ran = subprocess.run(command, env={**environment(), "INFRADEV_HOME": str(infradev.home)}, capture_output=True)
    wall = time.monotonic() - begin
    if ran.returncode != 0:
        sys.exit(f"infradev probe-gaps ended with {ran.returncode}:\n{ran.stderr.decode()[-2000:]}")
    return wall, json.loads(ran.stdout)


def run_cosmic_ray(scratch: Path, bin: Path) -> tuple[float, int]:
    """A sample of its mutants, half of them in each of two copies at once."""

    def one(number: int) -> int:
        folder = copy(scratch / f"cosmic-{number}", bin / "python")
        (folder / "cosmic.toml").write_text(COSMIC_RAY.replace("PYTHON", str(bin / "python")))
        tool = [str(bin / "cosmic-ray")]
        for words in (["init", "cosmic.toml", "s.sqlite"], ["baseline", "cosmic.toml"]):
            subprocess.run([*tool, *words], cwd=folder, env=environment(), check=True, capture_output=True)
        with sqlite3.connect(folder / "s.sqlite") as session:
            jobs = [row[0] for row in session.execute("select job_id from work_items order by job_id")]
            step = max(1, len(jobs) // SAMPLE)
            mine = jobs[::step][number::WORKERS]
            marks = ",".join("?" * len(mine))
            session.execute(f"delete from mutation_specs where job_id not in ({marks})", mine)
            session.execute(f"delete from work_items where job_id not in ({marks})", mine)
        return len(mine)

    with ThreadPoolExecutor(WORKERS) as pool:
        counts = list(pool.map(one, range(WORKERS)))
        begin = time.monotonic()

        def execute(number: int) -> None:
            command = [bin / "cosmic-ray", "exec", "cosmic.toml", "s.sqlite"]
            subprocess.run(command, cwd=scratch / f"cosmic-{number}", env=environment(), check=True, capture_output=True)

        list(pool.map(execute, range(WORKERS)))
    return time.monotonic() - begin, sum(counts)


def run_naive(scratch: Path, bin: Path, mutants: list[tuple[str, str | None]]) -> tuple[float, list[int]]:
    folder = copy(scratch / "naive", bin / "python")
    begin = time.monotonic()

    def part(number: int) -> list[int]:
        mine = json.dumps(mutants[number::WORKERS]).encode()
        command = [bin / "python", "-c", NAIVE]
        ran = subprocess.run(command, cwd=folder, env=environment(), input=mine, check=True, capture_output=True, preexec_fn=cap_memory)
        return json.loads(ran.stdout)

    with ThreadPoolExecutor(WORKERS) as pool:
        parts = list(pool.map(part, range(WORKERS)))
    codes = [0] * len(mutants)
    for number, found in enumerate(parts):
        codes[number::WORKERS] = found
    return time.monotonic() - begin, codes


def records(document: dict[str, Any]) -> list[dict[str, Any]]:
    return list(document["change"]["mutants"])


def rejected(record: dict[str, Any]) -> bool:
    return record["fate"] == "official"


def mutated(record: dict[str, Any]) -> tuple[str, str | None]:
    mutant = record["mutant"]
    golden = (FIXTURE / mutant["file"]).read_bytes()
    if mutant["replacement"] is None:
        return mutant["file"], None
    return mutant["file"], (golden[: mutant["start"]] + mutant["replacement"].encode() + golden[mutant["end"] :]).decode()


def mutation(infradev: Infradev, scratch: Path, pairs: int, show: Any) -> None:
    place = tools(infradev.home)
    bin = place / "bin"
    python = bin / "python"
    repo = repository(scratch / "repository")
    rows, differing = [], []
    ours_s, theirs_s, ratios, walls = [], [], [], []
    given = scratch / "mutants.json"
    for number in range(pairs):
        wall, found = run_mutmut(copy(scratch / f"mutmut-{number}", python), bin)
        golden = {file: (FIXTURE / file).read_text() for _, _, file, _ in found}
        verdicts = {(file, text): code for _, code, file, text in found}
        given.write_text(json.dumps([as_mutant(file, golden[file], text) for file, text in verdicts]))
        ours_wall, document = run_ours(infradev, repo, python, given)
        tried = records(document)
        each, their = sum(record["wall_s"] for record in tried) / WORKERS / len(tried), wall / len(found)
        ours_s.append(each)
        theirs_s.append(their)
        walls.append(ours_wall / len(tried))
        ratios.append(ours_wall / len(tried) / their)
        # 1 and 3: rejected; 0: survived; 33: no test reaches it; others: timeouts and signals, rejected.
        for record in tried:
            code = verdicts[mutated(record)]
            if rejected(record) != (code not in (0, 33)):
                differing.append(f"{record['mutant']['file']}:{record['mutant']['line']} ours {record['fate']}, mutmut's exit code {code}")
        print(f"  {number + 1}: mutmut {their:.3f} s, ours {walls[-1]:.3f} s a mutant, start-up in both", file=sys.stderr, flush=True)
    count = len(tried)
    rows.append((f"mutmut {TOOLS[0][8:]}, its {count} mutants", f"{median(theirs_s):.3f} s", "", ""))
    rows.append(("infradev, the same mutants", f"{median(walls):.3f} s", f"{median(ratios):.2f}", "≤ 0.70"))
    rows.append(("  without its start-up", f"{median(ours_s):.3f} s", f"{median(ours_s) / median(theirs_s):.2f}", ""))
    cosmic_s, sample = run_cosmic_ray(scratch, bin)
    rows.append((f"cosmic-ray {TOOLS[1][12:]}, {sample} of its own", f"{cosmic_s / sample:.3f} s", f"{median(walls) / (cosmic_s / sample):.2f}", ""))
    own_wall, document = run_ours(infradev, repo, python, None)
    own = records(document)
    rows.append((f"infradev, its own {len(own)} mutants", f"{own_wall / len(own):.3f} s", "", ""))
    # A file that is gone may be a package without its __init__, which a finder in memory cannot show.
    shown = [record for record in own if record["mutant"]["replacement"] is not None]
    naive_s, codes = run_naive(scratch, bin, [mutated(record) for record in shown])
    naive = naive_s / len(shown)
    rows.append(("the same, forked pytest over all tests", f"{naive:.3f} s", f"{(own_wall / len(own)) / naive:.2f}", ""))
    for record, code in zip(shown, codes):
        if rejected(record) != (code != 0):
            differing.append(f"{record['mutant']['file']}:{record['mutant']['line']} ours {record['fate']}, plain pytest's exit code {code}")
    show(
        f"Seconds a mutant, {WORKERS} workers, {sum(1 for _ in FIXTURE.glob('tests/*.py'))} test file of 20 tests ({pairs} pairs; load {os.getloadavg()[0]:.1f})",
        ("", "a mutant", "ratio of ours", "target"),
        rows,
    )
    print(f"  verdicts that differ: {len(differing)}")
    for line in differing:
        print(f"    {line}")
    ranks(infradev, show)


def ranks(infradev: Infradev, show: Any) -> None:
    """Mutants that need two ranks, which neither of the two tools can run: all of two tasks, in an environment that is there, as
    the others' is. Golden's control, at all world sizes and with probes, is in it; rewrites of golden are no mutants."""
    rows = []
    own = {**environment(), "INFRADEV_HOME": str(infradev.home)}
    subprocess.run([infradev.program, "--quiet", "env", "build", ROOT / "packs/core"], env=own, check=True, stdout=subprocess.DEVNULL)
    for task in ("weight-sync", "expert-dispatch"):
        command = [infradev.program, "--quiet", "synthesize", ROOT / "packs/core/tasks" / task, "--jobs", str(WORKERS), "--rewrites", "0", "--json"]
        begin = time.monotonic()
        ran = subprocess.run([str(word) for word in command], env=own, capture_output=True)
        wall = time.monotonic() - begin
        if ran.returncode != 0:
            sys.exit(f"infradev synthesize ended with {ran.returncode}:\n{ran.stderr.decode()[-2000:]}")
        tried = json.loads(ran.stdout)["tasks"][0]["mutants"]
        killed = [record["wall_s"] for record in tried if rejected(record)]
        others = [record["wall_s"] for record in tried if not rejected(record)]
        rows.append((task, str(len(tried)), f"{wall / len(tried):.2f} s", "≤ 1.5 s", f"{median(killed):.2f} s", f"{median(others):.2f} s"))
    show(
        f"Mutants that need 2 ranks and more, probes of survivors included, {WORKERS} sessions (load {os.getloadavg()[0]:.1f})",
        ("task", "mutants", "a mutant, start-up in it", "target", "median of those that tests reject", "of the others"),
        rows,
    )
