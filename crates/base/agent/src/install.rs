//! Agents installed once into the store.
//!
//! ```text
//! agents/<name>-<version>/          complete from the moment that its name exists; mounted read-only
//! agents/<name>-<version>/infradev-agent.json   the part of its file that it was made from
//! agents/.locks/<name>-<version>    held (flock) while it is installed
//! agents/.building-…                one being made, or what a killed process left
//! ```

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use infradev_model::{AgentInstall, AgentSpec, Digest, DigestBuilder};
use infradev_pyenv::PASSED_TO_UV;
use infradev_store::{Home, folder_digest, lock};
use infradev_supervise::{Invocation, Output, SuperviseError, find_program};
use serde::{Deserialize, Serialize};

use crate::error::{AgentError, NotInstalled};
use crate::known::{KnownAgent, installs_as_shipped};

const MARKER: &str = "infradev-agent.json";
const BUILDING: &str = ".building-";
/// A package of some hundred megabytes over a slow line.
const INSTALL: Duration = Duration::from_secs(3600);
const PROBE: Duration = Duration::from_secs(120);

/// What npm may see of the caller's environment: how to run, and how to reach its registry.
const PASSED_TO_NPM: [&str; 13] = [
    "PATH",
    "HOME",
    "TMPDIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_FILE",
    "NPM_CONFIG_REGISTRY",
    "npm_config_registry",
];

/// An agent that is ready to be started.
#[derive(Debug, Clone)]
pub struct Installed {
    /// Its file.
    pub spec: AgentSpec,
    /// Its folder on the host; none where it has none.
    pub folder: Option<PathBuf>,
    /// The content of a folder that its user keeps, which may change under the same path and version.
    pub content: Option<Digest>,
    /// Further folders of the host that it needs, seen read-only at the same place: node's, an interpreter's.
    pub mounts: Vec<PathBuf>,
    /// Folders of programs that it needs, put last on PATH.
    pub path: Vec<PathBuf>,
    /// Whether the folder is a user's own, and no installation.
    pub own: bool,
}

impl Installed {
    /// What is known of an agent before it is installed: enough for a plan, not for a run.
    ///
    /// # Errors
    /// A folder of the user's that is not there.
    pub fn before(agent: &KnownAgent, folder: Option<&Path>) -> Result<Installed, AgentError> {
        let spec = agent.spec.clone();
        let own = folder.map(Path::to_owned).or_else(|| {
            let beside = agent.file.as_deref().and_then(Path::parent).unwrap_or(Path::new("."));
            spec.install.folder.as_ref().map(|folder| beside.join(folder))
        });
        let whole = match own {
            None => None,
            Some(own) => {
                let found = own.canonicalize().ok().filter(|path| path.is_dir());
                Some(found.ok_or(AgentError::NoFolder { path: own })?)
            }
        };
        let content = whole.as_deref().map(folder_digest).transpose()?;
        let own = whole.is_some();
        Ok(Installed { spec, folder: whole, content, mounts: Vec::new(), path: Vec::new(), own })
    }
}

#[derive(Serialize, Deserialize, PartialEq, Eq)]
struct Marker {
    version: String,
    install: AgentInstall,
}

/// Makes an agent ready: found in the store, else installed. `folder` takes the place of what its file says of one.
/// `say` is told what takes long. Blocks.
///
/// # Errors
/// A tool that is missing, a registry that cannot be reached, a version that is not the one asked for, or a probe that cannot be run.
pub fn install(
    home: &Home,
    agent: &KnownAgent,
    folder: Option<&Path>,
    say: &dyn Fn(&str),
) -> Result<Installed, AgentError> {
    let spec = &agent.spec;
    let mut installed = Installed::before(agent, folder)?;
    if installed.own {
        probe(spec, installed.folder.as_deref())?;
        return Ok(installed);
    }
    if spec.install.npm.is_some() {
        let node = program(spec, "node")?;
        let node = node.canonicalize().map_err(AgentError::io("resolve node"))?;
        let bin = node.parent().unwrap_or(Path::new("/usr/bin")).to_owned();
        // What lies in /usr is in view of every sandbox.
        if !bin.starts_with("/usr") {
            installed.mounts.push(bin.parent().unwrap_or(&bin).to_owned());
        }
        installed.path.push(bin);
    }
    if spec.install.npm.is_none() && spec.install.uv.is_none() {
        probe(spec, None)?;
        return Ok(installed);
    }
    let folder = ensure(home, agent, say)?;
    if spec.install.uv.is_some() {
        installed.mounts.extend(interpreter_of(&folder));
    }
    installed.folder = Some(folder);
    Ok(installed)
}

fn program(spec: &AgentSpec, name: &'static str) -> Result<PathBuf, AgentError> {
    find_program(name).ok_or_else(|| AgentError::Missing { agent: spec.name.clone(), program: name })
}

/// The installation that holds the interpreter of a virtual environment, where that is not in view anyway.
fn interpreter_of(folder: &Path) -> Option<PathBuf> {
    let python = folder.join("bin/python").canonicalize().ok()?;
    let prefix = python.parent()?.parent()?;
    (!prefix.starts_with("/usr")).then(|| prefix.to_owned())
}

