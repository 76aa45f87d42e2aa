"""Weights that do not depend on the parallel layout."""

from __future__ import annotations

import zlib

import torch

from ministack.parallel import Group


def seeded_normal(name: str, shape: tuple[int, ...], std: float, seed: int) -> torch.Tensor:
    """Normal numbers in float32 that depend on ``name`` and ``seed`` only."""
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()) ^ (seed * 0x9E3779B1 & 0x7FFFFFFF))
    return torch.randn(shape, generator=generator) * std


def shard(full: torch.Tensor, dim: int, group: Group) -> torch.Tensor:
    """This rank's slice of ``full`` along ``dim``."""
    if full.shape[dim] % group.size:
        raise ValueError(f"dimension {dim} of {tuple(full.shape)} is not a multiple of the group's size {group.size}")
    return full.chunk(group.size, dim=dim)[group.rank].clone()
