"""A decoder-only transformer, dense or with mixtures of experts."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from ministack.config import ModelConfig
from ministack.model.attention import Attention
from ministack.model.layers import MLP, Embedding, Head, RMSNorm, Rotary
from ministack.model.moe import MoELayer
from ministack.parallel import ParallelGroups


class Block(nn.Module):
    """Attention and feed-forward, each behind a norm and beside a residual."""

    def __init__(self, index: int, config: ModelConfig, groups: ParallelGroups) -> None:
        super().__init__()
        name = f"blocks.{index}"
        self.is_moe = config.is_moe_layer(index)
        self.attn_norm = RMSNorm(config.hidden_size, config.norm_eps, config.dtype)
        self.attn = Attention(f"{name}.attn", config, groups.tp)
        self.ffn_norm = RMSNorm(config.hidden_size, config.norm_eps, config.dtype)
        if self.is_moe:
            self.ffn: nn.Module = MoELayer(config, groups, name=f"{name}.ffn")
        else:
            self.ffn = MLP(f"{name}.ffn", config, groups.tp)

    def forward(self, x: torch.Tensor, positions: torch.Tensor, rotary: Rotary) -> torch.Tensor:
        x = x + self.attn(self.attn_norm(x), positions, rotary)
        return x + self.ffn(self.ffn_norm(x))


class Transformer(nn.Module):
    """Tokens in, logits out."""

    def __init__(self, config: ModelConfig, groups: ParallelGroups | None = None) -> None:
        super().__init__()
        self.config = config
        self.groups = groups or ParallelGroups.single()
        self.embed = Embedding("embed", config)
        self.rotary = Rotary(config)
        self.blocks = nn.ModuleList(Block(i, config, self.groups) for i in range(config.num_layers))
        self.norm = RMSNorm(config.hidden_size, config.norm_eps, config.dtype)
        self.head = Head("head", config, self.embed.weight if config.tie_embeddings else None)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """``tokens [batch, length]`` to logits ``[batch, length, vocab]``."""
        positions = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x, positions, self.rotary)
        return self.head(self.norm(x))

    def moe_layers(self) -> list[MoELayer]:
        """The mixtures of experts, in order."""
        return [block.ffn for block in self.blocks if block.is_moe]

    def loss(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Mean cross-entropy plus the routers' balancing losses."""
        logits = self(tokens)
        loss = F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())
        for layer in self.moe_layers():
            loss = loss + self.config.moe_aux_loss_coef * layer.router.aux_loss
        return loss
