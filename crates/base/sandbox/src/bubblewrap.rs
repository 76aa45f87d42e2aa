//! The command line of bubblewrap for a sandbox.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{Seek, Write};
use std::os::fd::{OwnedFd, RawFd};
use std::path::{Path, PathBuf};

use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::error::SandboxError;
use crate::root::{HOME, Part, made_files, parents, parts};
use crate::spec::{Kind, Mode, Mount, Network, SandboxSpec};
use crate::view;

/// What the wrapper writes, on the stream that carried bubblewrap's own complaints, once the sandbox is set up.
pub(crate) const STARTED: &str = "infradev: sandbox started\n";

/// What of /proc is the host's rather than a process's.
const PROC_OF_THE_HOST: [&str; 7] = ["sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi"];

/// Arguments for bubblewrap, with the descriptors that they name.
pub(crate) struct Arguments {
    pub args: Vec<OsString>,
    pub fds: Vec<(OwnedFd, RawFd)>,
}

struct Builder {
    args: Vec<OsString>,
    fds: Vec<(OwnedFd, RawFd)>,
    next_fd: RawFd,
    made: Vec<PathBuf>,
    /// Targets of the spec's mounts so far: folders below them are the host's, and none is made there.
    mounted: Vec<PathBuf>,
}

/// Builds the arguments.
///
/// Standard streams at this level: 0 is where the program's standard error will lead, 1 its standard output, 2 carries
/// bubblewrap's complaints, then [`STARTED`]; `input` is the number under which standard input waits, where there is any. A
/// shell turns them to their places: it is the one program that surely is in
/// view, and takes a millisecond.
pub(crate) fn arguments(
    spec: &SandboxSpec,
    privileged: bool,
    input: Option<RawFd>,
    first_free_fd: RawFd,
) -> Result<Arguments, SandboxError> {
    view::check(spec)?;
    let mut b = Builder {
        args: Vec::new(),
        fds: Vec::new(),
        next_fd: first_free_fd,
        made: Vec::new(),
        mounted: Vec::new(),
    };
    b.push(["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--hostname", "infradev"]);
    b.push(["--die-with-parent", "--new-session"]);
    if spec.network == Network::Isolated {
        b.push(["--unshare-net"]);
    }
    if privileged {
        b.push(["--cap-drop", "ALL"]);
        if spec.uids.is_some() {
            // No user namespace: in one, another uid inside is still ours outside.
            for capability in ["CAP_SETUID", "CAP_SETGID", "CAP_KILL"] {
                b.push(["--cap-add", capability]);
            }
        }
        if spec.enters_networks {
            b.push(["--cap-add", "CAP_SYS_ADMIN"]);
        }
    } else {
        b.push(["--unshare-user"]);
    }
    b.root(spec)?;
    let mut mounts: Vec<&Mount> = spec.mounts.iter().collect();
    mounts.sort_by_key(|mount| mount.target.components().count());
    for mount in mounts {
        b.mount(mount)?;
    }
    for (path, contents) in &spec.files {
        b.file(path, contents)?;
    }
    b.push(["--remount-ro", "/", "--chdir"]);
    b.args.push(spec.cwd.clone().into());
    b.environment(spec);
    b.push(["--", "/bin/sh", "-c"]);
    let stdin = input.map_or("0</dev/null".to_owned(), |number| format!("0<&{number} {number}<&-"));
    b.args.push(format!("echo '{}' >&2; exec \"$0\" \"$@\" 2>&0 {stdin}", STARTED.trim_end()).into());
    b.args.push(spec.program.clone().into());
    b.args.extend(spec.args.iter().cloned());
    Ok(Arguments { args: b.args, fds: b.fds })
}

impl Builder {
    fn push<const N: usize>(&mut self, words: [&str; N]) {
        self.args.extend(words.map(OsString::from));
    }

    fn root(&mut self, spec: &SandboxSpec) -> Result<(), SandboxError> {
        for part in parts() {
            match part {
                Part::Seen(path) => {
                    self.parents_of(&path);
                    self.push(["--ro-bind"]);
                    self.args.extend([path.clone().into(), path.into()]);
                }
                Part::Link(path, target) => {
                    self.push(["--symlink"]);
                    self.args.extend([target, path.into()]);
                }
            }
        }
        for (path, contents) in made_files(spec.uids) {
            self.file(&path, &contents)?;
        }
        self.push(["--proc", "/proc", "--dev", "/dev"]);
        for name in PROC_OF_THE_HOST {
            // Root without capabilities still owns these files; bubblewrap covers them only where it finds them writable
            // by its own, reduced, rights.
            let path = format!("/proc/{name}");
            self.push(["--ro-bind-try", &path, &path]);
        }
        self.private_folder("/dev/shm", spec.tmp_bytes);
        self.private_folder("/tmp", spec.tmp_bytes);
        self.parents_of(Path::new(HOME));
        self.private_folder(HOME, spec.tmp_bytes);
        self.folder(Path::new("/var"));
        self.push(["--symlink", "../tmp", "/var/tmp"]);
        self.sys(spec);
        for device in gpu_devices(spec) {
            self.push(["--dev-bind"]);
            self.args.extend([device.clone().into(), device.into()]);
        }
        Ok(())
    }

