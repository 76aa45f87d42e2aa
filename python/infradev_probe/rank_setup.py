"""From the launcher's forked child to a rank: identity, descriptors, environment, import path; then its mode.

The order matters: the namespace while the capability is there, the descriptors before the uid (the launcher's own are
gone before anything untrusted can run), the identity before the first import from the repository.
"""

from __future__ import annotations

import faulthandler
import fcntl
import importlib.util
import io
import os
import shutil
import signal
import socket
import sys
import traceback
from typing import TYPE_CHECKING, Any, Sequence

from . import privileges
from .bytecode import use_installed
from .frames import Channel
from .rendezvous import arrive_after_rank_zero

if TYPE_CHECKING:
    from .reach import Reach

_CHANNEL, _STACK = 3, 4
_KIT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def prepare(
    launch: dict[str, Any], rank: int, fds: Sequence[int], uid: int | None, gid: int
) -> list[Any]:
    """Turn this process into rank ``rank`` of ``launch``; ends the process on any failure.

    Returns its work as [function, channel, args]: a list that the function empties, so that no frame below the code
    under test holds the channel.
    """
    try:
        key = bytes.fromhex(launch["keys"][rank])
        args = dict(launch["args"], rank=rank, size=launch["size"])
        env = {**launch["env"], **launch["rank_env"][rank]}
        cwd = launch["cwd"]
        launch.clear()
        if len(fds) == 4:
            privileges.enter_network(fds[3])
        os.setsid()
        _take_descriptors(*fds[:3])
        if uid is not None:
            privileges.become_rank(uid, gid)
        else:
            privileges.forbid_new_privileges()
        privileges.forbid_calls()
        mode = args["mode"]
        if mode != "template":  # which would take all that it forks with it
            _die_first()
        faulthandler.enable(file=_STACK, all_threads=True)
        faulthandler.register(signal.SIGUSR1, file=_STACK, all_threads=True, chain=False)
        os.environ.clear()
        os.environ.update(env)
        os.umask(0o022)
        for stream in (sys.stdout, sys.stderr):  # what a case prints before it crashes is in its log
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(line_buffering=True)
        os.chdir(cwd)
        if rank == 0:
            for folder in args.pop("leavings", ()):
                shutil.rmtree(folder, ignore_errors=True)
        if mode == "resumed":
            sys.dont_write_bytecode = not args.get("keeps_bytecode", True)
        else:
            _set_imports(args["import_roots"], args["pycache"], args.get("keeps_bytecode", True))
        _apply_environment(env)
        if rank != 0:
            arrive_after_rank_zero()
        channel = Channel(socket.socket(fileno=_CHANNEL), key)
        del key
        work: Any = None  # a rank forked of a template goes on where that stood
        if mode in ("official", "template"):
            from .rank_official import run as work
        elif mode == "observe":
            from .rank_observe import run as work
        elif mode != "resumed":
            raise ValueError(f"unknown mode {mode!r}")
        return [work, channel, args]
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(97)


def _die_first() -> None:
    """Where memory runs out, this process and its children are killed before the launcher, whatever each of them holds."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:  # no sandbox, or a /proc that is read-only
        pass


def _take_descriptors(channel: int, log: int, stack: int) -> None:
    # first out of the way of the numbers to be taken, then onto them
    channel, log, stack = (_above(fd) for fd in (channel, log, stack))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.dup2(channel, _CHANNEL, inheritable=False)
    os.dup2(stack, _STACK, inheritable=False)
    privileges.close_from(_STACK + 1)


def _above(fd: int) -> int:
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 64)


def _set_imports(roots: Sequence[str], pycache: str, keeps_bytecode: bool = True) -> None:
    # the kit is loaded and its folder holds nothing else that a rank may import; the repository comes last
    installed = [entry for entry in sys.path if os.path.abspath(entry) != _KIT]
    sys.path[:] = installed + list(roots)
    sys.pycache_prefix = pycache
    sys.dont_write_bytecode = not keeps_bytecode
    use_installed(installed, but=roots)


def _apply_environment(env: dict[str, str]) -> None:
    """What libraries read from the environment when they load, which was in the launcher, told to them now."""
    torch: Any = sys.modules.get("torch")
    threads = env.get("OMP_NUM_THREADS", "")
    if torch is not None and threads.isdigit() and int(threads) > 0:
        torch.set_num_threads(int(threads))
    random: Any = sys.modules.get("numpy.random")
    if random is not None:  # forked ranks would share numpy's global state, which processes of their own do not
        random.seed()


def followed(args: dict[str, Any]) -> Reach | None:
    """What follows the lines that run, where the harness wants to know them."""
    if not args.get("reach"):
        return None
    from .reach import Reach

    reach = Reach(args["reach"])
    reach.start()
    return reach


def outside(names: Sequence[str], roots: Sequence[str]) -> list[str]:
    """The top-level names that do not resolve inside an import root: something else would be tested instead."""
    inside = tuple(os.path.realpath(root) + os.sep for root in roots)
    strangers = []
    for name in names:
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError, AttributeError):
            spec = None
        places: list[str] = []
        if spec is not None:
            if spec.origin is not None and spec.has_location:
                places = [spec.origin]
            else:
                places = [os.path.join(place, "") for place in spec.submodule_search_locations or ()]
        if not any((os.path.realpath(place) + os.sep).startswith(inside) for place in places):
            strangers.append(name)
    return strangers
