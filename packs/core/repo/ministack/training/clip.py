"""Clipping by the norm of all gradients, wherever they are."""

from __future__ import annotations

import torch
from torch import nn

from ministack.parallel import ParallelGroups
from ministack.parallel.mappings import all_reduce


def grad_norm(model: nn.Module, groups: ParallelGroups) -> torch.Tensor:
    """The 2-norm of the whole model's gradient, the same on every rank.

    Parameters cut over ``tp`` and experts divided over ``ep`` are summed over those groups; replicated ones count once.
    """
    sharded = {id(m.weight) for m in model.modules() if getattr(m, "tp_dim", None) is not None}
    device = next(model.parameters()).device
    squares = {"replicated": torch.zeros((), device=device)}
    squares["tp"], squares["ep"] = torch.zeros_like(squares["replicated"]), torch.zeros_like(squares["replicated"])
    for p in model.parameters():
        if p.grad is None:
            continue
        kind = "ep" if getattr(p, "is_expert", False) else "tp" if id(p) in sharded else "replicated"
        squares[kind] += p.grad.float().pow(2).sum()
    total = squares["replicated"] + all_reduce(squares["tp"], groups.tp) + all_reduce(squares["ep"], groups.ep)
    return total.sqrt()


@torch.no_grad()
def clip_grad_norm(model: nn.Module, groups: ParallelGroups, limit: float) -> float:
    """Scale gradients in place so that their norm is at most ``limit``; returns the norm before."""
    norm = grad_norm(model, groups)
    scale = (limit / (norm + 1e-6)).clamp(max=1.0)
    for p in model.parameters():
        if p.grad is not None:
            p.grad.mul_(scale.to(p.grad.dtype))
    return norm.item()
