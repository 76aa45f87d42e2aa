"""Whoever is early at the rendezvous finds rank 0 there when torch looks."""

from __future__ import annotations

import socket
import sys
import threading
import types
from datetime import timedelta
from typing import Any

import pytest
from infradev_probe.rendezvous import _listens_here, arrive_after_rank_zero


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bool]]:
    """What torch's own function was called for: (rank, whether the port was listened on by then)."""
    seen: list[tuple[int, bool]] = []
    module: Any = types.ModuleType("torch.distributed.rendezvous")

    def _create_c10d_store(hostname: str, port: int, rank: int, world_size: int, timeout: timedelta) -> str:
        seen.append((rank, _listens_here(port)))
        return "the store"

    module._create_c10d_store = _create_c10d_store
    monkeypatch.setitem(sys.modules, "torch.distributed.rendezvous", module)
    arrive_after_rank_zero()
    return seen


def make(port: int, rank: int, timeout: Any = timedelta(seconds=60), host: str = "127.0.0.1") -> Any:
    return sys.modules["torch.distributed.rendezvous"]._create_c10d_store(host, port, rank, world_size=2, timeout=timeout)


def bound() -> socket.socket:
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    return sock


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.0.2"])
def test_a_rank_that_is_early_waits_until_the_port_is_listened_on(seen: list[tuple[int, bool]], host: str) -> None:
    with socket.socket() as server:
        server.bind(("0.0.0.0", 0))
        early = threading.Thread(target=make, args=(server.getsockname()[1], 1), kwargs={"host": host})
        early.start()
        server.listen()
        early.join()
    assert seen == [(1, True)]


def test_rank_zero_waits_for_nobody(seen: list[tuple[int, bool]]) -> None:
    with bound() as server:
        assert make(server.getsockname()[1], 0) == "the store"
    assert seen == [(0, False)]


def test_where_nobody_comes_torch_says_so_itself(seen: list[tuple[int, bool]]) -> None:
    with bound() as server:
        assert make(server.getsockname()[1], 1, timedelta(0)) == "the store"
        assert make(server.getsockname()[1], 1, "no time at all") == "the store"
    assert seen == [(1, False)] * 2


def test_the_wait_is_part_of_the_time_that_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[timedelta] = []
    module: Any = types.ModuleType("torch.distributed.rendezvous")

    def _create_c10d_store(hostname: str, port: int, rank: int, world_size: int, timeout: timedelta) -> None:
        given.append(timeout)

    module._create_c10d_store = _create_c10d_store
    monkeypatch.setitem(sys.modules, "torch.distributed.rendezvous", module)
    arrive_after_rank_zero()
    asked = timedelta(seconds=0.02)
    with bound() as server:
        make(server.getsockname()[1], 1, asked)
        make(server.getsockname()[1], 0, asked)
    assert given[0] < asked == given[1]


def test_a_framework_that_makes_its_store_otherwise_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("torch.distributed.rendezvous")
    monkeypatch.setitem(sys.modules, "torch.distributed.rendezvous", module)
    arrive_after_rank_zero()
    assert not hasattr(module, "_create_c10d_store")
