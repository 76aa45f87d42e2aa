"""The launcher: imports the framework once, forks ranks, tells how each ended, sweeps what they left behind.

Trusted, single-threaded, and the only process of the sandbox that may change uid. It runs no code of the repository:
a forked child first stops being the launcher (descriptors, keys, uid, capabilities, environment), then returns the
rank's work to :func:`main`, so that no frame of the event loop lies below the code under test. Events come from the
control channel and from SIGCHLD through a wakeup descriptor; nothing is polled.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import importlib.util
import os
import selectors
import signal
import socket
import sys
import threading
import time
from typing import Any, Mapping

from . import pages, privileges
from .frames import ZERO_KEY, Channel, ChannelClosed, Frame, FrameError
from .installed import packages
from .sweep import Sweeper

SCHEMA = 1
#: Exit code of a rank that could not be forked or set up; its log says why.
SETUP_FAILED = 97
#: Worlds after which memory is worth being made cheaper to fork.
WORTH_LARGE_PAGES = 12
#: A rank's work: [function, channel, args]; see rank_setup.
Job = list[Any]


class Fault(Exception):
    """The launcher cannot work at all; told to the harness as ``fault``."""


class _Launch:
    __slots__ = ("number", "pids", "living", "sweeper", "ending")

    def __init__(self, number: int, sweeper: Sweeper) -> None:
        self.number = number
        self.pids: list[int] = []
        self.living: dict[int, int] = {}  # pid -> rank, until reaped
        self.sweeper = sweeper
        self.ending = False


#: Shared libraries of a framework, in the order in which its own import loads them, and whether their symbols are seen
#: by all; below the framework's folder.
_LIBRARIES = {"torch": (("lib/libtorch_global_deps.so", ctypes.RTLD_GLOBAL), ("lib/libtorch_python.so", ctypes.RTLD_LOCAL))}


def _load_libraries(name: str) -> None:
    """Load a framework's shared libraries: a third of its import, and all of that outside of Python's lock."""
    try:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            return
        for library, mode in _LIBRARIES[name]:
            ctypes.CDLL(os.path.join(os.path.dirname(spec.origin), library), mode=mode)
    except (OSError, ImportError, ValueError, AttributeError):
        return  # the import itself says what is wrong, in its own words


def _import_framework(names: list[str]) -> None:
    loading = [threading.Thread(target=_load_libraries, args=(name,)) for name in names if name in _LIBRARIES]
    for thread in loading:
        thread.start()
    _import_common()
    for thread in loading:
        thread.join()  # ranks are forked from one thread
    for name in names:
        try:
            importlib.import_module(name)
        except Exception as error:
            raise Fault(f"the framework {name!r} does not import: {type(error).__name__}: {error}") from error
    importlib.import_module("infradev_probe.rank_observe")  # looks at which framework is there


def _import_common() -> None:
    """What every rank would import for itself beside the framework; all of it is ours, numpy's or pytest's."""
    for name in ("numpy", "pytest"):
        try:
            importlib.import_module(name)
        except ImportError:  # not every task's environment has them
            continue
    if "pytest" in sys.modules:
        importlib.import_module("infradev_probe.rank_official").preload()


class Launcher:
    """The event loop. ``serve`` returns None at shutdown, and in a forked child the rank's work."""

    def __init__(self, control: Channel) -> None:
        self._control = control
        self._launches: dict[int, _Launch] = {}
        self._launched = 0
        self._uids: Mapping[str, int] | None = None
        self._gid = 0
        self._selector = selectors.DefaultSelector()
        self._wake: tuple[socket.socket, socket.socket] | None = None

    # -- start -------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        hello = self._control.receive()
        if hello.type != "hello" or hello.header.get("schema") != SCHEMA:
            raise Fault(f"expected hello of schema {SCHEMA}, got {hello.type} {hello.header.get('schema')}")
        self._control.rekey(bytes.fromhex(hello.header["key"]))
        gc.disable()  # a framework's import makes objects to stay: looking through them again and again is a fifth of its time
        began = time.monotonic()
        _import_framework(hello.header.get("framework") or [])
        import_s = time.monotonic() - began
        uids = hello.header.get("uids")
        privileges.become_subreaper()
        if uids is not None:
            self._uids, self._gid = uids, hello.header["gid"]
            privileges.become_launcher(uids["launcher"], self._gid)
        self._listen()
        gc.freeze()
        self._control.send(
            {
                "type": "ready",
                "python": ".".join(map(str, sys.version_info[:3])),
                "packages": packages(),
                "import_s": import_s,
                "threads": len(os.listdir("/proc/self/task")),
            }
        )

    def _listen(self) -> None:
        self._wake = socket.socketpair()
        for end in self._wake:
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the harness's to answer
        signal.set_wakeup_fd(self._wake[1].fileno(), warn_on_full_buffer=False)
        self._selector.register(self._wake[0], selectors.EVENT_READ, "wake")
        self._selector.register(self._control.fileno(), selectors.EVENT_READ, "control")

    # -- loop --------------------------------------------------------------------------------------------------------

    def serve(self) -> Job | None:
        assert self._wake is not None
        while True:
            # a sweep is looked at again when a child dies; the short wait covers a process that is not our child
            waiting = any(launch.ending for launch in self._launches.values())
            ready = {key.data for key, _ in self._selector.select(0.05 if waiting else None)}
            if "wake" in ready:
                try:
                    while self._wake[0].recv(4096):
                        pass
                except BlockingIOError:
                    pass
                self._reap()
            if "control" in ready:
                try:
                    frame = self._control.receive()
                except ChannelClosed:
                    frame = Frame("shutdown", {}, bytearray(), ())
                if frame.type == "shutdown":
                    self._shutdown()
                    return None
                job = self._handle(frame)
                if job is not None:
                    return job
            self._finish_endings()

    def _handle(self, frame: Frame) -> Job | None:
        header = frame.header
        if frame.type == "launch":
            return self._launch(header, frame.fds)
        if frame.type == "signal":
            launch = self._launches.get(header["launch"])
            if launch is not None:
                for pid, rank in launch.living.items():  # only the unreaped: their pids can't have been reused
                    if header.get("rank") in (None, rank):
                        self._signal(pid, header["signal"])
        elif frame.type == "end":
            launch = self._launches.get(header["launch"])
            if launch is None:
                self._control.send({"type": "ended", "launch": header["launch"]})
            else:
                launch.ending = True
                launch.sweeper.kill(launch.living, last=self._is_last(launch))
        elif frame.type == "mkdir":
            os.makedirs(header["path"], exist_ok=True)
            os.chmod(header["path"], header["mode"])
            self._control.send({"type": "made", "path": header["path"]})
        else:
            raise Fault(f"unknown message {frame.type!r}")
        return None

    @staticmethod
    def _signal(pid: int, number: int) -> None:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass

    def _is_last(self, launch: _Launch) -> bool:
        return all(other is launch or other.ending for other in self._launches.values())

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for launch in self._launches.values():
                rank = launch.living.pop(pid, None)
                if rank is not None:
                    self._tell_exit(launch.number, rank, os.waitstatus_to_exitcode(status))
                    break

    def _tell_exit(self, launch: int, rank: int, code: int) -> None:
        code_or_signal = {"code": code, "signal": None} if code >= 0 else {"code": None, "signal": -code}
        self._control.send({"type": "exited", "launch": launch, "rank": rank, **code_or_signal})

    def _finish_endings(self) -> None:
        if any(launch.ending for launch in self._launches.values()):
            self._reap()
        for launch in [launch for launch in self._launches.values() if launch.ending]:
            if launch.living:
                continue
            last = self._is_last(launch)
            if launch.sweeper.gone(last=last):
                del self._launches[launch.number]
                self._control.send({"type": "ended", "launch": launch.number})
            else:
                launch.sweeper.kill({}, last=last)

    def _shutdown(self) -> None:
        for launch in self._launches.values():
            launch.ending = True
        for launch in self._launches.values():
            launch.sweeper.kill(launch.living, last=True)
        try:
            while True:  # killed processes only: as a subreaper, of every generation
                os.waitpid(-1, 0)
        except ChildProcessError:
            pass

    # -- fork --------------------------------------------------------------------------------------------------------

    def _launch(self, header: dict[str, Any], fds: tuple[int, ...]) -> Job | None:
        size, per_rank = header["size"], 4 if header["netns"] else 3
        if len(fds) != size * per_rank or len(header["keys"]) != size or header["launch"] in self._launches:
            raise Fault(f"launch {header['launch']}: {len(fds)} descriptors and {len(header['keys'])} keys for {size} ranks")
        uid = None if self._uids is None else self._uids["ranks"] + header["slot"]
        if uid is not None and self._uids is not None and uid in (0, self._uids["launcher"]):
            raise Fault(f"slot {header['slot']} gives ranks the uid {uid}, which is not theirs: a sweep would reach further")
        launch = _Launch(header["launch"], Sweeper(uid, self._gid))
        self._launches[launch.number] = launch
        sys.stdout.flush()
        sys.stderr.flush()
        gc.freeze()
        self._launched += 1
        if self._launched == WORTH_LARGE_PAGES:
            pages.join()
        # until the child has put down the launcher's handlers, no signal may run them there
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        unborn: list[int] = []
        for rank in range(size):
            try:
                pid = os.fork()
            except OSError as error:  # what ranks of another world hold leaves no room: theirs to answer for
                os.write(fds[rank * per_rank + 1], f"rank {rank} could not be forked: {error}\n".encode())
                unborn.append(rank)
                continue
            if pid == 0:
                mine = fds[rank * per_rank : (rank + 1) * per_rank]
                self._forget()
                from . import rank_setup

                return rank_setup.prepare(header, rank, mine, uid, self._gid)
            launch.pids.append(pid)
            launch.living[pid] = rank
            launch.sweeper.add(pid)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        for fd in fds:
            os.close(fd)
        self._control.send({"type": "launched", "launch": launch.number, "pids": launch.pids})
        for rank in unborn:
            self._tell_exit(launch.number, rank, SETUP_FAILED)
        return None

    def _forget(self) -> None:
        """In the child: put down handlers, keys and books (the descriptors are closed by the set-up)."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        self._control.rekey(os.urandom(32))
        # now, by its own object: that would otherwise close its number later, when it is the rank's channel
        self._control.close()
        self._selector.close()
        for end in self._wake or ():
            end.close()
        self._launches.clear()
        self._wake = None
        gc.enable()


def main() -> None:
    """Entry of the launcher process; its control channel's descriptor is in INFRADEV_CONTROL_FD."""
    fd = int(os.environ.pop("INFRADEV_CONTROL_FD"))
    os.set_inheritable(fd, False)
    # `python -c` puts the working directory first: nothing may be imported from there
    sys.path[:] = [entry for entry in sys.path if entry not in ("", ".")]
    control = Channel(socket.socket(fileno=fd), ZERO_KEY)
    launcher = Launcher(control)
    try:
        launcher.start()
        job = launcher.serve()
    except (Fault, FrameError, privileges.PrivilegeError, KeyError, TypeError, OSError, ValueError) as error:
        what = str(error) if isinstance(error, Fault) else f"{type(error).__name__}: {error}"
        try:
            control.send({"type": "fault", "message": what[:2000]})
        except (OSError, FrameError):
            pass
        raise
    if job is not None:
        del launcher, control, fd
        job.pop(0)(job)
        os._exit(0)
