//! `infradev attempt` taking what an agent left: many files, deep ones, none at all, and processes beside them.

mod ground;
mod harm;
mod scripted;

use std::fs;
use std::os::fd::AsFd;
use std::path::Path;

use ground::Ground;
use harm::{Running, assert_nothing_left, no_process_of};
use infradev_supervise::watch_readable;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use nix::sys::signal::Signal;
use scripted::{attempt, attempt_by, ground, kept, verdict};
use serde_json::json;

const MANY: &str = "
import os
for folder in range(100):
    os.mkdir(f'part{folder}')
    for number in range(1000):
        with open(f'part{folder}/{number}.py', 'w') as file:
            file.write(f'x = {folder * number}')
";

/// Waits until the git directory of a capture is made, in the program's own scratch folder: the tree has been listed then.
async fn capture_begins(watch: &Inotify, scratch: &Path) {
    let events = watch_readable(watch.as_fd().try_clone_to_owned().unwrap()).unwrap();
    loop {
        let mut ready = events.readable().await.unwrap();
        let read = watch.read_events().unwrap_or_default();
        ready.clear_ready();
        for name in read.into_iter().filter_map(|event| event.name) {
            if name.to_string_lossy().starts_with("infradev-git-") {
                return;
            }
            let folder = scratch.join(name);
            if folder.is_dir() {
                watch.add_watch(&folder, AddWatchFlags::IN_CREATE).unwrap();
            }
        }
    }
}

#[tokio::test(flavor = "current_thread")]
async fn an_interrupt_while_a_hundred_thousand_files_are_captured_ends_it_leaves_nothing_and_the_same_command_takes_them()
 {
    let ground = Ground::new();
    ground.write("mine/mine.py", MANY);
    let scratch = ground.path().join("home/scratch");
    fs::create_dir_all(&scratch).unwrap();
    let watch = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).unwrap();
    watch.add_watch(&scratch, AddWatchFlags::IN_CREATE).unwrap();
    let args =
        ["attempt", "pack", "--agent", "command", "--command", "python {agent}/mine.py", "--folder", "mine"];
    let mut running = Running::start(ground.path(), &args, &[]);
    let pid = running.pid();
    tokio::select! {
        () = capture_begins(&watch, &scratch) => {}
        _ = running.says(|_| false) => panic!("it ended before: {:?}", running.end().await),
    }
    running.signal(Signal::SIGINT);
    let ended = running.end().await.exits(130);
    assert!(ended.err.ends_with("run the same command again to resume"), "{}", ended.err);
    no_process_of(ground.path()).await;
    assert_nothing_left(ground.path(), &[pid]);
    let listed = ground.infradev(&["run", "list", "--json"]).exits(0).json();
    assert_eq!(listed["runs"][0]["state"], "unfinished");
    let again = ground.infradev(&[&args[..], &["--json"]].concat()).exits(0);
    assert!(again.err.contains("resuming run"), "{}", again.err);
    let document = again.json();
    assert_eq!(document["run"], listed["runs"][0]["id"]);
    assert_eq!(document["submissions"][0]["ending"], "finished", "{document:#}");
    let patch = kept(&ground, &document, "patch.diff");
    assert_eq!(patch.lines().filter(|line| line.starts_with("new file mode")).count(), 100_000);
    no_process_of(ground.path()).await;
    assert_nothing_left(ground.path(), &[]);
}

