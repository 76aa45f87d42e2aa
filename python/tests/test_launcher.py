"""The launcher: identities, ends, sweeps. Run as root, without a sandbox."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Iterator

import pytest
from driver import Harness, Launched, collect, finish, receive, run_case, until

from infradev_probe.frames import FrameError
from infradev_probe.privileges import processes_of

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="changes uids")
# uids of this run alone: another run's sweeps would take processes of the same ones
LAUNCHER = 1_000_000 + os.getpid() * 100
RANKS, GID = LAUNCHER + 10, LAUNCHER


@pytest.fixture
def harness(open_dir: Path) -> Iterator[Harness]:
    with Harness(open_dir, uids={"launcher": LAUNCHER, "ranks": RANKS}, gid=GID) as harness:
        yield harness


@pytest.fixture
def plain(open_dir: Path) -> Iterator[Harness]:
    with Harness(open_dir) as harness:
        yield harness


def tree(folder: Path, source: str) -> Path:
    root = folder / "tree"
    (root / "tests").mkdir(parents=True, exist_ok=True)
    (root / "tests" / "test_x.py").write_text(source)
    return root


def open_one(harness: Harness, folder: Path, source: str, size: int = 1, slot: int = 0) -> tuple[Launched, list[str]]:
    launched = harness.official(tree(folder, source), ["tests/test_x.py"], size=size, slot=slot)
    ids, failures, _ = collect(launched.ranks[0])
    assert not failures
    for end in launched.ranks[1:]:
        assert collect(end)[0] == ids
    return launched, ids


def status(pid: int) -> dict[str, list[str]]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {line.split(":", 1)[0]: line.split(":", 1)[1].split() for line in lines}


def test_launcher_and_ranks_have_uids_of_their_own_and_ranks_no_capability(harness: Harness, open_dir: Path) -> None:
    launched, _ = open_one(harness, open_dir, "def test_a(): pass", size=2, slot=3)
    above = status(harness.process.pid)
    assert above["Uid"] == [str(LAUNCHER)] * 4 and above["Gid"] == [str(GID)] * 4
    assert int(above["CapEff"][0], 16) == 1 << 5 | 1 << 6 | 1 << 7
    assert int(above["CapPrm"][0], 16) in (1 << 5 | 1 << 6 | 1 << 7, 1 << 5 | 1 << 6 | 1 << 7 | 1 << 21)
    for pid in launched.pids:
        below = status(pid)
        assert below["Uid"] == [str(RANKS + 3)] * 4 and below["Gid"] == [str(GID)] * 4 and below["Groups"] == []
        assert {int(below[name][0], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {0}
        assert below["NoNewPrivs"] == ["1"]
    harness.end(launched)


def test_a_rank_holds_its_own_descriptors_only(harness: Harness, open_dir: Path) -> None:
    launched, _ = open_one(harness, open_dir, "def test_a(): pass", size=2)
    for pid in launched.pids:
        links = {int(fd): os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
        log = links.pop(1)
        assert log.endswith(".log") and links.pop(0) == "/dev/null"
        assert links.pop(3).startswith("socket:") and links.pop(4).endswith(".stack")
        assert set(links.values()) <= {log, "/dev/null"}, "pytest keeps copies of these, and nothing else is open"
    harness.end(launched)


def test_a_rank_cannot_signal_or_trace_the_launcher(harness: Harness, open_dir: Path) -> None:
    source = f"""
import os, signal, pytest
def test_kill_all():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.kill(-1, signal.SIGTERM)
def test_kill():
    with pytest.raises(PermissionError): os.kill({harness.process.pid}, 9)
    with pytest.raises(PermissionError): open("/proc/{harness.process.pid}/mem", "rb")
    with pytest.raises(PermissionError): os.listdir("/proc/{harness.process.pid}/fd")
def test_root():
    with pytest.raises(PermissionError): os.setuid(0)
    assert "INFRADEV_CONTROL_FD" not in os.environ
"""
    launched, ids = open_one(harness, open_dir, source)
    for number in ids:
        report = run_case(launched.ranks[0], number)
        assert report["outcome"] == "passed", report
    assert harness.process.poll() is None
    harness.end(launched)


DAEMON = """
import os, time
def test_leaves_a_daemon():
    r, w = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            os.write(w, str(os.getpid()).encode() + b"\\n")
            os.closerange(0, 100)
            time.sleep(600)
        os._exit(0)
    os.wait()
    open({where!r}, "wb").write(os.read(r, 20))
