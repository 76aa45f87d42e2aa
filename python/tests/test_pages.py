"""Memory in large pages: what is in it stays, and forks see it."""

import os
import subprocess
import sys

KIT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

JOINS = """
import os, sys
sys.path.insert(0, sys.argv[1])
from infradev_probe import pages

def large():
    with open("/proc/self/smaps_rollup") as table:
        return sum(int(line.split()[1]) << 10 for line in table if line.startswith("AnonHugePages"))

held = [bytes([number % 251]) * 4096 for number in range(8192)]
before = large()
joined = pages.join()
grown = large() - before
intact = all(text == bytes([number % 251]) * 4096 for number, text in enumerate(held))
pid = os.fork()
if pid == 0:
    held[0] = b"another"
    os._exit(0 if all(text == bytes([number % 251]) * 4096 for number, text in enumerate(held) if number) else 1)
child = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(joined, grown, intact, child, held[0] == bytes(4096))
"""


def test_memory_is_the_same_once_its_pages_are_large():
    ran = subprocess.run([sys.executable, "-c", JOINS, KIT], capture_output=True, text=True, check=True)
    joined, grown, *same = ran.stdout.split()
    assert same == ["True", "0", "True"]
    # a kernel without the call joins none
    assert int(grown) >= 0 and (int(joined) > 0) == (int(grown) > 0)
