"""The forward pass over a step's sequences, with keys and values in the paged cache."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from ministack.inference.cache import PagedKVCache
from ministack.inference.request import Sequence
from ministack.model import Transformer
from ministack.model.attention import attend


@dataclass
class _FusedBlock:
    """One block's weights, laid out for ``x @ weight``."""

    qkv: torch.Tensor
    out: torch.Tensor
    gate_up: torch.Tensor | None
    down: torch.Tensor | None


class ModelRunner:
    """Runs a model of one process (no tensor or expert parallelism)."""

    def __init__(self, model: Transformer, cache: PagedKVCache) -> None:
        if model.groups.tp.size != 1 or model.groups.ep.size != 1:
            raise ValueError("inference runs on models that are not divided over tp or ep")
        self.model, self.cache, self.config = model.eval(), cache, model.config
        self.tokens_computed = 0
        with torch.no_grad():
            self.fused = [self._fuse(block) for block in model.blocks]
            self.head = model.head.weight.t().contiguous()

    @staticmethod
    def _fuse(block) -> _FusedBlock:
        attn = block.attn
        gate_up = down = None
        if not block.is_moe:
            gate_up = torch.cat((block.ffn.gate_proj.weight, block.ffn.up_proj.weight)).t().contiguous()
            down = block.ffn.down_proj.weight.t().contiguous()
        qkv = torch.cat((attn.q_proj.weight, attn.k_proj.weight, attn.v_proj.weight)).t().contiguous()
        return _FusedBlock(qkv=qkv, out=attn.o_proj.weight.t().contiguous(), gate_up=gate_up, down=down)

    @torch.inference_mode()
    def forward(self, seqs: list[Sequence]) -> torch.Tensor:
        """Compute each sequence's missing tokens; returns logits of its last one, ``[len(seqs), vocab]`` in float32."""
        spans = [(seq, seq.computed, seq.length) for seq in seqs]
        tokens = torch.tensor([t for seq, start, stop in spans for t in seq.tokens[start:stop]])
        positions = torch.cat([torch.arange(start, stop) for _, start, stop in spans])
        slots = torch.cat([self.cache.slots(seq.blocks, start, stop) for seq, start, stop in spans])

        x = self.model.embed(tokens)
        for layer, (block, fused) in enumerate(zip(self.model.blocks, self.fused, strict=True)):
            x = x + self._attention(layer, fused, block.attn_norm(x), positions, slots, spans)
            x = x + self._feed_forward(block, fused, block.ffn_norm(x))

        self.tokens_computed += len(tokens)
        for seq, _, stop in spans:
            seq.computed = stop
        last = torch.tensor([stop - start for _, start, stop in spans]).cumsum(0) - 1
        return (self.model.norm(x[last]) @ self.head).float()

    def _attention(self, layer, fused, x, positions, slots, spans) -> torch.Tensor:
        heads, kv_heads, dim = self.config.num_heads, self.config.num_kv_heads, self.config.head_dim
        q, k, v = (x @ fused.qkv).unflatten(-1, (-1, dim)).split((heads, kv_heads, kv_heads), dim=-2)
        q, k = self.model.rotary(q, positions), self.model.rotary(k, positions)
        self.cache.write(layer, slots, k, v)
        outputs, offset = [], 0
        for seq, start, stop in spans:
            keys, values = self.cache.read(layer, seq.blocks, stop)
            mask = torch.ones(stop - start, stop, dtype=torch.bool).tril(start)
            outputs.append(attend(q[offset : offset + stop - start], keys, values, mask=mask))
            offset += stop - start
        return torch.cat(outputs).flatten(-2) @ fused.out

    def _feed_forward(self, block, fused, x) -> torch.Tensor:
        if block.is_moe:
            return block.ffn(x)
        gate, up = (x @ fused.gate_up).chunk(2, dim=-1)
        return (F.silu(gate) * up) @ fused.down