"""


@pytest.mark.parametrize("kind", ["uids", "descent"])
def test_the_end_of_a_launch_takes_a_daemonised_grandchild(
    kind: str, open_dir: Path, request: pytest.FixtureRequest
) -> None:
    harness: Harness = request.getfixturevalue("harness" if kind == "uids" else "plain")
    note = open_dir / "daemon"
    launched, ids = open_one(harness, open_dir, DAEMON.format(where=str(note)))
    assert run_case(launched.ranks[0], ids[0])["outcome"] == "passed"
    daemon = int(note.read_text())
    finish(launched.ranks[0])
    assert harness.exit_of(launched.number, 0) == (0, None)
    assert os.path.exists(f"/proc/{daemon}")
    harness.end(launched)
    assert not os.path.exists(f"/proc/{daemon}")


def test_a_sweep_spares_another_open_launch(harness: Harness, open_dir: Path) -> None:
    one, _ = open_one(harness, open_dir, "def test_a(): pass", slot=0)
    two, ids = open_one(harness, open_dir, "def test_a(): pass", slot=1)
    harness.end(one)
    assert processes_of(RANKS) == [] and processes_of(RANKS + 1) == two.pids
    assert run_case(two.ranks[0], ids[0])["outcome"] == "passed"
    harness.end(two)


def test_a_fork_bomb_is_swept(harness: Harness, open_dir: Path) -> None:
    source = """
import os, time
def test_bomb():
    for _ in range(60):
        if os.fork() == 0:
            os.setsid()
            while True:
                if os.fork(): time.sleep(0.002); os._exit(0)
"""
    launched, ids = open_one(harness, open_dir, source)
    run_case(launched.ranks[0], ids[0])
    harness.end(launched)
    assert processes_of(RANKS) == []


def test_each_rank_s_end_is_told_with_its_code_or_signal(harness: Harness, open_dir: Path) -> None:
    source = """
import os, signal, ctypes
def test_end():
    rank = int(os.environ["RANK"])
    if rank == 0: os._exit(7)
    if rank == 1: ctypes.string_at(0)
    if rank == 2: os.kill(os.getpid(), signal.SIGKILL)
    if rank == 3: os.closerange(0, 1000)
"""
    launched, ids = open_one(harness, open_dir, source, size=4)
    for end in launched.ranks:
        end.channel.send({"type": "run", "id": ids[0], "next": None})
    assert harness.exit_of(launched.number, 0) == (7, None)
    assert harness.exit_of(launched.number, 1) == (None, signal.SIGSEGV)
    assert harness.exit_of(launched.number, 2) == (None, signal.SIGKILL)
    code, number = harness.exit_of(launched.number, 3)
    assert code not in (0, None) and number is None
    assert "test_end" in launched.ranks[1].stack.read_text()
    harness.end(launched)


def test_a_hang_shows_its_stack_on_sigusr1_and_goes_on_hanging(harness: Harness, open_dir: Path) -> None:
    source = "import threading\ndef test_waits_for_ever():\n    threading.Event().wait()\n"
    launched, ids = open_one(harness, open_dir, source)
    end = launched.ranks[0]
    end.channel.send({"type": "run", "id": ids[0], "next": None})
    end.expect("started")

    def stack() -> str:
        harness.control.send({"type": "signal", "launch": launched.number, "rank": 0, "signal": int(signal.SIGUSR1)})
        return end.stack.read_text()

    until(lambda: "test_waits_for_ever" in stack())
    assert os.path.exists(f"/proc/{launched.pids[0]}")
    harness.end(launched)
    assert harness.exits[launched.number, 0] == (None, signal.SIGKILL)


def test_descriptors_of_dead_ranks_do_not_pile_up(harness: Harness, open_dir: Path) -> None:
    def count() -> int:
        return len(os.listdir(f"/proc/{harness.process.pid}/fd"))

    before = count()
    for _ in range(3):
        launched, _ = open_one(harness, open_dir, "def test_a(): pass", size=2)
        harness.end(launched)
    assert count() == before


def test_a_folder_between_worlds_has_the_mode_asked_for(harness: Harness, open_dir: Path) -> None:
    path = open_dir / "files" / "one"
    harness.control.send({"type": "mkdir", "path": str(path), "mode": 0o1777})
    harness.expect("made")
    assert path.stat().st_mode & 0o7777 == 0o1777 and path.stat().st_uid == LAUNCHER


def test_a_rank_that_cannot_be_set_up_says_why_in_its_log(harness: Harness) -> None:
    launched = harness.launch(1, {"mode": "nonsense", "import_roots": [], "pycache": "/nowhere"})
    assert harness.exit_of(launched.number, 0) == (97, None)
    assert "unknown mode 'nonsense'" in launched.ranks[0].log.read_text()
    harness.end(launched)


def test_a_framework_that_does_not_import_is_a_fault(open_dir: Path) -> None:
    with pytest.raises(AssertionError, match="fault came where ready was due.*no_such_framework"):
        with Harness(open_dir, framework=["no_such_framework"]):
            pass


def test_the_launcher_and_its_ranks_import_only_what_they_were_told(harness: Harness, open_dir: Path) -> None:
    source = """
