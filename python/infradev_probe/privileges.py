"""Who a process is: uids, capabilities, namespaces, no_new_privs, by the system calls themselves.

Python offers the uid calls but not prctl, capset or (before 3.12) setns; those go through ctypes. Each change is read
back afterwards and :class:`PrivilegeError` says what did not hold, since a rank that keeps a capability by mistake
would look just like one that does not. Capabilities belong to threads: callers must be single-threaded.
Sources: capabilities(7), prctl(2), setns(2), close_range(2).
"""

from __future__ import annotations

import ctypes
import errno
import os
from typing import Iterable

CAP_KILL, CAP_SETGID, CAP_SETUID, CAP_SETPCAP, CAP_SYS_ADMIN = 5, 6, 7, 8, 21
CLONE_NEWNET = 0x40000000
_PR_SET_DUMPABLE, _PR_SET_KEEPCAPS, _PR_CAPBSET_READ, _PR_CAPBSET_DROP = 4, 8, 23, 24
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS, _PR_GET_NO_NEW_PRIVS = 36, 38, 39
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_CAP_VERSION_3 = 0x20080522
_SYS_CLOSE_RANGE = 436  # the same number on every architecture

_libc = ctypes.CDLL(None, use_errno=True)


class PrivilegeError(Exception):
    """A change of identity failed or did not hold."""


