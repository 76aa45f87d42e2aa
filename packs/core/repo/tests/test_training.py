import torch
import torch.distributed as dist

from ministack import ModelConfig, TrainConfig
from ministack.model import Transformer
from ministack.parallel import ParallelGroups
from ministack.training import MasterAdamW, Trainer, clip_grad_norm, load_checkpoint, save_checkpoint
from ministack.training.checkpoint import latest_checkpoint
from ministack.training.data import CountingCorpus

SMALL = ModelConfig(vocab_size=32, hidden_size=32, num_layers=1, ffn_size=64, num_heads=2, num_kv_heads=2)


def test_loss_falls(device):
    groups = ParallelGroups.create()
    trainer = Trainer(Transformer(SMALL, groups).to(device), TrainConfig(lr=3e-3))
    corpus = CountingCorpus(32, 12, 8, groups.dp)
    losses = [trainer.step(*(t.to(device) for t in corpus.at(i)))["loss"] for i in range(12)]
    assert losses[-1] < losses[0]


def test_micro_batches_give_the_same_step(device):
    tokens, targets = CountingCorpus(32, 12, 8, ParallelGroups.single().dp).at(0)
    norms = []
    for pieces in (1, 4):
        trainer = Trainer(Transformer(SMALL).to(device), TrainConfig(micro_batches=pieces))
        norms.append(trainer.step(tokens.to(device), targets.to(device))["grad_norm"])
    assert abs(norms[0] - norms[1]) < 1e-4


def test_first_step_has_the_size_of_the_learning_rate():
    p = torch.nn.Parameter(torch.tensor([2.0, -1.0]))
    optimizer = MasterAdamW([p], TrainConfig(lr=0.01, weight_decay=0.1))
    p.grad = torch.tensor([3.0, -0.5])
    optimizer.step()
    torch.testing.assert_close(p.detach(), torch.tensor([2.0, -1.0]) * (1 - 0.001) - torch.tensor([0.01, -0.01]))


def test_low_precision_parameters_keep_their_masters():
    p = torch.nn.Parameter(torch.ones(4, dtype=torch.bfloat16))
    optimizer = MasterAdamW([p], TrainConfig(lr=1e-4))
    for _ in range(40):
        p.grad = torch.ones_like(p)
        optimizer.step()
    assert (optimizer.masters[0] < 0.9965).all() and p.dtype == torch.bfloat16


def test_clipping_limits_the_norm():
    model = Transformer(SMALL)
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    before = clip_grad_norm(model, ParallelGroups.single(), 1.0)
    assert before > 1
    assert abs(clip_grad_norm(model, ParallelGroups.single(), 1.0) - 1) < 1e-3


def test_norm_is_the_same_on_all_ranks(needs_ranks, device):
    model = Transformer(SMALL, ParallelGroups.create(tp=2)).to(device)
    whole = Transformer(SMALL).to(device)
    tokens = torch.randint(32, (2, 8), device=device)
    dist.broadcast(tokens, 0)
    norms = []
    for m in (model, whole):
        m.loss(tokens, tokens.roll(1, 1)).backward()
        norms.append(clip_grad_norm(m, m.groups, 1.0))
    assert abs(norms[0] - norms[1]) < 1e-3 * norms[1]


def test_corpus_is_reproducible():
    group = ParallelGroups.single().dp
    first, second = (CountingCorpus(32, 8, 2, group, seed=3).at(5) for _ in range(2))
    assert torch.equal(first[0], second[0])
    assert torch.equal(first[0][:, 1:], first[1][:, :-1])


def test_checkpoint_round_trip(tmp_path, device):
    groups = ParallelGroups.create()
    folder = [str(tmp_path)]
    if groups.dp.size > 1:
        dist.broadcast_object_list(folder, 0)
    trainer = Trainer(Transformer(SMALL, groups).to(device), TrainConfig())
    batch = [t.to(device) for t in CountingCorpus(32, 12, 4, groups.dp).at(0)]
    trainer.step(*batch)
    save_checkpoint(folder[0], trainer.model, trainer.optimizer, 1)
    wanted = trainer.step(*batch)

    other = Trainer(Transformer(SMALL, groups).to(device), TrainConfig())
    assert load_checkpoint(latest_checkpoint(folder[0]), other.model, other.optimizer) == 1
    assert abs(other.step(*batch)["loss"] - wanted["loss"]) < 1e-6


def test_incomplete_checkpoint_is_not_latest(tmp_path):
    (tmp_path / "step-000009").mkdir()
    assert latest_checkpoint(tmp_path) is None
