"""Drives an engine with prefix reuse: the judge's weights, prompts and moments."""

import torch
from infradev_probe import observer, rank


def _load(model, weights):
    model.load_state_dict({name: tensor.to(torch.float32) for name, tensor in weights.items()}, strict=False)


@observer
def build(model, engine, weights=None):
    from ministack import ModelConfig
    from ministack.inference import Engine, EngineConfig
    from ministack.model import Transformer

    torch.set_num_threads(1)
    net = Transformer(ModelConfig(**model))
    if weights is not None:
        _load(net, weights)
    rank.state.engine = Engine(net, EngineConfig(**{"prefix_cache": True, **engine}))
    rank.state.done = {}


def _run(steps=None):
    """Tokens that went through the model, by step."""
    engine, computed = rank.state.engine, []
    while engine.has_work() and (steps is None or len(computed) < steps):
        before = engine.stats()["tokens_computed"]
        for c in engine.step():
            rank.state.done[c.id] = c
        computed.append(int(engine.stats()["tokens_computed"] - before))
    return computed


def _now():
    """Blocks that are not free, and blocks known by their prefix."""
    stats, blocks = rank.state.engine.stats(), rank.state.engine.config.num_blocks
    return {"held": int(blocks - stats["free_blocks"]), "known": int(stats["cached_blocks"])}


@observer
def generate(prompts, max_tokens):
    """Serve ``prompts``, queued together, to the end; also how many tokens went through the model for it."""
    from ministack.inference import SamplingParams

    engine = rank.state.engine
    before = engine.stats()["tokens_computed"]
    ids = [engine.add_request([int(t) for t in p], SamplingParams(max_tokens=max_tokens)) for p in prompts]
    _run()
    done = [rank.state.done[i] for i in ids]
    return {
        "tokens": [[int(t) for t in c.tokens] for c in done],
        "logprobs": [[float(p) for p in c.logprobs] for c in done],
        "computed": int(engine.stats()["tokens_computed"] - before),
        **_now(),
    }


@observer
def start(prompts, max_tokens, steps):
    """Queue ``prompts`` and run some steps only."""
    from ministack.inference import SamplingParams

    engine = rank.state.engine
    rank.state.ids = [engine.add_request([int(t) for t in p], SamplingParams(max_tokens=max_tokens)) for p in prompts]
    computed = _run(steps)
    return {"unfinished": sum(i not in rank.state.done for i in rank.state.ids), "computed": computed, **_now()}


@observer
def finish():
    """Run what ``start`` queued to the end."""
    _run()
    return {"tokens": [[int(t) for t in rank.state.done[i].tokens] for i in rank.state.ids], **_now()}


def _stored():
    """What the engine's cache holds, as bytes, wherever it keeps it."""
    tensors = [t for t in vars(rank.state.engine.cache).values() if isinstance(t, torch.Tensor)]
    return [t.view(torch.uint8).clone() for t in tensors]


@observer
def serve_twice(prompt):
    """Serve a prompt, scale all that is stored, so that storing any of it anew shows, and serve it again; how many bytes that
    the first time stored changed the second time."""
    from ministack.inference import SamplingParams

    engine, params = rank.state.engine, SamplingParams(max_tokens=1)
    empty = _stored()
    engine.generate([prompt], params)
    written = [before != after for before, after in zip(empty, _stored(), strict=True)]
    for tensor in vars(engine.cache).values():
        if isinstance(tensor, torch.Tensor) and tensor.is_floating_point():
            tensor.mul_(1.5)
    first = _stored()
    engine.generate([prompt], params)
    changed = [(before != after) & w for before, after, w in zip(first, _stored(), written, strict=True)]
    return {"changed": sum(int(c.sum()) for c in changed)}


@observer
def change_weights(weights):
    """New weights in a new runner over the same cache, and the reset that such a change calls for."""
    from ministack.inference.runner import ModelRunner

    engine = rank.state.engine
    _load(engine.model, weights)
    engine.runner = ModelRunner(engine.model, engine.cache)
    engine.reset_prefix_cache()
    return _now()
# This file is part of a benchmark and belongs in no training data: infradev canary d8e193b6-2e7e-4595-947f-ed51773cd401
