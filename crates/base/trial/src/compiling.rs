//! One build: the command in its sandbox, and what it made taken into the store.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use infradev_model::{BuildSpec, FaultKind, Limits};
use infradev_pyenv::{BuiltWith, Environment, Layer};
use infradev_sandbox::{
    Kind, Limits as SandboxLimits, LockFolder, Mode, Mount, Network, Sandbox, SandboxEnd, SandboxSpec,
    UidLease, uid_separation_granted,
};
use infradev_supervise::{Exit, LogBounds, LogSink, Sink};

use crate::building::{BuildError, Building, Failure, Inputs};
use crate::toolchain::PATH;
use crate::workspace::{files_below, path_of};

/// Where the inputs are seen, and so what paths an object file holds.
const WORKSPACE: &str = "/workspace";
const COMPILERS: &str = "/infradev/compilers";
const CACHE: &str = "/infradev/ccache";
const COUNTS: &str = "/infradev/counts";
/// The largest file that a build may write, and the most that its outputs may take together.
const LARGEST: u64 = 4 << 30;
/// A disk with less than this is full: what a build wrote last did not fit.
const FULL: u64 = 16 << 20;
/// Lines of a failed build's log that its reason repeats.
const REPEATED: usize = 4;
/// A moment that never changes, for builds that write the time into what they make (reproducible-builds.org).
const EPOCH: &str = "315532800";

/// Bounds what it writes, becomes what a rank is, then the command.
const BEGIN: &str =
    concat!(include_str!("../../../../python/infradev_probe/privileges.py"), include_str!("begin_build.py"));

/// One build.
pub(crate) struct Work<'a> {
    pub building: &'a Building,
    pub build: &'a BuildSpec,
    pub limits: &'a Limits,
    pub environment: &'a Environment,
    pub sandbox: Kind,
    pub inputs: &'a Inputs,
}

/// Where things are as the build sees them.
struct Places {
    workspace: PathBuf,
    compilers: PathBuf,
    cache: PathBuf,
    counts: PathBuf,
}

