"""Worlds of ranks as a judge sees them: open one, observe, start, kill, meter, close.

Every call is one request to the harness and one reply. What a rank returned comes as values with numpy arrays; what went
wrong on any rank raises :class:`WorldFailure` with an entry for each rank asked.
"""

from __future__ import annotations

import contextlib
import signal as _signal
from dataclasses import dataclass, field
from typing import Any, Iterator, Protocol, Sequence

_TEXT = 400


class PerRank:
    """Inputs that differ from rank to rank; see :func:`per_rank`."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[Any]) -> None:
        self.parts = list(parts)


def per_rank(parts: Sequence[Any]) -> PerRank:
    """Send each rank its own part: one for each rank of the world, or for each of the ``ranks`` that are asked."""
    return PerRank(parts)


class Refused(RuntimeError):
    """The harness could not do what the judge asked for."""


class WorldFailure(RuntimeError):
    """Something went wrong on a rank. ``entries``: rank, status and, by status, what is known of it."""

    def __init__(self, world: World, observer: str, entries: list[dict[str, Any]]) -> None:
        self.world, self.entries = world, entries
        told = [entry_text(entry) for entry in entries if entry["status"] != "returned"]
        # the rank that only hung because another failed says least
        told.sort(key=lambda text: "peer_abort" in text)
        more = f"; and {len(told) - 4} more" if len(told) > 4 else ""
        super().__init__(f"{observer}: " + "; ".join(told[:4]) + more)


def entry_text(entry: dict[str, Any]) -> str:
    """One line about what a rank did."""
    status, rank = entry["status"], entry["rank"]
    if status == "raised":
        place = f" ({entry['file']}:{entry['line']})" if entry.get("file") else ""
        return f"rank {rank} raised {entry.get('exception')}: {str(entry.get('message'))[:_TEXT]}{place}"
    if status == "crashed":
        ended = f"signal {entry['signal']}" if entry.get("signal") is not None else f"exit code {entry.get('code')}"
        return f"rank {rank} crashed: {ended}"
    return f"rank {rank} {status}"


class Link(Protocol):
    """The judge's line to the harness."""

    def request(self, header: dict[str, Any], payload: bytes = b"") -> tuple[dict[str, Any], Any]: ...


def _for_rank(value: Any, rank: int, position: int, asked: int, size: int) -> Any:
    if isinstance(value, PerRank):
        if len(value.parts) == size:
            return value.parts[rank]
        if len(value.parts) == asked:
            return value.parts[position]
        raise ValueError(f"per_rank was given {len(value.parts)} parts for {asked} of {size} ranks")
    if isinstance(value, dict):
        return {key: _for_rank(part, rank, position, asked, size) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_for_rank(part, rank, position, asked, size) for part in value)
    return value


def _differs(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_differs, value.values()))
    return isinstance(value, PerRank) or (isinstance(value, (list, tuple)) and any(map(_differs, value)))


class Handle:
    """A call that is under way."""

    def __init__(self, world: World, call: int, observer: str) -> None:
        self._world, self._call, self._observer = world, call, observer
        self._values: list[Any] | None = None

    def poll(self) -> list[Any] | None:
        """The values where every rank has answered, None while one has not."""
        if self._values is None:
            reply, payload = self._world._link.request(self._about("poll"))
            if reply["type"] != "pending":
                self._values = self._world._values(self._observer, reply, payload)
        return self._values

    def wait(self, deadline: float | None = None) -> list[Any]:
        """The values, once every rank has answered; ``deadline`` in seconds from now."""
        if self._values is None:
            reply, payload = self._world._link.request({**self._about("wait"), "deadline_s": self._world._limit(deadline)})
            self._values = self._world._values(self._observer, reply, payload)
        return self._values

    def _about(self, kind: str) -> dict[str, Any]:
        return {"type": kind, "world": self._world.number, "of": self._call}


