"""What an observer file uses: the ``observer`` decorator and the ``rank`` that it runs on.

    from infradev_probe import observer, rank

    @observer
    def build(hidden):
        rank.state.layer = Layer(hidden, group=rank.group)

Only decorated functions can be called from outside.
"""

from __future__ import annotations

import os
import sys
import types
from typing import Any, Callable, TypeVar

_F = TypeVar("_F", bound=Callable[..., Any])
_MARK = "__infradev_observer__"


def observer(function: _F) -> _F:
    """Let the judge call ``function`` as ``"<file>.<function>"``, with plain values and arrays as keyword arguments."""
    setattr(function, _MARK, True)
    return function


def is_observer(value: object) -> bool:
    """Whether :func:`observer` decorated it."""
    return callable(value) and getattr(value, _MARK, False) is True


class Rank:
    """This process's place in its world.

    ``rank``, ``size``: its number and how many there are. ``state``: a namespace that lives as long as the world.
    ``files``: a folder shared with the case's other worlds, where the judge asked for one. ``device``: where inputs come
    to lie (a torch.device where torch is there). ``group``: the default process group, made on first use: gloo on CPU,
    NCCL with its device on CUDA.
    """

    def __init__(self) -> None:
        self.rank = 0
        self.size = 1
        self.state = types.SimpleNamespace()
        self.files: str | None = None
        self._kind = "cpu"

    def _set(self, *, number: int, size: int, files: str | None, kind: str) -> None:
        self.rank, self.size, self.files, self._kind = number, size, files, kind

    @property
    def device(self) -> Any:
        torch: Any = sys.modules.get("torch")
        if torch is None:
            return self._kind
        if self._kind == "cuda":
            return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        return torch.device("cpu")

    @property
    def group(self) -> Any:
        import torch
        import torch.distributed as dist

        if not dist.is_initialized():
            options: dict[str, Any] = {}
            if self._kind == "cuda":
                torch.cuda.set_device(self.device)
                options["device_id"] = self.device
            backend = "nccl" if self._kind == "cuda" else "gloo"
            dist.init_process_group(backend, rank=self.rank, world_size=self.size, **options)
        return dist.group.WORLD


rank = Rank()
