//! Processes followed while they run, against real programs.

use std::io::Read;
use std::time::Duration;

use infradev_supervise::{Exit, LogBounds, LogSink, Sink, Spawn, process};
use nix::sys::signal::Signal;

fn sh(script: &str) -> Spawn {
    let mut spawn = Spawn::new("/bin/sh");
    spawn.args = vec!["-c".into(), script.into()];
    spawn.env = vec![("PATH".into(), "/usr/bin:/bin".into())];
    spawn
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("it ended within a minute")
}

#[test]
fn a_child_is_followed_to_its_end_and_its_output_kept() {
    runtime().block_on(async {
        let (log, write) = LogSink::open(LogBounds::default()).unwrap();
        let mut spawn = sh("echo out; echo err >&2; exit 4");
        spawn.stderr = Sink::Fd(write.try_clone().unwrap());
        spawn.stdout = Sink::Fd(write);
        let mut child = spawn.start().unwrap();
        assert_eq!(within(child.wait()).await.unwrap(), Exit::Code(4));
        assert_eq!(child.wait().await.unwrap(), Exit::Code(4));
        within(log.closed()).await;
        assert_eq!(log.contents().bytes, b"out\nerr\n");
        assert_eq!(log.last(4), "err\n");
    });
}

#[test]
fn descriptors_arrive_at_their_numbers_and_nothing_else_does() {
    runtime().block_on(async {
        let (log, write) = LogSink::open(LogBounds::default()).unwrap();
        let (mut answer, answer_write) = std::io::pipe().unwrap();
        let mut spawn = sh("echo through-five >&5; ls /proc/self/fd");
        spawn.stdout = Sink::Fd(write);
        let other = answer_write.try_clone().unwrap();
        spawn.fds = vec![(answer_write.into(), 5), (other.into(), 9)];
        let mut child = spawn.start().unwrap();
        assert!(within(child.wait()).await.unwrap().success());
        let mut text = String::new();
        answer.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through-five\n");
        within(log.closed()).await;
        // 3 is what ls opened to read the folder.
        assert_eq!(log.contents().bytes, b"0\n1\n2\n3\n5\n9\n");
    });
}

#[test]
fn a_daemon_in_a_session_of_its_own_dies_with_the_tree() {
    runtime().block_on(async {
        let (mut said, write) = std::io::pipe().unwrap();
        // The daemon leaves session and parent behind, then tells its number.
        let mut spawn =
            sh("setsid sh -c '(sleep 1000 3>&- & echo $! >&3; exec 3>&-) &' ; exec 3>&-; exec sleep 1000");
        spawn.fds = vec![(write.into(), 3)];
        let mut child = spawn.start().unwrap();
        let mut text = String::new();
        said.read_to_string(&mut text).unwrap();
        let daemon: i32 = text.trim().parse().unwrap();
        assert_ne!(process(daemon).unwrap().session, child.pid());
        assert_eq!(within(child.kill_tree()).await.unwrap(), Exit::Signal(9));
        assert_eq!(process(daemon), None);
    });
}

#[test]
fn what_a_child_leaves_running_dies_with_its_tree_after_its_own_end() {
    runtime().block_on(async {
        let (mut said, write) = std::io::pipe().unwrap();
        let mut spawn = sh("env -i sleep 1000 3>&- & echo $! >&3");
        spawn.fds = vec![(write.into(), 3)];
        let mut child = spawn.start().unwrap();
        let mut text = String::new();
        said.read_to_string(&mut text).unwrap();
        assert_eq!(within(child.wait()).await.unwrap(), Exit::Code(0));
        let left: i32 = text.trim().parse().unwrap();
        assert!(process(left).is_some());
        within(child.kill_tree()).await.unwrap();
        assert_eq!(process(left), None);
    });
}

#[test]
fn dropping_a_child_kills_it() {
    runtime().block_on(async {
        let child = sh("exec sleep 1000").start().unwrap();
        let pid = child.pid();
        drop(child);
        assert_eq!(process(pid), None);
    });
}

#[test]
fn a_signal_reaches_the_child() {
    runtime().block_on(async {
        let (mut said, write) = std::io::pipe().unwrap();
        let mut spawn = sh("trap 'exit 7' USR1; echo ready >&3; exec 3>&-; while :; do sleep 0.01; done");
        spawn.fds = vec![(write.into(), 3)];
        let mut child = spawn.start().unwrap();
        said.read_to_string(&mut String::new()).unwrap();
        child.signal(Signal::SIGUSR1);
        assert_eq!(within(child.wait()).await.unwrap(), Exit::Code(7));
    });
}

#[test]
fn a_flood_costs_bounded_memory_and_its_end_is_kept() {
    runtime().block_on(async {
        let (log, write) = LogSink::open(LogBounds { head: 1000, tail: 4000 }).unwrap();
        let mut spawn = sh("echo first; head -c 300000000 /dev/zero; echo last");
        spawn.stdout = Sink::Fd(write);
        let mut child = spawn.start().unwrap();
        assert!(within(child.wait()).await.unwrap().success());
        within(log.closed()).await;
        let total = 6 + 300_000_000 + 5;
        assert_eq!(log.offset(), total);
        let contents = log.contents();
        assert!(contents.bytes.starts_with(b"first\n"));
        assert!(contents.bytes.ends_with(b"\0last\n"));
        assert_eq!(contents.bytes.len() as u64 + log.dropped(), total);
        assert!(contents.bytes.len() <= 5000);
    });
}

#[test]
fn an_offset_counts_what_is_still_in_the_pipe() {
    runtime().block_on(async {
        let (log, write) = LogSink::open(LogBounds::default()).unwrap();
        nix::unistd::write(&write, b"case one\n").unwrap();
        let between = log.offset();
        assert_eq!(between, 9);
        nix::unistd::write(&write, b"case two\n").unwrap();
        log.catch_up();
        assert_eq!(log.slice(between, u64::MAX).bytes, b"case two\n");
        assert_eq!(log.slice(0, between).bytes, b"case one\n");
    });
}

#[test]
fn a_missing_program_is_told_at_once() {
    runtime().block_on(async {
        assert!(Spawn::new("/nonexistent/program").start().is_err());
    });
}
