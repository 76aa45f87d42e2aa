//! Harbor's own validator of its trajectory format.

use std::path::{Path, PathBuf};

use infradev_store::lock;
use infradev_supervise::{Invocation, Output};

use crate::ground::repository;

const HARBOR: &str = "harbor==0.26.0";
/// The only package that the format's models need.
const PYDANTIC: &str = "pydantic==2.14.0";

const VALIDATE: &str = "
import sys
from harbor.utils.trajectory_validator import TrajectoryValidator
validator = TrajectoryValidator()
valid = validator.validate(sys.argv[1])
print('\\n'.join(validator.errors))
sys.exit(not valid)
";

/// What Harbor finds wrong with a trajectory; nothing where it is as it should be. None where Harbor cannot be installed, and why.
pub fn faults(trajectory: &Path) -> Result<String, String> {
    let python = installed()?;
    let output = Invocation::new(python).args(["-I", "-c", VALIDATE]).arg(trajectory).run().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &output.stderr_text();
    Ok(if output.status.success() { said.trim().to_owned() } else { format!("refused: {said}") })
}

/// Where programs are, with pyenv's Pythons last: its shims hide all but one.
pub fn path() -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    let root = std::env::var("PYENV_ROOT").ok();
    let root = root.or_else(|| Some(format!("{}/.pyenv", std::env::var("HOME").ok()?))).unwrap_or_default();
    let versions = std::fs::read_dir(Path::new(&root).join("versions")).into_iter().flatten().flatten();
    let folders = versions.map(|version| version.path().join("bin").display().to_string());
    std::iter::once(path).chain(folders).collect::<Vec<_>>().join(":")
}

/// A Python with Harbor's models, installed once for all tests of this checkout.
fn installed() -> Result<PathBuf, String> {
    let root = repository().join("target/test-agents");
    std::fs::create_dir_all(&root).unwrap();
    let folder = root.join("harbor-0.26.0");
    let (python, done) = (folder.join("bin/python"), folder.join("installed"));
    let _alone = lock(&root.join(".harbor-lock"), &|| ()).unwrap();
    if done.exists() {
        return Ok(python);
    }
    let folder = folder.to_str().unwrap();
    uv(&["venv", "--quiet", "--no-project", "--clear", "--python", ">=3.12", folder])?;
    let into = ["pip", "install", "--quiet", "--python", python.to_str().unwrap()];
    uv(&[&into[..], &[PYDANTIC]].concat())?;
    uv(&[&into[..], &["--no-deps", HARBOR]].concat())?;
    std::fs::write(done, "").unwrap();
    Ok(python)
}

fn uv(args: &[&str]) -> Result<(), String> {
    let mut uv = Invocation::new("uv").args(args);
    for (name, _) in std::env::vars() {
        uv = uv.inherit_env(name);
    }
    // One that is not there is not fetched from a host of its own.
    uv = uv.env("PATH", path()).env("UV_PYTHON_DOWNLOADS", "never");
    let output: Output = uv.run().unwrap();
    let words = output.stderr_text();
    if output.status.success() { Ok(()) } else { Err(format!("uv {}: {}", args.join(" "), words.trim())) }
}
