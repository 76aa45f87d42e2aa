"""What weight synchronisation promises: the engine follows in full, tensors arrive exactly, once and in small pieces."""

import numpy as np
from infradev_probe import case, expect, per_rank

MODEL = dict(vocab_size=61, hidden_size=32, num_layers=2, num_heads=4, num_kv_heads=2, head_dim=8, ffn_size=48)
MIXED = dict(MODEL, num_experts=4, moe_every=2)
TRAINER, WORKER = [0], [1]


def draw_weights(rng):
    """Weights by the names of the model's state, large enough that each token of a prompt matters to the next."""
    hidden, ffn, dim = MODEL["hidden_size"], MODEL["ffn_size"], MODEL["head_dim"]
    q, kv = MODEL["num_heads"] * dim, MODEL["num_kv_heads"] * dim

    def normal(*shape):
        return (rng.standard_normal(shape) * shape[1] ** -0.5).astype(np.float32)

    weights = {"embed.weight": rng.standard_normal((MODEL["vocab_size"], hidden)).astype(np.float32) * 0.5}
    for i in range(MODEL["num_layers"]):
        weights[f"blocks.{i}.attn.q_proj.weight"] = normal(q, hidden) * 2
        weights[f"blocks.{i}.attn.k_proj.weight"] = normal(kv, hidden) * 2
        weights[f"blocks.{i}.attn.v_proj.weight"] = normal(kv, hidden)
        weights[f"blocks.{i}.attn.o_proj.weight"] = normal(hidden, q) * 2
        weights[f"blocks.{i}.ffn.gate_proj.weight"] = normal(ffn, hidden)
        weights[f"blocks.{i}.ffn.up_proj.weight"] = normal(ffn, hidden)
        weights[f"blocks.{i}.ffn.down_proj.weight"] = normal(hidden, ffn)
    return weights


def rms_norm(x):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)


def rotate(x):
    """Rotary positions 0, 1, ... of ``x [tokens, heads, dim]``."""
    half = x.shape[-1] // 2
    angles = np.arange(len(x))[:, None] * 10000.0 ** (-np.arange(half) / half)
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    a, b = x[..., :half], x[..., half:]
    return np.concatenate((a * cos - b * sin, b * cos + a * sin), -1)


def reference_logits(weights, tokens):
    """Logits after each of ``tokens`` in float64, computed alone and at once."""
    w = {name: value.astype(np.float64) for name, value in weights.items()}
    dim, groups = MODEL["head_dim"], MODEL["num_heads"] // MODEL["num_kv_heads"]
    x, n = w["embed.weight"][tokens], len(tokens)
    for i in range(MODEL["num_layers"]):
        h = rms_norm(x)
        q, k, v = ((h @ w[f"blocks.{i}.attn.{p}_proj.weight"].T).reshape(n, -1, dim) for p in "qkv")
        q, k, v = rotate(q), np.repeat(rotate(k), groups, 1), np.repeat(v, groups, 1)
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(dim)
        scores = np.where(np.tril(np.ones((n, n), dtype=bool)), scores, -np.inf)
        probs = np.exp(scores - scores.max(-1, keepdims=True))
        probs /= probs.sum(-1, keepdims=True)
        out = np.einsum("hqk,khd->qhd", probs, v).reshape(n, -1)
        x = x + out @ w[f"blocks.{i}.attn.o_proj.weight"].T
        h = rms_norm(x)
        gate = h @ w[f"blocks.{i}.ffn.gate_proj.weight"].T
        up = h @ w[f"blocks.{i}.ffn.up_proj.weight"].T
        x = x + (gate / (1 + np.exp(-gate)) * up) @ w[f"blocks.{i}.ffn.down_proj.weight"].T
    return rms_norm(x) @ w["embed.weight"].T


