from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Iterator

import pytest

HERE = Path(__file__).resolve().parent
for entry in (str(HERE), str(HERE.parent)):
    if entry not in sys.path:
        sys.path.insert(0, entry)


@pytest.fixture
def open_dir() -> Iterator[Path]:
    """A folder that every uid may enter and write in (pytest's own tmp_path is private to one)."""
    with tempfile.TemporaryDirectory(prefix="kit-", ignore_cleanup_errors=True) as name:
        os.chmod(name, 0o777)
        yield Path(name)
