"""Keys and values in blocks."""

from __future__ import annotations

import torch

from ministack.config import ModelConfig
from ministack.inference.blocks import BlockAllocator


class PagedKVCache:
    """Storage for ``num_blocks`` blocks of ``block_size`` tokens in each layer.

    The storage is reserved at once and not written before use, so that the system backs only blocks that were used.
    """

    def __init__(self, config: ModelConfig, num_blocks: int, block_size: int) -> None:
        self.block_size = block_size
        self.allocator = BlockAllocator(num_blocks)
        shape = (config.num_layers, num_blocks, block_size, config.num_kv_heads, config.head_dim)
        self.keys = torch.empty(shape, dtype=config.dtype)
        self.values = torch.empty(shape, dtype=config.dtype)

    def blocks_for(self, tokens: int) -> int:
        """How many blocks ``tokens`` tokens take."""
        return -(-tokens // self.block_size)

    def slots(self, blocks: list[int], start: int, stop: int) -> torch.Tensor:
        """Flat slot numbers of tokens ``start .. stop - 1`` of a sequence held in ``blocks``."""
        positions = torch.arange(start, stop)
        table = torch.tensor(blocks, dtype=torch.int64)
        return table[positions // self.block_size] * self.block_size + positions % self.block_size

    def write(self, layer: int, slots: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Store ``keys`` and ``values [tokens, kv_heads, head_dim]`` at ``slots``."""
        self.keys[layer].flatten(0, 1)[slots] = keys
        self.values[layer].flatten(0, 1)[slots] = values

    def read(self, layer: int, blocks: list[int], length: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of the first ``length`` tokens of a sequence held in ``blocks``."""
        slots = self.slots(blocks, 0, length)
        return self.keys[layer].flatten(0, 1)[slots], self.values[layer].flatten(0, 1)[slots]
