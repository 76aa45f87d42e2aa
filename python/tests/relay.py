"""A judge and a launcher joined the way the harness joins them: requests of the one become observations of the other."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

from driver import Harness, Launched, receive, start

from infradev_probe.frames import ZERO_KEY, Channel, Frame


class Relay:
    """Starts a judge for ``probes`` beside ``harness`` and answers what its cases ask for."""

    def __init__(self, harness: Harness, probes: Path, tree: Path, world: int, device: str = "cpu") -> None:
        self.device = device
        self.harness, self.probes, self.tree, self.world = harness, probes, tree, world
        self.cases: list[dict[str, Any]] = []
        self.uncollectable: list[dict[str, Any]] = []
        self.open: dict[int, Launched] = {}
        self.started: dict[int, tuple[dict[str, Any], bytearray]] = {}
        self.meters: list[dict[str, Any]] = []

    def __enter__(self) -> Relay:
        self.process, sock = start("judge")
        key = secrets.token_bytes(32)
        self.channel = Channel(sock, ZERO_KEY, b"h")
        hello = {"type": "hello", "schema": 1, "key": key.hex(), "probes": str(self.probes)}
        self.channel.send({**hello, "world": self.world, "device": self.device})
        self.channel.rekey(key)
        frame = receive(self.channel)
        assert frame.type == "ready", frame.header
        while True:
            frame = receive(self.channel)
            if frame.type == "uncollectable":
                self.uncollectable.append(frame.header)
            else:
                assert frame.type == "collected"
                self.cases += frame.header["cases"]
                if not frame.header["more"]:
                    return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.channel.send({"type": "finish"})
            assert receive(self.channel).type == "bye"
        assert self.process.wait(30) == 0

    def run(self, number: str, seed: int = 1) -> dict[str, Any]:
        self.channel.send({"type": "run", "id": number, "seed": seed, "deadline_s": 60.0})
        while True:
            frame = receive(self.channel)
            if frame.type == "report":
                for launched in self.open.values():
                    self.harness.end(launched)
                self.open.clear()
                return frame.header
            if frame.type != "started":
                reply, payload = self._answer(frame)
                self.channel.send({**reply, "call": frame.header["call"]}, payload)

    def _answer(self, frame: Frame) -> tuple[dict[str, Any], bytes]:
        h = frame.header
        if frame.type == "open":
            return self._open(h["size"] or self.world, h["tree"], h["network"]), b""
        if frame.type == "observe":
            return self._observe(h, frame.payload)
        if frame.type == "start":
            self.started[h["call"]] = (h, frame.payload)
            return {"type": "started"}, b""
        if frame.type in ("wait", "poll"):
            return self._observe(*self.started[h["of"]])
        if frame.type == "signal":
            launched = self.open[h["world"]]
            signal = {"type": "signal", "launch": launched.number, "rank": h["rank"], "signal": h["signal"]}
            self.harness.control.send(signal)
            self.harness.exit_of(launched.number, h["rank"])
            return {"type": "done"}, b""
        if frame.type == "close":
            self.harness.end(self.open.pop(h["world"]))
            return {"type": "done"}, b""
        if frame.type == "meter":
            self.meters.append(h)
            each = {"received": 10, "sent": 20}
            traffic = {"total": {"received": 20, "sent": 40}, "ranks": [each, each]}
            memory = {"baseline_bytes": 100, "peak_bytes": 160}
            return {"type": "metered", "traffic": traffic, "memory": memory}, b""
        return {"type": "refused", "message": f"no {frame.type} here"}, b""

    def _open(self, size: int, tree: str, network: str) -> dict[str, Any]:
        if size > 4:
            return {"type": "refused", "message": f"a world of {size} is too large"}
        args = {
            "mode": "observe",
            "root": str(self.tree),
            "import_roots": [str(self.tree)],
            "pycache": str(self.harness.scratch / "pycache"),
            "probes": str(self.probes),
            "files": None,
            "device": self.device,
        }
        port = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(20_000 + self.harness.count)}
        launched = self.harness.launch(size, args, slot=len(self.open), cwd=str(self.tree), **port)
        for end in launched.ranks:
            end.expect("hello")
        number = len(self.open)
        self.open[number] = launched
        return {"type": "opened", "world": number, "size": size, "device": self.device}

    def _observe(self, h: dict[str, Any], payload: bytearray) -> tuple[dict[str, Any], bytes]:
        launched, offset, asked = self.open[h["world"]], 0, []
        for part in h["parts"]:
            blob, offset = payload[offset : offset + part["length"]], offset + part["length"]
            for rank in part["ranks"]:
                asked.append(rank)
                if (launched.number, rank) not in self.harness.exits:
                    message = {"type": "observe", "call": h["call"], "observer": h["observer"], "inputs": part["inputs"]}
                    launched.ranks[rank].channel.send(message, blob)
        entries, blobs = [], []
        for rank in asked:
            entries.append({"rank": rank, **self._entry(launched, rank, h["deadline_s"], blobs)})
        return {"type": "observed", "ranks": entries}, b"".join(blobs)

    def _entry(self, launched: Launched, rank: int, deadline: float | None, blobs: list[bytes]) -> dict[str, Any]:
        if (launched.number, rank) in self.harness.exits:
            return {"status": "gone"}
        try:
            frame = receive(launched.ranks[rank].channel, deadline or 30.0)
        except TimeoutError:
            return {"status": "timeout", "stack": ""}
        except Exception:
            code, signal = self.harness.exit_of(launched.number, rank)
            return {"status": "crashed", "code": code, "signal": signal, "stack": ""}
        if frame.type == "returned":
            blobs.append(bytes(frame.payload))
            return {"status": "returned", "value": frame.header["value"], "length": len(frame.payload)}
        return {"status": "raised", **{key: value for key, value in frame.header.items() if key not in ("type", "call")}}
