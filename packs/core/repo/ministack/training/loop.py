"""One training step over all groups."""

from __future__ import annotations

import torch
import torch.distributed as dist

from ministack.config import TrainConfig
from ministack.model import Transformer
from ministack.training.clip import clip_grad_norm
from ministack.training.optimizer import MasterAdamW


class Trainer:
    """Accumulates micro-batches, reduces gradients, clips and steps."""

    def __init__(self, model: Transformer, config: TrainConfig) -> None:
        self.model, self.config = model, config
        self.groups = model.groups
        self.optimizer = MasterAdamW(model.parameters(), config)

    def step(self, tokens: torch.Tensor, targets: torch.Tensor) -> dict[str, float]:
        """One update from this rank's batch; returns the mean loss over ``dp`` and the gradient's norm."""
        self.model.train()
        self.optimizer.zero_grad()
        total = torch.zeros((), device=tokens.device)
        pieces = self.config.micro_batches
        for part, wanted in zip(tokens.chunk(pieces), targets.chunk(pieces), strict=True):
            loss = self.model.loss(part, wanted) / pieces
            loss.backward()
            total += loss.detach()
        self.reduce_gradients()
        norm = clip_grad_norm(self.model, self.groups, self.config.clip_norm)
        self.optimizer.step()
        if self.groups.dp.size > 1:
            dist.all_reduce(total, group=self.groups.dp.handle)
        return {"loss": total.item() / self.groups.dp.size, "grad_norm": norm, "lr": self.optimizer.lr()}

    def reduce_gradients(self) -> None:
        """Average over data parallelism.

        An expert's gradient already holds the tokens of all ranks of ``ep``, so it is summed over ``edp`` only and
        divided by the size of ``dp`` like the others.
        """
        for p in self.model.parameters():
            if p.grad is None:
                continue
            group = self.groups.edp if getattr(p, "is_expert", False) else self.groups.dp
            if group.size > 1:
                dist.all_reduce(p.grad, group=group.handle)
            p.grad.div_(self.groups.dp.size)
