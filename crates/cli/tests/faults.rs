//! What the machine or the person can get wrong: each ends in a message that names it, an exit code that fits, and a store that
//! works once it is put right.

mod ground;
mod harm;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use ground::{GOLDEN, Ground};
use harm::{Ended, Running, assert_nothing_left, no_process_of, passing_files, tells_an_end};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::signal::Signal;

const ACCEPT: [&str; 5] = ["accept", "pack", "--runs", "1", "--json"];

async fn run(ground: &Ground, args: &[&str]) -> Ended {
    Running::start(ground.path(), args, &[]).end().await
}

/// A PATH with all programs of this machine but one.
fn programs_without(ground: &Ground, missing: &str) -> String {
    let folder = ground.path().join("bin");
    fs::create_dir_all(&folder).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let programs =
        std::env::split_paths(&path).filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    for program in programs.filter(|program| program.file_name() != missing) {
        // The first of a name is the one that is found.
        let _ = symlink(program.path(), folder.join(program.file_name()));
    }
    folder.to_str().unwrap().to_owned()
}

#[track_caller]
fn says(ended: &Ended, words: &[&str]) {
    for word in words {
        assert!(ended.err.contains(word), "`{word}` is not in:\n{}", ended.err);
    }
}

/// A store on a disk of its own, of 16 MiB.
struct SmallDisk {
    place: PathBuf,
}

impl SmallDisk {
    fn mount(place: &Path) -> SmallDisk {
        fs::create_dir_all(place).unwrap();
        mount(Some("tmpfs"), place, Some("tmpfs"), MsFlags::empty(), Some("size=16m,mode=755"))
            .expect("tests of a full disk mount a tmpfs and need root");
        SmallDisk { place: place.to_owned() }
    }

    /// Leaves so many bytes free.
    fn leave(&self, free: u64) {
        let filler = self.place.join("filler");
        // What there was room for would be counted as taken.
        let _ = fs::remove_file(&filler);
        let found = nix::sys::statvfs::statvfs(&self.place).unwrap();
        let size = (found.blocks_available() * found.fragment_size()).saturating_sub(free);
        fs::write(&filler, vec![1; size as usize]).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = umount2(&self.place, MntFlags::MNT_DETACH);
    }
}

/// All of a store's documents and journals can be read.
fn assert_readable(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            assert_readable(&path);
        } else if path.extension().is_some_and(|ending| ending == "json") {
            let bytes = fs::read(&path).unwrap();
            serde_json::from_slice::<serde_json::Value>(&bytes)
                .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        }
    }
}

#[tokio::test]
async fn a_full_disk_is_named_leaves_nothing_half_written_and_the_same_command_resumes_once_there_is_room() {
    let ground = Ground::new();
    let here = ground.path();
    let undisturbed = Ground::new();
    run(&undisturbed, &ACCEPT).await.exits(0);
    let environments = fs::read_link(here.join("home/envs")).unwrap();
    let disk = SmallDisk::mount(&here.join("home"));
    symlink(environments, here.join("home/envs")).unwrap();

    let mut pids = Vec::new();
    let mut failed = 0;
    // Too little for the first folder and for the kit; then, with the kit there, for patches, workspaces, logs, records.
    let steps = [0, 4, 64, 240, 0, 8, 24, 48, 72, 96, 104, 112, 120, 128, 136, 144, 160, 180, 200];
    for free in steps.map(|kib| kib << 10) {
        disk.leave(free);
        let running = Running::start(here, &ACCEPT, &[]);
        pids.push(running.pid());
        let ended = running.end().await;
        if ended.exit == infradev_supervise::Exit::Code(0) {
            break;
        }
        failed += 1;
        let ended = ended.exits(3);
        says(&ended, &["o space left on", "free some space"]);
        assert!(!here.join("pack/tasks/triple/acceptance.json").exists());
        assert_readable(&here.join("home"));
        assert_eq!(passing_files(here), Vec::<PathBuf>::new(), "{free} bytes: {}", ended.err);
    }
    assert!(failed >= 6, "{failed} runs met a full disk");
    fs::remove_file(here.join("home/filler")).unwrap();
    let last = Running::start(here, &ACCEPT, &[]);
    pids.push(last.pid());
    last.end().await.exits(0);
    let record = "pack/tasks/triple/acceptance.json";
    assert_eq!(ground.read(record), undisturbed.read(record));
    assert_eq!(passing_files(here), Vec::<PathBuf>::new());
    // Until then every process of this machine has a mount of this name.
    drop(disk);
    no_process_of(here).await;
    assert_nothing_left(here, &pids);
}

