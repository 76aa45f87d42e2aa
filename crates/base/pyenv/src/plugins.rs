//! Which names pytest could load as plugins in an environment.

use std::time::Duration;

use infradev_supervise::Invocation;

use crate::environments::Environment;
use crate::error::PyenvError;

const LOOK: &str = include_str!("plugins.py");
const LOOK_DEADLINE: Duration = Duration::from_secs(60);

impl Environment {
    /// Those of some pytest plugins that this environment has neither by the name of an entry point, nor as a package or module.
    /// None of them is imported.
    ///
    /// # Errors
    /// The interpreter does not run.
    pub fn unknown_plugins(&self, names: &[String]) -> Result<Vec<String>, PyenvError> {
        let bad = |reason: String| PyenvError::BadInterpreter { path: self.python.clone(), reason };
        let mut invocation = Invocation::new(&self.python).args(["-I", "-c", LOOK]).args(names);
        for name in ["PATH", "HOME", "LD_LIBRARY_PATH"] {
            invocation = invocation.inherit_env(name);
        }
        let output = invocation.deadline(LOOK_DEADLINE).run()?;
        if !output.status.success() {
            let words = String::from_utf8_lossy(&output.stderr);
            let last = words.trim().lines().last().unwrap_or("it printed nothing").to_owned();
            return Err(bad(format!("{}: {last}", output.status)));
        }
        serde_json::from_slice(&output.stdout).map_err(|e| bad(format!("its answer is not understood: {e}")))
    }
}
