//! Bytecode of base trees: compiled once for each tree and Python, in view of ranks and written by none of them.
//!
//! Without it each rank of each launch compiles every module of the tree that it imports (Megatron-LM: 337 modules, 0.7 s of
//! CPU a rank). The folder is the ranks' `sys.pycache_prefix`, so bytecode that lies in the tree still never runs. Bytecode is
//! matched to its source by hash: by time and size, a file that a patch changed within the second in which the tree was laid,
//! at the same length, would be tested as base's. What a patch changed is compiled by each rank for itself and kept nowhere;
//! so no rank can leave bytecode for a later launch either.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use infradev_model::Digest;
use infradev_pyenv::Environment;
use infradev_store::{StoreError, Tree, Trees};
use infradev_supervise::Invocation;

/// A large tree takes seconds.
const PATIENCE: Duration = Duration::from_secs(600);
/// Compiles and runs nothing of what it compiles.
const COMPILE: &str = include_str!("compile_tree.py");

/// The folder of a tree's bytecode as ranks in namespaces see the tree; `None` where it could not be made, which costs time
/// only.
pub fn bytecode(
    trees: &Trees,
    tree: &Tree,
    environment: &Environment,
) -> Result<Option<PathBuf>, StoreError> {
    let how = Digest::of(COMPILE.as_bytes());
    let name = format!("bytecode-{}-{}", environment.python_version, how.short());
    let made = trees.derived(tree, &name, |into| {
        compile(tree, environment, into)?;
        // The same modules in the places of base and of the patch's own runner configuration.
        for place in ["base", "suspect"] {
            let link = into.join(place);
            symlink("workspace", &link).map_err(|error| StoreError::io("create", &link, error))?;
        }
        Ok(())
    });
    match made {
        Ok(folder) => Ok(Some(folder)),
        Err(full @ StoreError::DiskFull { .. }) => Err(full),
        Err(error) => {
            tracing::warn!(%error, "a tree was not compiled; each rank does it for itself");
            Ok(None)
        }
    }
}

fn compile(tree: &Tree, environment: &Environment, into: &Path) -> Result<(), StoreError> {
    let compiler = Invocation::new(&environment.python).args(["-I", "-S", "-W", "ignore", "-c", COMPILE]);
    let compiler = compiler.args([tree.path.as_path(), into, Path::new("/workspace")]).deadline(PATIENCE);
    let output = compiler.run().map_err(|error| StoreError::source("compile a tree", &error))?;
    if output.status.success() {
        return Ok(());
    }
    let said = std::io::Error::other(format!("{}: {}", output.status, output.stderr_text()));
    Err(StoreError::io("compile", &tree.path, said))
}