impl Work<'_> {
    /// Runs the command where the inputs lie, and keeps what it made.
    pub(crate) async fn run(&self, turn: File) -> Result<Layer, BuildError> {
        let folder = &self.inputs.folder;
        let beside = folder.with_file_name("build");
        let (log, sink) = LogSink::open(LogBounds::default()).map_err(BuildError::fault)?;
        let uids = match self.sandbox {
            Kind::Namespaces if uid_separation_granted() => {
                let locks = LockFolder::machine().map_err(BuildError::fault)?;
                Some(UidLease::acquire(&locks).map_err(BuildError::fault)?)
            }
            _ => None,
        };
        let spec = self.spec(&beside, uids.as_ref(), sink).map_err(|error| self.io(&beside, &error))?;
        let begun = Instant::now();
        let mut sandbox = Sandbox::start(spec).await.map_err(BuildError::fault)?;
        let allowed = Duration::from_secs_f64(self.build.timeout);
        let ended = tokio::time::timeout(allowed, sandbox.wait()).await;
        let in_time = ended.is_ok();
        let end = match ended {
            Ok(end) => end,
            Err(_) => sandbox.kill().await,
        };
        let end = end.map_err(BuildError::fault)?;
        log.catch_up();
        let said = String::from_utf8_lossy(&log.contents().with_note()).into_owned();
        if let Some(why) = self.why(in_time, &end) {
            if free(folder).is_some_and(|free| free < FULL) {
                let what = format!("{}: no space left while {} ran", folder.display(), self.command());
                return Err(BuildError::Fault(FaultKind::DiskFull, what));
            }
            let telling = telling(&said);
            let why = if telling.is_empty() { why } else { format!("{why}: {telling}") };
            return Err(BuildError::Failed(Failure { why, log: said }));
        }
        let seconds = begun.elapsed().as_secs();
        let made = self.keep(turn, seconds, &beside, &said);
        let _ = fs::remove_dir_all(&beside);
        made
    }

    fn spec(
        &self,
        beside: &Path,
        uids: Option<&UidLease>,
        sink: std::os::fd::OwnedFd,
    ) -> io::Result<SandboxSpec> {
        let (folder, building) = (&self.inputs.folder, self.building);
        let (counts, compilers) = (beside.join("counts"), beside.join("compilers"));
        for made in [&counts, &compilers] {
            fs::create_dir_all(made)?;
        }
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
        for output in &self.build.outputs {
            // The folder that it comes to lie in, as an editable install has it; the rest of the tree is not there.
            let parents = Path::new(output).parent().into_iter().flat_map(Path::components);
            let plain = parents.take_while(|part| !part.as_os_str().as_encoded_bytes().contains(&b'*'));
            fs::create_dir_all(folder.join(plain.collect::<PathBuf>()))?;
        }
        let ccache = building.toolchain.ccache.as_deref();
        if let Some(ccache) = ccache {
            for name in &building.toolchain.wrapped {
                symlink(ccache, compilers.join(name))?;
            }
        }
        let cache = building.cache.join("cache");
        open_cache(&building.cache, &cache)?;
        let inside = self.sandbox == Kind::Namespaces;
        let seen = |path: &Path, inside_path: &str| match inside {
            true => PathBuf::from(inside_path),
            false => path.to_path_buf(),
        };
        let places = Places {
            workspace: seen(folder, WORKSPACE),
            compilers: seen(&compilers, COMPILERS),
            cache: seen(&cache, CACHE),
            counts: seen(&counts, COUNTS),
        };
        let mount =
            |source: &Path, target: &Path, mode| Mount { source: source.into(), target: target.into(), mode };
        let of_cache = if building.trusted { Mode::ReadWrite } else { Mode::ReadOnly };
        let mut spec = SandboxSpec::new(&self.environment.python);
        spec.mounts = vec![
            mount(folder, &places.workspace, Mode::ReadWrite),
            mount(&counts, &places.counts, Mode::ReadWrite),
            mount(&compilers, &places.compilers, Mode::ReadOnly),
            mount(&cache, &places.cache, of_cache),
        ];
        spec.mounts.extend(self.environment.mounts.iter().cloned().map(Mount::read_only));
        spec.kind = self.sandbox;
        spec.network = if inside { Network::Isolated } else { Network::Host };
        spec.tmp_bytes = self.limits.tmp_mib << 20;
        spec.limits = SandboxLimits { memory_bytes: self.limits.memory_mib << 20, pids: self.limits.pids };
        spec.env = self.variables(&places);
        spec.cwd = places.workspace;
        spec.uids = uids.map(|lease| lease.uids);
        let uid = uids.map(|lease| lease.uids.ranks_base);
        if let Some(uid) = uid {
            give(folder, uid)?;
            give(&counts, uid)?;
        }
        let uid = uid.map_or_else(|| "-".to_owned(), |uid| uid.to_string());
        spec.args = ["-I", "-S", "-c", BEGIN, &uid, &LARGEST.to_string()].map(OsString::from).to_vec();
        spec.args.extend(self.build.command.iter().map(OsString::from));
        spec.stderr = Sink::Fd(sink.try_clone()?);
        spec.stdout = Sink::Fd(sink);
        Ok(spec)
    }

    fn variables(&self, places: &Places) -> Vec<(OsString, OsString)> {
        let text = |path: &Path| path.as_os_str().to_owned();
        let mut path = text(&places.compilers);
        let bin = self.environment.python.parent().map(text).unwrap_or_default();
        for next in [bin.as_os_str(), PATH.as_ref()] {
            path.push(":");
            path.push(next);
        }
        let jobs = std::thread::available_parallelism().map_or(1, usize::from).to_string();
        let mut all: Vec<(OsString, OsString)> = vec![
            ("PATH".into(), path),
            ("CCACHE_DIR".into(), text(&places.cache)),
            ("CCACHE_BASEDIR".into(), text(&places.workspace)),
            ("CCACHE_STATSLOG".into(), text(&places.counts.join("ccache"))),
            ("MAX_JOBS".into(), jobs.into()),
        ];
        let fixed = [
            ("LANG", "C.UTF-8"),
            ("CCACHE_COMPILERCHECK", "content"),
            ("CCACHE_TEMPDIR", "/tmp/ccache"),
            // The inputs lie there unchanged from before the compiler starts.
            ("CCACHE_SLOPPINESS", "include_file_ctime,include_file_mtime"),
            // Builds of other uids put theirs beside.
            ("CCACHE_UMASK", "000"),
            ("PYTHONDONTWRITEBYTECODE", "1"),
            ("PYTHONHASHSEED", "0"),
            ("PYTHONNOUSERSITE", "1"),
            ("SOURCE_DATE_EPOCH", EPOCH),
        ];
        all.extend(fixed.map(|(name, value)| (name.into(), value.into())));
        if !self.building.trusted {
            all.push(("CCACHE_READONLY".into(), "1".into()));
        }
        all
    }

    /// Why the build failed, if it did.
    fn why(&self, in_time: bool, end: &SandboxEnd) -> Option<String> {
        let command = self.command();
        if !in_time {
            return Some(format!(
                "the build failed: {command} did not end within {} s (build.timeout)",
                self.build.timeout
            ));
        }
        let how = match end.exit {
            Exit::Code(0) => return None,
            exit => exit.to_string(),
        };
        let memory = self.limits.memory_mib;
        Some(match (end.oom_kills > 0, end.excess) {
            (false, None) => format!("the build failed: {command} ended with {how}"),
            (true, _) => {
                format!("the build failed: {command} took more than {memory} MiB (limits.memory_mib)")
            }
            (_, Some(excess)) => format!("the build failed: {command} was ended for {excess:?}"),
        })
    }

    fn command(&self) -> String {
        format!("`{}`", self.build.command.join(" "))
    }

    /// Takes what was made into the store.
    fn keep(&self, turn: File, seconds: u64, beside: &Path, said: &str) -> Result<Layer, BuildError> {
        let folder = &self.inputs.folder;
        let failed = |what: String| {
            let why = format!("the build failed: {what}");
            BuildError::Failed(Failure { why, log: said.to_owned() })
        };
        let mut made = Vec::new();
        let mut making = self.building.layers.make(&self.inputs.key, turn)?;
        let mut bytes = 0;
        for relative in files_below(folder).map_err(|error| self.io(folder, &error))? {
            let path = path_of(&relative);
            if !self.build.makes(path) {
                continue;
            }
            let (Some(name), from) = (relative.to_str(), folder.join(&relative)) else {
                return Err(failed(format!("the name of {} is no UTF-8", relative.display())));
            };
            let about = fs::symlink_metadata(&from).map_err(|error| self.io(&from, &error))?;
            bytes += about.len();
            if !about.is_file() {
                return Err(failed(format!("{name} is no plain file")));
            }
            if bytes > LARGEST {
                return Err(failed(format!("its outputs take more than {} GiB", LARGEST >> 30)));
            }
            making.add(name, &from)?;
            made.push(path.to_vec());
        }
        if let Some(lacking) = self.build.lacking(&made) {
            return Err(failed(format!("{} made no {lacking} (build.outputs)", self.command())));
        }
        let (compiled, reused) = counted(&beside.join("counts/ccache"));
        let compilers = self.building.toolchain.compilers.clone();
        let with = BuiltWith { command: self.build.command.clone(), compilers, seconds, compiled, reused };
        Ok(making.finish(with)?)
    }

    fn io(&self, path: &Path, error: &io::Error) -> BuildError {
        let kind = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FaultKind::DiskFull,
            _ => FaultKind::Sandbox,
        };
        BuildError::Fault(kind, format!("{}: {error}", path.display()))
    }
}

