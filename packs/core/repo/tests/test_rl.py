import pytest
import torch

from ministack import ModelConfig, TrainConfig
from ministack.inference import SamplingParams
from ministack.model import Transformer
from ministack.rl import PolicyTrainer, RolloutBuffer, RolloutWorker, Trajectory, WeightContainer, gae, group_relative
from ministack.rl.advantages import whiten
from ministack.rl.buffer import collate

CONFIG = ModelConfig(vocab_size=32, hidden_size=32, num_layers=1, num_heads=2, num_kv_heads=2, ffn_size=48)


def count_sevens(prompt, tokens):
    return float(tokens.count(7))


def test_gae_without_discount_sums_rewards():
    rewards = torch.tensor([[0.0, 0.0, 1.0]])
    advantages, returns = gae(rewards, torch.zeros(1, 3), torch.ones(1, 3), gamma=1.0, lam=1.0)
    assert advantages.tolist() == [[1, 1, 1]] and returns.tolist() == [[1, 1, 1]]


def test_padding_gets_no_advantage():
    advantages, _ = gae(torch.tensor([[1.0, 5.0]]), torch.zeros(1, 2), torch.tensor([[1.0, 0.0]]))
    assert advantages.tolist() == [[1, 0]]


def test_group_relative_is_centred():
    out = group_relative(torch.tensor([1.0, 3.0, 5.0]), torch.tensor([0, 0, 1]))
    torch.testing.assert_close(out, torch.tensor([-1.0, 1.0, 0.0]), rtol=1e-4, atol=1e-4)


def test_whitening():
    mask = torch.tensor([1.0, 1.0, 0.0])
    assert whiten(torch.tensor([1.0, 3.0, 100.0]), mask).tolist() == pytest.approx([-1, 1, 0])


def test_collate_aligns_predictions():
    batch = collate([Trajectory(0, (1, 2), (3,), (-0.5,), 0.0, 0), Trajectory(0, (1,), (2,), (-1.0,), 0.0, 0)])
    assert batch["tokens"].tolist() == [[1, 2, 3], [1, 2, 0]]
    assert batch["mask"].tolist() == [[0, 1], [1, 0]]


def test_stale_trajectories_are_dropped():
    buffer = RolloutBuffer(max_staleness=1)
    buffer.extend([Trajectory(0, (1,), (2,), (-1.0,), 0.0, version) for version in (0, 1, 2)])
    assert [t.version for t in buffer.take(8, version=2)] == [1, 2]
    assert buffer.dropped == 1


def test_container_holds_tied_weights_once(tmp_path):
    model = Transformer(CONFIG)
    container = WeightContainer.from_model(model, 3)
    assert container.ties == {"head.weight": "embed.weight"}
    container.save(tmp_path / "weights.pt")
    loaded = WeightContainer.load(tmp_path / "weights.pt")
    assert loaded.version == 3 and loaded.nbytes == container.nbytes
    other = Transformer(ModelConfig(**{**CONFIG.__dict__, "seed": 1}))
    loaded.load_into(other)
    assert torch.equal(other.head.weight, model.embed.weight)


def test_container_of_another_model_is_refused():
    container = WeightContainer.from_model(Transformer(CONFIG), 0)
    with pytest.raises(ValueError, match="does not fit"):
        container.load_into(Transformer(ModelConfig(num_layers=3)))


def test_rollouts_are_grouped_and_versioned():
    worker = RolloutWorker.from_container(PolicyTrainer(Transformer(CONFIG), TrainConfig()).export(), CONFIG)
    done = worker.rollout([[1, 2], [3]], 3, SamplingParams(max_tokens=4, temperature=1.0), count_sevens)
    assert [t.group for t in done] == [0, 0, 0, 1, 1, 1]
    assert all(t.version == 0 and len(t.tokens) == 4 for t in done)


def test_policy_update():
    trainer = PolicyTrainer(Transformer(CONFIG), TrainConfig(lr=1e-2))
    worker = RolloutWorker.from_container(trainer.export(), CONFIG)
    done = worker.rollout([[1, 2]], 16, SamplingParams(max_tokens=6, temperature=1.0), count_sevens)
    before = trainer.model.embed.weight.detach().clone()
    stats = trainer.update(done)
    assert trainer.version == 1 and stats["grad_norm"] >= 0
    if len({t.reward for t in done}) > 1:
        assert not torch.equal(before, trainer.model.embed.weight)


def test_low_precision_worker():
    half = ModelConfig(**{**CONFIG.__dict__, "dtype": torch.bfloat16})
    worker = RolloutWorker.from_container(WeightContainer.from_model(Transformer(CONFIG), 0), half)
    assert worker.engine.model.embed.weight.dtype == torch.bfloat16
    assert worker.rollout([[1]], 1, SamplingParams(max_tokens=2), count_sevens)[0].version == 0
