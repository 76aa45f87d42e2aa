"""Which modules of a change import, in base's tree, in golden's and in golden's made hollow.

Reads a list of JSON documents, one a line: {"what", "base", "golden", "hollow": {variant: folder}, "modules": [path]}. Imports
torch, and what else is there of the packages that take long, once, and forks a process for each tree, so that each has its own
modules. Prints one JSON document a change: for each tree the modules that import, and of the others why not.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import sys
import traceback
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

# What takes time to import is imported once. Without torch there is nothing to be asked; the others are a change's own affair.
import torch  # noqa: F401

for package in ("numpy", "transformers", "ray", "tensordict", "datasets", "accelerate", "peft", "hydra", "omegaconf"):
    try:
        importlib.import_module(package)
    except ImportError:
        continue


def name_of(path: str) -> str:
    parts = path.removesuffix(".py").split("/")
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: str, modules: list[str]) -> dict[str, str | None]:
    """For each module that the tree has, why it does not import; None where it does."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        sys.path.append(tree)
        os.chdir(tree)
        # What modules print on import is no answer.
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        answer: dict[str, str | None] = {}
        for path in modules:
            if not Path(tree, path).is_file():
                continue
            try:
                importlib.import_module(name_of(path))
                answer[path] = None
            except BaseException as error:
                last = traceback.extract_tb(error.__traceback__)[-1]
                where = os.path.relpath(last.filename, tree)
                answer[path] = f"{type(error).__name__}: {error} ({where}:{last.lineno})"[:300]
        os.write(write, json.dumps(answer).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    if status:
        return {path: f"the process ended with status {status}" for path in modules}
    return json.loads(answer)


def lay(folder: str, tree: str) -> None:
    """Put the files of a folder in the place of a tree's. What was compiled of those goes: its age and size could be the same."""
    shutil.copytree(folder, tree, dirs_exist_ok=True)
    for file in Path(folder).rglob("*.py"):
        place = Path(tree, file.relative_to(folder))
        for compiled in place.parent.glob(f"__pycache__/{place.stem}.*.pyc"):
            compiled.unlink()


def answer(one: dict[str, Any]) -> dict[str, Any]:
    trees = {"base": imported(one["base"], one["modules"]), "golden": imported(one["golden"], one["modules"])}
    for variant, folder in one["hollow"].items():
        lay(folder, one["golden"])
        trees[variant] = imported(one["golden"], one["modules"])
    return {"what": one["what"], "trees": trees}


def main() -> None:
    sys.dont_write_bytecode = False
    changes = [json.loads(line) for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()]
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("fork")) as pool:
        for found in pool.map(answer, changes):
            print(json.dumps(found), flush=True)


main()
