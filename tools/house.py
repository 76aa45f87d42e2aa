"""The house's own rules that no compiler checks: length of files, names, markers of unfinished work, completeness of the docs.

Prints one line for each breach, `file:line: what`, and exits 1 if there is one.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Iterator

ROOT = Path(__file__).resolve().parent.parent
TEXTS = {".rs", ".py", ".md", ".toml", ".sh"}
LONGEST = 800
VAGUE = {"utils", "util", "helpers", "helper", "manager", "misc", "common", "imp", "stuff"}
# Spelled apart so that this file does not find itself.
MARKERS = re.compile("|".join(["FIX" + "ME", r"\bXX" + r"X\b", r"\bto" + r"do!\(", "unimple" + r"mented!\(", r"#\[ign" + r"ore"]))


def tracked() -> list[Path]:
    """Files that git has or would have."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    )
    names = listed.stdout.decode().split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


def texts(files: list[Path]) -> Iterator[str]:
    for path in files:
        name = path.relative_to(ROOT)
        if path.suffix not in TEXTS:
            continue
        if path.stem in VAGUE:
            yield f"{name}: a name that says nothing of what is in it"
        lines = path.read_text(encoding="utf-8").splitlines()
        if len(lines) > LONGEST:
            yield f"{name}: {len(lines)} lines, more than {LONGEST}: it tells more than one story"
        for number, line in enumerate(lines, 1):
            if MARKERS.search(line):
                yield f"{name}:{number}: a marker of unfinished work"


def docs() -> Iterator[str]:
    source = ROOT / "docs/src"
    summary = source / "SUMMARY.md"
    linked = re.findall(r"\]\(\.?/?([^)#]+\.md)\)", summary.read_text(encoding="utf-8"))
    pages = {str(path.relative_to(source)) for path in source.rglob("*.md")} - {"SUMMARY.md"}
    for page in sorted(pages - set(linked)):
        yield f"docs/src/{page}: not in SUMMARY.md"
    for page in sorted(set(linked) - pages):
        yield f"docs/src/SUMMARY.md: links {page}, which is not there"
    readers = [*source.rglob("*.md"), ROOT / "README.md", ROOT / "ARCHITECTURE.md"]
    for path in readers:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for target in re.findall(r"\]\(([^)\s#]+)(?:#[^)]*)?\)", line):
                if "://" not in target and not (path.parent / target).exists():
                    yield f"{path.relative_to(ROOT)}:{number}: links {target}, which is not there"


def verbs() -> Iterator[str]:
    """Each verb of the command line has a page."""
    source = (ROOT / "crates/cli/src/cli.rs").read_text(encoding="utf-8")
    body = re.search(r"pub enum Command \{(.*?)\n\}", source, re.DOTALL)
    if body is None:
        yield "crates/cli/src/cli.rs: `pub enum Command` is not where this check looks for it"
        return
    for verb in re.findall(r"^    ([A-Z][A-Za-z]+)\(", body.group(1), re.MULTILINE):
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", verb).lower()
        if not (ROOT / f"docs/src/verbs/{name}.md").is_file():
            yield f"docs/src/verbs/{name}.md: the verb `{name}` has no page"


def main() -> int:
    breaches = [*texts(tracked()), *docs(), *verbs()]
    for breach in breaches:
        print(breach)
    print(f"house: {len(breaches)} breaches" if breaches else "house: in order")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
