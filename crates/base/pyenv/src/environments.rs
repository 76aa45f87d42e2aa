//! The store of environments: find, or build once.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use infradev_model::{Digest, DigestBuilder, is_python_version};
use infradev_supervise::{SuperviseError, cancelled};
use serde::{Deserialize, Serialize};

use crate::error::PyenvError;
use crate::events::{Event, Events};
use crate::interpreter::{Interpreter, outermost};
use crate::lease::{self, Lease};
use crate::lock::{Lock, Resolved};
use crate::uv::Uv;
use crate::{proposal, pylock, remembered, under_way};

/// The file that says what an environment is.
pub(crate) const MARKER: &str = "infradev-env.json";
const MARKER_SCHEMA: u32 = 1;
/// Enough digits of a key for the name of a folder; the marker holds all of them.
pub(crate) const NAME_DIGITS: usize = 32;

/// How soon an interrupt is noticed while another process's build is waited for.
const LOOK_FOR_INTERRUPT: Duration = Duration::from_millis(100);

/// What an environment is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Definition {
    /// A hashed lock, installed by uv.
    Lock {
        /// The text of the requirements file.
        lock: Vec<u8>,
        /// The file, for messages.
        lock_path: PathBuf,
        /// The interpreter's version, `3.11` or `3.11.7`.
        python: String,
    },
    /// An interpreter with what is installed for it; used as it is.
    Interpreter {
        /// The executable.
        path: PathBuf,
    },
}

/// An environment that is ready for use, read-only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// Digest of what it holds. For a lock: packages, versions, hashes, interpreter version, platform. For an
    /// interpreter: the fingerprint.
    pub key: Digest,
    /// The interpreter to run.
    pub python: PathBuf,
    /// Its site-packages folder.
    pub site: PathBuf,
    /// The installation that holds the interpreter's standard library.
    pub base_prefix: PathBuf,
    /// Normalised name (PEP 503) to version.
    pub packages: BTreeMap<String, String>,
    /// For example `3.11.7`.
    pub python_version: String,
    /// What a calibration is keyed by; equal to `key`.
    pub fingerprint: Digest,
    /// Held so that nobody removes it meanwhile.
    pub lease: Lease,
    /// Host folders that a sandbox must show, read-only, at the same path; none lies below another.
    pub mounts: Vec<PathBuf>,
}

/// Written last into a build; its presence under the final name says that the environment is whole.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Marker {
    schema: u32,
    pub(crate) key: Digest,
    pub(crate) python_version: String,
    pub(crate) packages: BTreeMap<String, String>,
}

/// The environments below one folder, usually `$INFRADEV_HOME/envs`.
#[derive(Debug)]
pub struct Environments {
    root: PathBuf,
    uv: Uv,
    uv_cache: PathBuf,
    /// Interpreters found so far by version.
    found: Mutex<BTreeMap<String, Interpreter>>,
    /// Whether it was told that files are copied.
    told_copying: AtomicBool,
}

