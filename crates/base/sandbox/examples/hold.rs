//! Holds a sandbox with a daemon in it until it is killed, after a line of JSON that describes it. For the tests that
//! kill their own supervisor, or run it as another user.

use std::error::Error;
use std::io::{Read, Write};

use infradev_model::Classified;
use infradev_sandbox::{Sandbox, SandboxError, SandboxSpec};

const DAEMON: &str = "import os, signal
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(3, str(os.getuid()).encode()); os.close(3); signal.pause()
os.close(3); signal.pause()";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (mut said, write) = std::io::pipe()?;
    let mut spec = SandboxSpec::new("/usr/bin/python3");
    spec.args = vec!["-c".into(), DAEMON.into()];
    spec.fds = vec![(write.into(), 3)];
    let told = |error: SandboxError| format!("{error}; hint: {}", error.hint().unwrap_or_default());
    let mut sandbox = Sandbox::start(spec).await.map_err(told)?;
    let mut uid_inside = String::new();
    said.read_to_string(&mut uid_inside)?;
    let processes = sandbox.processes();
    let line = serde_json::json!({
        "report": sandbox.report(),
        "pids": processes.iter().map(|process| process.pid).collect::<Vec<_>>(),
        "uids": processes.iter().map(|process| process.uid).collect::<Vec<_>>(),
        "loopback": sandbox.loopback_bytes(),
        "memory": sandbox.memory_current(),
    });
    writeln!(std::io::stdout(), "{line}")?;
    // A line of input ends it in order.
    if std::io::stdin().read(&mut [0])? > 0 {
        sandbox.kill().await?;
        return Ok(());
    }
    sandbox.wait().await?;
    Ok(())
}
