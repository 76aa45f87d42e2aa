"""The halves stay apart: importing one loads nothing of the other."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from driver import KIT


def loaded_by(statement: str) -> set[str]:
    code = f"import sys, json; sys.path.insert(0, {str(KIT)!r})\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60).stdout
    return set(json.loads(out))


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import infradev_probe", "torch numpy pytest infradev_probe.observers infradev_probe.worlds"),
        ("from infradev_probe import observer, rank", "torch numpy pytest infradev_probe.worlds infradev_probe.expect"),
        ("from infradev_probe import case, expect, per_rank", "torch pytest infradev_probe.observers infradev_probe.launcher"),
        ("import infradev_probe.launcher", "torch numpy pytest infradev_probe.judge infradev_probe.worlds"),
        ("import infradev_probe.rank_observe", "torch numpy pytest infradev_probe.judge infradev_probe.worlds"),
        ("import infradev_probe.judge", "torch infradev_probe.launcher infradev_probe.privileges infradev_probe.observers"),
    ],
)
def test_a_half_does_not_load_the_other(statement: str, absent: str) -> None:
    assert loaded_by(statement).isdisjoint(absent.split())
