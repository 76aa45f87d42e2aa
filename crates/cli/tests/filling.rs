//! `infradev attempt` by agents that fill the disk.

mod ground;
mod harm;
mod scripted;

use std::fs;
use std::os::unix::fs::symlink;

use ground::Ground;
use harm::{assert_nothing_left, no_process_of};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use scripted::kept;
use serde_json::{Value, json};

/// What each of the programs begins with: bytes that are no holes, and make a small patch.
const FILLS: &str = "
import os
MIB = os.urandom(4096) * 256

def fill(path, mib):
    with open(path, 'wb') as file:
        for _ in range(mib):
            file.write(MIB)

open('toy/model.py', 'a').write('\\n\\ndef triple(x):\\n    return 3 * x\\n')
";

const ARGS: [&str; 10] = [
    "attempt",
    "pack",
    "--json",
    "--agent",
    "command",
    "--command",
    "python {agent}/mine.py",
    "--folder",
    "mine",
    "--disk",
];

fn filling(program: &str) -> Ground {
    let ground = Ground::new();
    ground.write("mine/mine.py", &format!("{FILLS}{program}"));
    ground
}

/// The record of an agent that may put 64 MiB on the disk, and its patch.
fn bounded(ground: &Ground) -> (Value, String) {
    bounded_by(ground, "0.0625")
}

/// The same under another bound, GiB.
fn bounded_by(ground: &Ground, disk: &str) -> (Value, String) {
    let document = ground.infradev(&[&ARGS[..], &[disk]].concat()).exits(0).json();
    let mut record = document["submissions"][0].clone();
    record["its words"] = kept(ground, &document, "agent.err").into();
    (record, kept(ground, &document, "patch.diff"))
}

#[track_caller]
fn ended_by_the_disk(record: &Value, patch: &str) {
    assert_eq!(record["ending"], "disk_budget", "{record:#}");
    assert!(record["detail"].as_str().unwrap().ends_with(" MiB on the disk of 64 MiB"), "{record:#}");
    assert!(patch.contains("+    return 3 * x"), "what it had written before is captured");
}

#[tokio::test(flavor = "current_thread")]
async fn an_agent_that_fills_its_workspace_is_killed_with_its_daemons_and_its_edit_is_captured() {
    let ground = filling(
        "
import signal
if os.fork() == 0:
    os.setsid()
    while True:
        signal.pause()
with open('huge', 'wb') as file:
    while True:
        file.write(MIB)
",
    );
    let (record, patch) = bounded(&ground);
    ended_by_the_disk(&record, &patch);
    let too_large = json!([{"path": "huge", "reason": "too_large"}]);
    assert_eq!(record["skipped"], too_large, "{record:#}");
    no_process_of(ground.path()).await;
    assert_nothing_left(ground.path(), &[]);
}

#[test]
fn an_agent_that_fills_its_workspace_with_many_files_is_killed_and_the_capture_ends_too() {
    let ground = filling(
        "
import itertools
for number in itertools.count():
    with open(f'part-{number}', 'wb') as file:
        file.write(MIB[:1 << 16])
        os.fsync(file.fileno())
",
    );
    let (record, patch) = bounded_by(&ground, "0.004");
    assert_eq!(record["ending"], "disk_budget", "{record:#}");
    assert!(record["detail"].as_str().unwrap().ends_with(" MiB on the disk of 4 MiB"), "{record:#}");
    assert!(patch.contains("+    return 3 * x") && patch.contains("b/part-0"), "all of it fits a patch");
    assert_eq!(record["skipped"], json!([]));
}

#[test]
fn what_an_agent_leaves_for_keeping_and_prints_counts_too() {
    for program in [
        "import itertools\nfor number in itertools.count():\n    fill(f'/out/{number}', 8)",
        "
import sys
while True:
    sys.stdout.buffer.write(MIB)
",
    ] {
        let ground = filling(program);
        let (record, patch) = bounded(&ground);
        ended_by_the_disk(&record, &patch);
    }
}

#[test]
fn a_file_that_has_no_name_any_more_counts_while_it_is_held_open() {
    let ground = filling(
        "
with open('log', 'wb') as file:
    os.remove('log')
    while True:
        file.write(MIB)
",
    );
    let (record, patch) = bounded(&ground);
    ended_by_the_disk(&record, &patch);
    assert_eq!(record["skipped"], json!([]));
}