impl Environments {
    /// Opens the store at `root`; the folder is created with the first build. uv's cache is `$UV_CACHE_DIR` where that
    /// is set, else `<root>/.cache`.
    pub fn new(root: impl Into<PathBuf>) -> Environments {
        let cache = std::env::var_os("UV_CACHE_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from);
        Environments::with_cache(root, cache)
    }

    /// As [`Environments::new`], with uv's cache at `cache`.
    pub fn with_cache(root: impl Into<PathBuf>, cache: Option<PathBuf>) -> Environments {
        let root = root.into();
        let uv_cache = cache.unwrap_or_else(|| root.join(".cache"));
        let uv = Uv::new(uv_cache.clone(), root.clone());
        Environments { uv, uv_cache, found: Mutex::default(), told_copying: AtomicBool::new(false), root }
    }

    /// The folder of the store.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder that uv downloads to and links from.
    pub fn uv_cache(&self) -> &Path {
        &self.uv_cache
    }

    /// Makes an environment ready: found by its key, else built. Two processes that ask for the same one build it
    /// once; the second waits.
    ///
    /// # Errors
    /// A lock that does not fix its content or cannot be installed, no uv, no interpreter of that version, a full disk.
    pub fn ensure(&self, definition: &Definition, events: &dyn Events) -> Result<Environment, PyenvError> {
        let (text, lock_path, python) = match definition {
            Definition::Interpreter { path } => return as_it_is(path),
            Definition::Lock { lock, lock_path, python } => (lock, lock_path, python),
        };
        if !is_python_version(python) {
            return Err(PyenvError::NoVersion { given: python.clone() });
        }
        create_folder(&self.root)?;
        let interpreter = self.interpreter(python)?;
        let text = &written_out(text, lock_path, &interpreter)?;
        let lock = Lock::parse(text, lock_path)?;
        let wanted = Wanted::new(lock.resolve(&interpreter.markers)?, interpreter);
        if let Some(found) = self.complete(&wanted) {
            return Ok(found);
        }
        let _held = self.hold(&wanted.key, events)?;
        // From before it is there on: nobody removes it between its build and its use.
        let _lease = lease::begin(&self.root, &wanted.key);
        // Whoever held the lock before may have built it.
        if let Some(found) = self.complete(&wanted) {
            return Ok(found);
        }
        self.sweep(&wanted.key, events);
        self.build(&wanted, text, lock_path, events)?;
        let folder = self.folder(&wanted.key);
        self.complete(&wanted).ok_or_else(|| PyenvError::BadInterpreter {
            path: folder.join("bin/python"),
            reason: "the environment was built and is not usable".to_owned(),
        })
    }

    /// Whether environments can have files of uv's cache as hard links, found out by trying.
    ///
    /// # Errors
    /// Cache or store cannot be written.
    pub fn links(&self) -> Result<bool, PyenvError> {
        create_folder(&self.root)?;
        create_folder(&self.uv_cache)?;
        let tried = |folder: &Path| {
            tempfile::Builder::new()
                .prefix(".linking-")
                .tempfile_in(folder)
                .map_err(|e| PyenvError::io("write in", folder, e))
        };
        let (from, to) = (tried(&self.uv_cache)?, tried(&self.root)?);
        let link = to.path().with_extension("link");
        let linked = fs::hard_link(from.path(), &link).is_ok();
        let _ = fs::remove_file(&link);
        Ok(linked)
    }

    fn interpreter(&self, python: &str) -> Result<Interpreter, PyenvError> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = found.get(python) {
            return Ok(known.clone());
        }
        let interpreter = match remembered::recall(&self.root, python) {
            Some(known) => known,
            None => {
                let looked_for = Interpreter::describe(&self.uv.find_python(python)?)?;
                remembered::remember(&self.root, python, &looked_for);
                looked_for
            }
        };
        found.insert(python.to_owned(), interpreter.clone());
        Ok(interpreter)
    }

    fn folder(&self, key: &Digest) -> PathBuf {
        self.root.join(name_of(key))
    }

    /// The environment under its final name, if it is there, ours, and its interpreter still exists.
    fn complete(&self, wanted: &Wanted) -> Option<Environment> {
        let lease = lease::begin(&self.root, &wanted.key);
        let folder = self.folder(&wanted.key);
        let marker: Marker = serde_json::from_slice(&fs::read(folder.join(MARKER)).ok()?).ok()?;
        let python = folder.join("bin/python");
        if marker.schema != MARKER_SCHEMA || marker.key != wanted.key || !python.exists() {
            return None;
        }
        let (major, minor) = wanted.interpreter.major_minor();
        let mut mounts = wanted.interpreter.mounts();
        mounts.push(folder.clone());
        mounts.extend(fs::read_link(&python).ok().and_then(|to| to.parent()?.parent().map(Path::to_owned)));
        Some(Environment {
            key: wanted.key.clone(),
            python,
            site: folder.join(format!("lib/python{major}.{minor}/site-packages")),
            base_prefix: wanted.interpreter.base_prefix.clone(),
            packages: marker.packages,
            python_version: marker.python_version,
            lease,
            fingerprint: wanted.key.clone(),
            mounts: outermost(mounts),
        })
    }

    /// Takes the lock of a key. It is released when the file is closed, so a killed holder holds it no longer.
    fn hold(&self, key: &Digest, events: &dyn Events) -> Result<File, PyenvError> {
        if let Some(held) = under_way::try_hold(&self.root, key)? {
            return Ok(held);
        }
        events.on(Event::Waiting { key });
        let path = under_way::lock_path(&self.root, name_of(key));
        wait_for(under_way::open(&path)?)
            .map_err(|e| PyenvError::io("lock", &path, e))?
            .ok_or_else(|| SuperviseError::Cancelled { program: "uv".to_owned() }.into())
    }

    /// Removes what killed builders left. A failure to remove is left for the next sweep.
    fn sweep(&self, held: &Digest, events: &dyn Events) {
        for folder in under_way::sweep(&self.root, held) {
            events.on(Event::Swept { folder: &folder });
        }
    }

