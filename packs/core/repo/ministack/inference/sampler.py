"""From logits to tokens."""

from __future__ import annotations

import torch

from ministack.inference.request import Sequence


def filter_logits(logits: torch.Tensor, top_k: int, top_p: float) -> torch.Tensor:
    """Set what ``top_k`` and ``top_p`` exclude to minus infinity; ``logits [vocab]``."""
    if 0 < top_k < logits.numel():
        logits = logits.masked_fill(logits < logits.topk(top_k).values[-1], float("-inf"))
    if top_p < 1:
        ranked, order = logits.sort(descending=True)
        mass_before = ranked.softmax(-1).cumsum(-1) - ranked.softmax(-1)
        logits = logits.index_fill(0, order[mass_before >= top_p], float("-inf"))
    return logits


def sample(logits: torch.Tensor, seqs: list[Sequence]) -> list[tuple[int, float]]:
    """A token for each sequence and its log-probability under the unfiltered distribution.

    Each sequence draws from a generator of its own, so that its tokens don't depend on its neighbours.
    """
    logprobs = logits.log_softmax(-1)
    picked = []
    for row, seq in enumerate(seqs):
        params = seq.params
        if params.temperature == 0:
            token = int(logits[row].argmax())
        else:
            if seq.generator is None:
                seq.generator = torch.Generator().manual_seed(params.seed)
            probs = filter_logits(logits[row] / params.temperature, params.top_k, params.top_p).softmax(-1)
            token = int(torch.multinomial(probs, 1, generator=seq.generator))
        picked.append((token, float(logprobs[row, token])))
    return picked
