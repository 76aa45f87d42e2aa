//! What a task may put into the sandbox of its trials: paths of its tree, files beside it, variables of its ranks.

use std::path::{Component, Path};

use crate::format::FormatError;
use crate::task::{Tests, is_tree_path};

/// Folders of every sandbox that are the host's, or the kernel's.
pub(crate) const HOSTS: [&str; 10] =
    ["/proc", "/sys", "/dev", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// Folders of the sandbox that are not the task's to fill besides: the trees under test and the kit.
const TAKEN: [&str; 4] = ["/workspace", "/suspect", "/base", "/infradev"];

/// Folders that are there, in which files may lie.
const FOLDERS: [&str; 6] = ["/tmp", "/etc", "/home", "/home/trial", "/var", "/var/tmp"];

/// Variables that the harness sets, and those that would have other code run than what is under test; with what to do
/// instead. Threads, time zone, caches and the settings of NCCL are defaults, which a task may change.
const OURS: [(&[&str], &str); 6] = [
    (
        &[
            "RANK",
            "LOCAL_RANK",
            "GROUP_RANK",
            "WORLD_SIZE",
            "LOCAL_WORLD_SIZE",
            "MASTER_ADDR",
            "MASTER_PORT",
            "GLOO_SOCKET_IFNAME",
            "NCCL_SOCKET_IFNAME",
        ],
        "leave it out: each rank has its own, and `worlds` says how many there are",
    ),
    (&["PYTHONPATH"], "name the folders of the tree in `tests.import_roots`"),
    (&["PYTEST_PLUGINS"], "name the plugins in `tests.plugins`"),
    (
        &["PYTEST_ADDOPTS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD"],
        "leave it out: the harness starts pytest; its configuration file is the tree's own, `addopts` apart",
    ),
    (&["LD_PRELOAD", "LD_AUDIT"], "leave it out: no library is loaded before the interpreter's own"),
    (
        &[
            "PATH",
            "HOME",
            "TMPDIR",
            "PYTHONHOME",
            "PYTHONSTARTUP",
            "PYTHONHASHSEED",
            "PYTHONUSERBASE",
            "PYTHONNOUSERSITE",
            "PYTHONPYCACHEPREFIX",
            "PYTHONDONTWRITEBYTECODE",
        ],
        "leave it out",
    ),
];

impl Tests {
    pub(crate) fn check(&self, file: &str) -> Result<(), FormatError> {
        let refuse = |key: String, what: String| Err(FormatError::new(file, Some(&key), what));
        if self.official.is_empty() {
            return refuse("tests.official".into(), "names at least one test file".into());
        }
        let lists =
            [("official", &self.official), ("roots", &self.roots), ("import_roots", &self.import_roots)];
        for (name, paths) in lists {
            if let Some(index) = paths.iter().position(|path| !is_tree_path(path)) {
                let what = format!("`{}` is not a path inside the tree", paths[index]);
                return refuse(format!("tests.{name}[{index}]"), what);
            }
        }
        for path in self.files.keys() {
            if let Some(what) = self.misplaced(path) {
                let error = FormatError::new(file, Some(&format!("tests.files.{path}")), what);
                return Err(error.advise("give it a path of its own, such as /opt/data/NAME"));
            }
        }
        for name in self.env.keys() {
            let key = format!("tests.env.{name}");
            if name.is_empty() || name.contains(['=', '\0']) {
                return refuse(key, "is no name of a variable".into());
            }
            if let Some(hint) = ours(name) {
                let error = FormatError::new(file, Some(&key), "is not the task's to set");
                return Err(error.advise(hint));
            }
        }
        Ok(())
    }

    /// Why a file cannot stand at this path of the sandbox.
    fn misplaced(&self, path: &str) -> Option<String> {
        let here = Path::new(path);
        let normal = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
        if !here.is_absolute() || !here.components().all(normal) || path.contains('\0') {
            return Some("is no absolute path without `..`".into());
        }
        if path.ends_with('/') || FOLDERS.contains(&path) {
            return Some("is a folder, not a file".into());
        }
        if let Some(taken) = TAKEN.iter().chain(&HOSTS).find(|taken| here.starts_with(taken)) {
            return Some(format!("lies in {taken}, which is not the task's to fill"));
        }
        let below = self.files.keys().find(|other| *other != path && Path::new(other).starts_with(here));
        below.map(|other| format!("is a file, and `{other}` lies below it"))
    }
}

/// What to do instead of setting one of the harness's variables.
fn ours(name: &str) -> Option<&'static str> {
    if name.starts_with("INFRADEV_") {
        return Some("leave it out: such names are the harness's own");
    }
    OURS.iter().find(|(names, _)| names.contains(&name)).map(|(_, hint)| *hint)
}

#[cfg(test)]
mod tests {
    use crate::error::Classified;
    use crate::task::TaskSpec;

    const TASK: &str = r#"schema = 1
id = "triple"
title = "Add triple"
area = "training"
kind = "feature"
environment = "cpu"
worlds = [1]

[tests]
official = ["tests/test_model.py"]
"#;

    fn said(more: &str) -> String {
        match TaskSpec::parse("task.toml", format!("{TASK}{more}").as_bytes()) {
            Ok(_) => format!("{more:?} is taken"),
            Err(error) => format!("{error} [{}]", error.hint().unwrap_or_default()),
        }
    }

    #[test]
    fn a_path_that_cannot_be_is_told_with_its_own_line() {
        insta::assert_snapshot!(
            [
                "roots = [\n    \"tests\",\n    \"../tests\",\n]\n",
                "import_roots = [\"/src\"]\n",
                "\n[tests.files]\n\"/data/a\" = \"\"\n\"data/b\" = \"\"\n",
                "\n[tests.files]\n\"/data/../b\" = \"\"\n",
                "\n[tests.files]\n\"/data/b/\" = \"\"\n",
                "\n[tests.files]\n\"/\" = \"\"\n",
                "\n[tests.files]\n\"/tmp\" = \"\"\n",
                "\n[tests.files]\n\"/data/a\" = \"\"\n\"/infradev/python/x\" = \"\"\n",
                "\n[tests.files]\n\"/workspace\" = \"\"\n",
                "\n[tests.files]\n\"/usr/lib/x\" = \"\"\n",
                "\n[tests.files]\n\"/data/a\" = \"\"\n\"/data/a/b\" = \"\"\n",
                "files = { \"/a..b/.c\" = \"\", \"/tmp/x\" = \"\", \"/base-data/x\" = \"\" }\n",
            ]
            .map(said)
            .join("\n")
        );
    }

    #[test]
    fn a_variable_that_the_harness_sets_is_refused_with_what_to_do() {
        insta::assert_snapshot!(
            [
                "\n[tests.env]\nCUDA_DEVICE_MAX_CONNECTIONS = \"1\"\nRANK = \"0\"\n",
                "env = { PYTHONPATH = \"src\" }\n",
                "env = { PYTEST_ADDOPTS = \"-x\" }\n",
                "env.LD_PRELOAD = \"/x.so\"\n",
                "env = { INFRADEV_CONTROL_FD = \"3\" }\n",
                "env = { HOME = \"/root\" }\n",
                "env = { \"A=B\" = \"1\" }\n",
                "env = { OMP_NUM_THREADS = \"2\", LD_LIBRARY_PATH = \"/opt/x\" }\n",
            ]
            .map(said)
            .join("\n")
        );
    }
}