def check(weights, prompt, tokens, logprobs):
    """Tokens sampled after ``prompt`` with ``weights``, one after the other, and their log-probabilities.

    Log-probabilities are compared as logits, with the reference's normaliser added back: a log-probability may be next
    to zero, its error is that of the logits; two layers and the head make of float32's last bits some 1e-5. A reduction
    of 64, more than the longest inner product of the model, allows 3e-4 on logits near ten; wrong weights or keys are off
    by 0.1 and more.
    """
    rows = reference_logits(weights, np.array(prompt + tokens))[len(prompt) - 1 : -1]
    highest = rows.max(-1)
    normaliser = highest + np.log(np.exp(rows - highest[:, None]).sum(-1))
    chosen = rows[np.arange(len(tokens)), tokens]
    within = dict(dtype="float32", reduction=64, scale=8 * np.abs(rows).max())
    expect.close((np.array(logprobs) + normaliser).astype(np.float32), chosen, **within)
    expect.close(chosen.astype(np.float32), highest, **within)


def draw_prompts(rng, count):
    return [[int(t) for t in rng.integers(MODEL["vocab_size"], size=rng.integers(3, 11))] for _ in range(count)]


def publish(w, weights, version, trainer=0, worker=1):
    w.observe("observe_sync.set_weights", ranks=[trainer], weights=weights)
    seen = w.observe("observe_sync.sync", ranks=[trainer, worker], version=version, deadline=10.0)
    expect.equal([seen[1]["version"], seen[1]["worker"]], [version, version])


@case(worlds=[2], checks="state")
def new_weights_reach_all_that_the_engine_made_of_the_old_ones(worlds, rng):
    """Twice, since what follows the first time may not follow the second."""
    w = worlds.open()
    w.observe("observe_sync.build", model=MODEL, bucket_bytes=4096)
    for version in (1, 2):
        weights, prompts = draw_weights(rng), draw_prompts(rng, 3)
        publish(w, weights, version)
        w.observe("observe_sync.start", ranks=WORKER, prompts=prompts, max_tokens=5, steps=0)
        seen = w.observe("observe_sync.finish", ranks=WORKER, deadline=10.0)[0]
        expect.equal(seen["versions"], [version] * 3)
        for prompt, tokens, logprobs in zip(prompts, seen["tokens"], seen["logprobs"], strict=True):
            check(weights, prompt, tokens, logprobs)


@case(worlds=[2], checks="state")
def a_running_request_goes_on_as_if_the_new_weights_had_read_all_of_it(worlds, rng):
    w = worlds.open()
    w.observe("observe_sync.build", model=MODEL)
    old, new, prompts = draw_weights(rng), draw_weights(rng), draw_prompts(rng, 3)
    publish(w, old, 3)
    before = 4
    w.observe("observe_sync.start", ranks=WORKER, prompts=prompts, max_tokens=10, steps=before)
    publish(w, new, 4)
    seen = w.observe("observe_sync.finish", ranks=WORKER, deadline=10.0)[0]
    expect.equal(seen["versions"], [3, 3, 3])  # that of the first token: what staleness is judged by
    for prompt, tokens, logprobs in zip(prompts, seen["tokens"], seen["logprobs"], strict=True):
        expect.equal(len(tokens), 10)
        check(old, prompt, tokens[:before], logprobs[:before])
        check(new, prompt + tokens[:before], tokens[before:], logprobs[before:])


@case(worlds=[2], checks="state")
def a_trajectory_has_the_version_that_it_began_with(worlds, rng):
    """New weights come with the first reward: while the second request runs, before the third begins. From a container, which
    takes one rank."""
    w = worlds.open(size=1)
    old = int(rng.integers(1, 100))
    prompts = [[int(t) for t in rng.integers(MODEL["vocab_size"], size=8)] for _ in range(3)]
    seen = w.observe("observe_sync.rollout_across_a_change", model=MODEL, prompts=prompts, old=old, new=old + 2)[0]
    expect.equal(seen["untold"], [0])
    expect.equal(seen["rewards"], [4.0, 4.0, 4.0])
    expect.equal(seen["versions"], [old, old, old + 2])


