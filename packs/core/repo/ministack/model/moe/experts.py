"""The experts that live on this rank."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from ministack.config import ModelConfig
from ministack.model.init import seeded_normal
from ministack.parallel import Group


class Experts(nn.Module):
    """SwiGLU experts, ``num_experts / group.size`` consecutive ones of them on each rank of ``group``."""

    def __init__(self, config: ModelConfig, group: Group, name: str) -> None:
        super().__init__()
        if config.num_experts % group.size:
            raise ValueError(f"num_experts {config.num_experts} is not a multiple of ep={group.size}")
        self.num_local = config.num_experts // group.size
        self.first = group.rank * self.num_local
        hidden, ffn, seed = config.hidden_size, config.ffn_size, config.seed
        gate_up, down = [], []
        for expert in range(self.first, self.first + self.num_local):
            gate_up.append(seeded_normal(f"{name}.{expert}.gate_up", (hidden, 2 * ffn), hidden**-0.5, seed))
            down.append(seeded_normal(f"{name}.{expert}.down", (ffn, hidden), ffn**-0.5, seed))
        self.gate_up = nn.Parameter(torch.stack(gate_up).to(config.dtype))
        self.down = nn.Parameter(torch.stack(down).to(config.dtype))
        for weight in self.parameters():
            weight.is_expert = True

    def forward(self, tokens: torch.Tensor, counts: list[int]) -> torch.Tensor:
        """Run ``tokens [sum(counts), hidden]``, sorted by local expert, ``counts[i]`` of them for expert ``i``."""
        outputs = []
        for expert, rows in enumerate(tokens.split(counts)):
            gate, up = (rows @ self.gate_up[expert]).chunk(2, dim=-1)
            outputs.append((F.silu(gate) * up) @ self.down[expert])
        return torch.cat(outputs)
