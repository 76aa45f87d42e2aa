"""How tokens reach the ranks that hold their experts, and come back."""

from __future__ import annotations

import torch

from ministack.config import ModelConfig
from ministack.parallel import Group, gather_tokens, reduce_scatter_tokens
from ministack.parallel.mappings import all_gather


class AllGatherDispatcher:
    """Every rank of ``group`` sees every token and takes those of its experts.

    ``dispatch`` and ``combine`` are called in turn; what combine needs is kept between them. All ranks must come with
    the same number of tokens.
    """

    def __init__(self, config: ModelConfig, group: Group) -> None:
        self.group = group
        self.num_local = config.num_experts // group.size
        self.first = group.rank * self.num_local

    def dispatch(
        self, x: torch.Tensor, probs: torch.Tensor, indices: torch.Tensor
    ) -> tuple[torch.Tensor, list[int]]:
        """Tokens of the local experts, sorted by expert, and how many there are for each.

        ``x [tokens, hidden]``, ``probs`` and ``indices [tokens, top_k]``.
        """
        everyone = gather_tokens(x, self.group)
        self._probs = gather_tokens(probs, self.group)
        local = all_gather(indices, self.group) - self.first
        local = torch.where((local >= 0) & (local < self.num_local), local, self.num_local)

        order = local.flatten().argsort(stable=True)
        counts = torch.bincount(local.flatten(), minlength=self.num_local + 1)[: self.num_local]
        self._slots = order[: int(counts.sum())]
        self._shape, self._top_k = everyone.shape, indices.shape[1]
        return everyone[self._slots // self._top_k], counts.tolist()

    def combine(self, outputs: torch.Tensor) -> torch.Tensor:
        """Weighted sum over the experts of each token, for this rank's tokens."""
        weighted = outputs.float() * self._probs.flatten()[self._slots].unsqueeze(-1)
        total = weighted.new_zeros(self._shape).index_add(0, self._slots // self._top_k, weighted)
        return reduce_scatter_tokens(total, self.group).to(outputs.dtype)
