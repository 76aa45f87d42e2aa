//! Real sandboxes, as root on a host with bubblewrap.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use infradev_sandbox::{
    Excess, Kind, LockFolder, MemoryLimit, Mount, Network, Sandbox, SandboxError, SandboxSpec, UidLease,
};
use infradev_supervise::{Exit, LogBounds, LogSink, Sink};

fn python(script: &str) -> SandboxSpec {
    let mut spec = SandboxSpec::new("/usr/bin/python3");
    spec.args = vec!["-c".into(), script.into()];
    spec
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("it ended within a minute")
}

/// Runs it to its end; what it wrote.
async fn run(mut spec: SandboxSpec) -> (Exit, String) {
    let (log, write) = LogSink::open(LogBounds::default()).unwrap();
    spec.stderr = Sink::Fd(write.try_clone().unwrap());
    spec.stdout = Sink::Fd(write);
    let mut sandbox = within(Sandbox::start(spec)).await.unwrap();
    let end = within(sandbox.wait()).await.unwrap();
    within(log.closed()).await;
    (end.exit, String::from_utf8(log.contents().with_note()).unwrap())
}

/// A pipe whose write end is 3 inside; what is said there until all inside have closed it.
fn channel(spec: &mut SandboxSpec) -> std::io::PipeReader {
    let (read, write) = std::io::pipe().unwrap();
    spec.fds.push((OwnedFd::from(write), 3));
    read
}

async fn said(mut read: std::io::PipeReader) -> String {
    let reading = tokio::task::spawn_blocking(move || {
        let mut text = String::new();
        read.read_to_string(&mut text).map(|_| text)
    });
    within(reading).await.unwrap().unwrap()
}

#[tokio::test]
async fn only_what_was_given_is_in_view() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("seen"), "content").unwrap();
    let mut spec = python(
        "import os, sys
print(sorted(os.listdir('/')))
print(sorted(os.listdir('/home')), os.environ['HOME'], oct(os.stat('/tmp').st_mode))
print(open('/opt/seen/seen').read(), open('/opt/data/present').read(), os.getcwd())
print(sorted(int(n) for n in os.listdir('/proc') if n.isdigit()))
print(sorted(os.environ))
print(sorted(os.listdir('/proc/self/fd')))
for path in ['/opt/seen/new', '/usr/new', '/etc/new', '/new', '/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger', '/sys/devices/system/cpu/cpu0/online']:
    try:
        open(path, 'w'); print('wrote', path)
    except OSError as e:
        pass
open('/tmp/x', 'w'); open(os.environ['HOME'] + '/x', 'w'); open('/dev/shm/x', 'w')
sys.exit(5)
",
    );
    spec.mounts = vec![Mount { target: PathBuf::from("/opt/seen"), ..Mount::read_only(folder.path()) }];
    spec.files = vec![("/opt/data/present".into(), b"made".to_vec())];
    spec.cwd = "/opt/seen".into();
    let (exit, text) = run(spec).await;
    assert_eq!(exit, Exit::Code(5), "{text}");
    let lines: Vec<_> = text.lines().collect();
    for absent in ["'root'", "'work'", "'srv'", "'run'", "'boot'"] {
        assert!(!lines[0].contains(absent), "{}", lines[0]);
    }
    assert_eq!(lines[1], "['trial'] /home/trial 0o41777");
    assert_eq!(lines[2], "content made /opt/seen");
    assert_eq!(lines[3], "[1, 2]");
    let names =
        "['CUDA_DEVICE_ORDER', 'CUDA_VISIBLE_DEVICES', 'HOME', 'LOGNAME', 'PATH', 'PWD', 'TMPDIR', 'USER']";
    assert_eq!(lines[4].replace(", 'LC_CTYPE'", ""), names);
    // 3 is the folder being read.
    assert_eq!(lines[5], "['0', '1', '2', '3']");
    assert_eq!(lines.len(), 6, "{text}");
}

