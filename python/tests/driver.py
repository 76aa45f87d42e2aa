"""A small harness side for the tests: starts a launcher, opens launches, speaks the protocol as the real one does."""

from __future__ import annotations

import os
import secrets
import select
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Sequence

from infradev_probe.frames import ZERO_KEY, Channel, Frame

KIT = Path(__file__).resolve().parents[1]
#: No test waits for this long unless something hangs.
PATIENCE_S = 60.0


def receive(channel: Channel, patience: float = PATIENCE_S) -> Frame:
    ready, _, _ = select.select([channel.fileno()], [], [], patience)
    if not ready:
        raise TimeoutError("no frame came")
    return channel.receive()


#: What a GPU's libraries read, and what a machine's owner set for them.
DEVICE_ENV = {
    name: value
    for name, value in os.environ.items()
    if name.startswith(("NCCL_", "TORCH_", "NVSHMEM_", "CUDA_")) or name == "LD_LIBRARY_PATH"
}


def start(module: str, **extra_env: str) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """A launcher or judge process and the harness's end of its control socket."""
    ours, theirs = socket.socketpair()
    # descriptor 3, which is also where a rank's channel comes to lie
    code = "import os; os.dup2(int(os.environ['INFRADEV_CONTROL_FD']), 3); os.environ['INFRADEV_CONTROL_FD'] = '3'; "
    code += f"import sys; sys.path.insert(0, {str(KIT)!r}); from infradev_probe.{module} import main; main()"
    env = {
        **DEVICE_ENV,
        "PATH": os.environ["PATH"],
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "INFRADEV_CONTROL_FD": str(theirs.fileno()),
        **extra_env,
    }
    process = subprocess.Popen([sys.executable, "-c", code], env=env, pass_fds=[theirs.fileno()])
    theirs.close()
    return process, ours


@dataclass
class RankEnd:
    """The harness's end of one rank."""

    channel: Channel
    sock: socket.socket
    key: bytes
    log: Path
    stack: Path
    hello: Frame | None = None

    def expect(self, kind: str) -> Frame:
        frame = receive(self.channel)
        assert frame.type == kind, f"{frame.type} came where {kind} was due: {frame.header}"
        return frame


@dataclass
class Launched:
    number: int
    ranks: list[RankEnd]
    pids: list[int]


@dataclass
class Harness:
    """One launcher and what it said."""

    scratch: Path
    framework: list[str] = field(default_factory=list)
    uids: dict[str, int] | None = None
    gid: int | None = None
    ready: dict[str, Any] = field(default_factory=dict)
    exits: dict[tuple[int, int], tuple[int | None, int | None]] = field(default_factory=dict)
    count: int = 0

    def __enter__(self) -> Harness:
        self.process, self.sock = start("launcher")
        key = secrets.token_bytes(32)
        self.control = Channel(self.sock, ZERO_KEY, b"h")
        hello = {"type": "hello", "schema": 1, "key": key.hex(), "framework": self.framework}
        self.control.send({**hello, "uids": self.uids, "gid": self.gid})
        self.control.rekey(key)
        self.ready = self.expect("ready").header
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            try:
                self.control.send({"type": "shutdown"})
            except OSError:
                pass
        self.process.wait(PATIENCE_S)
        self.sock.close()

    def expect(self, kind: str) -> Frame:
        """The next frame of this kind; ``exited`` frames on the way are written down."""
        while True:
            frame = receive(self.control)
            if frame.type == "exited":
                h = frame.header
                self.exits[h["launch"], h["rank"]] = (h["code"], h["signal"])
            if frame.type == kind:
                return frame
            assert frame.type == "exited", f"{frame.type} came where {kind} was due: {frame.header}"

    def exit_of(self, launch: int, rank: int) -> tuple[int | None, int | None]:
        while (launch, rank) not in self.exits:
            self.expect("exited")
        return self.exits[launch, rank]

    def launch(self, size: int, args: dict[str, Any], slot: int = 0, cwd: str = "/", netns: Sequence[int] = (), **env: str) -> Launched:
        number, self.count = self.count, self.count + 1
        ranks, theirs = [], []
        for rank in range(size):
            ours, far = socket.socketpair()
            key = secrets.token_bytes(32)
            log, stack = self.scratch / f"{number}-{rank}.log", self.scratch / f"{number}-{rank}.stack"
            ranks.append(RankEnd(Channel(ours, key, b"h"), ours, key, log, stack))
            flags = os.O_CREAT | os.O_APPEND | os.O_RDWR
            theirs += [far.detach(), os.open(log, flags, 0o666), os.open(stack, flags, 0o666)]
            theirs += [os.dup(netns[rank])] if netns else []
        self.control.send(
            {
                "type": "launch",
                "launch": number,
                "size": size,
                "slot": slot,
                "keys": [end.key.hex() for end in ranks],
                "env": {**DEVICE_ENV, "PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1", "WORLD_SIZE": str(size), **env},
                "rank_env": [{"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(size)],
                "cwd": cwd,
                "netns": bool(netns),
                "args": args,
            },
            fds=theirs,
        )
        for fd in theirs:
            os.close(fd)
        pids = self.expect("launched").header["pids"]
        return Launched(number, ranks, pids)

    def official(self, tree: Path, files: list[str], size: int = 1, **options: Any) -> Launched:
        """Ranks in official mode, past their hello."""
        args = {
            "mode": "official",
            "root": str(tree),
            "import_roots": [str(tree)],
            "pycache": str(self.scratch / "pycache"),
            "files": files,
            "plugins": options.pop("plugins", []),
            "top_level": options.pop("top_level", []),
            "timeout_s": 60,
        }
        launched = self.launch(size, args, cwd=str(tree), **options)
        for end in launched.ranks:
            end.hello = end.expect("hello")
        return launched

    def end(self, launched: Launched) -> None:
        self.control.send({"type": "end", "launch": launched.number})
        self.expect("ended")


def collect(end: RankEnd) -> tuple[list[str], dict[str, dict[str, Any]], list[str]]:
    """(ids, uncollectable by file, files in the order of ``collecting``)."""
    ids: list[str] = []
    failures: dict[str, dict[str, Any]] = {}
    begun: list[str] = []
    while True:
        frame = receive(end.channel)
        if frame.type == "collecting":
            begun.append(frame.header["file"])
        elif frame.type == "uncollectable":
            failures.setdefault(frame.header["file"], frame.header)
        else:
            assert frame.type == "collected", frame.header
            ids += frame.header["ids"]
            if not frame.header["more"]:
                return ids, failures, begun


def run_case(end: RankEnd, number: str, following: str | None = None) -> dict[str, Any]:
    end.channel.send({"type": "run", "id": number, "next": following})
    frame = receive(end.channel)
    if frame.type == "started":
        frame = end.expect("report")
    assert frame.type == "report" and frame.header["id"] == number
    return frame.header


def run_all(end: RankEnd, ids: list[str]) -> dict[str, dict[str, Any]]:
    return {number: run_case(end, number, after) for number, after in zip(ids, [*ids[1:], None])}


def finish(end: RankEnd) -> None:
    end.channel.send({"type": "finish"})
    end.expect("bye")


def until(condition: Any, patience: float = PATIENCE_S) -> None:
    """Wait for something that announces itself only by being there (a process's entry, a file)."""
    limit = time.monotonic() + patience
    while not condition():
        if time.monotonic() > limit:
            raise TimeoutError("the condition never held")
        time.sleep(0.005)
