"""Drives the MoE layer and the all-to-all dispatcher with the judge's weights, tokens and routes."""

import torch
from infradev_probe import observer, rank


def _groups(ep=None):
    from ministack.parallel import ParallelGroups

    assert rank.group is not None
    return ParallelGroups.create(ep=ep or rank.size)


@observer
def build_layer(gate_up, down, router, top_k, capacity_factor=None, ep=None):
    """``ep`` is how many ranks the experts are divided over, all by default."""
    from ministack import ModelConfig
    from ministack.model.moe import MoELayer

    config = ModelConfig(
        hidden_size=router.shape[1],
        ffn_size=down.shape[1],
        num_experts=router.shape[0],
        moe_top_k=top_k,
        moe_dispatcher="alltoall",
        moe_capacity_factor=capacity_factor,
    )
    layer = MoELayer(config, _groups(ep)).to(rank.device)
    with torch.no_grad():
        layer.experts.gate_up.copy_(gate_up)
        layer.experts.down.copy_(down)
        layer.router.weight.copy_(router)
    rank.state.layer = layer
    return {"dispatcher": type(layer.dispatcher).__name__, "dropped": int(layer.dropped)}


@observer
def forward(x, train=True):
    layer = rank.state.layer.train(train)
    with torch.no_grad():
        y = layer(x)
    return {"y": y, "dropped": int(layer.dropped)}


@observer
def drop(probs, indices, num_experts, capacity):
    from ministack.model.moe import drop_over_capacity

    kept, dropped = drop_over_capacity(probs, indices, num_experts, capacity)
    return {"indices": kept, "dropped": int(dropped)}


@observer
def step(model, tokens, targets, pieces, ep):
    """A training step, and before it what the same model loses and drops on each piece of the batch."""
    from ministack import ModelConfig, TrainConfig
    from ministack.model import Transformer
    from ministack.training import Trainer

    policy = Transformer(ModelConfig(**model, moe_dispatcher="alltoall"), _groups(ep)).to(rank.device).train()
    losses, dropped = [], 0
    with torch.no_grad():
        for part, wanted in zip(tokens.chunk(pieces), targets.chunk(pieces)):
            losses.append(float(policy.loss(part, wanted)))
            dropped += sum(int(layer.dropped) for layer in policy.moe_layers())
    told = Trainer(policy, TrainConfig(micro_batches=pieces)).step(tokens, targets)
    return {"losses": losses, "dropped": dropped, "loss": float(told["loss"]), "moe_dropped": float(told["moe_dropped"])}


@observer
def forward_backward(x, dy):
    layer = rank.state.layer.train()
    layer.zero_grad(set_to_none=True)
    x = x.clone().requires_grad_()
    y = layer(x)
    (y * dy).sum().backward()
    grads = {"gate_up": layer.experts.gate_up.grad, "down": layer.experts.down.grad, "router": layer.router.weight.grad}
    seen = {"y": y.detach(), "dx": x.grad, "missing": sorted(k for k, g in grads.items() if g is None)}
    seen.update({f"d_{k}": g for k, g in grads.items() if g is not None})
    return seen


@observer
def build_dispatcher(hidden, num_experts):
    from ministack import ModelConfig
    from ministack.model.moe import AllToAllDispatcher

    config = ModelConfig(hidden_size=hidden, num_experts=num_experts, moe_top_k=1, moe_dispatcher="alltoall")
    rank.state.dispatcher = AllToAllDispatcher(config, _groups().ep)


@observer
def hold(x, probs, indices):
    """What the round trips carry; held here, so that metered calls bring nothing with them."""
    rank.state.held = (x, probs, indices)


@observer
def round_trip(show):
    """Experts that return what they get. Of the result the first ``show`` rows."""
    with torch.no_grad():
        tokens, _ = rank.state.dispatcher.dispatch(*rank.state.held)
        return {"y": rank.state.dispatcher.combine(tokens)[:show].clone()}


@observer
def round_trip_with_gradient(show):
    """The same with the tokens themselves as the gradient of the result."""
    x, probs, indices = rank.state.held
    leaf = x.clone().requires_grad_()
    tokens, _ = rank.state.dispatcher.dispatch(leaf, probs, indices)
    rank.state.dispatcher.combine(tokens).backward(x)
    return {"dx": leaf.grad[:show].clone()}
# This file is part of a benchmark and belongs in no training data: infradev canary d8e193b6-2e7e-4595-947f-ed51773cd401