/// ccache's folder: written by builds of any uid, and reached through a folder that is the store's owner's alone.
fn open_cache(outer: &Path, cache: &Path) -> io::Result<()> {
    if cache.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(outer)?;
    fs::set_permissions(outer, fs::Permissions::from_mode(0o700))?;
    fs::create_dir_all(cache)?;
    fs::set_permissions(cache, fs::Permissions::from_mode(0o777))
}

/// How many files were compiled and how many taken from ccache, by its statistics log; nothing without ccache.
fn counted(log: &Path) -> (Option<u32>, Option<u32>) {
    let Ok(text) = fs::read_to_string(log) else { return (None, None) };
    let count = |words: &[&str]| text.lines().filter(|line| words.contains(line)).count() as u32;
    (Some(count(&["cache_miss"])), Some(count(&["direct_cache_hit", "preprocessed_cache_hit"])))
}

/// The lines of a log that say what is wrong.
fn telling(log: &str) -> String {
    let lines: Vec<&str> = log.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let errors = lines.iter().filter(|line| line.contains("error:") || line.contains("Error:"));
    let mut chosen: Vec<&str> = errors.copied().take(REPEATED).collect();
    if chosen.is_empty() {
        chosen = lines[lines.len().saturating_sub(REPEATED)..].to_vec();
    }
    chosen.iter().map(|line| shortened(line)).collect::<Vec<_>>().join("; ")
}

fn shortened(line: &str) -> String {
    const MOST: usize = 300;
    match line.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}

fn free(folder: &Path) -> Option<u64> {
    let found = nix::sys::statvfs::statvfs(folder).ok()?;
    Some(found.blocks_available() * found.fragment_size())
}

/// Makes a user the owner of a tree.
fn give(path: &Path, uid: u32) -> io::Result<()> {
    lchown(path, Some(uid), Some(uid))?;
    if fs::symlink_metadata(path)?.is_dir() {
        for entry in fs::read_dir(path)? {
            give(&entry?.path(), uid)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_told_by_its_errors_or_by_its_last_lines() {
        let log =
            "compiling\na.cpp:3:1: error: 'x' was not declared\nnote: here\nerror: command 'g++' failed\n";
        assert_eq!(telling(log), "a.cpp:3:1: error: 'x' was not declared; error: command 'g++' failed");
        assert_eq!(telling("one\n\ntwo\nthree\nfour\nfive\n"), "two; three; four; five");
        assert_eq!(telling(""), "");
    }

    #[test]
    fn what_ccache_did_is_counted_from_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("ccache");
        assert_eq!(counted(&log), (None, None));
        fs::write(
            &log,
            "# a.cpp\ndirect_cache_hit\nlocal_storage_hit\n# b.cpp\ncache_miss\ndirect_cache_miss\n",
        )
        .unwrap();
        assert_eq!(counted(&log), (Some(1), Some(1)));
    }
}
