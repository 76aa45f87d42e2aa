//! The real program, followed line by line so that it can be hurt at a known point, and a search for what it left behind.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, PipeReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use infradev_supervise::{Child, Exit, Process, Sink, Spawn, process, watch_process};
use nix::sys::signal::Signal;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// No process of ours lives as long as this after its end was asked for.
const DEATH: Duration = Duration::from_secs(60);

/// The program under way. Its words on stderr are read as they come.
pub struct Running {
    child: Child,
    words: UnboundedReceiver<String>,
    out: PipeReader,
    said: Vec<String>,
}

/// How it ended.
#[derive(Debug)]
pub struct Ended {
    pub exit: Exit,
    pub out: String,
    pub err: String,
}

impl Running {
    /// Starts the program in `here`, with the store in `here/home` and temporary files in `here/tmp`, and with `env` besides.
    pub fn start(here: &Path, args: &[&str], env: &[(&str, &str)]) -> Running {
        let (words, words_write) = std::io::pipe().unwrap();
        let (out, out_write) = std::io::pipe().unwrap();
        let tmp = here.join("tmp");
        fs::create_dir_all(&tmp).unwrap();
        let mut spawn = Spawn::new(env!("CARGO_BIN_EXE_infradev"));
        spawn.args = args.iter().map(OsString::from).collect();
        // How an index is reached is the machine's affair.
        let ours =
            |name: &str| name.starts_with("INFRADEV") || name.starts_with("PYTHON") || name == "TMPDIR";
        spawn.env = std::env::vars_os().filter(|(name, _)| !ours(&name.to_string_lossy())).collect();
        spawn.env.push(("INFRADEV_HOME".into(), here.join("home").into()));
        spawn.env.push(("TMPDIR".into(), tmp.into()));
        for (name, value) in env {
            spawn.env.retain(|(known, _)| known.to_str() != Some(name));
            spawn.env.push((name.into(), value.into()));
        }
        spawn.cwd = Some(here.to_owned());
        spawn.stdout = Sink::Fd(out_write.into());
        spawn.stderr = Sink::Fd(words_write.into());
        let child = spawn.start().unwrap();
        let (heard, words_heard) = unbounded_channel();
        std::thread::spawn(move || {
            for line in BufReader::new(words).lines() {
                // Nobody listens any more where the test has failed.
                let _ = heard.send(line.unwrap());
            }
        });
        Running { child, words: words_heard, out, said: Vec::new() }
    }

    /// Its number.
    pub fn pid(&self) -> i32 {
        self.child.pid()
    }

    /// Waits for a line on stderr that is as asked; false where the program ended before it said one.
    pub async fn says(&mut self, wanted: impl Fn(&str) -> bool) -> bool {
        while let Some(line) = self.words.recv().await {
            let found = wanted(&line);
            self.said.push(line);
            if found {
                return true;
            }
        }
        false
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        self.child.signal(signal);
    }

    /// Waits for its end.
    pub async fn end(mut self) -> Ended {
        let reader = std::thread::spawn(move || {
            let mut out = String::new();
            self.out.read_to_string(&mut out).unwrap();
            out
        });
        while let Some(line) = self.words.recv().await {
            self.said.push(line);
        }
        let exit = self.child.wait().await.unwrap();
        Ended { exit, out: reader.join().unwrap(), err: self.said.join("\n") }
    }
}

impl Ended {
    /// Its exit code is this one.
    #[track_caller]
    pub fn exits(self, code: i32) -> Ended {
        assert_eq!(self.exit, Exit::Code(code), "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| {
            panic!("stdout is no JSON document ({error}):\n{}\nstderr:\n{}", self.out, self.err)
        })
    }
}

/// Whether a line of progress tells the end of a trial, run now or recorded before.
pub fn tells_an_end(line: &str) -> bool {
    line.contains(" · ") && (line.ends_with(" s)") || line.ends_with("(recorded before)"))
}

/// Living processes that have something to do with a folder: by what they were started with, or by what is mounted where they
/// are. A sandbox of a trial shows a folder of its run, so that no process in it escapes this look.
pub fn processes_of(folder: &Path) -> Vec<Process> {
    let name = folder.to_str().unwrap().as_bytes().to_vec();
    // Where a file system is mounted in parts, a mount's root is told from the part's own root.
    let tail = folder.file_name().unwrap().to_str().unwrap().as_bytes().to_vec();
    let holds = |text: &[u8], word: &[u8]| text.windows(word.len()).any(|window| window == word);
    let own = std::process::id();
    let numbers = fs::read_dir("/proc").unwrap().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let concerned = |pid: &i32| {
        let read = |what: &str| fs::read(format!("/proc/{pid}/{what}")).unwrap_or_default();
        ["cmdline", "environ"].iter().any(|what| holds(&read(what), &name))
            || holds(&read("mountinfo"), &tail)
    };
    numbers.filter(|pid| *pid as u32 != own).filter(concerned).filter_map(process).collect()
}

