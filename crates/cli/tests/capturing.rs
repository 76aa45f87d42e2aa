//! `infradev attempt` while it takes what an agent left.

mod ground;
mod harm;

use std::fs;
use std::os::fd::AsFd;
use std::path::Path;

use ground::Ground;
use harm::{Running, assert_nothing_left, no_process_of};
use infradev_supervise::watch_readable;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use nix::sys::signal::Signal;

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
async fn an_interrupt_while_a_hundred_thousand_files_are_captured_ends_it_and_leaves_nothing() {
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
}
