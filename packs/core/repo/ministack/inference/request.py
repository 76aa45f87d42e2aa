"""Requests as they come in, as they run and as they go out."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

import torch


@dataclass(frozen=True)
class SamplingParams:
    """How to continue a prompt. ``temperature == 0`` is greedy; ``top_k == 0`` and ``top_p == 1`` keep everything."""

    max_tokens: int = 16
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    stop_token: int | None = None

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, not {self.max_tokens}")
        if self.temperature < 0:
            raise ValueError(f"temperature must not be negative, not {self.temperature}")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must lie in (0, 1], not {self.top_p}")


class Status(enum.Enum):
    """Where a sequence stands."""

    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"


@dataclass(eq=False)
class Sequence:
    """A request on its way through the engine.

    ``computed`` counts the leading tokens whose keys and values are in ``blocks``; a step computes the others.
    """

    id: int
    prompt: list[int]
    params: SamplingParams
    output: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    computed: int = 0
    status: Status = Status.WAITING
    preemptions: int = 0
    generator: torch.Generator | None = None

    @property
    def tokens(self) -> list[int]:
        return self.prompt + self.output

    @property
    def length(self) -> int:
        return len(self.prompt) + len(self.output)

    def append(self, token: int, logprob: float) -> None:
        """Take a sampled token; finishes the sequence when it was the last."""
        self.output.append(token)
        self.logprobs.append(logprob)
        if len(self.output) >= self.params.max_tokens or token == self.params.stop_token:
            self.status = Status.FINISHED


@dataclass(frozen=True)
class Completion:
    """What a request came to."""

    id: int
    prompt: tuple[int, ...]
    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
