"""Checks the licence and the source of every crate in Cargo.lock against deny.toml.

It is the part of cargo-deny that needs no installation of minutes; `make check` runs cargo-deny too where it is installed. Neither
looks for advisories here: their database is fetched over the network (`cargo deny check advisories`).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def allowed(expression: str, allow: set[str]) -> bool:
    """Whether an SPDX expression can be met by what is allowed: AND binds closer than OR; the old `A/B` means OR."""
    words = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))
    place = 0

    def either() -> bool:
        nonlocal place
        found = both()
        while place < len(words) and words[place] == "OR":
            place += 1
            found = both() or found
        return found

    def both() -> bool:
        nonlocal place
        found = one()
        while place < len(words) and words[place] == "AND":
            place += 1
            found = one() and found
        return found

    def one() -> bool:
        nonlocal place
        if words[place] == "(":
            place += 1
            found = either()
            place += 1
            return found
        name = words[place]
        place += 1
        if place + 1 < len(words) and words[place] == "WITH":
            name = f"{name} WITH {words[place + 1]}"
            place += 2
        return name in allow

    return either()


def main() -> int:
    allow = set(tomllib.loads((ROOT / "deny.toml").read_text())["licenses"]["allow"])
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    listed = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout)
    breaches = 0
    for package in listed["packages"]:
        name = f"{package['name']} {package['version']}"
        licence, source = package.get("license"), package.get("source")
        if not licence or not allowed(licence, allow):
            print(f"{name}: licence {licence or 'not stated'}, which deny.toml does not allow")
            breaches += 1
        # A path's source is null: ours. All else is to come from the registry, never from git.
        if source is not None and not source.startswith("registry+"):
            print(f"{name}: comes from {source}, not from the registry")
            breaches += 1
    print(f"licences: {len(listed['packages'])} crates, {breaches or 'no'} breaches")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
