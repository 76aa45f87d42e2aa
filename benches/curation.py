"""What curate reads of real histories: seconds against `git log --numstat` of the same clone in the same run, and precision and
recall against fixtures/curation/labels.jsonl, for the labels that rules were made with and for those held out.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any, Callable

ROOT = Path(__file__).resolve().parent.parent
LABELS = ROOT / "fixtures/curation/labels.jsonl"

#: Where a clone of each repository is, by variable; an option --clone NAME=PATH says the same.
CLONES = {
    "INFRADEV_MEGATRON": "NVIDIA/Megatron-LM",
    "INFRADEV_VERL": "volcengine/verl",
    "INFRADEV_TORCHTITAN": "pytorch/torchtitan",
}

Show = Callable[[str, tuple[str, ...], list[tuple[str, ...]]], None]
Pair = tuple[str, str, str, str]
"""Repository, commit, label, answer. Where two labels fit and the answer is the second, that is the label."""


def clones(given: list[str]) -> dict[str, Path]:
    found = {name: Path(os.environ[variable]) for variable, name in CLONES.items() if os.environ.get(variable)}
    for text in given:
        name, _, path = text.partition("=")
        if name not in CLONES.values() or not path:
            sys.exit(f"--clone {text}: write NAME=PATH, NAME one of {', '.join(CLONES.values())}")
        found[name] = Path(path)
    return found


def seconds(command: list[str | Path]) -> tuple[float, bytes]:
    begin = time.monotonic()
    ran = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wall = time.monotonic() - begin
    if ran.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nended with {ran.returncode}:\n{ran.stderr.decode(errors='replace')[-3000:]}")
    return wall, ran.stdout


def numstat(clone: Path) -> float | None:
    """The better of two; nothing for a clone that lacks objects, where git gives up half way."""
    command = ["git", "-C", str(clone), "log", "--numstat"]
    times = []
    for _ in range(2):
        begin = time.monotonic()
        if subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
            return None
        times.append(time.monotonic() - begin)
    return min(times)


def curation(program: Path, scratch: Path, given: list[str], show: Show) -> None:
    known = clones(given)
    if not known:
        print(f"\ncuration: no clone is named, by --clone NAME=PATH or by {', '.join(CLONES)}: nothing to read")
        return
    rows, documents = [], {}
    for name, clone in known.items():
        home = scratch / "curation"
        shutil.rmtree(home, ignore_errors=True)
        curate = [program, "--home", home, "--quiet", "curate", clone, "--no-github", "--min-tests", "0", "--json"]
        seconds(["git", "-C", clone, "rev-list", "--count", "HEAD"])
        git = numstat(clone)
        first, text = seconds(curate)
        second, again = seconds(curate)
        document = json.loads(text)
        if document != json.loads(again):
            sys.exit(f"{name}: a second run says other than the first")
        documents[name] = document
        count = f"{document['commits']:,}", f"{len(document['candidates']):,}"
        against = (f"{git:.1f} s", f"{first:.1f} s", f"{first / git:.2f}") if git else ("objects missing", f"{first:.1f} s", "–")
        rows.append((name, *count, *against, f"{second:.2f} s"))
    show(
        "A whole history: curate against git log --numstat (targets: 3 times, and 1 s again)",
        ("repository", "commits", "candidates", "git", "curate", "ratio", "again"),
        rows,
    )
    labels = [json.loads(line) for line in LABELS.read_text().splitlines()]
    for held in (False, True):
        chosen = [label for label in labels if (label.get("set") == "fresh") == held and label["repo"] in documents]
        if chosen:
            quality(chosen, documents, "held out" if held else "that rules were made with", show)


def quality(labels: list[dict[str, Any]], documents: dict[str, Any], which: str, show: Show) -> None:
    asked: dict[str, list[Pair]] = defaultdict(list)
    absent = 0
    for label in labels:
        name, commit = label["repo"], label["commit"]
        document = documents[name]
        because = {out["commit"]: out["because"] for out in document["related"]}.get(commit)
        asked["state"].append((name, commit, label["state"], because or "standing"))
        candidate = next((found for found in document["candidates"] if found["commit"] == commit), None)
        if candidate is None:
            absent += 1 if label["state"] == "standing" and "kind" in label else 0
            continue
        facts = candidate["facts"]
        answers = {"area": facts["area"]["is"], "kind": facts["kind"]["is"], "world": facts["needs"]["world"]}
        for question, answer in answers.items():
            if question in label:
                wanted = str(label[question])
                second = question == "kind" and str(answer) == label.get("also")
                asked[question].append((name, commit, str(answer) if second else wanted, str(answer)))
                if question == "kind":
                    asked["kind, the first label"].append((name, commit, wanted, str(answer)))
    rows = []
    for question in ("area", "kind", "world", "state"):
        pairs = asked[question]
        rows += [(f"{question}, all", *counted(pairs)), *((f"  {one}", *counted(part)) for one, part in by(pairs, 0))]
        if question == "kind" and any("also" in label for label in labels):
            rows.append(("  the first of two labels only", *counted(asked["kind, the first label"])))
        for one, part in by(pairs, 2):
            answered = [pair for pair in pairs if pair[3] == one]
            hits = sum(1 for pair in part if pair[3] == one)
            rows.append((f"  {question} {one}", "", f"precision {share(hits, len(answered))}", f"recall {share(hits, len(part))}"))
    show(f"Labels {which} ({len(labels)}; {absent} of them no candidates)", ("", "right", "", ""), rows)
    for question in ("area", "kind", "world", "state"):
        for name, commit, label, answer in asked[question]:
            if label != answer:
                print(f"    {question} of {name} {commit[:12]}: {answer}, labelled {label}")


def counted(pairs: list[Pair]) -> tuple[str, str, str]:
    right = sum(1 for pair in pairs if pair[2] == pair[3])
    return (f"{right} of {len(pairs)}", share(right, len(pairs)), "")


def share(hits: int, of: int) -> str:
    """A share with its 95 % interval (Wilson)."""
    if not of:
        return "–"
    z, rate = 1.96, hits / of
    middle = (rate + z * z / (2 * of)) / (1 + z * z / of)
    half = z * math.sqrt(rate * (1 - rate) / of + z * z / (4 * of * of)) / (1 + z * z / of)
    return f"{rate:.2f} of {of} [{middle - half:.2f}, {middle + half:.2f}]"


def by(pairs: list[Pair], place: int) -> list[tuple[str, list[Pair]]]:
    found: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        found[pair[place]].append(pair)
    return sorted(found.items())