#[tokio::test]
async fn a_missing_program_is_named_with_how_to_get_it() {
    for (missing, hint) in [("uv", "uv"), ("bwrap", "apt-get install bubblewrap")] {
        let ground = Ground::new();
        let path = programs_without(&ground, missing);
        let ended = Running::start(ground.path(), &ACCEPT, &[("PATH", &path)]).end().await.exits(3);
        says(&ended, &[missing, "PATH", "hint", hint]);
        // Nothing was tried that could not work.
        assert!(!ended.err.contains("trying again"), "{}", ended.err);
        run(&ground, &ACCEPT).await.exits(0);
    }
}

#[tokio::test]
async fn an_interpreter_that_is_not_there_is_named() {
    let ground = Ground::new();
    ground.edit("pack/pack.toml", "python = \"3.11\"", "python = \"3.77\"");
    let ended = run(&ground, &ACCEPT).await;
    says(&ended.exits(3), &["3.77", "hint"]);
    ground.edit(
        "pack/pack.toml",
        "python = \"3.77\"\nlock = \"envs/cpu.lock\"",
        "interpreter = \"/nowhere/python\"",
    );
    let ended = run(&ground, &ACCEPT).await;
    says(&ended.exits(4), &["/nowhere/python"]);
}

#[tokio::test]
async fn a_lock_that_does_not_resolve_is_bad_input_by_its_name() {
    let ground = Ground::new();
    let hash = "0".repeat(64);
    ground.write("pack/envs/cpu.lock", &format!("pytest==999.0 \\\n    --hash=sha256:{hash}\n"));
    let ended = run(&ground, &ACCEPT).await;
    says(&ended.exits(4), &["envs/cpu.lock", "pytest"]);
    let environments = fs::read_dir(ground.path().join("home/envs")).unwrap().flatten();
    let half = environments.filter(|entry| entry.file_name().to_string_lossy().starts_with(".building-"));
    assert_eq!(half.count(), 0);
}

#[tokio::test]
async fn a_damaged_line_of_a_journal_is_named_and_the_run_is_not_gone_on_with() {
    let ground = Ground::new();
    let mut running = Running::start(ground.path(), &ACCEPT, &[]);
    assert!(running.says(tells_an_end).await && running.says(tells_an_end).await);
    running.signal(Signal::SIGKILL);
    running.end().await;
    let runs = ground.path().join("home/runs");
    let run_folder =
        fs::read_dir(&runs).unwrap().flatten().find(|entry| entry.path().is_dir()).unwrap().path();
    let journal = run_folder.join("journal.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    let damaged: Vec<String> = text
        .lines()
        .enumerate()
        .map(
            |(index, line)| {
                if index == 2 { line.replace("trial_finished", "trial_fin!shed") } else { line.to_owned() }
            },
        )
        .collect();
    assert_ne!(damaged.join("\n"), text.trim_end());
    fs::write(&journal, damaged.join("\n") + "\n").unwrap();

    let ended = run(&ground, &ACCEPT).await.exits(3);
    says(&ended, &["journal.jsonl:3", "hint", "infradev run show"]);
    // What the hint says works.
    let id = run_folder.file_name().unwrap().to_str().unwrap();
    let shown = run(&ground, &["run", "show", id]).await.exits(0);
    says(&shown, &["journal.jsonl:3"]);
    fs::rename(&run_folder, ground.path().join("aside")).unwrap();
    run(&ground, &ACCEPT).await.exits(0);
}

#[tokio::test]
async fn an_interrupt_ends_the_run_with_130_and_the_same_command_resumes() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let ground = Ground::new();
        let here = ground.path();
        let mut running = Running::start(here, &ACCEPT, &[]);
        let pid = running.pid();
        assert!(running.says(tells_an_end).await && running.says(tells_an_end).await);
        running.signal(signal);
        let ended = running.end().await.exits(130);
        says(&ended, &["interrupted", "run the same command again to resume"]);
        no_process_of(here).await;
        assert_nothing_left(here, &[pid]);
        let last = Running::start(here, &ACCEPT, &[]);
        let pids = [pid, last.pid()];
        let ended = last.end().await.exits(0);
        assert_eq!(
            ended.err.lines().filter(|line| line.ends_with("(recorded before)")).count(),
            2,
            "{}",
            ended.err
        );
        assert_nothing_left(here, &pids);
    }
}