import os, sys
def test_path():
    assert sys.path[-2:] == [os.getcwd(), os.path.dirname(__file__)] and "" not in sys.path
    assert not any(os.path.exists(os.path.join(p, "infradev_probe")) for p in sys.path)
    assert "torch" not in sys.modules and "infradev_probe.judge" not in sys.modules
    assert sys.pycache_prefix and not sys.dont_write_bytecode
"""
    launched, ids = open_one(harness, open_dir, source)
    report = run_case(launched.ranks[0], ids[0])
    assert report["outcome"] == "passed", report
    harness.end(launched)
    assert not list((open_dir / "tree").rglob("__pycache__"))


def test_ready_tells_python_and_packages(harness: Harness) -> None:
    assert harness.ready["python"] == "%d.%d.%d" % sys.version_info[:3]
    assert harness.ready["packages"]["pytest"] == pytest.__version__
    assert harness.ready["threads"] == 1


def test_a_tampered_control_frame_ends_the_launcher(open_dir: Path) -> None:
    harness = Harness(open_dir)
    with harness:
        harness.control.rekey(bytes(range(32)))
        harness.control.send({"type": "shutdown"})
        harness.process.wait(30)
        assert harness.process.returncode != 0


@pytest.mark.parametrize("kind", ["uids", "root"])
def test_each_rank_enters_the_network_it_was_given(kind: str, open_dir: Path, request: pytest.FixtureRequest) -> None:
    harness: Harness = request.getfixturevalue("harness" if kind == "uids" else "plain")
    source = "import os\ndef test_net(): raise ValueError(os.readlink('/proc/self/ns/net'))\n"
    holders = [subprocess.Popen(["unshare", "-n", "cat"], stdin=subprocess.PIPE) for _ in range(2)]
    own = os.readlink("/proc/self/ns/net")
    try:
        until(lambda: all(os.readlink(f"/proc/{holder.pid}/ns/net") != own for holder in holders))
        names = [os.readlink(f"/proc/{holder.pid}/ns/net") for holder in holders]
        fds = [os.open(f"/proc/{holder.pid}/ns/net", os.O_RDONLY) for holder in holders]
        launched = harness.official(tree(open_dir, source), ["tests/test_x.py"], size=2, netns=fds)
        told = []
        for end in launched.ranks:
            ids, _, _ = collect(end)
            told.append(run_case(end, ids[0])["message"])
        assert told == names and len({own, *names}) == 3
        assert int(status(launched.pids[0])["CapEff"][0], 16) == 0 or kind == "root"
        harness.end(launched)
        for fd in fds:
            os.close(fd)
    finally:
        for holder in holders:
            holder.communicate()


def test_writing_to_every_descriptor_shows_as_a_broken_channel(harness: Harness, open_dir: Path) -> None:
    source = """
import os
def test_forges():
    for fd in range(3, 100):
        try: os.write(fd, b'IDF1{"type":"report","outcome":"passed"}' * 10)
        except OSError: pass
"""
    launched, ids = open_one(harness, open_dir, source)
    end = launched.ranks[0]
    end.channel.send({"type": "run", "id": ids[0], "next": None})
    end.expect("started")
    with pytest.raises(FrameError):
        receive(end.channel)
    harness.end(launched)


def test_a_rank_s_children_do_not_inherit_its_channel(harness: Harness, open_dir: Path) -> None:
    source = """
import subprocess
def test_child():
    out = subprocess.run(["readlink", "/proc/self/fd/3"], capture_output=True, close_fds=False)
    assert b"socket" not in out.stdout
"""
    launched, ids = open_one(harness, open_dir, source)
    report = run_case(launched.ranks[0], ids[0])
    assert report["outcome"] == "passed", report
    harness.end(launched)


def test_a_slot_never_gives_ranks_the_launcher_s_uid(open_dir: Path) -> None:
    with Harness(open_dir, uids={"launcher": LAUNCHER, "ranks": LAUNCHER - 1}, gid=GID) as harness:
        with pytest.raises(AssertionError, match="fault came where launched was due.*a sweep would reach further"):
            harness.launch(1, {"mode": "official", "import_roots": [], "pycache": "/nowhere"}, slot=1)
