"""Ranks that come to the rendezvous before rank 0 wait until it listens.

torch.distributed's store lives in rank 0. A client that finds nobody there tries again after 0.3 to 0.7 s (measured; its
backoff starts at a second, with jitter), and of ranks that start together one is often a few milliseconds early. torchrun
has no such race, since its agent holds the store before any rank starts. Here the others look for the port first.
"""

from __future__ import annotations

import inspect
import socket
import sys
import time
from datetime import timedelta
from typing import Any

_LISTEN = "0A"
#: Seconds between two looks: the first, the longest, and the factor from one to the next.
_PAUSE, _LONGEST, _GROWTH = 0.001, 0.05, 1.2


def arrive_after_rank_zero() -> None:
    """Make torch's clients of rank 0's store wait for its port; nothing where torch has another way of making them."""
    module: Any = sys.modules.get("torch.distributed.rendezvous")
    plain = getattr(module, "_create_c10d_store", None)
    if plain is None:
        return
    try:
        signature = inspect.signature(plain)
    except (TypeError, ValueError):
        return

    def create(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
            given = bound.arguments
            if given["rank"] != 0:
                timeout: timedelta = given["timeout"]
                waited = _until_listening(str(given["hostname"]), int(given["port"]), timeout.total_seconds() / 2)
                given["timeout"] = timeout - timedelta(seconds=waited)  # the whole takes no longer than was asked for
                args, kwargs = bound.args, bound.kwargs
        except (TypeError, KeyError, ValueError, AttributeError):
            pass  # torch says by itself what it does not like
        return plain(*args, **kwargs)

    module._create_c10d_store = create


def _until_listening(host: str, port: int, seconds: float) -> float:
    """Waits until somebody listens on that port, or the time is over; returns the seconds that it took. The kernel tells
    nobody of a port that begins to listen: it is looked for."""
    begin, pause = time.monotonic(), _PAUSE
    while not (_listens_here(port) if host in ("127.0.0.1", "localhost", "::1") else _answers(host, port)):
        if time.monotonic() >= begin + seconds:
            break
        time.sleep(pause)
        pause = min(pause * _GROWTH, _LONGEST)
    return time.monotonic() - begin


def _listens_here(port: int) -> bool:
    """Whether a socket of this network namespace listens; no byte moves for it (proc_net_tcp in the kernel's documentation)."""
    wanted = f":{port:04X}"
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table) as lines:
                for line in lines:
                    fields = line.split(None, 4)
                    if len(fields) > 3 and fields[3] == _LISTEN and fields[1].endswith(wanted):
                        return True
        except OSError:
            return True  # not to be seen: torch has to try
    return False


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=1.0).close()
    except ConnectionRefusedError:
        return False
    except OSError:
        return True
    return True
