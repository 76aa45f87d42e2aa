"""Workers that sample from the policy."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from ministack.config import ModelConfig
from ministack.inference import Engine, EngineConfig, SamplingParams
from ministack.model import Transformer
from ministack.rl.buffer import Trajectory
from ministack.rl.container import WeightContainer

Reward = Callable[[tuple[int, ...], tuple[int, ...]], float]


class RolloutWorker:
    """An engine with one version of the policy's weights."""

    def __init__(self, model: Transformer, engine: EngineConfig | None = None, version: int = 0) -> None:
        self.engine = Engine(model, engine)
        self.version = version

    @classmethod
    def from_container(
        cls, container: WeightContainer, config: ModelConfig, engine: EngineConfig | None = None
    ) -> RolloutWorker:
        """A worker with the container's weights; ``config`` may have another dtype than the trainer's."""
        model = Transformer(config)
        container.load_into(model)
        return cls(model, engine, container.version)

    def rollout(self, prompts: list[list[int]], samples: int, params: SamplingParams, reward: Reward) -> list[Trajectory]:
        """``samples`` completions of each prompt, grouped by prompt."""
        requests: dict[int, int] = {}
        for group, prompt in enumerate(prompts):
            for sample in range(samples):
                seeded = dataclasses.replace(params, seed=params.seed * 7919 + group * samples + sample)
                requests[self.engine.add_request(prompt, seeded)] = group
        done: list[Trajectory] = []
        while self.engine.has_work():
            for c in self.engine.step():
                done.append(
                    Trajectory(
                        group=requests[c.id],
                        prompt=c.prompt,
                        tokens=c.tokens,
                        logprobs=c.logprobs,
                        reward=reward(c.prompt, c.tokens),
                        version=self.version,
                    )
                )
        return sorted(done, key=lambda t: t.group)