    fn build(
        &self,
        wanted: &Wanted,
        text: &[u8],
        named: &Path,
        events: &dyn Events,
    ) -> Result<(), PyenvError> {
        let started = Instant::now();
        events.on(Event::Building { key: &wanted.key, packages: wanted.resolved.len() });
        if !self.links()? && !self.told_copying.swap(true, Ordering::Relaxed) {
            events.on(Event::Copying { cache: &self.uv_cache, root: &self.root });
        }
        let building = under_way::folder(&self.root, &wanted.key)?;
        let venv = building.path().join("env");
        let lock = building.path().join("requirements.txt");
        fs::write(&lock, text).map_err(|e| PyenvError::io("write", &lock, e))?;
        self.uv.venv(&wanted.interpreter.executable, &venv)?;
        self.uv.sync(&venv.join("bin/python"), &lock, named)?;
        // uv's own lock file: writable for everyone, of no use once the environment is read-only.
        let _ = fs::remove_file(venv.join(".lock"));
        let marker = Marker {
            schema: MARKER_SCHEMA,
            key: wanted.key.clone(),
            python_version: wanted.interpreter.version.clone(),
            packages: wanted.resolved.iter().map(|(name, p)| (name.clone(), p.version.clone())).collect(),
        };
        let marker_path = venv.join(MARKER);
        let json = serde_json::to_vec_pretty(&marker).unwrap_or_default();
        fs::write(&marker_path, json).map_err(|e| PyenvError::io("write", &marker_path, e))?;
        let folder = self.folder(&wanted.key);
        if folder.exists() {
            // Damaged, or its interpreter is gone: `complete` refused it under the lock.
            let aside = building.path().join("damaged");
            fs::rename(&folder, &aside).map_err(|e| PyenvError::io("move aside", &folder, e))?;
        }
        fs::rename(&venv, &folder).map_err(|e| PyenvError::io("create", &folder, e))?;
        events.on(Event::Built { key: &wanted.key, took: started.elapsed() });
        Ok(())
    }
}

/// A resolved lock on an interpreter, with the key of both.
struct Wanted {
    key: Digest,
    resolved: Resolved,
    interpreter: Interpreter,
}

impl Wanted {
    fn new(resolved: Resolved, interpreter: Interpreter) -> Wanted {
        let mut digest = DigestBuilder::new("infradev environment v1");
        digest.part("interpreter", interpreter.platform_key().as_str().as_bytes());
        for (name, package) in &resolved {
            digest.part("name", name.as_bytes()).part("version", package.version.as_bytes());
            for hash in &package.hashes {
                digest.part("hash", hash.as_bytes());
            }
        }
        Wanted { key: digest.finish(), resolved, interpreter }
    }
}

/// A lock in whichever format as hashed requirements.
fn written_out<'t>(
    text: &'t [u8],
    path: &Path,
    interpreter: &Interpreter,
) -> Result<Cow<'t, [u8]>, PyenvError> {
    if pylock::is_one(path) {
        return pylock::requirements(text, path).map(Cow::Owned);
    }
    if path.file_name().is_some_and(|name| name == "uv.lock") {
        return proposal::requirements_of_uv_lock(text, path, &interpreter.markers).map(Cow::Owned);
    }
    Ok(Cow::Borrowed(text))
}

/// An interpreter with what is installed for it.
pub(crate) fn as_it_is(path: &Path) -> Result<Environment, PyenvError> {
    let interpreter = Interpreter::describe(path)?;
    let fingerprint = interpreter.fingerprint();
    Ok(Environment {
        key: fingerprint.clone(),
        python: path.to_owned(),
        site: interpreter.site.clone(),
        base_prefix: interpreter.base_prefix.clone(),
        packages: interpreter.packages(),
        lease: Lease::default(),
        mounts: interpreter.mounts(),
        python_version: interpreter.version,
        fingerprint,
    })
}

/// The name of an environment's folder.
pub(crate) fn name_of(key: &Digest) -> &str {
    &key.as_str()[..NAME_DIGITS]
}

/// Waits for a lock on a thread of its own, since an interrupt does not end the system call; none once the person has
/// asked for an end.
fn wait_for(file: File) -> std::io::Result<Option<File>> {
    let (say, hear) = mpsc::channel();
    std::thread::spawn(move || {
        let locked = file.lock().map(|()| file);
        // Nobody hears it after an interrupt: the lock is then dropped.
        let _ = say.send(locked);
    });
    loop {
        match hear.recv_timeout(LOOK_FOR_INTERRUPT) {
            Ok(locked) => return locked.map(Some),
            Err(mpsc::RecvTimeoutError::Timeout) if !cancelled() => {}
            Err(_) => return Ok(None),
        }
    }
}

pub(crate) fn create_folder(path: &Path) -> Result<(), PyenvError> {
    fs::create_dir_all(path).map_err(|e| PyenvError::io("create", path, e))
}
