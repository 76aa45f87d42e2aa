//! Patches that hurt whatever runs them: each gets its own verdict, costs its own case, and leaves nothing behind.

mod ground;
mod harm;

use std::fs;
use std::path::PathBuf;

use ground::{Ground, MODEL};
use harm::{Running, assert_nothing_left, no_process_of};
use infradev_store::Trees;
use serde_json::Value;

/// What `triple` does when the official test calls it. The two probes call it with other numbers.
struct Hurt {
    name: &'static str,
    body: &'static str,
    /// Whether the official test passes all the same.
    passes: bool,
    /// Whether it costs its own case only: not what has the kernel kill the launcher.
    spares: bool,
}

const HURTS: [Hurt; 16] = [
    Hurt {
        name: "fork-bomb",
        body: "
            while True:
                try:
                    os.fork()
                except OSError:
                    time.sleep(0.01)",
        passes: false,
        spares: true,
    },
    Hurt {
        name: "memory",
        body: "held = [bytearray(1 << 20) for _ in range(1 << 20)]",
        passes: false,
        spares: true,
    },
    Hurt {
        name: "full-tmp",
        body: "
            with open('/tmp/filler', 'wb', buffering=0) as filler:
                while True:
                    filler.write(bytes(1 << 20))",
        passes: false,
        spares: true,
    },
    Hurt {
        name: "many-files",
        body: "
            folder = f'/tmp/many-{time.monotonic_ns()}'
            os.mkdir(folder)
            for number in range(100_000):
                os.mknod(f'{folder}/{number}')",
        passes: true,
        spares: true,
    },
    Hurt {
        name: "daemons",
        body: "
            for _ in range(5):
                if os.fork() == 0:
                    os.setsid()
                    for number in range(1, 32):
                        if number not in (signal.SIGKILL, signal.SIGSTOP):
                            signal.signal(number, signal.SIG_IGN)
                    if os.fork() == 0:
                        while True:
                            time.sleep(600)
                    os._exit(0)",
        passes: true,
        spares: true,
    },
    // All but the caller itself, kill(2).
    Hurt { name: "kill-all", body: "os.kill(-1, signal.SIGKILL)", passes: true, spares: true },
    Hurt {
        name: "memory-of-no-process",
        body: "
            held = os.memfd_create('held')
            while True:
                os.write(held, bytes(1 << 20))",
        passes: false,
        spares: true,
    },
    Hurt {
        name: "memory-at-the-launchers-cost",
        body: "
            open('/proc/self/oom_score_adj', 'w').write('0')
            held = os.memfd_create('held')
            while True:
                os.write(held, bytes(1 << 20))",
        passes: false,
        spares: false,
    },
    Hurt {
        name: "memory-of-many",
        body: "
            import mmap
            held = [mmap.mmap(-1, 1 << 20) for _ in range(256)]
            while os.fork() != 0:
                pass
            for part in held:
                part.write(bytes(1 << 20))
            private = bytearray(1 << 30)
            signal.pause()",
        passes: false,
        spares: true,
    },
    Hurt {
        name: "no-sigterm",
        body: "
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            while True:
                time.sleep(600)",
        passes: false,
        spares: true,
    },
    Hurt { name: "stopped", body: "os.kill(os.getpid(), signal.SIGSTOP)", passes: false, spares: true },
    Hurt {
        name: "stops-all",
        body: "
            os.kill(-1, signal.SIGSTOP)
            os.kill(os.getpid(), signal.SIGSTOP)",
        passes: false,
        spares: true,
    },
    Hurt { name: "closed-descriptors", body: "os.closerange(0, 65536)", passes: false, spares: true },
    Hurt {
        name: "workspace",
        body: "
            for folder in ('/workspace', '/base', '/infradev', sys.prefix, sys.pycache_prefix):
                for root, folders, files in os.walk(folder):
                    for name in files:
                        path = os.path.join(root, name)
                        for harm in (os.unlink, lambda p: os.chmod(p, 0o777), lambda p: os.utime(p, (1, 1)),
                                     lambda p: open(p, 'ab').write(b'#'), lambda p: os.truncate(p, 0)):
                            try:
                                harm(path)
                            except OSError:
                                continue
                            raise SystemExit(f'{path} was changed')",
        passes: true,
        spares: true,
    },
    Hurt {
        name: "priority",
        body: "
            for change in (lambda: os.setuid(0), lambda: os.nice(-20), lambda: os.chroot('/tmp')):
                try:
                    change()
                except OSError:
                    continue
                raise SystemExit('more rights than a rank should have')",
        passes: true,
        spares: true,
    },
    Hurt {
        name: "core-dump",
        body: "
            import resource
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.abort()",
        passes: false,
        spares: true,
    },
];