def to_bfloat16(x):
    """Round to nearest, ties to even, as float32 numbers."""
    bits = np.ascontiguousarray(x, dtype=np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    return rounded.view(np.float32)


@case(worlds=[2], checks="numbers")
def each_tensor_arrives_in_the_workers_type(worlds, rng):
    """A low-precision worker keeps routers, biases and counters as they are, and its head need not be its embedding as the
    trainer's is; buckets are smaller than some tensors. The last rank publishes. Where ranks cost no GPU there is one more,
    which takes no part at first, and then has a worker of another type: that is refused, and leaves all as it was."""
    w = worlds.open(size=3 if worlds.device == "cpu" else 2)
    worker, trainer = w.size - 2, w.size - 1
    size = int(rng.integers(1000, 6000))
    dtypes = per_rank(["float32"] * worker + ["bfloat16"] * 2)
    w.observe("observe_sync.build", model=MIXED, dtype=dtypes, tied=False, trainer=trainer, bucket_bytes=size)
    shapes = {name: t.shape for name, t in w.observe("observe_sync.tensors", ranks=[trainer])[0]["tensors"].items()}
    sent = {n: rng.standard_normal(s).astype(np.float32) for n, s in shapes.items() if n != "head.weight"}
    counters = [n for n in sent if n.endswith("router.assigned")]
    for name in counters:
        sent[name] = rng.integers(2**40, 2**50, size=shapes[name])
    w.observe("observe_sync.join", members=[worker, trainer], trainer=trainer, bucket_bytes=size)
    publish(w, sent, 1, trainer, worker)
    kept = dict(sent)
    if w.size > 2:
        kept["embed.weight"] = -sent["embed.weight"]
        w.observe("observe_sync.set_weights", ranks=[trainer], weights={"embed.weight": kept["embed.weight"]})
        w.observe("observe_sync.join", members=list(range(w.size)), trainer=trainer, bucket_bytes=size)
        with expect.raises(w, "ValueError", match="does not fit"):
            w.observe("observe_sync.sync", version=2, deadline=10.0)
    seen = w.observe("observe_sync.tensors", ranks=[trainer, worker])
    expect.equal([s["tied"] for s in seen], [True, False])
    sent["head.weight"], kept["head.weight"] = sent["embed.weight"], kept["embed.weight"]
    for name, value in sent.items():
        expect.equal(np.asarray(seen[0]["tensors"][name]), kept[name])  # the trainer's own is not touched
        got, dtype = np.asarray(seen[1]["tensors"][name]), seen[1]["dtypes"][name]
        if name in counters:
            expect.equal(dtype, "int64")
            expect.equal(got, value)
        elif ".router." in name:
            expect.equal(dtype, "float32")
            expect.equal(got, value)
        else:
            expect.equal(dtype, "bfloat16")
            expect.equal(got.astype(np.float32), to_bfloat16(value))


@case(worlds=[2], checks="traffic")
def each_byte_of_the_workers_model_travels_once(worlds, rng):
    w = worlds.open()
    model = dict(vocab_size=4096, hidden_size=128, num_layers=2, num_heads=4, num_kv_heads=4, head_dim=32, ffn_size=256)
    w.observe("observe_sync.build", model=model, dtype="bfloat16", bucket_bytes=1 << 18)
    w.observe("observe_sync.sync", version=1)  # agrees on what travels how
    with w.meter.traffic(per_rank=True) as moved:
        w.observe("observe_sync.sync", version=2)
    block = 4 * 128 * 128 + 3 * 128 * 256 + 2 * 128
    want = 2 * (4096 * 128 + 2 * block + 128)  # two bytes a parameter; the head is the embedding. 1.6 MiB
    expect.between(moved[1].received, want, 1.1 * want + 65_536)
    expect.between(moved[0].sent, want, 1.1 * want + 65_536)


def check_plan(w, rng):
    """Buckets as the contract has them: in order, none empty, none too large but for a tensor alone, padded to 16 bytes."""
    largest = 16 * int(rng.integers(8, 24))
    numbers = [largest, *(int(n) for n in rng.integers(1, largest // 8, size=12)), largest]  # four bytes each
    specs = [[f"t{i}", n] for i, n in enumerate(numbers)]
    seen = w.observe("observe_sync.plan", ranks=WORKER, specs=specs, bucket_bytes=largest)[0]
    expect.equal([name for names in seen["names"] for name in names], [name for name, _ in specs])
    for names, nbytes in zip(seen["names"], seen["nbytes"], strict=True):
        expect.true(len(names) > 0, "a bucket has tensors in it")
        sizes = [4 * numbers[int(name[1:])] for name in names]
        expect.equal(nbytes, sum(-(-n // 16) * 16 for n in sizes[:-1]) + sizes[-1])
        expect.true(nbytes <= largest or len(names) == 1, "a bucket is too large only for a tensor alone")
    expect.equal(w.observe("observe_sync.plan", ranks=WORKER, specs=[], bucket_bytes=largest)[0]["names"], [])
    expect.equal(seen["default"], 16 << 20)


@case(worlds=[2], checks="memory")
def a_bucket_at_a_time_is_held_besides_the_models(worlds, rng):
    w = worlds.open()
    model = dict(
        vocab_size=256, hidden_size=128, num_layers=24, num_heads=4, num_kv_heads=4, head_dim=32, ffn_size=256
    )
    w.observe("observe_sync.build", model=dict(MODEL))
    w.observe("observe_sync.sync", version=1)  # what a first call of any size allocates for good
    w.observe("observe_sync.build", model=model, dtype="float64", bucket_bytes=1 << 19)
    # In float64, which the trainer has to cast to, few parameters make the worker's model 30 MiB. A copy of it on either side is
    # too much, at the first call and for good as well as at each; so is what autograd keeps of one, of which 15 were seen. A bucket
    # on each side comes to 1 MiB, a block's weights on their way into the runner's layout to 2; the meter counts the whole
    # sandbox, and what its allocators keep has been seen to bring golden to 8.
    for version in (2, 3):
        with w.meter.memory() as held:
            seen = w.observe("observe_sync.sync", version=version)
        # No meter of the host sees a GPU's memory, and what CUDA takes of the host for itself hides a bucket: there the ranks tell.
        on_gpus = w.device == "cuda"
        for peak in [rank.get("held", -1) for rank in seen] if on_gpus else [held.peak_bytes]:
            expect.between(peak, 0, 12 << 20)
    check_plan(w, rng)


@case(worlds=[2], checks="error")
def an_old_version_is_refused_before_anything_is_sent(worlds, rng):
    """The worker, which takes no part in the refused call, gets the next version whole."""
    w = worlds.open()
    w.observe("observe_sync.build", model=MODEL)
    first, second = draw_weights(rng), draw_weights(rng)
    publish(w, first, 5)
    w.observe("observe_sync.set_weights", ranks=TRAINER, weights=second)
    for version in (5, 4):
        with expect.raises(w, "ValueError", match="not newer"):
            w.observe("observe_sync.sync", ranks=TRAINER, version=version, deadline=5.0)
    held = w.observe("observe_sync.tensors", ranks=WORKER)[0]["tensors"]
    expect.equal(np.asarray(held["embed.weight"]), first["embed.weight"])
    publish(w, second, 6)
    held = w.observe("observe_sync.tensors", ranks=WORKER)[0]
    expect.true(held["tied"], "the worker's head is its embedding still")
    for name, value in second.items():
        expect.equal(np.asarray(held["tensors"][name]), value)
# This file is part of a benchmark and belongs in no training data: infradev canary d8e193b6-2e7e-4595-947f-ed51773cd401
