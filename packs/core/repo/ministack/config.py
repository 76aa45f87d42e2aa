"""Configurations shared by training, inference and RL."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class ModelConfig:
    """Shape of a decoder-only transformer.

    ``num_experts == 0`` makes every block dense; otherwise every ``moe_every``-th block (counted from the first) has a
    mixture of experts in place of its MLP.
    """

    vocab_size: int = 256
    hidden_size: int = 64
    num_layers: int = 2
    num_heads: int = 4
    num_kv_heads: int = 4
    head_dim: int = 16
    ffn_size: int = 128
    max_positions: int = 2048
    rope_theta: float = 10000.0
    norm_eps: float = 1e-6
    tie_embeddings: bool = True

    num_experts: int = 0
    moe_top_k: int = 2
    moe_every: int = 1
    moe_aux_loss_coef: float = 0.01

    dtype: torch.dtype = torch.float32
    seed: int = 0

    def __post_init__(self) -> None:
        if self.num_heads % self.num_kv_heads:
            raise ValueError(f"num_heads {self.num_heads} is not a multiple of num_kv_heads {self.num_kv_heads}")
        if self.head_dim % 2:
            raise ValueError(f"head_dim {self.head_dim} must be even for rotary embeddings")
        if self.num_experts and not 1 <= self.moe_top_k <= self.num_experts:
            raise ValueError(f"moe_top_k {self.moe_top_k} must lie between 1 and num_experts {self.num_experts}")

    def is_moe_layer(self, index: int) -> bool:
        """Whether block ``index`` has a mixture of experts."""
        return self.num_experts > 0 and index % self.moe_every == 0


@dataclass(frozen=True)
class TrainConfig:
    """Hyperparameters of the optimizer and of the training loop."""

    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.95)
    eps: float = 1e-8
    weight_decay: float = 0.0
    clip_norm: float = 1.0
    warmup_steps: int = 0
    micro_batches: int = 1
