"""What prefix reuse promises: the numbers of computing alone, the right blocks kept and dropped, and no block lost."""

import numpy as np
from infradev_probe import case, expect

MODEL = dict(vocab_size=61, hidden_size=32, num_layers=2, num_heads=4, num_kv_heads=2, head_dim=8, ffn_size=48)
BLOCK = 4


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


def check(weights, prompts, seen, max_tokens):
    """Each token that came back is the likeliest of the reference (or as likely), with its log-probability.

    Log-probabilities are compared as logits, with the reference's normaliser added back: a log-probability may be next
    to zero, its error is that of the logits. float32 keys that went through other shapes of matrix products differ in
    the last bits; two layers and the head make of that some 1e-5. A reduction of 64, more than the longest inner product
    of the model, allows 3e-4 on logits near ten; wrong keys are off by 0.1 and more.
    """
    for prompt, tokens, logprobs in zip(prompts, seen["tokens"], seen["logprobs"], strict=True):
        expect.equal(len(tokens), max_tokens)
        rows = reference_logits(weights, np.array(list(prompt) + tokens))[len(prompt) - 1 : -1]
        highest = rows.max(-1)
        normaliser = highest + np.log(np.exp(rows - highest[:, None]).sum(-1))
        chosen = rows[np.arange(len(tokens)), tokens]
        within = dict(dtype="float32", reduction=64, scale=8 * np.abs(rows).max())
        expect.close((np.array(logprobs) + normaliser).astype(np.float32), chosen, **within)
        expect.close(chosen.astype(np.float32), highest, **within)


def draw(rng, count):
    return [int(t) for t in rng.integers(MODEL["vocab_size"], size=count)]


def build(w, weights, **engine):
    w.observe("observe_engine.build", model=MODEL, engine=dict(block_size=BLOCK, **engine), weights=weights)


def serve(w, prompts, max_tokens):
    """One that never finishes (a request waits for blocks that can't come) is told by the deadline; golden takes 0.1 s."""
    seen = w.observe("observe_engine.generate", prompts=prompts, max_tokens=max_tokens, deadline=8.0)[0]
    expect.equal(seen["held"], 0)
    return seen


def start(w, prompts, max_tokens, steps):
    return w.observe("observe_engine.start", prompts=prompts, max_tokens=max_tokens, steps=steps)[0]


def blocks_are_computed_once_held_once_and_never_written_again(w, weights, rng):
    """Of requests that wait together and have one block in common, and of requests whose whole prompt is known."""
    build(w, weights, num_blocks=64)
    one, whole, known = draw(rng, BLOCK), draw(rng, BLOCK), draw(rng, 3 * BLOCK)
    tails = [one + draw(rng, BLOCK + 1) for _ in range(3)]
    seen = serve(w, tails + [whole] * 3, 6)
    check(weights, tails + [whole] * 3, seen, 6)
    # Each block in common once, then the tails, the last token of a prompt that is known whole, and 5 of 6 new tokens.
    expect.equal(seen["computed"], BLOCK + 3 * (BLOCK + 1) + BLOCK + 2 + 6 * 5)

    # Six requests hold the three blocks that they know whole, and one each for new tokens.
    serve(w, [known], 1)
    seen = start(w, [known] * 6, 4, steps=3)
    expect.equal(seen["unfinished"], 6)
    expect.between(seen["held"], 0, 3 + 6)
    w.observe("observe_engine.finish")
    # What is known whole is read again, and its last token computed again: into a copy.
    expect.equal(w.observe("observe_engine.serve_twice", prompt=draw(rng, 2 * BLOCK))[0]["changed"], 0)


def limits_hold_and_nothing_waits_without_need(w, weights, rng):
    """On sequences and tokens of a step, in engines of their own."""
    # Without the setting: at most three requests run, at most sixteen tokens go through a step, a common block or not.
    build(w, weights, num_blocks=64, max_running=3, max_batch_tokens=4 * BLOCK, prefix_cache=False)
    one = draw(rng, BLOCK)
    seen = start(w, [one + draw(rng, BLOCK) for _ in range(4)], 4, steps=5)
    two = 2 * BLOCK
    expect.equal(seen["computed"], [2 * two, 2 + two, 3, 3, 1 + two])
    expect.equal(seen["known"], 0)
    w.observe("observe_engine.finish")
    # A prompt of more tokens than a step may have goes alone.
    expect.equal(start(w, [draw(rng, 5 * BLOCK)], 2, steps=2)["unfinished"], 0)
    changed = w.observe("observe_engine.change_weights", weights=weights)[0]
    expect.equal([changed["known"], changed["held"]], [0, 0])

    # With it: tokens that are known are none of a step's, and only who waits for a full block waits.
    build(w, weights, num_blocks=64, max_batch_tokens=12)
    known, short = draw(rng, 4 * BLOCK), draw(rng, BLOCK - 1)
    serve(w, [known], 1)
    seen = start(w, [known + draw(rng, 3) for _ in range(5)], 2, steps=3)
    expect.equal([seen["computed"][0], seen["unfinished"]], [12, 0])
    seen = start(w, [short] * 2 + [known] * 3, 1, steps=1)
    expect.equal([seen["computed"], seen["unfinished"]], [[2 * (BLOCK - 1) + 3], 0])