class World:
    """An open world. ``size`` ranks on ``device``; it ends with its case, or by :meth:`close`."""

    def __init__(self, link: Link, number: int, size: int, device: str, network: str) -> None:
        self._link, self.number, self.size, self.device, self._network = link, number, size, device, network
        self._cap: float | None = None
        self.meter = Meter(self)

    def observe(
        self, observer: str, /, ranks: Sequence[int] | None = None, deadline: float | None = None, **inputs: Any
    ) -> list[Any]:
        """Call an observer on all ranks (or ``ranks``) and return what each returned, in the order of the ranks asked.

        ``deadline`` in seconds; without one, the case's own. Raises :class:`WorldFailure`.
        """
        header, payload = self._ask("observe", observer, ranks, deadline, inputs)
        reply, blob = self._link.request(header, payload)
        return self._values(observer, reply, blob)

    def start(
        self, observer: str, /, ranks: Sequence[int] | None = None, deadline: float | None = None, **inputs: Any
    ) -> Handle:
        """Like :meth:`observe`, but come back at once with a :class:`Handle`."""
        header, payload = self._ask("start", observer, ranks, deadline, inputs)
        reply, _ = self._link.request(header, payload)
        return Handle(self, reply["call"], observer)

    def signal(self, rank: int, number: int) -> None:
        """Send a signal to one rank."""
        self._link.request({"type": "signal", "world": self.number, "rank": rank, "signal": int(number)})

    def kill(self, rank: int) -> None:
        """SIGKILL for one rank; later observations find it gone."""
        self.signal(rank, _signal.SIGKILL)

    def close(self) -> None:
        """End the world and all that it left behind."""
        self._link.request({"type": "close", "world": self.number})

    # -- inside ------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _within(self, seconds: float) -> Iterator[None]:
        before, self._cap = self._cap, seconds
        try:
            yield
        finally:
            self._cap = before

    def _limit(self, deadline: float | None) -> float | None:
        limits = [limit for limit in (deadline, self._cap) if limit is not None]
        return min(limits) if limits else None

    def _ask(
        self, kind: str, observer: str, ranks: Sequence[int] | None, deadline: float | None, inputs: dict[str, Any]
    ) -> tuple[dict[str, Any], bytes]:
        from .tensors import encode

        asked = list(range(self.size)) if ranks is None else list(ranks)
        if not asked or len(set(asked)) != len(asked) or not all(0 <= rank < self.size for rank in asked):
            raise ValueError(f"ranks={ranks!r} in a world of {self.size}")
        groups = [[rank] for rank in asked] if _differs(inputs) else [asked]
        parts, blobs = [], []
        for position, group in enumerate(groups):
            tree, blob = encode(_for_rank(inputs, group[0], position, len(asked), self.size))
            parts.append({"ranks": group, "inputs": tree, "length": len(blob)})
            blobs.append(blob)
        header = {"type": kind, "world": self.number, "observer": observer, "deadline_s": self._limit(deadline)}
        return {**header, "parts": parts}, b"".join(blobs)

    def _values(self, observer: str, reply: dict[str, Any], payload: Any) -> list[Any]:
        from .tensors import decode, to_numpy
        from .trees import BadTree

        view, offset, values, failed = memoryview(payload), 0, [], False
        entries: list[dict[str, Any]] = []
        for entry in reply["ranks"]:
            length = entry.get("length") or 0
            blob, offset = view[offset : offset + length], offset + length
            told = {key: item for key, item in entry.items() if key not in ("value", "length")}
            if entry["status"] == "returned":
                try:
                    values.append(decode(entry["value"], blob, to_numpy))
                except BadTree as error:
                    told = {"rank": entry["rank"], "status": "unreadable", "message": str(error)}
            failed = failed or told["status"] != "returned"
            entries.append(told)
        if failed:
            raise WorldFailure(self, observer, entries)
        return values


@dataclass
class Bytes:
    """Bytes on loopback that arrived at and left the interface."""

    received: int = 0
    sent: int = 0


@dataclass
class Traffic:
    """Bytes moved inside the ``with``; ``[rank]`` where they were metered per rank. Filled in at its end."""

    total: Bytes = field(default_factory=Bytes)
    ranks: list[Bytes] | None = None

    def __getitem__(self, rank: int) -> Bytes:
        if self.ranks is None:
            raise LookupError("not metered per rank, or the meter has not stopped yet")
        return self.ranks[rank]


@dataclass
class Memory:
    """Bytes that the sandbox's process tree held before, and the peak inside the ``with`` above that. Filled in at its end.

    Counts all ranks, the launcher and files in the private /tmp; misses the memory of devices.
    """

    baseline_bytes: int = 0
    peak_bytes: int = 0


class Meter:
    """Meters outside of the ranks; what each misses is in the documentation of probes."""

    def __init__(self, world: World) -> None:
        self._world = world

    @contextlib.contextmanager
    def traffic(self, per_rank: bool = False) -> Iterator[Traffic]:
        """Bytes on the sandbox's loopback, or per rank in a world opened with ``network="per_rank"``."""
        if per_rank and self._world._network != "per_rank":
            raise ValueError('traffic by rank needs worlds.open(network="per_rank"), the default where checks="traffic"')
        result = Traffic()
        self._ask("traffic", "start")
        yield result
        seen = self._ask("traffic", "stop")["traffic"]
        result.total = Bytes(**seen["total"])
        if per_rank:
            if seen.get("ranks") is None:
                raise Refused("the harness metered no traffic per rank")
            result.ranks = [Bytes(**rank) for rank in seen["ranks"]]

    @contextlib.contextmanager
    def memory(self) -> Iterator[Memory]:
        """Memory of all ranks together."""
        result = Memory()
        self._ask("memory", "start")
        yield result
        seen = self._ask("memory", "stop")["memory"]
        result.baseline_bytes = seen["baseline_bytes"]
        result.peak_bytes = max(0, seen["peak_bytes"] - seen["baseline_bytes"])

    def _ask(self, what: str, op: str) -> dict[str, Any]:
        return self._world._link.request({"type": "meter", "world": self._world.number, "what": what, "op": op})[0]


class Worlds:
    """The fixture ``worlds``. ``size`` is the trial's world size, ``device`` "cpu" or "cuda"."""

    def __init__(self, link: Link, size: int, device: str, checks: str) -> None:
        self._link, self.size, self.device, self._checks = link, size, device, checks

    def open(
        self, size: int | None = None, tree: str = "patched", files: str | None = None, network: str | None = None
    ) -> World:
        """A new world of ranks.

        ``tree``: "patched", or "base" to compare with. ``files``: a name; worlds of the case that give the same one share
        a folder (``rank.files``). ``network``: "shared", or "per_rank" for traffic by rank, the default of cases that
        check traffic.
        """
        if tree not in ("patched", "base"):
            raise ValueError(f'tree={tree!r}: "patched" or "base"')
        network = network or ("per_rank" if self._checks == "traffic" else "shared")
        if network not in ("shared", "per_rank"):
            raise ValueError(f'network={network!r}: "shared" or "per_rank"')
        reply, _ = self._link.request({"type": "open", "size": size, "tree": tree, "files": files, "network": network})
        return World(self._link, reply["world"], reply["size"], reply["device"], network)
