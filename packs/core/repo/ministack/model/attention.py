"""Causal self-attention for training; inference/runner.py has the paged one."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from ministack.config import ModelConfig
from ministack.model.layers import ColumnParallelLinear, Rotary, RowParallelLinear
from ministack.parallel import Group


def attend(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None, causal: bool = False
) -> torch.Tensor:
    """Attention over ``[..., tokens, heads, head_dim]``; ``k`` and ``v`` may have fewer heads (grouped queries)."""
    repeats = q.shape[-2] // k.shape[-2]
    if repeats > 1:
        k, v = k.repeat_interleave(repeats, dim=-2), v.repeat_interleave(repeats, dim=-2)
    q, k, v = (t.transpose(-2, -3) for t in (q, k, v))
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
    return out.transpose(-2, -3)


class Attention(nn.Module):
    """Grouped-query attention with rotary positions; heads are divided over ``group``."""

    def __init__(self, name: str, config: ModelConfig, group: Group) -> None:
        super().__init__()
        if config.num_kv_heads % group.size:
            raise ValueError(f"num_kv_heads {config.num_kv_heads} is not a multiple of tp={group.size}")
        self.head_dim = config.head_dim
        q_size, kv_size = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim
        self.q_proj = ColumnParallelLinear(f"{name}.q_proj", config.hidden_size, q_size, config, group)
        self.k_proj = ColumnParallelLinear(f"{name}.k_proj", config.hidden_size, kv_size, config, group)
        self.v_proj = ColumnParallelLinear(f"{name}.v_proj", config.hidden_size, kv_size, config, group)
        self.o_proj = RowParallelLinear(f"{name}.o_proj", q_size, config.hidden_size, config, group)

    def forward(self, x: torch.Tensor, positions: torch.Tensor, rotary: Rotary) -> torch.Tensor:
        """``x [batch, tokens, hidden]`` to the same shape."""
        q, k, v = (p(x).unflatten(-1, (-1, self.head_dim)) for p in (self.q_proj, self.k_proj, self.v_proj))
        q, k = rotary(q, positions), rotary(k, positions)
        return self.o_proj(attend(q, k, v, causal=True).flatten(-2))
