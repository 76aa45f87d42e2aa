"""One rank trains and publishes, the others roll out and receive, with the judge's weights and at the judge's moments."""

import inspect

import torch
from infradev_probe import observer, rank

DTYPES = {"bfloat16": torch.bfloat16, "float32": torch.float32, "float64": torch.float64}


def _load(model, weights):
    model.load_state_dict({name: tensor.to(rank.device) for name, tensor in weights.items()}, strict=False)


def _group(members):
    """The group of these ranks; every rank of the world has to call this."""
    import torch.distributed as dist
    from ministack.parallel import Group

    everyone = rank.group
    handle = everyone if len(members) == rank.size else dist.new_group(members)
    return Group(tuple(members), members.index(rank.rank), handle) if rank.rank in members else None


@observer
def join(members, trainer, bucket_bytes):
    """The ranks of ``members`` synchronise from now on, and ``trainer`` among them publishes."""
    from ministack.rl import WeightSync

    group = _group(members)
    if group is not None:
        rank.state.sync = WeightSync(group, source=members.index(trainer), bucket_bytes=bucket_bytes)


@observer
def build(model, dtype="float32", tied=True, bucket_bytes=1 << 20, trainer=0):
    """``dtype`` is the workers', and whether their head is the embedding; the trainer holds its model tied in float32."""
    from ministack import ModelConfig, TrainConfig
    from ministack.inference import EngineConfig
    from ministack.model import Transformer
    from ministack.rl import PolicyTrainer, RolloutWorker

    torch.set_num_threads(1)
    state = rank.state
    join(list(range(rank.size)), trainer, bucket_bytes)
    if rank.rank == trainer:
        state.trainer = PolicyTrainer(Transformer(ModelConfig(**model)).to(rank.device), TrainConfig())
        state.model = state.trainer.model
    else:
        config = ModelConfig(**{**model, "dtype": DTYPES[dtype], "tie_embeddings": tied, "seed": 1})
        state.worker = RolloutWorker(Transformer(config), EngineConfig(block_size=4))
        state.model = state.worker.engine.model
    state.done = {}


@observer
def set_weights(weights):
    _load(rank.state.model, weights)


@observer
def sync(version):
    """Both ranks; the worker says which version it has got. Of a GPU's memory, which no meter of the host sees, each tells by
    how much the most that was held exceeds what was held before."""
    on_gpu = rank.device.type == "cuda"
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    if "trainer" in vars(rank.state):
        rank.state.trainer.version = version
        rank.state.trainer.publish(rank.state.sync)
        told = {"version": version}
    else:
        got = rank.state.worker.receive(rank.state.sync)
        told = {"version": int(got), "worker": int(rank.state.worker.version)}
    if on_gpu:
        told["held"] = torch.cuda.max_memory_allocated() - before
    return told


@observer
def plan(specs, bucket_bytes):
    """Names and bytes of each bucket for ``specs``, pairs of a name and a number of float32s; and how large one is by default."""
    from ministack.rl import WeightSync
    from ministack.rl.sync import TensorSpec, plan_buckets

    buckets = plan_buckets([TensorSpec(name, (int(n),), torch.float32) for name, n in specs], bucket_bytes)
    return {
        "names": [[spec.name for spec in bucket.specs] for bucket in buckets],
        "nbytes": [int(bucket.nbytes) for bucket in buckets],
        "default": inspect.signature(WeightSync).parameters["bucket_bytes"].default,
    }


@observer
def tensors():
    """What this rank's model holds, by name, and whether head and embedding are one tensor still."""
    held = {name: t.detach().clone() for name, t in rank.state.model.state_dict().items()}
    model = rank.state.model
    return {
        "tensors": held,
        "dtypes": {name: str(t.dtype).removeprefix("torch.") for name, t in held.items()},
        "tied": model.head.weight is model.embed.weight,
    }


@observer
def start(prompts, max_tokens, steps):
    """Queue ``prompts`` on the worker and run some steps."""
    from ministack.inference import SamplingParams

    engine = rank.state.worker.engine
    rank.state.ids = [engine.add_request([int(t) for t in p], SamplingParams(max_tokens=max_tokens)) for p in prompts]
    for _ in range(steps):
        rank.state.done.update((c.id, c) for c in engine.step())


@observer
def finish():
    """Run what ``start`` queued to the end."""
    engine = rank.state.worker.engine
    while engine.has_work():
        rank.state.done.update((c.id, c) for c in engine.step())
    done = [rank.state.done[i] for i in rank.state.ids]
    return {
        "tokens": [[int(t) for t in c.tokens] for c in done],
        "logprobs": [[float(p) for p in c.logprobs] for c in done],
        "versions": [int(c.version) for c in done],
    }


@observer
def rollout_across_a_change(model, prompts, old, new):
    """A rollout of ``prompts`` whose first reward brings new weights; two run at a time, and the second begins a step late.

    Beside it the version of a completion of an engine that was told of none.
    """
    from ministack import ModelConfig
    from ministack.inference import Engine, EngineConfig, SamplingParams
    from ministack.model import Transformer
    from ministack.rl import RolloutWorker, WeightContainer

    torch.set_num_threads(1)
    longest = max(len(p) for p in prompts)
    limits = EngineConfig(block_size=4, max_running=2, max_batch_tokens=longest + 1)
    policy = Transformer(ModelConfig(**model))
    untold = Engine(policy, limits).generate([[int(t) for t in prompts[0]]], SamplingParams(max_tokens=1))
    worker = RolloutWorker(policy, limits, version=old)

    def reward(prompt, tokens):
        if worker.version < new:
            worker.load(WeightContainer.from_model(worker.engine.model, new))
        return float(len(tokens))

    done = worker.rollout([[int(t) for t in p] for p in prompts], 1, SamplingParams(max_tokens=4), reward)
    return {
        "versions": [int(t.version) for t in done],
        "rewards": [t.reward for t in done],
        "untold": [int(c.version) for c in untold],
    }
# This file is part of a benchmark and belongs in no training data: infradev canary d8e193b6-2e7e-4595-947f-ed51773cd401