#[test]
fn a_file_that_has_no_name_and_no_descriptor_any_more_counts_while_it_is_mapped() {
    let ground = filling(
        "
import ctypes, itertools, signal
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
for number in itertools.count():
    with open('log', 'w+b') as file:
        os.remove('log')
        file.truncate(1 << 24)
        at = libc.mmap(None, 1 << 24, 3, 1, file.fileno(), 0)
        assert at not in (None, ctypes.c_void_p(-1).value)
    for part in range(16):
        ctypes.memmove(at + (part << 20), MIB, 1 << 20)
    assert libc.msync(ctypes.c_void_p(at), ctypes.c_size_t(1 << 24), 4) == 0
    if number == 7:
        signal.alarm(100)
        signal.pause()
",
    );
    let (record, patch) = bounded(&ground);
    ended_by_the_disk(&record, &patch);
}

#[test]
fn files_count_where_their_paths_are_longer_than_a_path_may_be_and_empty_ones_count_too() {
    for program in [
        "
for _ in range(30):
    os.mkdir('d' * 200)
    os.chdir('d' * 200)
fill('deep', 80)
",
        "
os.mkdir('empty')
for number in range(20000):
    open(f'empty/{number}', 'w').close()
",
    ] {
        let ground = filling(program);
        let (record, patch) = bounded(&ground);
        ended_by_the_disk(&record, &patch);
    }
}

#[test]
fn a_file_that_is_only_mapped_counts_where_the_first_thread_has_ended_too() {
    let ground = filling(
        "
import ctypes, threading
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
size = 80 << 20
fd = os.open('gone', os.O_RDWR | os.O_CREAT)
os.ftruncate(fd, size)
at = ctypes.c_void_p(libc.mmap(None, ctypes.c_size_t(size), 3, 1, fd, ctypes.c_long(0)))
os.remove('gone')
os.close(fd)

def fill_it():
    ctypes.memset(at, 1, size)
    threading.Event().wait()

threading.Thread(target=fill_it).start()
libc.syscall({'x86_64': 60, 'aarch64': 93}[os.uname().machine], 0)
",
    );
    let (record, patch) = bounded(&ground);
    ended_by_the_disk(&record, &patch);
}

#[test]
fn one_that_ends_before_it_is_seen_to_have_filled_the_disk_is_told_like_any_other() {
    let ground = filling("fill('large', 80)");
    let (record, patch) = bounded(&ground);
    ended_by_the_disk(&record, &patch);
}

#[test]
fn an_agent_that_removes_what_it_wrote_in_time_and_one_that_makes_holes_go_on_to_their_end() {
    let ground = filling(
        "
for _ in range(5):
    fill('large', 40)
    os.remove('large')
with open('holes', 'wb') as file:
    file.truncate(1 << 40)
",
    );
    let (record, patch) = bounded(&ground);
    assert_eq!(record["ending"], "finished", "{record:#}");
    assert!(patch.contains("+    return 3 * x"));
}

#[test]
fn a_full_home_folder_tells_the_agent_so_and_takes_nothing_of_the_hosts_disk() {
    let ground = filling(
        "
import errno
try:
    fill(os.path.expanduser('~/large'), 1 << 20)
    raise SystemExit('no bound')
except OSError as error:
    assert error.errno == errno.ENOSPC, error
",
    );
    let (record, patch) = bounded(&ground);
    assert_eq!(record["ending"], "finished", "{record:#}");
    assert!(patch.contains("+    return 3 * x"));
}

/// The store's own small disk, as long as it is held.
struct SmallDisk<'a>(&'a std::path::Path);

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = umount2(self.0, MntFlags::MNT_DETACH);
    }
}

#[test]
fn a_host_whose_disk_is_full_while_the_agent_is_within_its_bound_is_at_fault_itself() {
    let ground = filling("fill('large', 1 << 20)");
    let home = ground.path().join("home");
    let environments = fs::read_link(home.join("envs")).unwrap();
    mount(Some("tmpfs"), &home, Some("tmpfs"), MsFlags::empty(), Some("size=128m,mode=755"))
        .expect("tests of a full disk mount a tmpfs and need root");
    let disk = SmallDisk(&home);
    symlink(environments, home.join("envs")).unwrap();
    let said = ground.infradev(&[&ARGS[..], &["20"]].concat()).exits(3);
    assert!(said.err.contains("MiB left, and the agent is within its bound"), "{}", said.err);
    assert!(said.err.contains("hint: free some space, then run the same command again"), "{}", said.err);
    assert_eq!(harm::passing_files(ground.path()), Vec::<std::path::PathBuf>::new());
    // All is well once the agent is content with less.
    ground.write("mine/mine.py", FILLS);
    ground.infradev(&[&ARGS[..], &["20"]].concat()).exits(0);
    drop(disk);
}

#[test]
fn a_bound_that_is_none_is_refused_with_what_would_be_one() {
    let ground = filling("");
    for wrong in ["0", "-1", "plenty", "inf", "0.0001"] {
        let said = ground.infradev(&[&ARGS[..9], &[&format!("--disk={wrong}")]].concat()).exits(2);
        assert!(said.err.contains("such as 20 or 0.5"), "{}", said.err);
    }
}