fn patch(hurt: &Hurt) -> String {
    let harm: Vec<String> = hurt
        .body
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| format!("        {}", line.strip_prefix("            ").unwrap_or(line)))
        .collect();
    let text = format!(
        "import os\nimport signal\nimport sys\nimport time\n\n\n{MODEL}\n\ndef triple(x):\n    if x == 2:\n{}\n    return 3 * x\n",
        harm.join("\n")
    );
    let (old, new) = (MODEL.lines().count(), text.lines().count());
    let removed: String = MODEL.lines().map(|line| format!("-{line}\n")).collect();
    let added: String = text.lines().map(|line| format!("+{line}\n")).collect();
    format!(
        "diff --git a/toy/model.py b/toy/model.py\n--- a/toy/model.py\n+++ b/toy/model.py\n@@ -1,{old} +1,{new} @@\n{removed}{added}"
    )
}

#[tokio::test]
async fn a_patch_that_hurts_gets_its_own_verdict_and_leaves_nothing() {
    let ground = Ground::new();
    let here = ground.path();
    ground.edit("pack/tasks/triple/task.toml", "case = 10.0", "case = 5.0");
    ground.edit("pack/tasks/triple/task.toml", "memory_mib = 1024", "memory_mib = 512\npids = 64");
    for hurt in &HURTS {
        ground.write(&format!("patches/{}/triple.patch", hurt.name), &patch(hurt));
    }
    let running = Running::start(here, &["grade", "pack", "--patches", "patches", "--json"], &[]);
    let pid = running.pid();
    let ended = running.end().await.exits(0);
    let document = ended.json();
    let graded = document["submissions"].as_array().unwrap();
    assert_eq!(graded.len(), HURTS.len());
    for hurt in &HURTS {
        let found = graded.iter().find(|graded| graded["submission"] == hurt.name).unwrap();
        let counts =
            |suite: &str| (found["suites"][suite]["passed"].as_u64(), found["suites"][suite]["of"].as_u64());
        assert_eq!(found["fault"], Value::Null, "{}: {found:#}", hurt.name);
        let (verdict, official) = if hurt.passes { ("resolved", 2) } else { ("unresolved", 1) };
        assert_eq!(found["verdict"], verdict, "{}: {found:#}", hurt.name);
        if !hurt.spares {
            continue;
        }
        assert_eq!(counts("official"), (Some(official), Some(2)), "{}: {found:#}", hurt.name);
        assert_eq!(counts("probe"), (Some(2), Some(2)), "{}: {found:#}", hurt.name);
    }
    no_process_of(here).await;
    assert_nothing_left(here, &[pid]);
    // The tree that all trials share is what its name says.
    let again = tempfile::tempdir().unwrap();
    let trees = fs::read_dir(here.join("home/builds/trees")).unwrap().flatten();
    let by_digest = |path: &PathBuf| path.is_dir() && path.file_name().is_some_and(|name| name.len() == 64);
    let trees: Vec<_> = trees.map(|entry| entry.path()).filter(by_digest).collect();
    assert_eq!(trees.len(), 1);
    let digest = Trees::new(again.path()).of_folder(&trees[0]).unwrap().digest;
    assert_eq!(Some(digest.as_str()), trees[0].file_name().unwrap().to_str());
    // The next trial in the same store is clean.
    let golden = ["grade", "pack", "--patches", "golden", "--require", "resolved"];
    Running::start(here, &golden, &[]).end().await.exits(0);
}
