"""Ending everything that a launch left behind: ranks, their children, daemons in sessions of their own.

With a uid per open world it is exact: a child becomes that uid without capabilities, and ``kill(-1, SIGKILL)`` then
reaches each process of that uid and nothing else. Without uids (sandbox kind ``none``) the launcher, a child
subreaper, walks its own descendants: a process is a launch's when it descends from one of its ranks or carries a
session of one; orphans that left both are taken with the last launch that is ended.
"""

from __future__ import annotations

import os
import signal
from typing import Iterable

from . import privileges


class Sweeper:
    """Kills and checks for one launch; ``uid`` None means: by descent."""

    __slots__ = ("_uid", "_gid", "_ranks")

    def __init__(self, uid: int | None, gid: int) -> None:
        self._uid, self._gid = uid, gid
        self._ranks: set[int] = set()

    def add(self, pid: int) -> None:
        """Name a rank's pid (also its session's number)."""
        self._ranks.add(pid)

    def kill(self, living: Iterable[int], *, last: bool) -> None:
        """Send SIGKILL to all that is left; ``living`` are the ranks not reaped yet. Returns at once."""
        for pid in living:
            _send(pid, signal.SIGKILL)
        if self._uid is not None:
            self._kill_uid(self._uid)
        else:
            for pid in self._descendants(last):
                _send(pid, signal.SIGKILL)

    def gone(self, *, last: bool) -> bool:
        """Whether nothing of the launch is left, zombies included: the launcher, a subreaper, gets to wait for each."""
        if self._uid is not None:
            return not privileges.processes_of(self._uid)
        return not self._descendants(last)

    def _kill_uid(self, uid: int) -> None:
        try:
            pid = os.fork()
        except OSError:  # they hold every process or all memory that the sandbox may have
            self._stop_and_kill(uid)
            return
        if pid == 0:
            try:
                # the launcher's own channel must not lie open in a process of their uid, nor its key readable there
                privileges.close_from(0)
                # raises unless every capability is down: with CAP_KILL left, the signal would reach the launcher
                privileges.become_rank(uid, self._gid, dumpable=False)
                os.kill(-1, signal.SIGKILL)
            finally:
                os._exit(0)
        os.waitpid(pid, 0)

    @staticmethod
    def _stop_and_kill(uid: int) -> None:
        """The same without a process more: what is stopped cannot fork, so a pass that finds none to stop has them all."""
        stopped: set[int] = set()
        while fresh := set(privileges.processes_of(uid)) - stopped:
            for pid in fresh:
                _send(pid, signal.SIGSTOP)
            stopped |= fresh
        for pid in stopped:
            _send(pid, signal.SIGKILL)

    def _descendants(self, last: bool) -> list[int]:
        found: list[int] = []
        queue = [
            pid
            for pid, session in privileges.children_of(os.getpid())
            if last or pid in self._ranks or session in self._ranks
        ]
        while queue:
            pid = queue.pop()
            found.append(pid)
            queue.extend(child for child, _ in privileges.children_of(pid))
        return found


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
