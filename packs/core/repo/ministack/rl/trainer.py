"""Policy updates from trajectories."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ministack.config import TrainConfig
from ministack.model import Transformer
from ministack.rl.advantages import group_relative
from ministack.rl.buffer import Trajectory, collate
from ministack.rl.container import WeightContainer
from ministack.training import MasterAdamW, clip_grad_norm


@dataclass(frozen=True)
class PolicyConfig:
    """Clipped policy gradient: range of the ratio, and passes over a batch."""

    clip_low: float = 0.2
    clip_high: float = 0.2
    epochs: int = 1


def token_logprobs(model: Transformer, tokens: torch.Tensor) -> torch.Tensor:
    """Log-probability of each token after the first, ``[n, length - 1]``."""
    logprobs = model(tokens[:, :-1]).float().log_softmax(-1)
    return logprobs.gather(-1, tokens[:, 1:, None]).squeeze(-1)


def clipped_loss(
    logprobs: torch.Tensor, old: torch.Tensor, advantages: torch.Tensor, mask: torch.Tensor, config: PolicyConfig
) -> torch.Tensor:
    """Clipped surrogate, mean over tokens where ``mask`` is 1."""
    ratio = (logprobs - old).exp()
    clipped = ratio.clamp(1 - config.clip_low, 1 + config.clip_high)
    surrogate = torch.minimum(ratio * advantages, clipped * advantages)
    return -(surrogate * mask).sum() / mask.sum().clamp(min=1)


class PolicyTrainer:
    """Holds the policy in training and counts its versions."""

    def __init__(self, model: Transformer, train: TrainConfig, policy: PolicyConfig | None = None) -> None:
        self.model, self.train, self.policy = model, train, policy or PolicyConfig()
        self.optimizer = MasterAdamW(model.parameters(), train)
        self.version = 0

    def update(self, trajectories: list[Trajectory]) -> dict[str, float]:
        """One or more epochs over ``trajectories``; the version goes up by one."""
        batch = collate(trajectories)
        rewards = torch.tensor([t.reward for t in trajectories])
        advantages = group_relative(rewards, torch.tensor([t.group for t in trajectories]))
        self.model.train()
        for _ in range(self.policy.epochs):
            self.optimizer.zero_grad()
            logprobs = token_logprobs(self.model, batch["tokens"])
            loss = clipped_loss(logprobs, batch["logprobs"], advantages[:, None], batch["mask"], self.policy)
            loss.backward()
            norm = clip_grad_norm(self.model, self.model.groups, self.train.clip_norm)
            self.optimizer.step()
        self.version += 1
        return {"loss": loss.item(), "grad_norm": norm, "reward": rewards.mean().item()}

    def export(self) -> WeightContainer:
        """The weights as they are now."""
        return WeightContainer.from_model(self.model, self.version)