/// Waits until no process that has to do with the folder lives.
pub async fn no_process_of(folder: &Path) {
    for left in processes_of(folder) {
        let Ok(watched) = watch_process(left.pid) else { continue };
        let ended = tokio::time::timeout(DEATH, watched.readable()).await;
        let line = || fs::read_to_string(format!("/proc/{}/cmdline", left.pid)).unwrap_or_default();
        assert!(ended.is_ok(), "{left:?} lives on: {}", line());
    }
    let after = processes_of(folder);
    assert!(after.is_empty(), "processes that were started by dying ones: {after:?}");
}

/// Control groups of these processes' trials.
pub fn control_groups_of(pids: &[i32]) -> Vec<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap();
    let mut places = vec![PathBuf::from("/sys/fs/cgroup")];
    for line in own.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let below = path.trim_start_matches('/');
        places.push(Path::new("/sys/fs/cgroup").join(controllers).join(below));
        places.push(Path::new("/sys/fs/cgroup").join(controllers).join(below).join(".."));
    }
    let named = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        pids.iter().any(|pid| name.starts_with(&format!("infradev-{pid}-")))
    };
    let entries = places.iter().filter_map(|place| fs::read_dir(place).ok()).flatten().flatten();
    entries.map(|entry| entry.path()).filter(named).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Every file, folder and link below a folder that is a passing one by its name or place: half-made things, scratch folders,
/// whatever lies in `tmp`.
pub fn passing_files(here: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![here.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let relative = path.strip_prefix(here).unwrap().to_owned();
            if is_passing(&relative) {
                found.push(relative);
            } else if !path.is_symlink() && path.is_dir() {
                folders.push(path);
            }
        }
    }
    found.sort();
    found
}

fn is_passing(relative: &Path) -> bool {
    let name = relative.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let below = |folder: &str| relative.starts_with(folder) && relative != Path::new(folder);
    let begun = [
        ".making-",
        ".writing-",
        ".creating-",
        ".building-",
        ".kit-",
        ".clone-",
        ".tree-",
        ".new-",
        ".tmp",
        "infradev-git-",
    ];
    below("tmp")
        || below("home/scratch") && name != ".lock"
        || name == "scratch" && relative.starts_with("home/runs")
        || begun.iter().any(|begin| name.starts_with(begin))
}

/// Mounts of this process's namespace that lie below a folder.
pub fn mounts_below(folder: &Path) -> Vec<String> {
    let all = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let below = |line: &&str| line.split(' ').nth(4).is_some_and(|at| Path::new(at).starts_with(folder));
    all.lines().filter(below).map(str::to_owned).collect()
}

/// Asserts that the program's starts left nothing: no process, mount, control group, half-made or temporary file.
#[track_caller]
pub fn assert_nothing_left(here: &Path, pids: &[i32]) {
    assert_eq!(processes_of(here), [], "processes");
    assert_eq!(mounts_below(here), Vec::<String>::new(), "mounts");
    assert_eq!(control_groups_of(pids), Vec::<PathBuf>::new(), "control groups");
    assert_eq!(passing_files(here), Vec::<PathBuf>::new(), "files");
}

/// A server of ours that says its address on its first line. Dropped, it is killed.
pub struct Served {
    pub address: String,
    _child: Child,
    _runtime: tokio::runtime::Runtime,
}

impl Served {
    pub fn start(program: &str, args: &[&Path]) -> Served {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (out, out_write) = std::io::pipe().unwrap();
        let mut spawn = Spawn::new(program);
        spawn.args = args.iter().map(|arg| arg.as_os_str().to_owned()).collect();
        spawn.env = vec![("PATH".into(), std::env::var_os("PATH").unwrap())];
        spawn.stdout = Sink::Fd(out_write.into());
        let child = {
            let _inside = runtime.enter();
            spawn.start().unwrap()
        };
        let mut address = String::new();
        BufReader::new(out).read_line(&mut address).unwrap();
        assert!(address.starts_with("http://"), "{program} did not say where it is");
        Served { address: address.trim().to_owned(), _child: child, _runtime: runtime }
    }
}
