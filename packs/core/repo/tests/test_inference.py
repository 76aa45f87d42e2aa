import pytest
import torch

from ministack import ModelConfig
from ministack.inference import Engine, EngineConfig, SamplingParams
from ministack.inference.blocks import BlockAllocator, OutOfBlocks
from ministack.inference.cache import PagedKVCache
from ministack.inference.sampler import filter_logits
from ministack.model import Transformer

CONFIG = ModelConfig(vocab_size=64, hidden_size=32, num_heads=2, num_kv_heads=2, ffn_size=48)


def greedy(model, prompt, count):
    tokens = list(prompt)
    with torch.no_grad():
        for _ in range(count):
            tokens.append(int(model(torch.tensor([tokens]))[0, -1].argmax()))
    return tuple(tokens[len(prompt) :])


def test_allocator_gives_all_or_nothing():
    allocator = BlockAllocator(4)
    blocks = allocator.allocate(3)
    with pytest.raises(OutOfBlocks):
        allocator.allocate(2)
    assert allocator.num_free == 1
    allocator.free(blocks)
    assert allocator.num_free == 4


def test_double_free_is_refused():
    allocator = BlockAllocator(2)
    (block,) = allocator.allocate(1)
    allocator.free([block])
    with pytest.raises(ValueError, match="not in use"):
        allocator.free([block])


def test_cache_reads_what_was_written():
    cache = PagedKVCache(CONFIG, num_blocks=4, block_size=4)
    keys, values = torch.randn(6, 2, 16), torch.randn(6, 2, 16)
    cache.write(1, cache.slots([3, 1], 0, 6), keys, values)
    got = cache.read(1, [3, 1], 6)
    assert torch.equal(got[0], keys) and torch.equal(got[1], values)


def test_greedy_equals_the_training_model():
    model = Transformer(CONFIG).eval()
    prompts = [[1, 2, 3], [4] * 9, list(range(20))]
    done = Engine(model, EngineConfig(block_size=4)).generate(prompts, SamplingParams(max_tokens=6))
    assert [c.tokens for c in done] == [greedy(model, p, 6) for p in prompts]


def test_moe_greedy_equals_the_training_model():
    model = Transformer(ModelConfig(vocab_size=64, hidden_size=32, num_experts=4)).eval()
    (done,) = Engine(model).generate([[5, 6, 7]], SamplingParams(max_tokens=4))
    assert done.tokens == greedy(model, [5, 6, 7], 4)


def test_preemption_does_not_change_results():
    model = Transformer(CONFIG).eval()
    prompts = [[i] * 7 for i in range(1, 5)]
    engine = Engine(model, EngineConfig(block_size=2, num_blocks=18))
    done = engine.generate(prompts, SamplingParams(max_tokens=8))
    assert engine.stats()["preemptions"] > 0
    assert [c.tokens for c in done] == [greedy(model, p, 8) for p in prompts]
    assert engine.stats()["free_blocks"] == 18


def test_seeded_sampling_does_not_depend_on_neighbours():
    model = Transformer(CONFIG)
    params = SamplingParams(max_tokens=8, temperature=1.0, top_k=20, top_p=0.9, seed=5)
    (alone,) = Engine(model).generate([[1, 2]], params)
    together = Engine(model).generate([[1, 2], [3, 4, 5]], params)
    assert alone.tokens == together[0].tokens


def test_stop_token_ends_a_request():
    model = Transformer(CONFIG).eval()
    first = greedy(model, [1, 2, 3], 1)[0]
    (done,) = Engine(model).generate([[1, 2, 3]], SamplingParams(max_tokens=9, stop_token=first))
    assert done.tokens == (first,)


def test_filters():
    logits = torch.tensor([0.0, 3.0, 2.0, 1.0])
    assert filter_logits(logits, 2, 1.0).isfinite().tolist() == [False, True, True, False]
    assert filter_logits(logits, 0, 0.5).isfinite().tolist() == [False, True, False, False]


def test_requests_that_can_not_fit_are_refused():
    engine = Engine(Transformer(CONFIG), EngineConfig(block_size=2, num_blocks=4))
    with pytest.raises(ValueError, match="more than the cache holds"):
        engine.add_request([1] * 8)
    with pytest.raises(ValueError, match="empty"):
        engine.add_request([])