#[tokio::test]
async fn a_child_that_gives_up_its_uid_has_another_uid_on_the_host_and_no_capabilities() {
    let folder = tempfile::tempdir().unwrap();
    let lease = UidLease::acquire(&LockFolder::at(folder.path()).unwrap()).unwrap();
    let uid = lease.uids.ranks_base;
    let mut spec = python(&format!(
        "import os
child = os.fork()
if child == 0:
    os.setgroups([]); os.setresgid({uid}, {uid}, {uid}); os.setresuid({uid}, {uid}, {uid})
    import getpass, pwd
    open('/tmp/mine', 'w')
    try:
        os.setuid(0)
    except PermissionError:
        os.write(3, (pwd.getpwuid(os.getuid()).pw_name + '\\n').encode())
    os.close(3)
    os.pause() if hasattr(os, 'pause') else __import__('signal').pause()
os.close(3)
os.waitpid(child, 0)"
    ));
    spec.uids = Some(lease.uids);
    let read = channel(&mut spec);
    let mut sandbox = within(Sandbox::start(spec)).await.unwrap();
    assert!(sandbox.report().uid_separation);
    assert_eq!(said(read).await, "rank0\n");
    let processes = sandbox.processes();
    let rank: Vec<_> = processes.iter().filter(|process| process.uid == uid).collect();
    assert_eq!(rank.len(), 1, "{processes:?}");
    let status = std::fs::read_to_string(format!("/proc/{}/status", rank[0].pid)).unwrap();
    assert!(status.contains(&format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n")), "{status}");
    for set in ["CapPrm", "CapEff", "CapAmb"] {
        assert!(status.contains(&format!("{set}:\t0000000000000000\n")), "{status}");
    }
    assert!(status.contains("NoNewPrivs:\t1\n"), "{status}");
    within(sandbox.kill()).await.unwrap();
    assert!(sandbox.processes().is_empty());
}

#[tokio::test]
async fn the_launcher_has_only_the_capabilities_to_change_uid_and_to_kill() {
    let folder = tempfile::tempdir().unwrap();
    let lease = UidLease::acquire(&LockFolder::at(folder.path()).unwrap()).unwrap();
    let mut spec =
        python("print([l for l in open('/proc/self/status') if l.startswith('CapEff')][0].split()[1])");
    spec.uids = Some(lease.uids);
    let (_, text) = run(spec).await;
    // CAP_KILL 5, CAP_SETGID 6, CAP_SETUID 7.
    assert_eq!(text, "00000000000000e0\n");
    let (_, text) =
        run(python("print(open('/proc/self/status').read().split('CapEff:')[1].split()[0])")).await;
    assert_eq!(text, "0000000000000000\n");
}

#[tokio::test]
async fn a_daemon_in_a_session_of_its_own_dies_with_the_sandbox() {
    let mut spec = python(
        "import os, signal, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(3, b'daemon'); os.close(3); signal.pause()
    os._exit(0)
os.close(3); signal.pause()",
    );
    let read = channel(&mut spec);
    let mut sandbox = within(Sandbox::start(spec)).await.unwrap();
    assert_eq!(said(read).await, "daemon");
    let before = sandbox.processes();
    assert!(before.len() >= 3, "{before:?}");
    let end = within(sandbox.kill()).await.unwrap();
    assert_eq!(end.exit, Exit::Signal(9));
    for process in before {
        assert_eq!(infradev_supervise::process(process.pid).filter(|p| p.started == process.started), None);
    }
}

#[tokio::test]
async fn what_the_program_leaves_running_dies_when_it_ends() {
    let mut spec = python(
        "import os, signal
if os.fork() == 0:
    os.setsid(); os.write(3, b'up'); os.close(3); signal.pause()
os.read(4, 1)",
    );
    let read = channel(&mut spec);
    let (go_read, go_write) = std::io::pipe().unwrap();
    spec.fds.push((go_read.into(), 4));
    let mut sandbox = within(Sandbox::start(spec)).await.unwrap();
    let mut buffer = [0u8; 2];
    (&read).read_exact(&mut buffer).unwrap();
    let before = sandbox.processes();
    drop(go_write);
    assert_eq!(within(sandbox.wait()).await.unwrap().exit, Exit::Code(0));
    for process in before {
        assert_eq!(infradev_supervise::process(process.pid).filter(|p| p.started == process.started), None);
    }
}

#[tokio::test]
async fn the_loopback_is_its_own_and_counted_from_outside() {
    let mut spec = python(
        "import os, socket
try:
    socket.create_connection(('1.1.1.1', 53), 5); print('connected')
except OSError as e:
    pass
s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname()); d, _ = s.accept()
import threading
def pull():
    left = 4 << 20
    while left: left -= len(d.recv(65536))
t = threading.Thread(target=pull); t.start()
c.sendall(bytes(4 << 20)); t.join()
os.write(3, b'done'); os.close(3); os.read(4, 1)",
    );
    let read = channel(&mut spec);
    let (go_read, go_write) = std::io::pipe().unwrap();
    spec.fds.push((go_read.into(), 4));
    let mut sandbox = within(Sandbox::start(spec)).await.unwrap();
    assert_eq!(sandbox.report().network, Network::Isolated);
    assert_eq!(said(read).await, "done");
    let bytes = sandbox.loopback_bytes().unwrap().0;
    let sent = 4 << 20;
    assert!((sent..sent + sent / 20).contains(&bytes), "{bytes}");
    drop(go_write);
    assert!(within(sandbox.wait()).await.unwrap().exit.success());
    assert_eq!(sandbox.loopback_bytes(), None);
}

#[tokio::test]
async fn memory_is_bounded_and_what_the_kernel_killed_is_known() {
    let mut spec = python("x = bytearray(400 << 20); print(len(x))");
    spec.limits.memory_bytes = 100 << 20;
    let mut sandbox = within(Sandbox::start(spec)).await.unwrap();
    let end = within(sandbox.wait()).await.unwrap();
    assert_eq!(end.exit, Exit::Signal(9));
    if sandbox.report().memory_limit == MemoryLimit::Watched {
        assert_eq!(end.excess, Some(Excess::Memory), "{end:?}");
    } else {
        assert!(end.oom_kills >= 1, "{end:?}");
        assert!(end.memory_peak.unwrap() <= 100 << 20);
    }
}

#[tokio::test]
async fn the_memory_peak_can_be_started_anew() {
    let mut spec = python(
        "import os
x = bytearray(80 << 20); del x
os.write(3, b'a'); os.read(4, 1); os.write(3, b'b'); os.read(4, 1)",
    );
    let mut read = channel(&mut spec);
    let (go_read, mut go_write) = std::io::pipe().unwrap();
    spec.fds.push((go_read.into(), 4));
    let mut sandbox = within(Sandbox::start(spec)).await.unwrap();
    read.read_exact(&mut [0]).unwrap();
    let first = sandbox.memory_peak().unwrap();
    assert!(first > 80 << 20, "{first}");
    assert!(sandbox.memory_current().unwrap() < 60 << 20);
    assert!(sandbox.reset_memory_peak());
    std::io::Write::write_all(&mut go_write, b"x").unwrap();
    read.read_exact(&mut [0]).unwrap();
    let second = sandbox.memory_peak().unwrap();
    assert!(second < 60 << 20, "{second}");
    drop(go_write);
    let end = within(sandbox.wait()).await.unwrap();
    assert!(end.exit.success());
    assert!(end.memory_peak.is_some());
}

#[tokio::test]
async fn processes_are_bounded() {
    let mut spec = python(
        "import os, signal
made = 0
try:
    for _ in range(200):
        if os.fork() == 0: signal.pause()
        made += 1
except OSError: pass
print(made)",
    );
    spec.limits.pids = 20;
    let (_, text) = run(spec).await;
    let made: u32 = text.trim().parse().unwrap();
    assert!((10..20).contains(&made), "{made}");
}

#[tokio::test]
async fn the_private_tmp_is_bounded() {
    let mut spec = python("open('/tmp/big', 'wb').write(bytes(8 << 20))");
    spec.tmp_bytes = 4 << 20;
    let (exit, text) = run(spec).await;
    assert_eq!(exit, Exit::Code(1));
    assert!(text.contains("No space left"), "{text}");
}

#[tokio::test]
async fn a_crash_is_told_from_a_status() {
    let (exit, _) = run(python("import os; os.kill(os.getpid(), 11)")).await;
    assert_eq!(exit, Exit::Signal(11));
}

#[tokio::test]
async fn a_missing_mount_is_named_and_nothing_is_left() {
    let mut spec = python("pass");
    spec.mounts = vec![Mount::read_only("/nonexistent/environment")];
    let error = Sandbox::start(spec).await.unwrap_err();
    assert!(matches!(error, SandboxError::Mount { .. }));
    assert!(error.to_string().contains("/nonexistent/environment"), "{error}");
}

#[tokio::test]
async fn what_bubblewrap_says_reaches_the_error() {
    let mut spec = python("pass");
    spec.cwd = "/no/such/folder".into();
    let error = within(Sandbox::start(spec)).await.unwrap_err();
    assert!(error.to_string().contains("/no/such/folder"), "{error}");
}

#[tokio::test]
async fn a_writable_mount_reaches_the_host_and_its_parents_let_other_uids_through() {
    let folder = tempfile::tempdir().unwrap();
    let lease = UidLease::acquire(&LockFolder::at(folder.path()).unwrap()).unwrap();
    let work = folder.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let uid = lease.uids.ranks_base;
    std::os::unix::fs::chown(&work, Some(uid), Some(uid)).unwrap();
    let mut spec = python(&format!(
        "import os; os.setresgid({uid}, {uid}, {uid}); os.setresuid({uid}, {uid}, {uid}); open('made', 'w').write('x')"
    ));
    spec.mounts = vec![Mount { target: "/srv/deep/down/work".into(), ..Mount::read_write(&work) }];
    spec.cwd = "/srv/deep/down/work".into();
    spec.uids = Some(lease.uids);
    let (exit, text) = run(spec).await;
    assert_eq!(exit, Exit::Code(0), "{text}");
    assert_eq!(std::fs::read_to_string(work.join("made")).unwrap(), "x");
}

#[tokio::test]
async fn none_runs_on_the_host_with_a_clear_environment_and_says_so() {
    let mut spec = python(
        "import os, signal
if os.fork() == 0:
    os.setsid(); os.write(3, ' '.join(sorted(os.environ)).encode()); os.close(3); signal.pause()
os.close(3); signal.pause()",
    );
    spec.kind = Kind::None;
    let read = channel(&mut spec);
    let mut sandbox = within(Sandbox::start(spec)).await.unwrap();
    assert_eq!((sandbox.report().kind, sandbox.report().network), (Kind::None, Network::Host));
    let names = said(read).await;
    assert!(names.contains("INFRADEV_TREE") && !names.contains("CARGO"), "{names}");
    let before = sandbox.processes();
    assert_eq!(before.len(), 2);
    within(sandbox.kill()).await.unwrap();
    for process in before {
        assert_eq!(infradev_supervise::process(process.pid).filter(|p| p.started == process.started), None);
    }
}

/// Folders of that name below a control group hierarchy.
fn folders_named(name: &str, below: &std::path::Path) -> usize {
    let inner =
        std::fs::read_dir(below).into_iter().flatten().flatten().filter(|e| e.file_type().unwrap().is_dir());
    inner.map(|e| usize::from(e.file_name().to_str() == Some(name)) + folders_named(name, &e.path())).sum()
}

#[tokio::test]
async fn a_sandbox_leaves_no_control_group() {
    let mut sandbox = within(Sandbox::start(python("import signal; signal.pause()"))).await.unwrap();
    let pid = sandbox.pid();
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let ours = format!("infradev-{}-", std::process::id());
    let name = groups.lines().find_map(|line| line.rsplit('/').next().filter(|name| name.starts_with(&ours)));
    assert_eq!(name.is_none(), sandbox.report().memory_limit == MemoryLimit::Watched, "{groups}");
    let top = std::path::Path::new("/sys/fs/cgroup");
    assert!(name.is_none_or(|name| folders_named(name, top) >= 1));
    within(sandbox.kill()).await.unwrap();
    assert!(name.is_none_or(|name| folders_named(name, top) == 0));
    assert_eq!(infradev_supervise::process(pid), None);
}
