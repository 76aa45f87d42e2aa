"""What grading costs, as ratios against a named baseline in one run. Prints tables; asserts nothing.

    make bench                    all parts
    make bench BENCH=ratio        golden graded with official tests and probes, against plain torchrun on the official tests alone
    make bench BENCH=overhead     a trial's own overhead, on a task without a framework
    make bench BENCH=supervisor   the harness's own CPU, as a share of all
    make bench BENCH=memory       the harness's memory with 100,000 cases reported
    make bench BENCH=mutation     seconds a mutant against mutmut and cosmic-ray, and of mutants that need 2 ranks
    make bench BENCH=attempt      an attempt beside its agent's own time, and what eight side by side leave behind
    make bench BENCH=log          an agent's log of 200 MB into its trajectory: rate and memory
    make bench BENCH=curation     a whole history read, against git log --numstat, and precision and recall of what is guessed; needs clones
    make bench BENCH=assertions   what rules say of assertions beside what a reader said (Cohen's kappa), and milliseconds for 5,000 lines; with clones, of real ones
    make bench BENCH=labels       what rules say of failing cases beside what a reader said (Cohen's kappa)
    make bench BENCH=report       a report of 10,000 submissions of 200 cases: cases a second, milliseconds a page, memory; 1 GB of disk
    make bench BENCH=start        from the workspace being ready to the first case, in an environment that was used before
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any, Callable

import attempts
import curation
import mutation
import packs
import reports
from processes import Infradev, Ran, run

ROOT = Path(__file__).resolve().parent.parent
CORE = ROOT / "packs/core"
JUDGE_LOCK = ROOT / "python/judge.lock"

Row = tuple[str, str, str]


def show(title: str, head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    print(f"\n{title}")
    for row in [head, *rows]:
        cells = [cell.ljust(width) if column == 0 else cell.rjust(width) for column, (cell, width) in enumerate(zip(row, widths))]
        print("  " + "  ".join(cells).rstrip())
    sys.stdout.flush()


def golden_tree(into: Path, pack: Path, task: str) -> Path:
    """The base tree with golden and the official tests in, its bytecode compiled."""
    shutil.copytree(pack / "repo", into, ignore=shutil.ignore_patterns("__pycache__"))
    for part in ("golden.patch", "official.patch"):
        command = ["git", "apply", "--whitespace=nowarn", str(pack / "tasks" / task / part)]
        # Outside of a repository of its own, git apply would look for one above.
        subprocess.run(command, cwd=into, check=True, env={**os.environ, "GIT_DIR": "/nonexistent"})
    return into


def official(pack: Path, task: str) -> list[str]:
    import tomllib

    return tomllib.loads((pack / "tasks" / task / "task.toml").read_text())["tests"]["official"]


def timing(trials: list[dict[str, Any]], *names: str) -> list[float]:
    return [sum(trial["timing"][name] for name in names) for trial in trials]


class Bench:
    def __init__(self, options: argparse.Namespace, scratch: Path) -> None:
        self.infradev = Infradev(options.infradev, options.home)
        self.pairs: int = options.pairs
        self.trials: int = options.trials
        self.cases: int = options.cases
        self.submissions: int = options.submissions
        self.worlds: list[int] = options.worlds
        self.clones: list[str] = options.clone
        self.scratch = scratch

    def core(self) -> list[tuple[str, int, Path]]:
        """Each core task at each of its world sizes, as a pack of its own."""
        import tomllib

        found = []
        for spec in sorted((CORE / "tasks").glob("*/task.toml")):
            for world in tomllib.loads(spec.read_text())["worlds"]:
                if self.worlds and world not in self.worlds:
                    continue
                pack = self.scratch / f"{spec.parent.name}-{world}"
                if not pack.exists():
                    packs.core_at(self.scratch, CORE, spec.parent.name, world)
                found.append((spec.parent.name, world, pack))
        return sorted(found, key=lambda entry: (entry[1], entry[0]))

    def ratio(self) -> None:
        """Paired, in alternating order, so that a change of the machine's load meets both."""
        rows = []
        for task, world, pack in self.core():
            self.infradev.grade(pack, "golden")  # builds the environment, calibrates
            environment = self.infradev.environment_with("torch")
            tree = golden_tree(self.scratch / f"tree-{task}-{world}", pack, task)
            python = environment / "bin/python"
            run([python, "-m", "compileall", "-q", tree], cwd=tree, env={})
            torchrun = [python, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={world}"]
            plain = [*torchrun, "-m", "pytest", "-q", "-p", "no:cacheprovider", *official(pack, task)]

            def ours() -> Ran:
                return self.infradev.grade(pack, "golden")[0]

            def theirs() -> Ran:
                return run(plain, cwd=tree, env={})

            theirs()  # warms the page cache and leaves pytest's rewritten tests compiled
            pairs = []
            for number in range(self.pairs):
                both: list[Callable[[], Ran]] = [ours, theirs] if number % 2 == 0 else [theirs, ours]
                first, second = both[0](), both[1]()
                pairs.append((first, second) if number % 2 == 0 else (second, first))
            ratios = [mine.wall_s / other.wall_s for mine, other in pairs]
            said = ", ".join(f"{mine.wall_s:.1f}/{other.wall_s:.1f}" for mine, other in pairs)
            print(f"  {task} at {world}: {said} s", file=sys.stderr, flush=True)
            rows.append(
                (
                    f"{task}, {world} {'rank' if world == 1 else 'ranks'}",
                    f"{median(mine.wall_s for mine, _ in pairs):.1f} s",
                    f"{median(other.wall_s for _, other in pairs):.1f} s",
                    f"{median(ratios):.2f}",
                    f"{min(ratios):.2f}–{max(ratios):.2f}",
                    {2: "≤ 0.80", 4: "≤ 0.60"}.get(world, ""),
                )
            )
        show(
            f"Golden graded, official tests and probes, against `torchrun -m pytest` on the official tests alone ({self.pairs} pairs)",
            ("task", "infradev", "torchrun", "ratio", "range", "target"),
            rows,
        )

    def overhead(self) -> None:
        pack = packs.small(self.scratch, JUDGE_LOCK, cases=1)
        self.infradev.grade(pack, "golden")
        patches = packs.variants(self.scratch, pack, "small", self.trials)
        _, _, trials = self.infradev.grade(pack, patches)
        parts = ["workspace_s", "sandbox_s", "teardown_s", "framework_s", "first_case_s", "official_s", "probes_s"]
        own = [
            trial["timing"]["wall_s"] - sum(trial["timing"][name] for name in ("framework_s", "official_s", "probes_s"))
            for trial in trials
        ]
        rows = [("overhead: wall less imports and suites", *spread(own), "< 300 ms")]
        rows += [(name.removesuffix("_s").replace("_", " "), *spread(timing(trials, name)), "") for name in parts]
        rows += [("wall", *spread(timing(trials, "wall_s")), "")]
        show(f"A trial's own overhead, no framework, official tests and a probe ({len(trials)} trials)", ("", "median", "range", "target"), rows)

    def supervisor(self) -> None:
        rows = []
        for task, world, pack in self.core():
            self.infradev.grade(pack, "golden")
            shares = []
            for _ in range(3):
                ran, _, trials = self.infradev.grade(pack, "golden", watched=True)
                shares.append(sum(timing(trials, "harness_cpu_s")) / ran.cpu_s)
            rows.append((f"{task}, {world} {'rank' if world == 1 else 'ranks'}", f"{100 * median(shares):.2f} %", "< 2 %"))
        show("The harness's own CPU over a trial, as a share of the CPU of the whole run (3 runs each)", ("task", "share", "target"), rows)

    def memory(self) -> None:
        pack = packs.small(self.scratch, JUDGE_LOCK, cases=self.cases, probe=False)
        ran, document, trials = self.infradev.grade(pack, "golden")
        counted = document["submissions"][0]["of"]
        cold = f"{ran.peak_bytes / 1e6:.0f} MB"
        ran, _, trials = self.infradev.grade(pack, "golden")
        own = sum(timing(trials, "harness_cpu_s"))
        each = median(timing(trials, "official_s")) / counted
        show(
            f"The harness with {counted:,} cases reported",
            ("", "found", "target"),
            [
                ("peak memory, calibrated before", f"{ran.peak_bytes / 1e6:.0f} MB", "< 100 MB"),
                ("peak memory, calibrating too", cold, ""),
                ("own CPU a case, of cases that do nothing", f"{1000 * own / counted:.2f} ms", ""),
                ("wall a case", f"{1000 * each:.2f} ms", ""),
            ],
        )

    def attempt(self) -> None:
        attempts.attempts(self.infradev, self.scratch, CORE, show, spread)

    def log(self) -> None:
        kept = self.scratch / "log-read.txt"
        test = ["cargo", "test", "--release", "--quiet", "--package", "infradev-agent", "a_long_log"]
        variables = {**os.environ, "INFRADEV_LOG_MB": "200", "INFRADEV_LOG_READ": str(kept)}
        subprocess.run(test, cwd=ROOT, check=True, env=variables, stdout=subprocess.DEVNULL)
        rate, grown, length, seconds = kept.read_text().split()
        show(
            f"A log of {int(length) / 1e6:.0f} MB into its trajectory",
            ("", "found", "target"),
            [("rate", f"{rate} MB/s", "> 100 MB/s"), ("memory beside", f"{int(grown) / 1024:.0f} MiB", "< 64 MiB"), ("wall", f"{seconds} s", "")],
        )

    def mutation(self) -> None:
        mutation.mutation(self.infradev, self.scratch, min(self.pairs, 3), show)

    def curation(self) -> None:
        curation.curation(self.infradev.program, self.scratch, self.clones, show)

    def assertions(self) -> None:
        """The tests print; whole files of clones are timed in a release build."""
        variables = {variable: name for variable, name in curation.CLONES.items()}
        known = curation.clones(self.clones)
        clones = {variable: str(known[name].resolve()) for variable, name in variables.items() if name in known}
        test = ["cargo", "test", "--release", "--quiet", "--package", "infradev-pycode", "--test", "agreement", "--test", "assertions_of_clones"]
        ran = subprocess.run([*test, "--", "--nocapture"], cwd=ROOT, env={**os.environ, **clones}, stdout=subprocess.PIPE, text=True)
        told = [line for line in ran.stdout.splitlines() if any(word in line for word in ("kappa", "read as", " found, ", "INFRADEV_", "panicked"))]
        print("\nAssertions: rules beside a reader (target: kappa of 0.8), and whole clones")
        print("\n".join(f"  {line}" for line in told))
        if ran.returncode != 0:
            sys.exit("the tests of assertions failed: cargo test --release --package infradev-pycode --test agreement says where")

    def labels(self) -> None:
        """The test prints."""
        test = ["cargo", "test", "--quiet", "--package", "infradev-analyse", "--test", "agreement", "--", "--nocapture"]
        ran = subprocess.run(test, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        told = [line for line in ran.stdout.splitlines() if any(word in line for word in ("kappa", "read as", "panicked"))]
        print("\nFailing cases: rules beside a reader (target: kappa of 0.8)")
        print("\n".join(f"  {line}" for line in told))
        if ran.returncode != 0:
            sys.exit("the test of labels failed: cargo test --package infradev-analyse --test agreement says where")

    def report(self) -> None:
        reports.reports(self.infradev, self.scratch, self.submissions, show)

    def start(self) -> None:
        rows = []
        for task, world, pack in self.core():
            self.infradev.grade(pack, "golden")
            count = max(5, self.pairs)
            patches = packs.variants(self.scratch, pack, task, count)
            _, _, trials = self.infradev.grade(pack, patches)
            found = spread(timing(trials, "sandbox_s", "first_case_s"))
            framework = spread(timing(trials, "framework_s"))
            rows.append((f"{task}, {world} {'rank' if world == 1 else 'ranks'}", *found, "< 1000 ms", framework[0]))
        show(
            "From the workspace being ready to the first case, beyond the framework's import",
            ("task", "median", "range", "target", "the import"),
            rows,
        )


def spread(seconds: list[float]) -> tuple[str, str]:
    return f"{1000 * median(seconds):.0f} ms", f"{1000 * min(seconds):.0f}–{1000 * max(seconds):.0f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="overhead, start, supervisor, memory, attempt, log, ratio, mutation, curation, assertions, labels, report [default: all]")
    parser.add_argument("--infradev", type=Path, required=True, help="the program, a release build")
    parser.add_argument("--home", type=Path, default=ROOT / "target/bench", help="where runs are kept [default: target/bench]")
    parser.add_argument("--pairs", type=int, default=5, help="pairs of runs for a ratio [default: 5]")
    parser.add_argument("--trials", type=int, default=15, help="trials for the overhead [default: 15]")
    parser.add_argument("--cases", type=int, default=100_000, help="cases for the harness's memory [default: 100000]")
    parser.add_argument("--submissions", type=int, default=10_000, help="submissions of the large report [default: 10000]")
    parser.add_argument("--worlds", type=int, nargs="*", default=[], help="only these world sizes of core's [default: all]")
    parser.add_argument("--clone", action="append", default=[], metavar="NAME=PATH", help="for curation and assertions: where a clone is; INFRADEV_MEGATRON, INFRADEV_VERL and INFRADEV_TORCHTITAN say the same")
    options = parser.parse_args()
    known = {name: getattr(Bench, name) for name in ("overhead", "start", "supervisor", "memory", "attempt", "log", "ratio", "mutation", "curation", "assertions", "labels", "report")}
    parts = options.parts or list(known)
    for part in parts:
        if part not in known:
            parser.error(f"there is no part {part!r}: {', '.join(known)}")
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load {load:.1f}{': other work bends these figures' if load > 1 else ''}")
    with tempfile.TemporaryDirectory(prefix="infradev-bench-") as scratch:
        # Folders that another uid has to enter.
        os.chmod(scratch, 0o755)
        bench = Bench(options, Path(scratch))
        for part in parts:
            known[part](bench)
    return 0


if __name__ == "__main__":
    sys.exit(main())
