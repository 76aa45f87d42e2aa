"""Reinforcement learning: rollouts, advantages, policy updates."""

from ministack.rl.advantages import gae, group_relative
from ministack.rl.buffer import RolloutBuffer, Trajectory
from ministack.rl.container import WeightContainer
from ministack.rl.rollout import RolloutWorker
from ministack.rl.trainer import PolicyConfig, PolicyTrainer

__all__ = [
    "PolicyConfig",
    "PolicyTrainer",
    "RolloutBuffer",
    "RolloutWorker",
    "Trajectory",
    "WeightContainer",
    "gae",
    "group_relative",
]
