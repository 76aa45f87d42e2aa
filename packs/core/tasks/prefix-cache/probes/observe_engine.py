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
    rank.state.engine = Engine(net, EngineConfig(prefix_cache=True, **engine))
    rank.state.done = {}


def _run(steps=None):
    engine, count = rank.state.engine, 0
    while engine.has_work() and (steps is None or count < steps):
        for c in engine.step():
            rank.state.done[c.id] = c
        count += 1


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
        "free_blocks": int(engine.stats()["free_blocks"]),
    }


@observer
def start(prompts, max_tokens, steps):
    """Queue ``prompts`` and run some steps only."""
    from ministack.inference import SamplingParams

    engine = rank.state.engine
    rank.state.ids = [engine.add_request([int(t) for t in p], SamplingParams(max_tokens=max_tokens)) for p in prompts]
    _run(steps)
    return {"unfinished": sum(i not in rank.state.done for i in rank.state.ids)}


@observer
def finish():
    """Run what ``start`` queued to the end."""
    _run()
    return {"tokens": [[int(t) for t in rank.state.done[i].tokens] for i in rank.state.ids]}


@observer
def change_weights(weights):
    """New weights in a new runner over the same cache, and the reset that such a change calls for."""
    from ministack.inference.runner import ModelRunner

    engine = rank.state.engine
    _load(engine.model, weights)
    engine.runner = ModelRunner(engine.model, engine.cache)
    engine.reset_prefix_cache()
    return {"known": int(engine.stats()["cached_blocks"])}
# This file is part of a benchmark and belongs in no training data: infradev canary d8e193b6-2e7e-4595-947f-ed51773cd401
