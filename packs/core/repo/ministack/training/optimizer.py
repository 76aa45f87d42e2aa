"""AdamW that steps float32 masters and writes the result to the model's parameters."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from ministack.config import TrainConfig


class MasterAdamW:
    """AdamW with decoupled weight decay; masters and moments in float32 whatever the parameters' type."""

    def __init__(self, params: Iterable[nn.Parameter], config: TrainConfig) -> None:
        self.params = list(params)
        self.config = config
        self.steps = 0
        self.masters = [p.detach().float().clone() for p in self.params]
        self.first = [torch.zeros_like(m) for m in self.masters]
        self.second = [torch.zeros_like(m) for m in self.masters]

    def lr(self) -> float:
        """Learning rate of the step being taken: linear warmup, then constant."""
        warmup = self.config.warmup_steps
        return self.config.lr * min(1.0, self.steps / warmup) if warmup else self.config.lr

    @torch.no_grad()
    def step(self) -> None:
        """Update from ``p.grad``; a parameter without gradient is left as it is."""
        self.steps += 1
        lr, (beta1, beta2) = self.lr(), self.config.betas
        correct1, correct2 = 1 - beta1**self.steps, 1 - beta2**self.steps
        for p, master, first, second in zip(self.params, self.masters, self.first, self.second, strict=True):
            if p.grad is None:
                continue
            grad = p.grad.float()
            first.lerp_(grad, 1 - beta1)
            second.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
            update = (first / correct1) / ((second / correct2).sqrt() + self.config.eps)
            master.mul_(1 - lr * self.config.weight_decay).sub_(update, alpha=lr)
            p.copy_(master)

    def zero_grad(self) -> None:
        """Drop all gradients."""
        for p in self.params:
            p.grad = None

    def state_dict(self) -> dict:
        """Masters, moments and step count."""
        return {"steps": self.steps, "masters": self.masters, "first": self.first, "second": self.second}

    @torch.no_grad()
    def load_state_dict(self, state: dict) -> None:
        """Take over ``state`` and write the masters to the parameters."""
        self.steps = state["steps"]
        for mine, theirs in ((self.masters, "masters"), (self.first, "first"), (self.second, "second")):
            for target, source in zip(mine, state[theirs], strict=True):
                target.copy_(source)
        for p, master in zip(self.params, self.masters, strict=True):
            p.copy_(master)
