"""Compiles the modules of a tree into a folder laid out as ``sys.pycache_prefix`` wants it, and runs none of them.

Arguments: the tree, the folder, the tree's path where the bytecode is used. What is no valid Python is passed over.
"""

import importlib.util
import os
import py_compile
import sys

tree, sys.pycache_prefix, seen_as = sys.argv[1:]
for folder, _, files in os.walk(tree):
    for file in files:
        if not file.endswith(".py"):
            continue
        path = os.path.join(folder, file)
        place = os.path.join(seen_as, os.path.relpath(path, tree))
        target = importlib.util.cache_from_source(place)
        try:
            hashed = py_compile.PycInvalidationMode.CHECKED_HASH
            py_compile.compile(path, target, place, doraise=True, invalidation_mode=hashed)
        except (py_compile.PyCompileError, FileNotFoundError, ValueError, RecursionError, MemoryError):
            continue
