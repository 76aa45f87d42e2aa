//! A supervisor that dies, or is another user, with a real sandbox in its hands.

use std::io::{BufRead, BufReader, PipeReader};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use infradev_supervise::{Child, Exit, LogBounds, LogSink, Sink, Spawn, descendants, watch_process};
use nix::sys::signal::Signal;

/// The example `hold`, which cargo builds beside the tests.
fn hold() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.parent().unwrap().parent().unwrap().join("examples/hold")
}

fn start(program: &str, args: &[&str]) -> (Child, serde_json::Value, std::io::PipeWriter) {
    let (read, write) = std::io::pipe().unwrap();
    let (input, input_write) = std::io::pipe().unwrap();
    let mut spawn = Spawn::new(program);
    spawn.args = args.iter().map(Into::into).collect();
    spawn.env = vec![("PATH".into(), std::env::var_os("PATH").unwrap())];
    spawn.stdin = Sink::Fd(input.into());
    spawn.stdout = Sink::Fd(write.into());
    spawn.stderr = Sink::Fd(std::io::stderr().as_fd().try_clone_to_owned().unwrap());
    let child = spawn.start().unwrap();
    (child, first_line(read), input_write)
}

fn first_line(read: PipeReader) -> serde_json::Value {
    let mut line = String::new();
    BufReader::new(read).read_line(&mut line).unwrap();
    serde_json::from_str(&line).expect("the sandbox was described")
}

fn numbers(value: &serde_json::Value) -> Vec<i32> {
    value.as_array().unwrap().iter().map(|number| number.as_i64().unwrap() as i32).collect()
}

/// Waits until the process has ended.
async fn gone(pid: i32) {
    if let Ok(watched) = watch_process(pid) {
        let ended = tokio::time::timeout(Duration::from_secs(60), watched.readable()).await;
        drop(ended.expect("it died within a minute").unwrap());
    }
}

#[tokio::test]
async fn kill_9_of_the_supervisor_takes_the_whole_tree_down() {
    let (mut child, said, _input) = start(hold().to_str().unwrap(), &[]);
    let pids = numbers(&said["pids"]);
    // Bubblewrap's init, the program and its daemon.
    assert!(pids.len() >= 3, "{said}");
    child.signal(Signal::SIGKILL);
    assert_eq!(child.wait().await.unwrap(), Exit::Signal(9));
    for pid in pids {
        gone(pid).await;
    }
    // Its control group is left behind, until the next run looks.
    let owner = format!("infradev-{}-", child.pid());
    infradev_sandbox::sweep();
    let own = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    for folder in control_group_folders(&own) {
        let left = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        assert_eq!(
            left.filter(|e| e.file_name().to_string_lossy().starts_with(&owner)).count(),
            0,
            "{folder:?}"
        );
    }
}

#[tokio::test]
async fn kill_9_while_the_sandbox_is_being_set_up_leaves_nothing() {
    // Instants spread over the setup, from bubblewrap's first sight on.
    for round in 0..20 {
        let mut spawn = Spawn::new(hold());
        spawn.env = vec![("PATH".into(), std::env::var_os("PATH").unwrap())];
        let (input, _input_write) = std::io::pipe().unwrap();
        spawn.stdin = Sink::Fd(input.into());
        let mut child = spawn.start().unwrap();
        let bubblewrap = loop {
            if let Some(pid) = sandboxing_child(child.pid()) {
                break pid;
            }
        };
        let first_seen = Instant::now();
        while first_seen.elapsed() < Duration::from_micros(600) * round {
            std::hint::spin_loop();
        }
        child.signal(Signal::SIGKILL);
        // Killed or not, what it had cloned by now is there to be seen.
        let seen = descendants(bubblewrap);
        child.wait().await.unwrap();
        for process in seen {
            gone(process.pid).await;
        }
    }
    infradev_sandbox::sweep();
}

#[tokio::test]
async fn a_host_without_bubblewrap_is_told_how_to_get_it() {
    let mut spawn = Spawn::new(hold());
    spawn.env = vec![("PATH".into(), "/nonexistent".into())];
    let (log, write) = LogSink::open(LogBounds::default()).unwrap();
    spawn.stderr = Sink::Fd(write);
    let mut child = spawn.start().unwrap();
    assert_eq!(child.wait().await.unwrap(), Exit::Code(1));
    log.closed().await;
    let text = log.last(4096);
    assert!(text.contains("the sandbox did not start: program `bwrap` not found on PATH"), "{text}");
    assert!(text.contains("apt-get install bubblewrap"), "{text}");
}

/// The child of that process that is a bubblewrap at work.
fn sandboxing_child(pid: i32) -> Option<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let children = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let numbers: Vec<i32> =
        children.flat_map(|line| line.split(' ').flat_map(str::parse).collect::<Vec<_>>()).collect();
    let at_work = |pid: &i32| {
        std::fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.starts_with(b"bwrap\0--unshare-pid\0"))
    };
    numbers.into_iter().find(at_work)
}

fn control_group_folders(own: &str) -> Vec<PathBuf> {
    let v1 = ["memory", "pids"].into_iter().filter_map(|name| {
        let path = own.lines().find_map(|line| line.split_once(&format!(":{name}:")))?.1;
        Some(PathBuf::from(format!("/sys/fs/cgroup/{name}{path}")))
    });
    v1.chain([PathBuf::from("/sys/fs/cgroup")]).collect()
}

#[tokio::test]
async fn another_user_has_a_sandbox_too_and_is_told_what_it_lacks() {
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("hold");
    std::fs::copy(hold(), &program).unwrap();
    let args = ["--reuid", "65534", "--regid", "65534", "--clear-groups", program.to_str().unwrap()];
    let (mut child, said, input) = start("setpriv", &args);
    assert_eq!(said["report"]["kind"], "namespaces");
    assert_eq!(said["report"]["uid_separation"], false);
    assert_eq!(said["report"]["memory_limit"], "watched");
    assert_eq!(said["report"]["network"], "isolated");
    assert!(numbers(&said["uids"]).iter().all(|uid| *uid == 65534), "{said}");
    assert_eq!(said["loopback"], 0);
    assert!(said["memory"].as_u64().unwrap() > 1 << 20, "{said}");
    std::io::Write::write_all(&mut &input, b"\n").unwrap();
    assert_eq!(child.wait().await.unwrap(), Exit::Code(0));
    for pid in numbers(&said["pids"]) {
        gone(pid).await;
    }
}
