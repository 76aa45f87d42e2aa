//! The compilers of this machine, as a sandbox sees them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use infradev_supervise::Invocation;

/// Where a build looks for programs after its environment's.
pub(crate) const PATH: &str = "/usr/local/cuda/bin:/usr/local/bin:/usr/bin:/bin";
/// Programs whose version decides what is built.
const DECIDE: [&str; 4] = ["cc", "c++", "ld", "nvcc"];
/// Compilers that ccache stands before.
const WRAPPED: [&str; 7] = ["cc", "gcc", "c++", "g++", "clang", "clang++", "nvcc"];

/// What compiles.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Toolchain {
    /// Compilers and linker, each with the line that tells its version.
    pub compilers: Vec<String>,
    /// ccache, where it is installed.
    pub ccache: Option<PathBuf>,
    /// Names under which it stands before a compiler.
    pub wrapped: Vec<String>,
}

impl Toolchain {
    /// Looks for compilers, and asks each for its version.
    pub fn find() -> Toolchain {
        let version = |name: &&str| {
            let asked =
                Invocation::new(program(name)?).arg("--version").deadline(Duration::from_secs(20)).run();
            let output = asked.ok().filter(|output| output.status.success())?;
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            // nvcc names its release in the last line but one.
            let line = said.lines().find(|line| line.contains("release")).or(said.lines().next())?;
            Some(format!("{name}: {}", line.trim()))
        };
        Toolchain {
            compilers: DECIDE.iter().filter_map(version).collect(),
            ccache: program("ccache"),
            wrapped: WRAPPED
                .iter()
                .filter(|name| program(name).is_some())
                .map(|name| (*name).to_owned())
                .collect(),
        }
    }

    /// Whether there is a compiler of C or C++.
    pub fn compiles(&self) -> bool {
        self.compilers.iter().any(|line| line.starts_with("cc: ") || line.starts_with("c++: "))
    }
}

fn program(name: &str) -> Option<PathBuf> {
    PATH.split(':').map(|folder| Path::new(folder).join(name)).find(|path| path.is_file())
}
