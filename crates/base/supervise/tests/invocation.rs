//! Blocking invocations against real programs.

use std::time::Duration;

use infradev_model::{Class, Classified};
use infradev_supervise::{Exit, Invocation, SuperviseError, find_program};

fn sh(script: &str) -> Invocation {
    Invocation::new("/bin/sh").arg("-c").arg(script).env("PATH", "/usr/bin:/bin")
}

/// Waits for the end of a process that was killed; false if it still lives after 20 s.
fn ends(pid: i32) -> bool {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::os::fd::{AsFd, FromRawFd, OwnedFd};
    // SAFETY: pidfd_open gives a new descriptor or -1.
    let fd = unsafe { nix::libc::syscall(nix::libc::SYS_pidfd_open, pid, 0) };
    if fd < 0 {
        return true;
    }
    // SAFETY: the descriptor is new and ours.
    let fd = unsafe { OwnedFd::from_raw_fd(fd as i32) };
    poll(&mut [PollFd::new(fd.as_fd(), PollFlags::POLLIN)], PollTimeout::from(20_000u16)) == Ok(1)
}

#[test]
fn both_streams_and_the_status_come_back() {
    let output = sh("cat; echo problem >&2; exit 3").stdin("hello").run().unwrap();
    assert_eq!(output.status, Exit::Code(3));
    assert_eq!(output.stdout, b"hello");
    assert_eq!(output.stderr, b"problem\n");
    assert!(!output.truncated);
}

#[test]
fn nothing_of_the_environment_is_inherited_unasked() {
    let output = Invocation::new("env").env("A", "1").env("A", "2").inherit_env("PATH").run().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut names: Vec<_> = text.lines().map(|line| line.split('=').next().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["A", "PATH"]);
    assert!(text.contains("A=2\n"));
}

#[test]
fn megabytes_pass_both_ways_at_once() {
    let big = vec![b'x'; 5 << 20];
    let output = Invocation::new("cat").stdin(big.clone()).run().unwrap();
    assert!(output.stdout == big);
}

#[test]
fn output_beyond_the_limit_is_dropped_and_said_so() {
    let output = sh("head -c 3000000 /dev/zero; echo end >&2").stdout_limit(1000).run().unwrap();
    assert_eq!(output.status, Exit::Code(0));
    assert_eq!(output.stdout.len(), 1000);
    assert!(output.truncated);
    assert_eq!(output.stderr, b"end\n");
}

#[test]
fn a_child_that_does_not_read_its_input_is_no_error() {
    let output = Invocation::new("true").stdin(vec![0; 1 << 20]).run().unwrap();
    assert!(output.status.success());
}

#[test]
fn the_deadline_kills_the_whole_group() {
    let output = sh("sleep 1000 & echo $!; wait").deadline(Duration::from_millis(200)).run().unwrap();
    assert_eq!(output.status, Exit::TimedOut);
    let sleeper: i32 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    assert!(ends(sleeper));
}

#[test]
fn a_background_process_left_behind_neither_delays_the_end_nor_survives() {
    let output = sh("sleep 1000 & echo $!").run().unwrap();
    assert_eq!(output.status, Exit::Code(0));
    let sleeper: i32 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    assert!(ends(sleeper));
}

#[test]
fn a_signal_is_told_from_a_status() {
    let output = sh("kill -SEGV $$").run().unwrap();
    assert_eq!(output.status, Exit::Signal(11));
    assert_eq!(output.status.to_string(), "killed by SIGSEGV");
}

#[test]
fn a_missing_program_is_named_with_a_hint() {
    for name in ["bwrap-of-another-world", "/nonexistent/program"] {
        let error = Invocation::new(name).run().unwrap_err();
        assert!(matches!(&error, SuperviseError::NotFound { program } if program == name), "{error}");
        assert_eq!(error.class(), Class::Fault);
        assert!(error.hint().is_some());
    }
    assert!(find_program("sh").is_some_and(|path| path.is_absolute()));
    assert_eq!(find_program("bwrap-of-another-world"), None);
}

#[test]
fn a_missing_working_directory_is_not_blamed_on_the_program() {
    let error = sh("true").cwd("/nonexistent/folder").run().unwrap_err();
    assert!(error.to_string().contains("/nonexistent/folder"), "{error}");
}

#[test]
fn a_nul_byte_in_an_argument_is_refused_by_name() {
    let error = Invocation::new("echo").arg("fine").arg("a\0b").run().unwrap_err();
    assert!(error.to_string().contains("argument 2"), "{error}");
}

#[test]
fn a_script_without_a_header_is_not_called_missing() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    std::fs::write(&script, "not a program").unwrap();
    let error = Invocation::new(&script).run().unwrap_err();
    assert!(matches!(error, SuperviseError::Start { .. }), "{error}");
}

#[test]
fn what_a_contained_tool_starts_ends_with_it_even_in_a_session_of_its_own() {
    // Its number outside is the first of NSpid, read through the host's /proc by its namespace's number.
    let script = "setsid sleep 1000 & for d in /proc/[0-9]*; do \
                  [ $d/ns/pid -ef /proc/self/ns/pid ] && sed -n 's/^NSpid:\t//p' $d/status; done 2>/dev/null; true";
    let output = sh(script).contained().run().unwrap();
    assert!(output.status.success(), "{}", output.stderr_text());
    let text = String::from_utf8(output.stdout).unwrap();
    let outside: Vec<i32> = text.lines().filter_map(|line| line.split('\t').next()?.parse().ok()).collect();
    // The shell and the sleeper at least; what reads this may be among them.
    assert!(outside.len() >= 2, "{text}");
    for pid in outside {
        // Once the init is reaped the kernel has ended all the others: there is nothing to wait for.
        assert_eq!(infradev_supervise::process(pid), None, "{text}");
    }
}

#[test]
fn a_tool_runs_in_the_network_namespace_that_it_is_given() {
    let namespace = std::thread::spawn(|| {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
        std::fs::File::open("/proc/thread-self/ns/net").unwrap()
    });
    let output = sh("cat /proc/self/net/dev").netns(namespace.join().unwrap().into()).run().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let interfaces: Vec<_> = text.lines().filter_map(|line| Some(line.split_once(':')?.0.trim())).collect();
    assert_eq!(interfaces, ["lo"]);
}
