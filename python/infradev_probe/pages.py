"""Memory that is forked again and again, in large pages: a fork copies one entry of the page table for each, and an exit gives one back.

A process that has imported torch holds 300 MB in 75,000 pages. Found on Linux 6.18: forked in 4 ms and ended in 12 once they are
large, in 12 to 20 and 25 before; to make them large takes half a second (madvise(2), MADV_COLLAPSE, since Linux 6.1).
"""

from __future__ import annotations

import ctypes

LARGE = 2 << 20
_MADV_COLLAPSE = 25


def join() -> int:
    """Make this process's own pages large where they can be; gives how many became so. Where the kernel has no such call: none."""
    libc = ctypes.CDLL(None, use_errno=True)
    joined = 0
    for first, end in _private():
        for at in range(-(-first // LARGE) * LARGE, end - LARGE + 1, LARGE):
            joined += libc.madvise(ctypes.c_void_p(at), ctypes.c_size_t(LARGE), _MADV_COLLAPSE) == 0
    return joined


def _private() -> list[tuple[int, int]]:
    """Where memory lies that belongs to no file and can be written; the stack is left alone."""
    places = []
    try:
        with open("/proc/self/maps") as maps:
            for line in maps:
                where, rights, _, _, inode, *name = line.split()
                if rights == "rw-p" and inode == "0" and name in ([], ["[heap]"]):
                    first, _, end = where.partition("-")
                    places.append((int(first, 16), int(end, 16)))
    except OSError:  # no /proc
        return []
    return places
