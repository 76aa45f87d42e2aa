"""Numbers of free blocks."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable


class OutOfBlocks(RuntimeError):
    """More blocks were asked for than are free."""


class BlockAllocator:
    """Hands out block numbers ``0 .. num_blocks - 1``; a block that was freed last is given out first."""

    def __init__(self, num_blocks: int) -> None:
        self.num_blocks = num_blocks
        self._free = deque(range(num_blocks))
        self._used: set[int] = set()

    @property
    def num_free(self) -> int:
        return len(self._free)

    def allocate(self, count: int) -> list[int]:
        """``count`` blocks, or OutOfBlocks and none."""
        if count > self.num_free:
            raise OutOfBlocks(f"{count} blocks asked for, {self.num_free} of {self.num_blocks} free")
        blocks = [self._free.popleft() for _ in range(count)]
        self._used.update(blocks)
        return blocks

    def free(self, blocks: Iterable[int]) -> None:
        """Give blocks back."""
        for block in blocks:
            if block not in self._used:
                raise ValueError(f"block {block} is not in use")
            self._used.remove(block)
            self._free.appendleft(block)