fn ensure(home: &Home, agent: &KnownAgent, say: &dyn Fn(&str)) -> Result<PathBuf, AgentError> {
    let spec = &agent.spec;
    let marker = Marker { version: spec.version.clone(), install: spec.install.clone() };
    let root = home.agents();
    let mut name = format!("{}-{}", spec.name, spec.version);
    if !installs_as_shipped(spec) {
        // A user's file may mean another package by the same name.
        let mut digest = DigestBuilder::new("infradev agent v1");
        digest.part("install", &serde_json::to_vec(&marker).unwrap_or_default());
        name = format!("{name}-{}", digest.finish().short());
    }
    let folder = root.join(&name);
    if is_whole(&folder, &marker) {
        return Ok(folder);
    }
    let making = |what: &str| format!("{what} {}", root.display());
    fs::create_dir_all(root.join(".locks")).map_err(AgentError::io(making("create")))?;
    let wait = || say(&format!("waiting for another process that installs {name}"));
    let _alone = lock(&root.join(".locks").join(&name), &wait)?;
    if is_whole(&folder, &marker) {
        return Ok(folder);
    }
    sweep(&root, &name);
    say(&format!("installing {} {}", spec.name, spec.version));
    let building = tempfile::Builder::new()
        .prefix(&format!("{BUILDING}{name}-"))
        .permissions(fs::Permissions::from_mode(0o755))
        .tempdir_in(&root)
        .map_err(AgentError::io(making("create a folder in")))?;
    let place = building.path();
    if let Some(package) = &spec.install.npm {
        npm(spec, package, place)?;
    } else if let Some(package) = &spec.install.uv {
        uv(spec, package, place)?;
    }
    probe(spec, Some(place))?;
    let text = serde_json::to_vec_pretty(&marker).unwrap_or_default();
    fs::write(place.join(MARKER), text).map_err(AgentError::io(making("write in")))?;
    if folder.exists() {
        fs::rename(&folder, root.join(format!("{BUILDING}{name}-old-{}", std::process::id())))
            .map_err(AgentError::io(making("replace a folder in")))?;
    }
    fs::rename(place, &folder).map_err(AgentError::io(making("create a folder in")))?;
    sweep(&root, &name);
    Ok(folder)
}

fn is_whole(folder: &Path, marker: &Marker) -> bool {
    let found = fs::read(folder.join(MARKER)).ok();
    found
        .and_then(|bytes| serde_json::from_slice::<Marker>(&bytes).ok())
        .is_some_and(|found| found == *marker)
}

