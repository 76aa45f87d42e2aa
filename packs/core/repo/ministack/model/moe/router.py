"""Which experts a token goes to, and with which weight."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from ministack.config import ModelConfig
from ministack.model.init import seeded_normal


class TopKRouter(nn.Module):
    """Softmax over the experts, the best ``moe_top_k`` kept and renormalised.

    ``expert_bias`` steers the choice but not the weights; ``update_bias`` moves it towards balance from the
    assignments counted in ``assigned`` since the last update.
    """

    def __init__(self, config: ModelConfig, name: str) -> None:
        super().__init__()
        self.top_k = config.moe_top_k
        self.num_experts = config.num_experts
        shape = (config.num_experts, config.hidden_size)
        self.weight = nn.Parameter(seeded_normal(f"{name}.weight", shape, config.hidden_size**-0.5, config.seed))
        self.register_buffer("expert_bias", torch.zeros(config.num_experts))
        self.register_buffer("assigned", torch.zeros(config.num_experts, dtype=torch.int64))
        self.aux_loss = torch.zeros(())

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """``x [tokens, hidden]`` to weights ``[tokens, top_k]`` in float32 and expert numbers of the same shape."""
        scores = F.linear(x.float(), self.weight.float()).softmax(dim=-1)
        indices = (scores + self.expert_bias).topk(self.top_k, dim=-1).indices
        probs = scores.gather(-1, indices)
        probs = probs / probs.sum(dim=-1, keepdim=True)

        counts = torch.bincount(indices.flatten(), minlength=self.num_experts)
        if self.training:
            self.assigned += counts
        share = counts.float() / max(1, indices.numel())
        self.aux_loss = self.num_experts * (share * scores.mean(dim=0)).sum() if len(x) else scores.sum()
        return probs, indices

    @torch.no_grad()
    def update_bias(self, step: float) -> None:
        """Raise the bias of experts with fewer assignments than the mean, lower that of the others."""
        load = self.assigned.float()
        self.expert_bias += step * torch.sign(load.mean() - load)
        self.assigned.zero_()
