"""The mixture-of-experts layer."""

from __future__ import annotations

import torch
from torch import nn

from ministack.config import ModelConfig
from ministack.model.moe.dispatcher import AllGatherDispatcher
from ministack.model.moe.experts import Experts
from ministack.model.moe.router import TopKRouter
from ministack.parallel import ParallelGroups


class MoELayer(nn.Module):
    """Router, dispatch, experts, combine. Experts are divided over ``groups.ep``."""

    def __init__(self, config: ModelConfig, groups: ParallelGroups, name: str = "moe") -> None:
        super().__init__()
        self.router = TopKRouter(config, f"{name}.router")
        self.experts = Experts(config, groups.ep, f"{name}.experts")
        self.dispatcher = AllGatherDispatcher(config, groups.ep)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``x [..., hidden]`` to the same shape."""
        flat = x.flatten(0, -2)
        probs, indices = self.router(flat)
        tokens, counts = self.dispatcher.dispatch(flat, probs, indices)
        return self.dispatcher.combine(self.experts(tokens, counts)).view_as(x)
