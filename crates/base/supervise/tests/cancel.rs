//! Cancelling is for the whole process, so this test has one to itself.

use infradev_model::{Class, Classified};
use infradev_supervise::{Invocation, SuperviseError, cancel, cancelled};

#[test]
fn cancel_ends_what_runs_and_refuses_what_is_new() {
    assert!(!cancelled());
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("started");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let script = format!("echo started > {}; exec sleep 1000", fifo.display());
    let running = std::thread::spawn(move || {
        Invocation::new("/bin/sh").arg("-c").arg(script).env("PATH", "/usr/bin:/bin").run()
    });
    assert_eq!(std::fs::read_to_string(&fifo).unwrap(), "started\n");
    cancel();
    let error = running.join().unwrap().unwrap_err();
    assert!(matches!(error, SuperviseError::Cancelled { .. }));
    assert_eq!(error.class(), Class::Interrupted);
    assert!(cancelled());
    assert!(matches!(Invocation::new("true").run(), Err(SuperviseError::Cancelled { .. })));
}
