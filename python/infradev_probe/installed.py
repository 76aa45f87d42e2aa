"""Which distributions an environment holds, for the record of a trial."""

from __future__ import annotations

import os
import sys


def packages() -> dict[str, str]:
    """Installed distributions by the names of their metadata folders (reading each METADATA would cost far more)."""
    found: dict[str, str] = {}
    for entry in sys.path:
        try:
            names = os.listdir(entry or ".")
        except OSError:
            continue
        for name in names:
            if name.endswith(".dist-info"):
                project, _, version = name[: -len(".dist-info")].partition("-")
                found.setdefault(project, version)
    return found
