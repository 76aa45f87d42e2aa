//! Ctrl-C: the run ends at once, leaves no process, and the same command resumes it.

mod ground;

use std::io::Read;
use std::os::fd::OwnedFd;

use ground::Ground;
use infradev_supervise::{Exit, Sink, Spawn};
use nix::sys::signal::Signal;

#[test]
fn an_interrupted_grading_exits_130_and_the_same_command_resumes_it() {
    let ground = Ground::new();
    let args = ["grade", "pack", "--patches", "base", "--json"];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (said, exit) = runtime.block_on(async {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let mut spawn = Spawn::new(env!("CARGO_BIN_EXE_infradev"));
        spawn.args = args.iter().map(Into::into).collect();
        spawn.env = ground.variables().into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        spawn.cwd = Some(ground.path().to_path_buf());
        spawn.stderr = Sink::Fd(OwnedFd::from(writer));
        let mut child = spawn.start().unwrap();
        let mut said = Vec::new();
        // The first golden run is done; the next is under way or about to be.
        while !String::from_utf8_lossy(&said).contains("cases passed (") {
            let mut buffer = [0; 1024];
            let count = reader.read(&mut buffer).unwrap();
            assert_ne!(count, 0, "it ended early: {}", String::from_utf8_lossy(&said));
            said.extend_from_slice(&buffer[..count]);
        }
        child.signal(Signal::SIGINT);
        let exit = child.wait().await.unwrap();
        reader.read_to_end(&mut said).unwrap();
        assert_eq!(child.tree(), [], "no process is left");
        (String::from_utf8_lossy(&said).into_owned(), exit)
    });
    assert_eq!(exit, Exit::Code(130), "{said}");
    assert!(said.ends_with("interrupted\nhint: run the same command again to resume\n"), "{said}");

    let listed = ground.infradev(&["run", "list", "--json"]).exits(0).json();
    assert_eq!(listed["runs"][0]["state"], "unfinished");
    let id = listed["runs"][0]["id"].as_str().unwrap().to_string();
    let scratch = ground.path().join("home/runs").join(&id).join("scratch");
    assert!(!scratch.exists() || scratch.read_dir().unwrap().next().is_none(), "no scratch folder is left");

    let resumed = ground.infradev(&args).exits(0);
    assert!(resumed.err.contains(&format!("resuming run {id} (1 trial is done)")), "{}", resumed.err);
    assert!(resumed.err.contains("(recorded before)"), "{}", resumed.err);
    assert_eq!(resumed.json()["run"], id.as_str());
    assert_eq!(resumed.json()["submissions"][0]["verdict"], "unresolved");

    let again = ground.infradev(&args).exits(0).json();
    assert_ne!(again["run"], id.as_str(), "a finished run is not resumed");
}