#[tokio::test(flavor = "current_thread")]
async fn a_workspace_that_its_agent_removed_is_a_patch_that_removes_every_file() {
    let ground = scripted::ground();
    // Its own folder stays, a mount: what lies in it goes, the repository too.
    let program = "
import os, subprocess
subprocess.run(['rm', '-rf', '/workspace'])
assert os.listdir('/workspace') == [], os.listdir('/workspace')
";
    let record = attempt_by(&ground, program, &[]);
    assert_eq!(record["ending"], "finished", "{record:#}");
    assert_eq!(record["skipped"], json!([]), "{record:#}");
    let document = ground.infradev(&["run", "show", "last", "--json"]).exits(0).json();
    let document = &document["attempt"];
    let patch = kept(&ground, document, "patch.diff");
    let heads = |begin: &str| patch.lines().filter(|line| line.starts_with(begin)).count();
    let base = ground.tool("find", &["pack/repo", "-type", "f"]).exits(0).out.lines().count();
    assert!(base > 2, "{base}");
    assert_eq!((heads("diff --git"), heads("deleted file mode")), (base, base), "{patch}");
    no_process_of(ground.path()).await;
    assert_nothing_left(ground.path(), &[]);
    assert_eq!(verdict(&ground, document), "unresolved");
}

#[tokio::test(flavor = "current_thread")]
async fn what_an_agent_leaves_running_is_dead_before_the_capture_and_on_record() {
    let ground = ground();
    let program = "
import os, signal
started, tell = os.pipe()
def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        for number in range(1, 32):
            if number not in (signal.SIGKILL, signal.SIGSTOP):
                signal.signal(number, signal.SIG_IGN)
        os.write(tell, b'x')
        while True:
            open('written-later', 'a').write('x')
daemon()
os.read(started, 1)
os.mkfifo('pipe')
os.symlink('/etc/passwd', 'link')
os.symlink('/workspace/toy/model.py', 'mylink')
open('toy/model.py', 'a').write('\\n\\ndef triple(x):\\n    return 3 * x\\n')
os.system('rm -rf .git; mkdir -p deep/.git; echo x > deep/.git/config')
";
    ground.write("mine/mine.py", program);
    let args = ["--agent", "command", "--command", "python {agent}/mine.py", "--folder", "mine"];
    let (record, document) = attempt(&ground, &args, 0);
    assert_eq!(record["ending"], "finished", "{record:#}");
    assert_eq!(record["left_running"].as_array().unwrap().len(), 1, "{record:#}");
    let skipped = record["skipped"].as_array().unwrap();
    let mut skipped: Vec<_> = skipped.iter().map(|file| (&file["path"], &file["reason"])).collect();
    skipped.sort_by_key(|(path, _)| path.as_str());
    let wanted =
        [("deep/.git", "git_folder"), ("link", "link_out"), ("mylink", "link_out"), ("pipe", "fifo")];
    assert_eq!(
        skipped,
        wanted
            .map(|(path, reason)| (json!(path), json!(reason)))
            .each_ref()
            .map(|(path, reason)| (path, reason))
    );
    no_process_of(ground.path()).await;
    assert_nothing_left(ground.path(), &[]);
    assert_eq!(verdict(&ground, &document), "resolved", "no link spoils the change beside it");
}

#[tokio::test(flavor = "current_thread")]
async fn folders_deeper_than_any_path_are_left_out_reported_and_removed_and_the_attempt_stands() {
    let ground = ground();
    let program = "
import os
open('toy/model.py', 'a').write('\\n\\ndef triple(x):\\n    return 3 * x\\n')
os.mkdir('a')
os.chdir('a')
for _ in range(30):
    os.mkdir('d' * 200)
    os.chdir('d' * 200)
os.mkdir('__pycache__')
";
    ground.write("mine/mine.py", program);
    let args = ["--agent", "command", "--command", "python {agent}/mine.py", "--folder", "mine", "-k", "2"];
    let (record, document) = attempt(&ground, &args, 0);
    assert_eq!(document["submissions"].as_array().unwrap().len(), 2);
    assert_eq!(record["ending"], "finished", "{record:#}");
    let skipped = record["skipped"].as_array().unwrap();
    assert_eq!(skipped.len(), 1, "{record:#}");
    assert_eq!(skipped[0]["reason"], "too_long");
    assert!(kept(&ground, &document, "patch.diff").contains("+    return 3 * x"));
    no_process_of(ground.path()).await;
    assert_nothing_left(ground.path(), &[]);
}
