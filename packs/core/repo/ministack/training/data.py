"""A synthetic corpus: each sequence counts upwards in steps of its own."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ministack.parallel import Group


class CountingCorpus:
    """Batches that depend on seed, step and data-parallel rank only, so that a run can resume anywhere."""

    def __init__(self, vocab_size: int, length: int, batch: int, group: Group, seed: int = 0) -> None:
        self.vocab_size, self.length, self.batch = vocab_size, length, batch
        self.group, self.seed = group, seed

    def at(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Tokens and targets, each ``[batch, length]``, of ``step``."""
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + step * self.group.size + self.group.rank)
        starts = torch.randint(self.vocab_size, (self.batch, 1), generator=generator)
        strides = torch.randint(1, 4, (self.batch, 1), generator=generator)
        stream = (starts + strides * torch.arange(self.length + 1)) % self.vocab_size
        return stream[:, :-1], stream[:, 1:]

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        step = 0
        while True:
            yield self.at(step)
            step += 1
