import pytest
import torch
import torch.distributed as dist

from ministack import ModelConfig
from ministack.model import Transformer
from ministack.parallel import ParallelGroups


def test_logits_shape():
    model = Transformer(ModelConfig())
    assert model(torch.randint(256, (2, 7))).shape == (2, 7, 256)


def test_future_tokens_do_not_matter():
    model = Transformer(ModelConfig()).eval()
    tokens = torch.randint(256, (1, 9))
    changed = tokens.clone()
    changed[0, 5:] = 7
    torch.testing.assert_close(model(tokens)[:, :5], model(changed)[:, :5])


def test_tied_head_is_the_embedding():
    model = Transformer(ModelConfig())
    assert model.head.weight is model.embed.weight
    untied = Transformer(ModelConfig(tie_embeddings=False))
    assert untied.head.weight is not untied.embed.weight


def test_grouped_queries():
    model = Transformer(ModelConfig(num_kv_heads=2))
    assert model.blocks[0].attn.k_proj.weight.shape == (32, 64)
    assert model(torch.randint(256, (1, 4))).isfinite().all()


def test_bad_shapes_are_refused():
    with pytest.raises(ValueError, match="num_kv_heads"):
        ModelConfig(num_heads=4, num_kv_heads=3)
    with pytest.raises(ValueError, match="moe_top_k"):
        ModelConfig(num_experts=2, moe_top_k=3)


def test_tensor_parallel_model_equals_the_whole(needs_ranks, device):
    config = ModelConfig(num_layers=1)
    whole = Transformer(config).to(device)
    parts = Transformer(config, ParallelGroups.create(tp=2)).to(device)
    tokens = torch.randint(256, (2, 6), device=device)
    dist.broadcast(tokens, 0)
    torch.testing.assert_close(parts(tokens), whole(tokens), rtol=1e-4, atol=1e-4)
    targets = tokens.roll(1, dims=1)
    whole.loss(tokens, targets).backward()
    parts.loss(tokens, targets).backward()
    rank = parts.groups.tp.rank
    wanted = whole.blocks[0].attn.q_proj.weight.grad.chunk(2)[rank]
    torch.testing.assert_close(parts.blocks[0].attn.q_proj.weight.grad, wanted, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(parts.embed.weight.grad, whole.embed.weight.grad, rtol=1e-3, atol=1e-5)
