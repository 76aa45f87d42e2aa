"""Ranks with a real framework: groups over gloo, bfloat16 both ways, cost of a launch."""

from __future__ import annotations

import textwrap
import time
from pathlib import Path
from typing import Iterator

import pytest
from driver import Harness, collect, finish
from relay import Relay

torch = pytest.importorskip("torch")
pytest.importorskip("ml_dtypes")

OBSERVERS = """
from infradev_probe import observer, rank
import torch
import torch.distributed as dist

@observer
def total(x):
    assert x.dtype is torch.bfloat16 and x.device == rank.device
    y = x.float()
    dist.all_reduce(y, group=rank.group)
    return {"mine": x, "sum": y.to(torch.bfloat16), "backend": dist.get_backend(rank.group), "threads": torch.get_num_threads()}
"""

JUDGE = """
import ml_dtypes, numpy as np
from infradev_probe import case, expect, per_rank

@case(worlds=[2, 4], checks="numbers")
def ranks_add_up(worlds, rng):
    xs = [rng.standard_normal((3, 5)).astype(ml_dtypes.bfloat16) for _ in range(worlds.size)]
    seen = worlds.open().observe("observe_t.total", x=per_rank(xs))
    expect.equal([s["backend"] for s in seen], ["gloo" if worlds.device == "cpu" else "nccl"] * worlds.size)
    expect.equal([s["threads"] for s in seen], [1] * worlds.size)
    expect.equal([s["mine"] for s in seen], xs)
    expect.equal(seen[0]["mine"].dtype.name, "bfloat16")
    want = sum(x.astype(np.float64) for x in xs)
    for s in seen:
        expect.close(s["sum"], want, dtype="bfloat16", reduction=worlds.size)
"""


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    with Harness(tmp_path_factory.mktemp("torch"), framework=["torch"]) as harness:
        yield harness


def ranks_add_up(harness: Harness, folder: Path, world: int, device: str) -> None:
    probes, tree = folder / "probes", folder / "tree"
    probes.mkdir()
    tree.mkdir()
    (probes / "observe_t.py").write_text(textwrap.dedent(OBSERVERS))
    (probes / "judge_t.py").write_text(textwrap.dedent(JUDGE))
    with Relay(harness, probes, tree, world, device) as relay:
        report = relay.run(f"probes/judge_t.py::ranks_add_up[world={world}]")
    assert report["outcome"] == "passed", report


def test_four_ranks_add_up_over_gloo(harness: Harness, tmp_path: Path) -> None:
    ranks_add_up(harness, tmp_path, 4, "cpu")


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_two_forked_ranks_add_up_over_nccl(harness: Harness, tmp_path: Path) -> None:
    ranks_add_up(harness, tmp_path, 2, "cuda")


def test_the_launcher_stays_single_threaded_without_cuda(harness: Harness) -> None:
    assert harness.ready["threads"] == 1 and "torch" in harness.ready["packages"]
    maps = Path(f"/proc/{harness.process.pid}/fd")
    assert not [link for link in maps.iterdir() if "nvidia" in str(link.readlink())]


def test_ranks_draw_different_random_numbers_as_separate_processes_do(harness: Harness, tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(
        "import random, numpy, torch\ndef test_a(): raise ValueError((random.random(), numpy.random.rand(), torch.initial_seed()))\n"
    )
    launched = harness.official(tmp_path, ["test_a.py"], size=2)
    told = []
    for end in launched.ranks:
        ids, _, _ = collect(end)
        end.channel.send({"type": "run", "id": ids[0], "next": None})
        end.expect("started")
        told.append(eval(end.expect("report").header["message"]))
    harness.end(launched)
    assert told[0][0] != told[1][0] and told[0][1] != told[1][1] and told[0][2] == told[1][2]


def test_a_launch_of_four_ranks_costs_less_than_half_a_second_of_processor_time_each(harness: Harness, tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("".join(f"def test_{i}(): pass\n" for i in range(5)))
    began = time.process_time()
    launched = harness.official(tmp_path, ["test_a.py"], size=4)
    used = []
    for end, pid in zip(launched.ranks, launched.pids):
        ids, _, _ = collect(end)
        for number, after in zip(ids, [*ids[1:], None]):
            end.channel.send({"type": "run", "id": number, "next": after})
            end.expect("started")
            assert end.expect("report").header["outcome"] == "passed"
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        used.append((int(fields[11]) + int(fields[12])) / 100)
        finish(end)
    harness.end(launched)
    assert max(used) < 0.5 and time.process_time() - began < 0.5
