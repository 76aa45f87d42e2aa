import torch

from ministack import ModelConfig
from ministack.model import Transformer
from ministack.model.moe import MoELayer, TopKRouter
from ministack.parallel import ParallelGroups

CONFIG = ModelConfig(hidden_size=16, ffn_size=32, num_experts=8, moe_top_k=2)


def naive(layer, x):
    """Each token through each of its experts, one at a time."""
    probs, indices = layer.router(x)
    rows = []
    for token, p, idx in zip(x, probs, indices):
        total = torch.zeros_like(token)
        for weight, expert in zip(p, idx):
            gate, up = (token @ layer.experts.gate_up[expert]).chunk(2)
            total = total + weight * ((torch.nn.functional.silu(gate) * up) @ layer.experts.down[expert])
        rows.append(total)
    return torch.stack(rows)


def test_router_weights_sum_to_one():
    probs, indices = TopKRouter(CONFIG, "router")(torch.randn(5, 16))
    torch.testing.assert_close(probs.sum(-1), torch.ones(5))
    assert (indices[:, 0] != indices[:, 1]).all()


def test_bias_moves_towards_balance():
    router = TopKRouter(CONFIG, "router")
    router.assigned.copy_(torch.tensor([9, 0, 0, 0, 0, 0, 0, 0]))
    router.update_bias(0.1)
    assert router.expert_bias[0] < 0 < router.expert_bias[1]
    assert router.assigned.sum() == 0


def test_layer_equals_naive():
    layer = MoELayer(CONFIG, ParallelGroups.single())
    x = torch.randn(6, 16)
    torch.testing.assert_close(layer(x), naive(layer, x), rtol=1e-4, atol=1e-5)


def test_divided_experts_equal_the_whole(needs_ranks, device):
    groups = ParallelGroups.create(ep=needs_ranks)
    whole = MoELayer(CONFIG, ParallelGroups.single()).to(device)
    parts = MoELayer(CONFIG, groups).to(device)
    torch.manual_seed(groups.ep.rank)
    x = torch.randn(6, 16, device=device)
    mine, wanted = x.clone().requires_grad_(), x.clone().requires_grad_()
    got, expected = parts(mine), whole(wanted)
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
    got.square().sum().backward()
    expected.square().sum().backward()
    torch.testing.assert_close(mine.grad, wanted.grad, rtol=1e-3, atol=1e-4)


def test_moe_transformer_trains(needs_ranks, device):
    model = Transformer(ModelConfig(num_layers=1, num_experts=4), ParallelGroups.create(ep=2)).to(device)
    tokens = torch.randint(256, (2, 8), device=device)
    model.loss(tokens, tokens.roll(-1, 1)).backward()
    assert all(p.grad is not None for p in model.parameters())