class _CapHeader(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _CapData(ctypes.Structure):
    _fields_ = [("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32)]


def _checked(what: str, result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise PrivilegeError(f"{what}: {os.strerror(number)} (errno {number})")
    return result


def _prctl(what: str, option: int, arg: int = 0, arg2: int = 0) -> int:
    unsigned = ctypes.c_ulong
    return _checked(what, _libc.prctl(option, unsigned(arg), unsigned(arg2), unsigned(0), unsigned(0)))


def capabilities() -> tuple[set[int], set[int], set[int]]:
    """This thread's (permitted, effective, inheritable) capability numbers."""
    data = (_CapData * 2)()
    _checked("capget", _libc.capget(ctypes.byref(_CapHeader(_CAP_VERSION_3, 0)), data))

    def numbers(name: str) -> set[int]:
        mask = getattr(data[0], name) | getattr(data[1], name) << 32
        return {bit for bit in range(64) if mask >> bit & 1}

    return numbers("permitted"), numbers("effective"), numbers("inheritable")


def set_capabilities(permitted: Iterable[int], effective: Iterable[int]) -> None:
    """Set the thread's capability sets (inheritable and ambient become empty), and verify them."""
    want_permitted, want_effective = set(permitted), set(effective)
    data = (_CapData * 2)()
    for name, numbers in (("permitted", want_permitted), ("effective", want_effective)):
        mask = sum(1 << bit for bit in numbers)
        setattr(data[0], name, mask & 0xFFFFFFFF)
        setattr(data[1], name, mask >> 32)
    _checked("capset", _libc.capset(ctypes.byref(_CapHeader(_CAP_VERSION_3, 0)), data))
    if capabilities() != (want_permitted, want_effective, set()):
        raise PrivilegeError(f"the capability sets are {capabilities()}, not as set")


def become_launcher(uid: int, gid: int) -> None:
    """Leave root for ``uid``:``gid``, keeping what forking ranks under other uids takes and nothing else.

    Kept and raised: SETUID, SETGID, KILL. SYS_ADMIN stays permitted where it is there, for :func:`enter_network`.
    """
    had, _, _ = capabilities()
    keep = {CAP_SETUID, CAP_SETGID, CAP_KILL}
    if not keep <= had:
        raise PrivilegeError("the launcher was given uids but lacks CAP_SETUID, CAP_SETGID or CAP_KILL")
    permitted = keep | ({CAP_SYS_ADMIN} & had)
    if CAP_SETPCAP in had:
        for bit in range(64):
            if bit not in permitted and _libc.prctl(_PR_CAPBSET_READ, bit, 0, 0, 0) == 1:
                _prctl("dropping from the bounding set", _PR_CAPBSET_DROP, bit)
    _prctl("PR_SET_KEEPCAPS", _PR_SET_KEEPCAPS, 1)
    _set_ids(uid, gid)
    _prctl("PR_SET_KEEPCAPS", _PR_SET_KEEPCAPS, 0)
    set_capabilities(permitted, keep)
    set_dumpable(False)


def _set_ids(uid: int, gid: int) -> None:
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    if os.getresuid() != (uid,) * 3 or os.getresgid() != (gid,) * 3 or os.getgroups():
        raise PrivilegeError(f"became uid {os.getresuid()} gid {os.getresgid()} groups {os.getgroups()}")


def become_rank(uid: int, gid: int, *, dumpable: bool = True) -> None:
    """Become ``uid``:``gid`` with no capability and no way to gain one; verified."""
    _set_ids(uid, gid)
    _libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    # from one uid that is not root to another the kernel keeps capabilities: they have to be put down by hand
    set_capabilities((), ())
    forbid_new_privileges()
    try:
        os.setresuid(0, 0, 0)
    except PermissionError:
        pass
    else:
        raise PrivilegeError("a rank could become root again")
    # a change of uid makes /proc/self root's own; the rank is an ordinary process and reads its maps and descriptors
    set_dumpable(dumpable)


def forbid_new_privileges() -> None:
    """PR_SET_NO_NEW_PRIVS: no setuid program gives this process or its children anything."""
    _prctl("PR_SET_NO_NEW_PRIVS", _PR_SET_NO_NEW_PRIVS, 1)
    if _prctl("PR_GET_NO_NEW_PRIVS", _PR_GET_NO_NEW_PRIVS) != 1:
        raise PrivilegeError("no_new_privs did not hold")


class _Instruction(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint16), ("yes", ctypes.c_uint8), ("no", ctypes.c_uint8), ("value", ctypes.c_uint32)]


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint16), ("instructions", ctypes.POINTER(_Instruction))]


#: By machine: the kernel's word for it, the numbers of seccomp, of add_key, request_key and keyctl, of clone and unshare.
_MACHINES = {
    "x86_64": (0xC000003E, 317, (248, 249, 250), (56, 272)),
    "aarch64": (0xC00000B7, 277, (217, 218, 219), (220, 97)),
}
_CLONE3 = 435  # the same number on every architecture
CLONE_NEWUSER = 0x10000000


def forbid_calls() -> None:
    """From here on, children included: no call on the kernel's keyrings, no user namespace. Takes no_new_privs.

    A uid's keyring outlives all of its processes: what one trial left there the next under the same uid would find; without uids
    it is the user's. Within a user namespace of its own code has every capability, and with it most of what the kernel offers to
    attack. clone3, whose flags no filter can read, is answered as by a kernel that lacks it; the C library then uses clone.
    On another machine, or a kernel without seccomp, nothing is forbidden.
    """
    known = _MACHINES.get(os.uname().machine)
    if known is None:
        return
    architecture, seccomp, keyrings, namespaces = known
    load, equal, at_least, any_of, answer = 0x20, 0x15, 0x35, 0x45, 0x06
    fails = 0x00050000
    # each step: operation, value, where to go on if it holds and if not (the next one where nothing is said)
    steps: list[tuple[int, int, str, str]] = [
        (load, 4, "", ""),
        (equal, architecture, "", "refused"),
        (load, 0, "", ""),
        # the numbers of x32, a second way to the same calls, begin here
        (at_least, 0x40000000, "refused", ""),
        (equal, _CLONE3, "absent", ""),
    ]
    steps += [(equal, call, "refused", "") for call in keyrings]
    steps += [(equal, call, "flags", "") for call in namespaces]
    labels = {"flags": len(steps) + 1, "refused": len(steps) + 3, "absent": len(steps) + 4}
    steps += [
        (answer, 0x7FFF0000, "", ""),
        (load, 16, "", ""),
        (any_of, CLONE_NEWUSER, "refused", "allowed"),
        (answer, fails | errno.EPERM, "", ""),
        (answer, fails | errno.ENOSYS, "", ""),
        (answer, 0x7FFF0000, "", ""),
    ]
    labels["allowed"] = len(steps) - 1

    def jump(at: int, label: str) -> int:
        return labels[label] - at - 1 if label else 0

    compiled = [(op, jump(at, yes), jump(at, no), value) for at, (op, value, yes, no) in enumerate(steps)]
    program = (_Instruction * len(compiled))(*compiled)
    set_filter, spec_allow = 1, 4
    _libc.syscall(seccomp, set_filter, spec_allow, ctypes.byref(_Program(len(compiled), program)))


def set_dumpable(yes: bool) -> None:
    """Whether processes of the same uid may trace this one and read its /proc entries."""
    _prctl("PR_SET_DUMPABLE", _PR_SET_DUMPABLE, int(yes))


def become_subreaper() -> None:
    """Orphans among this process's descendants become its children, so that it can wait for all of them."""
    _prctl("PR_SET_CHILD_SUBREAPER", _PR_SET_CHILD_SUBREAPER, 1)


def enter_network(fd: int) -> None:
    """Move this (forked, single-threaded) process into the network namespace behind ``fd``."""
    permitted, effective, _ = capabilities()
    if CAP_SYS_ADMIN in permitted and CAP_SYS_ADMIN not in effective:
        set_capabilities(permitted, effective | {CAP_SYS_ADMIN})
    _checked("setns to the rank's network namespace", _libc.setns(fd, CLONE_NEWNET))


def close_from(first: int) -> None:
    """Close every descriptor from ``first`` on, whatever /proc shows."""
    if _libc.syscall(_SYS_CLOSE_RANGE, ctypes.c_uint(first), ctypes.c_uint(0xFFFFFFFF), ctypes.c_uint(0)) != 0:
        import resource

        os.closerange(first, min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 1 << 20))


def processes_of(uid: int) -> list[int]:
    """Pids of processes, zombies included, whose real, effective or saved uid is ``uid``."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/status", "rb") as status:
                    text = status.read()
            except OSError:  # gone between the listing and now
                continue
            for line in text.splitlines():
                if line.startswith(b"Uid:"):
                    if str(uid).encode() in line.split():
                        found.append(int(name))
                    break
    return found


def children_of(parent: int) -> list[tuple[int, int]]:
    """(pid, session) of each process, zombies included, whose parent is ``parent``."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as stat:
                    text = stat.read()
            except OSError:
                continue
            _, ppid, _, session = text[text.rindex(b")") + 2 :].split()[:4]
            if int(ppid) == parent:
                found.append((int(name), int(session)))
    return found
