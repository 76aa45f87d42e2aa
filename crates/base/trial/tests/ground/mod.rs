//! A small task on disk, and trials of it in a real sandbox with a real environment (pytest, no torch).

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use infradev_model::{
    AcceptanceSpec, Area, BaseSource, Contract, Digest, EnvironmentSpec, Kind as TaskKind, Limits, Outcome,
    PublicTask, SealedTask, Selection, TaskSpec, Tests, Timeouts, TrialInputs, TrialResult,
};
use infradev_pyenv::{Definition, Environment, Environments, Quiet};
use infradev_sandbox::Kind;
use infradev_store::Trees;
use infradev_trial::{Silent, TrialError, TrialSpec, Twins, bytecode, run};

/// The repository's root.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().unwrap()
}

/// Environments are shared by all tests of this checkout: they are built once.
pub fn environments() -> &'static (Environment, Environment) {
    static BUILT: OnceLock<(Environment, Environment)> = OnceLock::new();
    BUILT.get_or_init(|| {
        let root = repository().join("target/test-environments");
        let environments = Environments::new(root);
        let lock = |path: &str| Definition::Lock {
            lock: std::fs::read(repository().join(path)).unwrap(),
            lock_path: path.into(),
            python: "3.11".into(),
        };
        // The judge's environment has pytest and numpy: enough for a task without a framework too.
        let judge = environments.ensure(&lock("python/judge.lock"), &Quiet).unwrap();
        (judge.clone(), judge)
    })
}

/// A task made of texts.
pub struct Ground {
    pub folder: tempfile::TempDir,
    pub task: SealedTask,
    pub world: u32,
    pub twins: Twins,
    pub selection: Selection,
    pub sandbox: Kind,
}

impl Ground {
    /// A base tree, official test files and probes, by path and text.
    pub fn new(
        world: u32,
        base: &[(&str, &str)],
        official: &[(&str, &str)],
        probes: &[(&str, &str)],
    ) -> Ground {
        let folder = tempfile::tempdir().unwrap();
        let repo = folder.path().join("repo");
        for (path, text) in base {
            write(&repo.join(path), text);
        }
        let timeouts = Timeouts { collect: 60.0, case: 10.0, grace: 2.0, trial: 300.0 };
        let spec = TaskSpec {
            schema: 1,
            id: "fixture".into(),
            title: "A fixture".into(),
            area: Area::Training,
            kind: TaskKind::Feature,
            traits: Vec::new(),
            environment: "cpu".into(),
            worlds: vec![world],
            gpus: 0,
            source: None,
            tests: Tests {
                official: official.iter().map(|(path, _)| path.to_string()).collect(),
                roots: vec!["tests".into()],
                plugins: Vec::new(),
                import_roots: vec![".".into()],
                env: BTreeMap::new(),
                files: BTreeMap::new(),
            },
            build: None,
            timeouts,
            limits: Limits { memory_mib: 1024, pids: 128, tmp_mib: 64 },
            acceptance: AcceptanceSpec::default(),
        };
        let environment = EnvironmentSpec {
            python: Some("3.11".into()),
            lock: Some("x".into()),
            interpreter: None,
            framework: Vec::new(),
        };
        let task = SealedTask {
            public: PublicTask {
                spec,
                description: String::new(),
                contract: Contract::default(),
                pull_request: None,
                environment,
                base: BaseSource::Folder(repo),
            },
            pack: "fixture".into(),
            folder: folder.path().to_path_buf(),
            golden: Vec::new(),
            official: new_files(official).into_bytes(),
            probes: probes.iter().map(|(name, text)| (name.to_string(), text.as_bytes().to_vec())).collect(),
            adversarial: Vec::new(),
            equivalent: Vec::new(),
            lock: None,
            canary: None,
        };
        Ground {
            folder,
            task,
            world,
            twins: Twins::Nothing,
            selection: Selection::Both,
            sandbox: Kind::Namespaces,
        }
    }

    /// Runs a trial of a patch.
    pub fn trial(&self, patch: &str) -> TrialResult {
        self.try_trial(patch).unwrap()
    }

    /// Runs a trial of a patch that may be refused.
    pub fn try_trial(&self, patch: &str) -> Result<TrialResult, TrialError> {
        let spec = self.spec(patch);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(run(&spec, &Silent))
    }

    /// What a trial of a patch needs.
    pub fn spec(&self, patch: &str) -> TrialSpec {
        let (environment, judge) = environments().clone();
        let trees = Trees::new(self.folder.path().join("trees"));
        let tree = trees.of_folder(&self.folder.path().join("repo")).unwrap();
        let inputs = TrialInputs {
            patch: Digest::of(patch.as_bytes()),
            tree: tree.digest.clone(),
            suites: self.task.suites_digest(),
            environment: environment.key.clone(),
            layer: None,
            kit: Digest::of(b"kit"),
            device_class: "cpu".into(),
            world: self.world,
            sandbox: "namespaces".into(),
            selection: self.selection.clone(),
            repeat: 0,
            seed: None,
            shuffled: false,
            early_stop: false,
            candidates: false,
        };
        TrialSpec {
            task: Arc::new(self.task.clone()),
            patch: Arc::new(patch.as_bytes().to_vec()),
            building: None,
            bytecode: bytecode(&trees, &tree, &environment).unwrap(),
            trees,
            tree,
            environment,
            judge,
            kit: repository().join("python"),
            sandbox: self.sandbox,
            framework: Vec::new(),
            gpus: Vec::new(),
            scratch: self.folder.path().join("scratch"),
            logs: self.folder.path().join("logs"),
            inputs,
            seed: 7,
            shuffled: false,
            twins: self.twins.clone(),
            stop: None,
            case_seed: None,
        }
    }
}

/// A git diff that adds these files.
pub fn new_files(files: &[(&str, &str)]) -> String {
    let mut diff = String::new();
    for (path, text) in files {
        let lines: Vec<&str> = text.lines().collect();
        diff.push_str(&format!(
            "diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{} @@\n",
            lines.len()
        ));
        for line in lines {
            diff.push_str(&format!("+{line}\n"));
        }
    }
    diff
}

/// Outcomes by case id, in order.
pub fn outcomes(result: &TrialResult) -> Vec<(String, Vec<Outcome>)> {
    result.cases.iter().map(|case| (case.case.id.clone(), case.outcomes())).collect()
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}
