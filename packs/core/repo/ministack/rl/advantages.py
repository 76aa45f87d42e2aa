"""How much better than expected."""

from __future__ import annotations

import torch


def gae(
    rewards: torch.Tensor, values: torch.Tensor, mask: torch.Tensor, gamma: float = 1.0, lam: float = 0.95
) -> tuple[torch.Tensor, torch.Tensor]:
    """Generalised advantage estimates and returns, all ``[batch, length]``; ``mask`` is 1 on real tokens."""
    advantages = torch.zeros_like(rewards)
    running = torch.zeros_like(rewards[:, 0])
    next_value = torch.zeros_like(running)
    for t in reversed(range(rewards.shape[1])):
        delta = rewards[:, t] + gamma * next_value - values[:, t]
        here = delta + gamma * lam * running
        running = torch.where(mask[:, t] > 0, here, running)
        next_value = torch.where(mask[:, t] > 0, values[:, t], next_value)
        advantages[:, t] = running * mask[:, t]
    return advantages, (advantages + values) * mask


def group_relative(rewards: torch.Tensor, groups: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """Rewards ``[n]`` less their group's mean, over its standard deviation; a group of one gets zero."""
    out = torch.zeros_like(rewards)
    for group in groups.unique():
        member = groups == group
        if int(member.sum()) > 1:
            own = rewards[member]
            out[member] = (own - own.mean()) / (own.std(correction=0) + eps)
    return out


def whiten(x: torch.Tensor, mask: torch.Tensor, eps: float = 1e-8) -> torch.Tensor:
    """Zero mean and unit variance over the entries where ``mask`` is 1."""
    count = mask.sum().clamp(min=1)
    mean = (x * mask).sum() / count
    variance = ((x - mean).pow(2) * mask).sum() / count
    return (x - mean) * torch.rsqrt(variance + eps) * mask
