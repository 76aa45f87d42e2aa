"""Checkpoints: a file a rank, complete only when their manifest is there."""

from __future__ import annotations

import json
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

from ministack.parallel.groups import global_rank
from ministack.training.optimizer import MasterAdamW


def _barrier() -> None:
    if dist.is_initialized() and dist.get_world_size() > 1:
        dist.barrier()


def _world() -> int:
    return dist.get_world_size() if dist.is_initialized() else 1


def save_checkpoint(folder: Path, model: nn.Module, optimizer: MasterAdamW, step: int) -> Path:
    """Write ``folder/step-<step>``; every rank must call it. Returns the path."""
    path = Path(folder) / f"step-{step:06d}"
    path.mkdir(parents=True, exist_ok=True)
    target = path / f"rank-{global_rank()}.pt"
    partial = target.with_suffix(".partial")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, partial)
    os.replace(partial, target)
    _barrier()
    if global_rank() == 0:
        (path / "manifest.json").write_text(json.dumps({"step": step, "world": _world()}))
    _barrier()
    return path


def latest_checkpoint(folder: Path) -> Path | None:
    """The complete checkpoint with the highest step, if there is one."""
    complete = sorted(p.parent for p in Path(folder).glob("step-*/manifest.json"))
    return complete[-1] if complete else None


def load_checkpoint(path: Path, model: nn.Module, optimizer: MasterAdamW | None = None) -> int:
    """Load what this rank saved at ``path``; returns the step. The world size must be the same."""
    manifest = json.loads((Path(path) / "manifest.json").read_text())
    if manifest["world"] != _world():
        raise ValueError(f"{path} was saved by {manifest['world']} ranks and can't be loaded by {_world()}")
    state = torch.load(Path(path) / f"rank-{global_rank()}.pt", weights_only=True)
    model.load_state_dict(state["model"])
    if optimizer is not None:
        optimizer.load_state_dict(state["optimizer"])
    return manifest["step"]
