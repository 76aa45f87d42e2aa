"""Layers that know their tensor-parallel group."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from ministack.config import ModelConfig
from ministack.model.init import seeded_normal, shard
from ministack.parallel import Group, copy_to_group, reduce_from_group


class RMSNorm(nn.Module):
    """Root-mean-square norm, computed in float32."""

    def __init__(self, size: int, eps: float, dtype: torch.dtype) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(size, dtype=dtype))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return (wide * scale).to(x.dtype) * self.weight


class ColumnParallelLinear(nn.Module):
    """``x @ W.T`` with the output features divided over ``group``."""

    tp_dim = 0

    def __init__(self, name: str, in_size: int, out_size: int, config: ModelConfig, group: Group) -> None:
        super().__init__()
        self.group = group
        full = seeded_normal(name, (out_size, in_size), in_size**-0.5, config.seed)
        self.weight = nn.Parameter(shard(full, self.tp_dim, group).to(config.dtype))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(copy_to_group(x, self.group), self.weight)


class RowParallelLinear(nn.Module):
    """``x @ W.T`` with the input features divided over ``group``; the result is summed over it."""

    tp_dim = 1

    def __init__(self, name: str, in_size: int, out_size: int, config: ModelConfig, group: Group) -> None:
        super().__init__()
        self.group = group
        full = seeded_normal(name, (out_size, in_size), in_size**-0.5, config.seed)
        self.weight = nn.Parameter(shard(full, self.tp_dim, group).to(config.dtype))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return reduce_from_group(F.linear(x, self.weight), self.group)


class Embedding(nn.Module):
    """Token embedding, replicated over the tensor-parallel group."""

    def __init__(self, name: str, config: ModelConfig) -> None:
        super().__init__()
        full = seeded_normal(name, (config.vocab_size, config.hidden_size), 0.5, config.seed)
        self.weight = nn.Parameter(full.to(config.dtype))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return F.embedding(tokens, self.weight)


class Head(nn.Module):
    """Output projection to the vocabulary, replicated; its weight may be the embedding's."""

    def __init__(self, name: str, config: ModelConfig, tied: nn.Parameter | None) -> None:
        super().__init__()
        if tied is None:
            full = seeded_normal(name, (config.vocab_size, config.hidden_size), config.hidden_size**-0.5, config.seed)
            tied = nn.Parameter(full.to(config.dtype))
        self.weight = tied

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, self.weight)


class Rotary(nn.Module):
    """Rotary position embedding with precomputed tables, kept in float32."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        half = config.head_dim // 2
        freqs = config.rope_theta ** (-torch.arange(half, dtype=torch.float64) / half)
        angles = torch.arange(config.max_positions, dtype=torch.float64)[:, None] * freqs
        self.register_buffer("cos", angles.cos().float(), persistent=False)
        self.register_buffer("sin", angles.sin().float(), persistent=False)

    def forward(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """Rotate ``x [..., tokens, heads, head_dim]`` by ``positions [..., tokens]``."""
        cos, sin = self.cos[positions].unsqueeze(-2), self.sin[positions].unsqueeze(-2)
        first, second = x.float().chunk(2, dim=-1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).to(x.dtype)


class MLP(nn.Module):
    """SwiGLU feed-forward layer."""

    def __init__(self, name: str, config: ModelConfig, group: Group) -> None:
        super().__init__()
        hidden, ffn = config.hidden_size, config.ffn_size
        self.gate_proj = ColumnParallelLinear(f"{name}.gate_proj", hidden, ffn, config, group)
        self.up_proj = ColumnParallelLinear(f"{name}.up_proj", hidden, ffn, config, group)
        self.down_proj = RowParallelLinear(f"{name}.down_proj", ffn, hidden, config, group)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