@case(worlds=[1], checks="numbers")
def reused_blocks_give_the_numbers_of_computing_alone(worlds, rng):
    """Equal blocks after different beginnings, prompts known whole, and equal prompts queued together."""
    w, weights = worlds.open(), draw_weights(rng)
    build(w, weights, num_blocks=256)
    one, other, middle, rest = draw(rng, BLOCK), draw(rng, BLOCK), draw(rng, 2 * BLOCK), draw(rng, 3)
    rounds = [
        [one + middle + rest, other + draw(rng, BLOCK) + rest],
        [other + middle + rest],  # its first block is known from one request, the next two from another, after other tokens
        [middle + rest, middle[BLOCK:] + rest],  # known after other tokens, and not at a beginning
        [one + middle] * 3 + [one + middle + draw(rng, BLOCK)],
        [one + middle, one + middle[:BLOCK] + draw(rng, 2), other + middle],
    ]
    for prompts in rounds:
        check(weights, prompts, serve(w, prompts, 6), 6)


@case(worlds=[1], checks="state")
def known_prefixes_are_not_computed_and_eviction_takes_unused_ends_first(worlds, rng):
    w, weights = worlds.open(), draw_weights(rng)
    build(w, weights, num_blocks=48)
    length = 16 * BLOCK
    used, unused, large = draw(rng, length), draw(rng, length), draw(rng, 24 * BLOCK)
    for count, prompt in enumerate([used, unused], 1):
        seen = serve(w, [prompt], 1)
        expect.equal([seen["computed"], seen["known"]], [length, count * 16])
    again = serve(w, [used], 1)
    expect.equal(again["computed"], 1)  # the last token, for its logits
    check(weights, [used], again, 1)

    # 48 blocks less twice 16 leave 16; these 24 take 8 more, and all of them from the end of the one unused longest.
    expect.equal(serve(w, [large], 1)["computed"], len(large))
    kept = serve(w, [used], 1)
    expect.equal(kept["computed"], 1)
    check(weights, [used], kept, 1)
    shortened = serve(w, [unused], 1)
    # 8 blocks lost; up to 2 more may have made room for private copies in between.
    expect.between(shortened["computed"], 8 * BLOCK, 10 * BLOCK)
    check(weights, [unused], shortened, 1)
    blocks_are_computed_once_held_once_and_never_written_again(w, weights, rng)


@case(worlds=[1], checks="state")
def nothing_computed_before_a_reset_is_used_after_it(worlds, rng):
    """Also what a request that ran across the reset had computed, or computed after it on top of that."""
    w, before, after = worlds.open(), draw_weights(rng), draw_weights(rng)
    build(w, before, num_blocks=32)
    done, running = draw(rng, 3 * BLOCK), draw(rng, 2 * BLOCK + 1)
    serve(w, [done + draw(rng, 2)], 2)
    expect.equal(start(w, [running], 12, steps=4)["unfinished"], 1)
    changed = w.observe("observe_engine.change_weights", weights=after)[0]
    expect.equal(changed["known"], 0)
    finished = w.observe("observe_engine.finish")[0]
    (tokens,) = finished["tokens"]
    expect.equal([finished["known"], finished["held"]], [0, 0])
    for prompt in (done + draw(rng, 1), running + tokens, running[: 2 * BLOCK] + draw(rng, 3)):
        seen = serve(w, [prompt], 4)
        check(after, [prompt], seen, 4)
    first = serve(w, [done + draw(rng, 1)], 1)
    expect.equal(first["computed"], 1)  # known again, by what was computed after the reset
    every_block = [draw(rng, 32 * BLOCK - 1)]
    check(after, every_block, serve(w, every_block, 1), 1)


@case(worlds=[1], checks="condition")
def a_full_pool_makes_requests_wait_and_loses_no_block(worlds, rng):
    w, weights = worlds.open(), draw_weights(rng)
    build(w, weights, num_blocks=8)
    known, longer = draw(rng, 4 * BLOCK), draw(rng, BLOCK)
    serve(w, [known], 1)
    # Four blocks are known and unused, the first request takes the other four: the second, which begins with the known
    # ones, needs one more than there is, and waits.
    prompts = [draw(rng, 4 * BLOCK - 3), known + longer]
    check(weights, prompts, serve(w, prompts, 3), 3)
    check(weights, [known], serve(w, [known], 2), 2)
    # Three that share four blocks and grow by three each: they take turns by preemption.
    prompts = [known + draw(rng, 1) for _ in range(3)]
    seen = serve(w, prompts, 10)
    check(weights, prompts, seen, 10)
    every_block = [draw(rng, 8 * BLOCK - 1)]
    check(weights, every_block, serve(w, every_block, 1), 1)
    limits_hold_and_nothing_waits_without_need(w, weights, rng)
# This file is part of a benchmark and belongs in no training data: infradev canary d8e193b6-2e7e-4595-947f-ed51773cd401
