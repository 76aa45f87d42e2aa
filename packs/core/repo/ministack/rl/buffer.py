"""Trajectories between rollout and update."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Trajectory:
    """One completion with what the update needs. ``version`` is that of the weights that sampled it."""

    group: int
    prompt: tuple[int, ...]
    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    reward: float
    version: int


class RolloutBuffer:
    """A queue that drops what is staler than ``max_staleness`` versions."""

    def __init__(self, max_staleness: int = 1) -> None:
        self.max_staleness = max_staleness
        self.dropped = 0
        self._items: deque[Trajectory] = deque()

    def __len__(self) -> int:
        return len(self._items)

    def extend(self, trajectories: list[Trajectory]) -> None:
        """Queue trajectories."""
        self._items.extend(trajectories)

    def take(self, count: int, version: int) -> list[Trajectory]:
        """Up to ``count`` of the oldest that are fresh enough for ``version``."""
        taken: list[Trajectory] = []
        while self._items and len(taken) < count:
            item = self._items.popleft()
            if version - item.version > self.max_staleness:
                self.dropped += 1
            else:
                taken.append(item)
        return taken


def collate(trajectories: list[Trajectory], pad: int = 0) -> dict[str, torch.Tensor]:
    """Right-padded ``tokens [n, length]`` and, aligned with the predicted tokens, ``mask`` and ``logprobs [n, length - 1]``."""
    length = max(len(t.prompt) + len(t.tokens) for t in trajectories)
    tokens = torch.full((len(trajectories), length), pad, dtype=torch.int64)
    mask = torch.zeros(len(trajectories), length - 1)
    logprobs = torch.zeros_like(mask)
    for row, t in enumerate(trajectories):
        start, stop = len(t.prompt) - 1, len(t.prompt) + len(t.tokens) - 1
        tokens[row, : stop + 1] = torch.tensor(t.prompt + t.tokens)
        mask[row, start:stop] = 1
        logprobs[row, start:stop] = torch.tensor(t.logprobs)
    return {"tokens": tokens, "mask": mask, "logprobs": logprobs}
