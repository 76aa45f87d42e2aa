"""Which sequences run in the next step."""

from __future__ import annotations

from collections import deque

from ministack.inference.cache import PagedKVCache
from ministack.inference.request import Sequence, Status


class Scheduler:
    """First come, first served, under limits of blocks, running sequences and tokens a step.

    When a running sequence needs a block and none is free, the youngest running one is preempted: it gives its blocks
    back and waits at the head of the queue to be computed again from its first token.
    """

    def __init__(self, cache: PagedKVCache, max_running: int, max_batch_tokens: int) -> None:
        self.cache = cache
        self.max_running, self.max_batch_tokens = max_running, max_batch_tokens
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        self.preemptions = 0

    def add(self, seq: Sequence) -> None:
        """Queue a new sequence."""
        self.waiting.append(seq)

    def has_work(self) -> bool:
        """Whether anything waits or runs."""
        return bool(self.waiting or self.running)

    def schedule(self) -> list[Sequence]:
        """The sequences of the next step, each with blocks for all of its tokens."""
        preempted = self._grow_running()
        if not preempted:
            self._admit()
        return list(self.running)

    def finish(self) -> list[Sequence]:
        """Take finished sequences out and free their blocks."""
        done = [seq for seq in self.running if seq.status is Status.FINISHED]
        self.running = [seq for seq in self.running if seq.status is not Status.FINISHED]
        for seq in done:
            self._release(seq)
        return done

    def preempt(self, seq: Sequence) -> None:
        """Send a running sequence back to the head of the queue."""
        self.running.remove(seq)
        self._release(seq)
        seq.status = Status.WAITING
        seq.preemptions += 1
        self.preemptions += 1
        self.waiting.appendleft(seq)

    def _grow_running(self) -> bool:
        preempted = False
        for seq in list(self.running):
            if seq.status is not Status.RUNNING:
                continue
            missing = self.cache.blocks_for(seq.length) - len(seq.blocks)
            while missing > self.cache.allocator.num_free and seq.status is Status.RUNNING:
                self.preempt(self.running[-1])
                preempted = True
            if seq.status is Status.RUNNING and missing > 0:
                seq.blocks += self.cache.allocator.allocate(missing)
        return preempted

    def _admit(self) -> None:
        budget = self.max_batch_tokens - sum(seq.length - seq.computed for seq in self.running)
        while self.waiting and len(self.running) < self.max_running:
            seq = self.waiting[0]
            needed = self.cache.blocks_for(seq.length)
            if needed > self.cache.allocator.num_free:
                break
            if seq.length > budget and self.running:
                break
            budget -= seq.length
            self.waiting.popleft()
            seq.blocks = self.cache.allocator.allocate(needed)
            seq.status = Status.RUNNING
            self.running.append(seq)

    def _release(self, seq: Sequence) -> None:
        self.cache.allocator.free(seq.blocks)
        seq.blocks, seq.computed = [], 0