#[tokio::test]
async fn a_trial_without_a_sandbox_says_so_in_every_result() {
    let ground = Ground::new();
    let bare = ["--sandbox", "none"];
    let with = |args: &[&'static str]| [args, &bare[..]].concat();
    let graded =
        run(&ground, &with(&["grade", "pack", "--patches", "golden", "--json"])).await.exits(0).json();
    assert_eq!(graded["submissions"][0]["sandbox"]["kind"], "none", "{graded:#}");
    let table = run(&ground, &with(&["grade", "pack", "--patches", "golden"])).await.exits(0);
    assert!(table.out.contains("sandbox: none"), "{}", table.out);
    let accepted = run(&ground, &with(&ACCEPT)).await.exits(0).json();
    assert_eq!(accepted["tasks"][0]["sandbox"]["kind"], "none", "{accepted:#}");
    let record = ground.read("pack/tasks/triple/acceptance.json");
    assert!(record.contains("\"kind\": \"none\""), "{record}");
    let table = run(&ground, &with(&["accept", "pack", "--runs", "1"])).await.exits(0);
    assert!(table.out.contains("sandbox: none"), "{}", table.out);
    no_process_of(ground.path()).await;
    assert_nothing_left(ground.path(), &[]);
}

#[tokio::test]
async fn a_kill_without_a_sandbox_leaves_nothing_either() {
    let ground = Ground::new();
    let here = ground.path();
    let args = [&ACCEPT[..], &["--sandbox", "none"]].concat();
    let mut running = Running::start(here, &args, &[]);
    let pid = running.pid();
    assert!(running.says(tells_an_end).await);
    // The next trial is under way once its ranks live.
    while harm::processes_of(here).iter().filter(|process| process.pid != pid).count() < 2 {}
    running.signal(Signal::SIGKILL);
    running.end().await;
    no_process_of(here).await;
    let last = Running::start(here, &args, &[]);
    let pids = [pid, last.pid()];
    last.end().await.exits(0);
    assert_nothing_left(here, &pids);
}

#[tokio::test]
async fn a_grading_that_was_killed_repeats_neither_a_trial_nor_its_control_run() {
    let ground = Ground::new();
    for name in ["one", "other"] {
        let crashing = GOLDEN.replace("return 3 * x", &format!("return __import__('os').abort()  # {name}"));
        ground.write(&format!("patches/{name}/triple.patch"), &crashing);
    }
    let grade = ["grade", "pack", "--patches", "patches", "--json"];
    let mut running = Running::start(ground.path(), &grade, &[]);
    // Golden, base, base with its own tests; the two; the control run of one.
    for _ in 0..6 {
        assert!(running.says(tells_an_end).await);
    }
    running.signal(Signal::SIGKILL);
    assert!(running.end().await.err.contains("control run of golden"));
    let ended = run(&ground, &grade).await.exits(0);
    let recorded = ended.err.lines().filter(|line| line.ends_with("(recorded before)"));
    assert_eq!(recorded.count(), 3, "{}", ended.err);
    for graded in ended.json()["submissions"].as_array().unwrap() {
        assert_eq!(graded["verdict"], "unresolved", "{graded:#}");
    }
}
