"""What prefix reuse saves, seen from outside the process."""

from infradev_probe import case, expect

MODEL = dict(
    vocab_size=128, hidden_size=32, num_layers=4, num_heads=8, num_kv_heads=8, head_dim=64, ffn_size=32, max_positions=1024
)
BLOCK, PREFIX, TAIL, REQUESTS, NEW = 16, 256, 8, 14, 3
TOKEN_BYTES = 2 * MODEL["num_layers"] * MODEL["num_kv_heads"] * MODEL["head_dim"] * 4  # keys and values in float32: 16 KiB
MIB = 1 << 20


@case(worlds=[1], checks="memory")
def requests_with_a_common_prefix_hold_it_once(worlds, rng):
    """Queued together, so that nothing of the prefix is known when they come."""
    w = worlds.open()
    w.observe("observe_engine.build", model=MODEL, engine=dict(block_size=BLOCK, num_blocks=512))
    warm = [int(t) for t in rng.integers(128, size=PREFIX)]
    w.observe("observe_engine.generate", prompts=[warm], max_tokens=NEW)  # what a first forward allocates for good

    prefix = [int(t) for t in rng.integers(128, size=PREFIX)]
    prompts = [prefix + [int(t) for t in rng.integers(128, size=TAIL)] for _ in range(REQUESTS)]
    with w.meter.memory() as first:
        seen = w.observe("observe_engine.generate", prompts=prompts, max_tokens=NEW)[0]
    with w.meter.memory() as second:
        again = w.observe("observe_engine.generate", prompts=prompts, max_tokens=NEW)[0]

    shared = PREFIX * TOKEN_BYTES  # 4 MiB; fourteen times that where requests share nothing
    own = REQUESTS * 2 * BLOCK * TOKEN_BYTES  # a partial block and one to grow into
    # A layer's keys and values are gathered for attention, and pages may be huge: some MiB besides, not the 52 of thirteen
    # copies. Nothing from below: a pool that was written when it was built grows no more.
    expect.between(first.peak_bytes, 0, shared + own + 20 * MIB)
    expect.between(second.peak_bytes, 0, own + 20 * MIB)
    # The prefix is computed once, not at all the second time; each request computes its tail and all but one new token.
    each = TAIL + NEW - 1
    expect.between(seen["computed"], PREFIX + REQUESTS * each, PREFIX + REQUESTS * (each + BLOCK))
    expect.between(again["computed"], REQUESTS * each, REQUESTS * (each + BLOCK))


@case(worlds=[1], checks="memory")
def a_pool_of_one_prefix_and_what_each_request_adds_serves_all_at_once(worlds, rng):
    """Room for one copy of the prefix, in an engine that is metered from before it is built: copies made elsewhere, or laid
    by beforehand, show as well as copies made while serving."""
    w = worlds.open()
    w.observe("observe_engine.build", model=MODEL, engine=dict(block_size=BLOCK, num_blocks=2 * PREFIX // BLOCK))
    warm = [int(t) for t in rng.integers(128, size=PREFIX)]
    w.observe("observe_engine.generate", prompts=[warm], max_tokens=NEW)  # what a first forward allocates for good

    blocks = PREFIX // BLOCK + REQUESTS  # each request has one block of its own: its tail and its new tokens fit in there
    prefix = [int(t) for t in rng.integers(128, size=PREFIX)]
    prompts = [prefix + [int(t) for t in rng.integers(128, size=TAIL)] for _ in range(REQUESTS)]
    with w.meter.memory() as held:
        w.observe("observe_engine.build", model=MODEL, engine=dict(block_size=BLOCK, num_blocks=blocks))
        # A step computes the prefix, the next the tails and a first token each; NEW - 1 more tokens follow. One step more
        # for an engine that tells requests of a known prefix only after the step in which it became known.
        seen = w.observe("observe_engine.start", prompts=prompts, max_tokens=NEW, steps=NEW + 2)[0]
    expect.equal(seen["unfinished"], 0)
    # The pool is 7.5 MiB and the model 1; fourteen prefixes are 56.
    expect.between(held.peak_bytes, 0, blocks * BLOCK * TOKEN_BYTES + 24 * MIB)
# This file is part of a benchmark and belongs in no training data: infradev canary d8e193b6-2e7e-4595-947f-ed51773cd401