    /// Numbers of CPUs and NUMA nodes; for GPUs the PCI topology too, which NCCL reads.
    fn sys(&mut self, spec: &SandboxSpec) {
        let seen: &[&str] = if spec.gpus.is_empty() { &["/sys/devices/system"] } else { &["/sys"] };
        for path in seen {
            self.parents_of(Path::new(path));
            self.push(["--ro-bind-try", path, path]);
        }
    }

    fn private_folder(&mut self, path: &str, bytes: u64) {
        self.push(["--size", &bytes.to_string(), "--perms", "1777", "--tmpfs", path]);
        self.made.push(path.into());
    }

    fn folder(&mut self, path: &Path) {
        if !self.made.iter().any(|made| made == path) {
            self.push(["--perms", "0755", "--dir"]);
            self.args.push(path.into());
            self.made.push(path.to_owned());
        }
    }

    /// The folders above `path`, of mode 0755: bubblewrap's own would shut other uids out.
    fn parents_of(&mut self, path: &Path) {
        for folder in parents(path) {
            // What lies in /usr and its like is there already, and read-only.
            let given = ["/usr", "/bin", "/lib", "/proc", "/dev"].iter().any(|top| folder.starts_with(top));
            if !given && !self.mounted.iter().any(|mounted| folder.starts_with(mounted)) {
                self.folder(folder);
            }
        }
    }

    fn mount(&mut self, mount: &Mount) -> Result<(), SandboxError> {
        std::fs::metadata(&mount.source)
            .map_err(|source| SandboxError::Mount { path: mount.source.clone(), source })?;
        self.parents_of(&mount.target);
        self.mounted.push(mount.target.clone());
        self.push([match mount.mode {
            Mode::ReadOnly => "--ro-bind",
            Mode::ReadWrite => "--bind",
            Mode::Dev => "--dev-bind",
        }]);
        self.args.extend([mount.source.clone().into(), mount.target.clone().into()]);
        Ok(())
    }

    fn file(&mut self, path: &Path, contents: &[u8]) -> Result<(), SandboxError> {
        self.parents_of(path);
        let number = self.next_fd;
        self.next_fd += 1;
        self.fds.push((memory_file(contents)?, number));
        self.push(["--perms", "0444", "--file", &number.to_string()]);
        self.args.push(path.into());
        Ok(())
    }

    fn environment(&mut self, spec: &SandboxSpec) {
        self.push(["--clearenv"]);
        for (name, value) in environment(spec) {
            self.push(["--setenv"]);
            self.args.extend([name, value]);
        }
    }
}

/// The program's environment: the spec's, and defaults for what is missing.
pub(crate) fn environment(spec: &SandboxSpec) -> Vec<(OsString, OsString)> {
    let mut env = spec.env.clone();
    let home = if spec.kind == Kind::None { "/nonexistent" } else { HOME };
    let defaults = [
        ("HOME", home),
        ("TMPDIR", "/tmp"),
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("USER", "trial"),
        ("LOGNAME", "trial"),
    ];
    let devices = visible_devices(spec);
    let all = defaults.into_iter().chain([("CUDA_VISIBLE_DEVICES", devices.as_str())]);
    for (name, value) in all.chain([("CUDA_DEVICE_ORDER", "PCI_BUS_ID")]) {
        if !env.iter().any(|(known, _)| known == OsStr::new(name)) {
            env.push((name.into(), value.into()));
        }
    }
    env
}

/// Only the trial's devices exist in its namespace, where CUDA numbers them from 0; without one it sees all the host's.
fn visible_devices(spec: &SandboxSpec) -> String {
    let numbers: Vec<String> = match spec.kind {
        Kind::Namespaces => (0..spec.gpus.len()).map(|index| index.to_string()).collect(),
        Kind::None => spec.gpus.iter().map(u32::to_string).collect(),
    };
    numbers.join(",")
}

fn gpu_devices(spec: &SandboxSpec) -> Vec<PathBuf> {
    if spec.gpus.is_empty() {
        return Vec::new();
    }
    let shared = ["nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-caps"].map(str::to_owned);
    let own = spec.gpus.iter().map(|index| format!("nvidia{index}"));
    shared
        .into_iter()
        .chain(own)
        .map(|name| Path::new("/dev").join(name))
        .filter(|path| path.exists())
        .collect()
}

fn memory_file(contents: &[u8]) -> Result<OwnedFd, SandboxError> {
    let name = CString::default();
    let fd = memfd_create(name.as_c_str(), MFdFlags::MFD_CLOEXEC)
        .map_err(|e| SandboxError::host("making a file in memory")(e.into()))?;
    let mut file = File::from(fd);
    file.write_all(contents)
        .and_then(|()| file.rewind())
        .map_err(SandboxError::host("writing a file in memory"))?;
    Ok(file.into())
}
