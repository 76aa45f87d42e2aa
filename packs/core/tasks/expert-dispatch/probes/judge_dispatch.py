"""What all-to-all dispatch promises: the same numbers, only a rank's own tokens on the wire, capacity, empty experts."""

import math

import ml_dtypes
import numpy as np
from infradev_probe import case, expect, per_rank

HIDDEN, FFN, EXPERTS, TOP_K = 24, 32, 8, 2


def draw_weights(rng):
    """Experts' weights and the router's, scaled so that activations stay near one."""
    gate_up = (rng.standard_normal((EXPERTS, HIDDEN, 2 * FFN)) * HIDDEN**-0.5).astype(np.float32)
    down = (rng.standard_normal((EXPERTS, FFN, HIDDEN)) * FFN**-0.5).astype(np.float32)
    router = (rng.standard_normal((EXPERTS, HIDDEN)) * HIDDEN**-0.5).astype(np.float32)
    return gate_up, down, router


def local(weights, size, ep=None):
    """Each rank's experts, divided over ``ep`` neighbouring ranks or over all."""
    parts = np.split(weights, ep or size)
    return per_rank([parts[r % len(parts)] for r in range(size)])


def softmax(logits):
    e = np.exp(logits - logits.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def draw_tokens(rng, router, count, hot=0.0):
    """Tokens whose choice of experts is clear: scores around the cut differ by 1e-3 at least, so that float32 can't flip it.

    ``hot`` is how much the first feature, which is one, speaks for where the router's first column points.
    """
    rows = []
    while len(rows) < count:
        x = rng.standard_normal(HIDDEN).astype(np.float32)
        x[0] = hot
        ranked = np.sort(softmax(router.astype(np.float64) @ x))[::-1]
        if np.min(-np.diff(ranked[: TOP_K + 1])) > 1e-3:
            rows.append(x)
    return np.array(rows, dtype=np.float32).reshape(count, HIDDEN)


def route(x, router):
    """Scores of all experts, the chosen ones, their renormalised weights."""
    scores = softmax(x.astype(np.float64) @ router.T.astype(np.float64))
    chosen = np.argsort(-scores, axis=-1)[:, :TOP_K]
    picked = np.take_along_axis(scores, chosen, -1)
    return scores, chosen, picked / picked.sum(-1, keepdims=True)


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def reference(x, dy, gate_up, down, router, keep=None):
    """Output and all gradients in float64, each token through each of its experts."""
    x, dy = x.astype(np.float64), dy.astype(np.float64)
    gate_up, down = gate_up.astype(np.float64), down.astype(np.float64)
    scores, chosen, weights = route(x, router)
    keep = np.ones_like(weights, dtype=bool) if keep is None else keep
    y, dx = np.zeros_like(x), np.zeros_like(x)
    d_gate_up, d_down, d_weights = np.zeros_like(gate_up), np.zeros_like(down), np.zeros_like(weights)
    for t, k in zip(*np.nonzero(keep)):
        e = chosen[t, k]
        gate, up = np.split(x[t] @ gate_up[e], 2)
        act = gate * sigmoid(gate) * up
        out = act @ down[e]
        y[t] += weights[t, k] * out
        d_weights[t, k] = out @ dy[t]
        d_out = weights[t, k] * dy[t]
        d_down[e] += np.outer(act, d_out)
        d_act = down[e] @ d_out
        slope = sigmoid(gate) * (1 + gate * (1 - sigmoid(gate)))
        d_pre = np.concatenate((d_act * up * slope, d_act * gate * sigmoid(gate)))
        d_gate_up[e] += np.outer(x[t], d_pre)
        dx[t] += gate_up[e] @ d_pre
    # Weights are the chosen scores over their sum, scores a softmax: together a softmax over the chosen logits.
    d_chosen = weights * (d_weights - (weights * d_weights).sum(-1, keepdims=True))
    d_logits = np.zeros_like(scores)
    np.put_along_axis(d_logits, chosen, d_chosen, -1)
    dx += d_logits @ router.astype(np.float64)
    return {"y": y, "dx": dx, "d_gate_up": d_gate_up, "d_down": d_down, "d_router": d_logits.T @ x}


def compare(seen, wanted, reduction):
    """Each rank's tokens and router gradient, and each expert's gradient, which has the tokens of all ranks in it."""
    size = len(seen)
    for got, want in zip(seen, wanted):
        expect.equal(got["missing"], [])
        expect.close(got["y"], want["y"], dtype="float32", reduction=HIDDEN + FFN)
        expect.close(got["dx"], want["dx"], dtype="float32", reduction=reduction)
        expect.close(got["d_router"], want["d_router"], dtype="float32", reduction=reduction)
    for name in ("d_gate_up", "d_down"):
        total = sum(want[name] for want in wanted)
        for r, part in enumerate(np.split(total, size)):
            expect.close(seen[r][name], part, dtype="float32", reduction=reduction)


@case(worlds=[2, 4], checks="numbers")
def outputs_and_gradients_are_those_of_each_token_through_its_experts(worlds, rng):
    """Uneven numbers of tokens, and one expert that most of them choose."""
    w = worlds.open()
    gate_up, down, router = draw_weights(rng)
    router[:, 0] = 0
    router[rng.integers(EXPERTS), 0] = 4.0
    xs = [draw_tokens(rng, router, int(n), hot=1.0) for n in rng.integers(20, 40, w.size)]
    dys = [rng.standard_normal(x.shape).astype(np.float32) for x in xs]
    w.observe(
        "observe_dispatch.build_layer",
        gate_up=local(gate_up, w.size), down=local(down, w.size), router=router, top_k=TOP_K,
    )
    seen = w.observe("observe_dispatch.forward_backward", x=per_rank(xs), dy=per_rank(dys))
    wanted = [reference(x, dy, gate_up, down, router) for x, dy in zip(xs, dys)]
    compare(seen, wanted, reduction=sum(map(len, xs)) + HIDDEN + FFN)


@case(worlds=[2, 4], checks="condition")
def experts_and_ranks_without_tokens_take_part(worlds, rng):
    """The first rank has no tokens and the last rank's experts get none; both still finish, with gradients of zero."""
    w = worlds.open()
    gate_up, down, router = draw_weights(rng)
    router[:, 0] = 0
    router[:TOP_K, 0] = 10.0
    xs = [draw_tokens(rng, router, 0 if r == 0 else 12, hot=1.0) for r in range(w.size)]
    dys = [rng.standard_normal(x.shape).astype(np.float32) for x in xs]
    w.observe(
        "observe_dispatch.build_layer",
        gate_up=local(gate_up, w.size), down=local(down, w.size), router=router, top_k=TOP_K,
    )
    seen = w.observe("observe_dispatch.forward_backward", x=per_rank(xs), dy=per_rank(dys), deadline=10.0)
    for r in range(w.size):
        expect.equal(seen[r]["missing"], [])
    for r in range(1, w.size):
        expect.equal(np.count_nonzero(seen[r]["d_gate_up"]), 0)
        expect.equal(np.count_nonzero(seen[r]["d_down"]), 0)
    wanted = [reference(x, dy, gate_up, down, router) for x, dy in zip(xs, dys)]
    compare(seen, wanted, reduction=sum(map(len, xs)) + HIDDEN + FFN)


def within_capacity(chosen, weights, capacity):
    """Which assignments stay: the heaviest of each expert, the earlier token's where they weigh the same."""
    keep = np.zeros(chosen.shape, dtype=bool)
    for e in range(EXPERTS):
        rows, cols = np.nonzero(chosen == e)
        best = np.argsort(-weights[rows, cols], kind="stable")[:capacity]
        keep[rows[best], cols[best]] = True
    return keep


def check_ties(w, rng, tokens=64, capacity=5):
    """Three weights among all assignments: most of those at the capacity weigh the same."""
    chosen = np.argsort(rng.random((tokens, EXPERTS)), axis=-1)[:, :TOP_K]
    weights = rng.choice(np.array([0.25, 0.5, 0.75], dtype=np.float32), (tokens, TOP_K))
    seen = w.observe(
        "observe_dispatch.drop", ranks=[0], probs=weights, indices=chosen, num_experts=EXPERTS, capacity=capacity
    )[0]
    keep = within_capacity(chosen, weights, capacity)
    expect.equal(seen["dropped"], int((~keep).sum()))
    expect.equal(np.asarray(seen["indices"]), np.where(keep, chosen, EXPERTS))


def check_step(w, rng, ep, pieces=2):
    """The step tells the mean loss over ranks, and what was dropped in all pieces, layers and ranks; half is at least."""
    model = dict(
        vocab_size=32, hidden_size=16, num_layers=2, num_heads=2, num_kv_heads=2, head_dim=8, ffn_size=16,
        num_experts=EXPERTS, moe_top_k=TOP_K, moe_capacity_factor=0.5,
    )
    batches = [rng.integers(32, size=(2, 4, 8)) for _ in range(w.size)]
    tokens, targets = (per_rank([batch[i] for batch in batches]) for i in range(2))
    seen = w.observe("observe_dispatch.step", model=model, tokens=tokens, targets=targets, pieces=pieces, ep=ep)
    dropped, loss = sum(s["dropped"] for s in seen), np.mean([s["losses"] for s in seen])
    expect.true(dropped > 0, "assignments were dropped")
    for s in seen:
        expect.equal(s["moe_dropped"], float(dropped))
        expect.close(s["loss"], float(loss), rtol=1e-4)


@case(worlds=[2, 4], checks="condition")
def an_expert_over_capacity_keeps_the_heaviest_and_only_in_training(worlds, rng):
    """Experts divided over half of the ranks: over one of two, over two of four."""
    w = worlds.open()
    ep = w.size // 2
    gate_up, down, router = draw_weights(rng)
    router[:, 0] = 0
    router[rng.integers(EXPERTS), 0] = 1.5
    factor, xs = 1.25, []
    for _ in range(w.size):
        while True:
            x = draw_tokens(rng, router, 24, hot=1.0)
            _, chosen, weights = route(x, router)
            gaps = [np.diff(np.sort(weights[chosen == e])) for e in range(EXPERTS)]
            if np.min(np.concatenate(gaps)) > 1e-5:  # float32 ranks weights that close as float64 does
                break
        xs.append(x)
    capacity = math.ceil(factor * 24 * TOP_K / EXPERTS)
    keeps = [within_capacity(*route(x, router)[1:], capacity) for x in xs]
    zero = [np.zeros_like(x) for x in xs]

    built = w.observe(
        "observe_dispatch.build_layer", gate_up=local(gate_up, w.size, ep), down=local(down, w.size, ep), router=router,
        top_k=TOP_K, capacity_factor=factor, ep=ep,
    )
    expect.equal([b["dropped"] for b in built], [0] * w.size)
    limited = w.observe("observe_dispatch.forward", x=per_rank(xs), train=True)
    for got, x, keep, z in zip(limited, xs, keeps, zero):
        expect.equal(got["dropped"], int((~keep).sum()))
        want = reference(x, z, gate_up, down, router, keep)["y"]
        expect.close(got["y"], want, dtype="float32", reduction=HIDDEN + FFN)
    whole = w.observe("observe_dispatch.forward", x=per_rank(xs), train=False)
    for got, x, z in zip(whole, xs, zero):
        expect.equal(got["dropped"], 0)
        expect.close(got["y"], reference(x, z, gate_up, down, router)["y"], dtype="float32", reduction=HIDDEN + FFN)
    check_ties(w, rng)
    check_step(w, rng, ep)


@case(worlds=[2, 4], checks="traffic")
def a_rank_receives_only_its_own_tokens(worlds, rng):
    """The first rank keeps all of its tokens, the others send most of theirs: nothing but these tokens is on the wire."""
    w = worlds.open()
    tokens, hidden, show = 2048, 256, 64  # 1 KiB a token
    token_bytes = hidden * 4
    xs = [rng.standard_normal((tokens, hidden), dtype=np.float32) for _ in range(w.size)]
    probs = [rng.uniform(0.5, 1.0, (tokens, 1)).astype(np.float32) for _ in range(w.size)]
    per_owner = EXPERTS // w.size
    indices, sent = [], np.zeros((w.size, w.size), dtype=np.int64)  # sent[a, b]: tokens from a to b
    for r in range(w.size):
        away = 0 if r == 0 else int(tokens * rng.uniform(0.7, 0.8))
        owners = np.full(tokens, r)
        owners[:away] = rng.choice([o for o in range(w.size) if o != r], away)
        rng.shuffle(owners)
        sent[r] = np.bincount(owners, minlength=w.size)
        indices.append((owners * per_owner + rng.integers(per_owner, size=tokens))[:, None].astype(np.int64))
    np.fill_diagonal(sent, 0)

    w.observe("observe_dispatch.build_dispatcher", hidden=hidden, num_experts=EXPERTS)
    narrow = [x[:8].astype(ml_dtypes.bfloat16) for x in xs]
    few = {"x": narrow, "probs": [p[:8] for p in probs], "indices": [i[:8] for i in indices]}
    w.observe("observe_dispatch.hold", **{name: per_rank(parts) for name, parts in few.items()})
    for got, x, p in zip(w.observe("observe_dispatch.round_trip", show=8), narrow, probs):  # opens the group's connections
        expect.equal(str(got["y"].dtype), "bfloat16")
        expect.close(got["y"], p[:8] * x.astype(np.float32), dtype="bfloat16")
    w.observe("observe_dispatch.hold", x=per_rank(xs), probs=per_rank(probs), indices=per_rank(indices))
    with w.meter.traffic(per_rank=True) as there_and_back:
        seen = w.observe("observe_dispatch.round_trip", show=show)
    with w.meter.traffic(per_rank=True) as with_gradient:
        grads = w.observe("observe_dispatch.round_trip_with_gradient", show=show)

    for r in range(w.size):
        # Tokens come in for this rank's experts, results come back for this rank's tokens; backward does both again.
        want = int(sent[:, r].sum() + sent[r].sum()) * token_bytes
        # TCP/IP adds headers and acknowledgements to each segment (3 % with 1,500-byte frames, less on loopback).
        expect.between(there_and_back[r].received, want, 1.1 * want + 65_536)
        expect.between(with_gradient[r].received, 2 * want, 2.2 * want + 65_536)
        expect.close(seen[r]["y"], (probs[r] * xs[r])[:show], dtype="float32")
        expect.close(grads[r]["dx"], (probs[r] * xs[r])[:show], dtype="float32")
# This file is part of a benchmark and belongs in no training data: infradev canary d8e193b6-2e7e-4595-947f-ed51773cd401
