"""The loop: schedule, run, sample."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ministack.inference.cache import PagedKVCache
from ministack.inference.request import Completion, SamplingParams, Sequence
from ministack.inference.runner import ModelRunner
from ministack.inference.sampler import sample
from ministack.inference.scheduler import Scheduler
from ministack.model import Transformer


@dataclass(frozen=True)
class EngineConfig:
    """Sizes and limits of an engine."""

    block_size: int = 16
    num_blocks: int = 256
    max_running: int = 64
    max_batch_tokens: int = 4096


class Engine:
    """Continues prompts, many at a time."""

    def __init__(self, model: Transformer, config: EngineConfig | None = None) -> None:
        self.config = config or EngineConfig()
        self.cache = PagedKVCache(model.config, self.config.num_blocks, self.config.block_size)
        self.scheduler = Scheduler(self.cache, self.config.max_running, self.config.max_batch_tokens)
        self.runner = ModelRunner(model, self.cache)
        self._next_id = 0

    @property
    def model(self) -> Transformer:
        return self.runner.model

    def add_request(self, prompt: Iterable[int], params: SamplingParams | None = None) -> int:
        """Queue a prompt; returns the request's number."""
        prompt, params = list(prompt), params or SamplingParams()
        longest = len(prompt) + params.max_tokens
        if not prompt:
            raise ValueError("the prompt is empty")
        if longest > self.model.config.max_positions:
            raise ValueError(f"prompt and max_tokens come to {longest}, the model has {self.model.config.max_positions}")
        if self.cache.blocks_for(longest) > self.config.num_blocks:
            raise ValueError(f"prompt and max_tokens come to {longest}, more than the cache holds")
        seq = Sequence(id=self._next_id, prompt=prompt, params=params)
        self._next_id += 1
        self.scheduler.add(seq)
        return seq.id

    def has_work(self) -> bool:
        """Whether any request is unfinished."""
        return self.scheduler.has_work()

    def step(self) -> list[Completion]:
        """Run one step; returns the requests that it finished."""
        seqs = self.scheduler.schedule()
        if not seqs:
            return []
        logits = self.runner.forward(seqs)
        for seq, (token, logprob) in zip(seqs, sample(logits, seqs), strict=True):
            seq.append(token, logprob)
        return [
            Completion(seq.id, tuple(seq.prompt), tuple(seq.output), tuple(seq.logprobs))
            for seq in self.scheduler.finish()
        ]

    def generate(self, prompts: Iterable[Iterable[int]], params: SamplingParams | None = None) -> list[Completion]:
        """Continue all prompts; completions in the order of the prompts."""
        ids = [self.add_request(prompt, params) for prompt in prompts]
        done: dict[int, Completion] = {}
        while not all(i in done for i in ids):
            done.update((c.id, c) for c in self.step())
        return [done[i] for i in ids]

    def stats(self) -> dict[str, int]:
        """Counters since the engine was made, and the blocks now free."""
        return {
            "tokens_computed": self.runner.tokens_computed,
            "preemptions": self.scheduler.preemptions,
            "free_blocks": self.cache.allocator.num_free,
        }
