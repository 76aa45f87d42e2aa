"""Which ranks work together on what."""

from __future__ import annotations

import os
from dataclasses import dataclass

import torch
import torch.distributed as dist


@dataclass(frozen=True)
class Group:
    """A set of ranks. ``handle`` is None for a group of one, whose collectives are no-ops."""

    ranks: tuple[int, ...]
    rank: int
    handle: dist.ProcessGroup | None = None

    @property
    def size(self) -> int:
        return len(self.ranks)

    @classmethod
    def single(cls) -> Group:
        """The group of this process alone."""
        return cls(ranks=(global_rank(),), rank=0)


@dataclass(frozen=True)
class ParallelGroups:
    """The groups this rank belongs to.

    tp    ranks that share one replica of the dense layers, cut along hidden or head dimensions
    dp    ranks that hold the same dense shards and see different data
    ep    consecutive ranks of dp that divide the experts of a layer among them
    edp   ranks of dp that hold the same experts
    """

    tp: Group
    dp: Group
    ep: Group
    edp: Group

    @classmethod
    def single(cls) -> ParallelGroups:
        """One process, nothing divided."""
        one = Group.single()
        return cls(tp=one, dp=one, ep=one, edp=one)

    @classmethod
    def create(cls, tp: int = 1, ep: int = 1) -> ParallelGroups:
        """Divide all ranks of the default process group; every rank must call this with the same sizes."""
        if not dist.is_initialized():
            if tp != 1 or ep != 1:
                raise ValueError(f"tp={tp}, ep={ep} need an initialised process group")
            return cls.single()
        world = dist.get_world_size()
        if world % tp:
            raise ValueError(f"world size {world} is not a multiple of tp={tp}")
        dp = world // tp
        if dp % ep:
            raise ValueError(f"data-parallel size {dp} is not a multiple of ep={ep}")

        tp_sets = [tuple(range(start, start + tp)) for start in range(0, world, tp)]
        dp_sets = [tuple(range(offset, world, tp)) for offset in range(tp)]
        ep_sets = [ranks[i : i + ep] for ranks in dp_sets for i in range(0, dp, ep)]
        edp_sets = [ranks[i::ep] for ranks in dp_sets for i in range(ep)]
        return cls(tp=_join(tp_sets), dp=_join(dp_sets), ep=_join(ep_sets), edp=_join(edp_sets))


def _join(rank_sets: list[tuple[int, ...]]) -> Group:
    """Make every set's group (all ranks take part in making each) and return the one this rank is in."""
    me = dist.get_rank()
    mine: Group | None = None
    for ranks in rank_sets:
        if len(ranks) == 1:
            handle = None
        elif len(ranks) == dist.get_world_size():
            handle = dist.group.WORLD
        else:
            handle = dist.new_group(list(ranks))
        if me in ranks:
            mine = Group(ranks=ranks, rank=ranks.index(me), handle=handle)
    assert mine is not None, f"rank {me} is in none of {rank_sets}"
    return mine


def global_rank() -> int:
    """This process's rank, 0 without a process group."""
    return dist.get_rank() if dist.is_initialized() else 0


def local_device() -> torch.device:
    """The device that this rank's process group talks over: a GPU under NCCL, else the CPU."""
    if dist.is_initialized() and dist.get_backend() == "nccl":
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", dist.get_rank() % torch.cuda.device_count())))
    return torch.device("cpu")