/// Removes what killed installers of this agent left; its lock is held.
fn sweep(root: &Path, name: &str) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&format!("{BUILDING}{name}-")) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn npm(spec: &AgentSpec, package: &str, place: &Path) -> Result<(), AgentError> {
    program(spec, "npm")?;
    let flags = ["--no-audit", "--no-fund", "--omit=dev", "--ignore-scripts", "--loglevel=error"];
    // Its own way is to wait for a minute and more before it says that there is no registry.
    let patience = ["--fetch-retries=2", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=10000"];
    let mut npm = Invocation::new("npm").arg("install").arg("--prefix").arg(place).args(flags).args(patience);
    npm = npm.arg(format!("{package}@{}", spec.version)).cwd(place).deadline(INSTALL);
    for name in PASSED_TO_NPM {
        npm = npm.inherit_env(name);
    }
    let output = npm.run()?;
    done(spec, "npm", &output)
}

fn uv(spec: &AgentSpec, package: &str, place: &Path) -> Result<(), AgentError> {
    program(spec, "uv")?;
    let uv = || {
        let uv = Invocation::new("uv").cwd(place).deadline(INSTALL).inherit_env("UV_CACHE_DIR");
        PASSED_TO_UV.iter().fold(uv, |uv, name| uv.inherit_env(*name))
    };
    let python = spec.install.python.as_deref().unwrap_or(">=3.10");
    // Relocatable: it is built under another name. `--allow-existing` because the folder is there.
    let flags = ["venv", "--quiet", "--relocatable", "--no-project", "--allow-existing", "--python"];
    let made = uv().args(flags).arg(python).arg(place).run()?;
    done(spec, "uv", &made)?;
    let flags = ["pip", "install", "--quiet", "--compile-bytecode", "--python"];
    let wanted = format!("{package}=={}", spec.version);
    let output = uv().args(flags).arg(place.join("bin/python")).arg(wanted).run()?;
    done(spec, "uv", &output)
}

fn done(spec: &AgentSpec, program: &'static str, output: &Output) -> Result<(), AgentError> {
    if output.status.success() {
        return Ok(());
    }
    let all = output.stderr_text() + &String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = all.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let words = lines.iter().take(4).copied().collect::<Vec<_>>().join("; ");
    let why = why(&all);
    let (agent, version) = (spec.name.clone(), spec.version.clone());
    Err(AgentError::Install { agent, version, program, words, why })
}

/// What kept npm or uv from installing, by its words.
fn why(words: &str) -> NotInstalled {
    let says = |signs: &[&str]| signs.iter().any(|sign| words.contains(sign));
    if says(&["ENOTFOUND", "ECONNREFUSED", "EAI_AGAIN", "ETIMEDOUT", "ECONNRESET", "dns error", "(Connect)"])
    {
        NotInstalled::Unreachable
    } else if says(&["E404", "ETARGET", "No solution found", "not found in the package registry"]) {
        NotInstalled::Absent
    } else {
        NotInstalled::Other
    }
}

/// Asks for the version, in an empty home. `place` is the agent's folder, where it has one.
fn probe(spec: &AgentSpec, place: Option<&Path>) -> Result<(), AgentError> {
    let Some((first, rest)) = spec.probe.split_first() else { return Ok(()) };
    let home = tempfile::tempdir().map_err(AgentError::io("make a temporary folder"))?;
    let at = place.map(|place| place.to_string_lossy().into_owned());
    let fill = |text: &String| at.as_ref().map_or_else(|| text.clone(), |at| text.replace("{agent}", at));
    let asked = Invocation::new(fill(first)).args(rest.iter().map(fill)).cwd(home.path()).deadline(PROBE);
    let output = asked.inherit_env("PATH").env("HOME", home.path()).env("IS_SANDBOX", "1").run();
    let refused = |answer: String| {
        let (agent, version) = (spec.name.clone(), spec.version.clone());
        Err(AgentError::Version { agent, version, command: spec.probe.join(" "), answer })
    };
    let output = match output {
        Ok(output) => output,
        Err(error) if cannot_be_run(&error) => return refused(error.to_string()),
        Err(error) => return Err(error.into()),
    };
    let answer = String::from_utf8_lossy(&output.stdout).into_owned() + &output.stderr_text();
    let shown = answer.lines().take(3).collect::<Vec<_>>().join("; ");
    match output.status {
        status if !status.success() => refused(format!("{shown} ({status})").trim_start().to_owned()),
        _ if !answer.contains(&spec.version) => refused(shown),
        _ => Ok(()),
    }
}

/// Whether it is the program that is wrong, and not the moment.
fn cannot_be_run(error: &SuperviseError) -> bool {
    match error {
        SuperviseError::NotFound { .. } | SuperviseError::BadText { .. } => true,
        SuperviseError::Start { source, .. } => source.kind() != std::io::ErrorKind::WouldBlock,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use infradev_model::{Class, Classified};

    use super::*;

    /// What is said of a file with this probe, of its own folder or of none.
    fn said(version: &str, probe: &str, folder: Option<&Path>) -> Option<(Class, String)> {
        let home = tempfile::tempdir().unwrap();
        let install = if folder.is_some() { "[install]\nfolder = \".\"\n" } else { "" };
        let text = format!(
            "schema = 1\nname = \"mine\"\nversion = \"{version}\"\nprobe = {probe}\n{install}[run]\ncommand = [\"true\"]\n"
        );
        let spec = AgentSpec::parse("mine.toml", text.as_bytes()).unwrap();
        let agent = KnownAgent { spec, file: folder.map(|folder| folder.join("mine.toml")) };
        let home = Home::at(home.path()).unwrap();
        let made = super::install(&home, &agent, None, &|_| {});
        made.err().map(|error| (error.class(), error.to_string()))
    }

    #[test]
    fn a_registry_that_lacks_a_package_is_told_from_one_that_is_not_reached() {
        for (words, told) in [
            ("npm error code E404; npm error 404 Not Found", NotInstalled::Absent),
            ("npm error code ETARGET; npm error notarget No matching version found", NotInstalled::Absent),
            ("× No solution found when resolving dependencies:", NotInstalled::Absent),
            ("npm error code ECONNREFUSED", NotInstalled::Unreachable),
            ("npm error code EACCES", NotInstalled::Other),
        ] {
            assert_eq!(why(words), told, "{words}");
        }
    }

    #[test]
    fn a_version_is_asked_for_wherever_the_agent_comes_from() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("version"), "mine 1.2.3\n").unwrap();
        for folder in [None, Some(folder.path())] {
            assert_eq!(said("1.2.3", r#"["echo", "mine 1.2.3"]"#, folder), None);
            let (class, what) = said("9.9", r#"["echo", "mine 1.2.3"]"#, folder).unwrap();
            assert_eq!(class, Class::BadInput);
            assert_eq!(what, "agent mine is not of version 9.9: `echo mine 1.2.3` answers: mine 1.2.3");
            let (class, what) = said("9.9", r#"["/nonexistent/mine", "9.9"]"#, folder).unwrap();
            assert!(class == Class::BadInput && what.contains("not found"), "{what}");
            let (class, what) = said("9.9", r#"["sh", "-c", "echo 9.9; exit 3"]"#, folder).unwrap();
            assert!(class == Class::BadInput && what.ends_with("9.9 (exit status 3)"), "{what}");
        }
        assert_eq!(said("1.2.3", r#"["cat", "{agent}/version"]"#, Some(folder.path())), None);
        assert_eq!(said("9.9", "[]", None), None, "without a probe nothing is asked");
    }
}
