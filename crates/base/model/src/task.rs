//! A task's files: `task.toml`, `contract.toml`, `adversarial/<name>.toml`; and the two shapes in which stages get it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::allowance::Allowance;
use crate::build::BuildSpec;
use crate::canary::Canary;
use crate::digest::{Digest, DigestBuilder};
use crate::equivalent::EquivalentMutant;
use crate::format::{self, FormatError};
use crate::pack::{EnvironmentSpec, is_name};

/// The schema version of `task.toml`, `contract.toml` and `adversarial/*.toml` that this program reads.
pub const TASK_SCHEMA: u32 = 1;

/// What part of AI infrastructure a change belongs to (the paper's table 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Area {
    Training,
    Inference,
    Rl,
}

impl Area {
    /// The word as it stands in files and tables.
    pub fn word(self) -> &'static str {
        match self {
            Area::Training => "training",
            Area::Inference => "inference",
            Area::Rl => "rl",
        }
    }
}

/// What kind of change it is (the paper's §3.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Kind {
    Feature,
    Performance,
    Refactor,
    Fix,
}

impl Kind {
    /// The word as it stands in files and tables.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Feature => "feature",
            Kind::Performance => "performance",
            Kind::Refactor => "refactor",
            Kind::Fix => "fix",
        }
    }
}

/// `task.toml`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskSpec {
    /// Version of this file's format.
    pub schema: u32,
    /// Equals the folder's name.
    pub id: String,
    /// One line that says what the change does.
    pub title: String,
    /// Training, inference or reinforcement learning.
    pub area: Area,
    /// Feature, performance, refactor or fix.
    pub kind: Kind,
    /// Free words such as `cuda-graph`, read by analysis.
    #[serde(default)]
    pub traits: Vec<String>,
    /// Name of an environment of the pack.
    pub environment: String,
    /// World sizes: one trial each, official suite and probes together.
    pub worlds: Vec<u32>,
    /// GPUs of a trial; 0 runs on the CPU.
    #[serde(default)]
    pub gpus: u32,
    /// Commits, for a pack over a git repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Commits>,
    /// The official tests and how they are run.
    pub tests: Tests,
    /// How its native code is built, where it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<BuildSpec>,
    /// Deadlines, in seconds.
    #[serde(default)]
    pub timeouts: Timeouts,
    /// Bounds of a trial's sandbox.
    #[serde(default)]
    pub limits: Limits,
    /// What acceptance asks.
    #[serde(default)]
    pub acceptance: AcceptanceSpec,
}

/// Commits of the change, as full or abbreviated ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Commits {
    /// The pre-PR snapshot.
    pub base: String,
    /// The merged change.
    pub head: String,
}

/// The official tests and how they are run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tests {
    /// Official test files, paths in the tree once official.patch is in.
    pub official: Vec<String>,
    /// Test trees: laid over the patched tree last, the rest of them purged.
    #[serde(default = "default_roots")]
    pub roots: Vec<String>,
    /// pytest plugins loaded by name; none is loaded by itself.
    #[serde(default)]
    pub plugins: Vec<String>,
    /// Folders of the tree appended to `sys.path`, in this order, after site-packages.
    #[serde(default = "default_import_roots")]
    pub import_roots: Vec<String>,
    /// Extra environment variables of the ranks.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Files provided in the sandbox: absolute path → text.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
}

fn default_roots() -> Vec<String> {
    vec!["tests".to_string()]
}

fn default_import_roots() -> Vec<String> {
    vec![".".to_string()]
}

/// Deadlines, in seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Timeouts {
    /// One file's collection on all ranks.
    pub collect: f64,
    /// One case, setup and teardown included.
    pub case: f64,
    /// After the first rank failed, what the others still get.
    pub grace: f64,
    /// The whole trial.
    pub trial: f64,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts { collect: 120.0, case: 60.0, grace: 5.0, trial: 1800.0 }
    }
}

/// Bounds of a trial's sandbox, for the whole process tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Memory, MiB.
    pub memory_mib: u64,
    /// Processes and threads.
    pub pids: u64,
    /// Size of the private /tmp, MiB.
    pub tmp_mib: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { memory_mib: 8192, pids: 512, tmp_mib: 1024 }
    }
}

/// What acceptance asks of the task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AcceptanceSpec {
    /// N: consecutive golden runs that every probe passes (the paper's A.1 uses 3).
    pub runs: u32,
}

impl Default for AcceptanceSpec {
    fn default() -> AcceptanceSpec {
        AcceptanceSpec { runs: 3 }
    }
}

impl TaskSpec {
    /// Parses and checks a `task.toml`.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<TaskSpec, FormatError> {
        let task: TaskSpec = format::toml(file, bytes)?;
        let text = format::utf8(file, bytes)?;
        task.check(file).map_err(|error| error.locate(text))?;
        Ok(task)
    }

    fn check(&self, file: &str) -> Result<(), FormatError> {
        format::schema(file, self.schema, TASK_SCHEMA)?;
        let refuse = |key: &str, what: String| Err(FormatError::new(file, Some(key), what));
        if !is_name(&self.id) {
            return refuse("id", "is lower-case letters, digits and dashes".into());
        }
        if self.worlds.is_empty() || self.worlds.contains(&0) {
            return refuse("worlds", "names at least one world size, each 1 or more".into());
        }
        let mut sorted = self.worlds.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() != self.worlds.len() {
            return refuse("worlds", "names a world size twice".into());
        }
        if let Some(world) = self.worlds.iter().find(|world| **world > 64) {
            return refuse("worlds", format!("{world} ranks are more than one node runs (64)"));
        }
        self.tests.check(file)?;
        if let Some(build) = &self.build {
            build.check(file)?;
        }
        let t = &self.timeouts;
        for (key, seconds) in
            [("collect", t.collect), ("case", t.case), ("grace", t.grace), ("trial", t.trial)]
        {
            if !(seconds > 0.0 && seconds.is_finite() && seconds < 1e6) {
                return refuse(&format!("timeouts.{key}"), format!("{seconds} is not a time in seconds"));
            }
        }
        if self.limits.memory_mib < 64 || self.limits.pids < 8 || self.limits.tmp_mib < 1 {
            return refuse("limits", "is at least 64 MiB of memory, 8 pids and 1 MiB of /tmp".into());
        }
        if self.acceptance.runs == 0 {
            return refuse("acceptance.runs", "is at least 1".into());
        }
        Ok(())
    }
}

/// Whether a text is a relative path that stays inside a tree.
pub fn is_tree_path(path: &str) -> bool {
    !path.is_empty()
        && !path.starts_with('/')
        && !path.contains('\0')
        && path.split('/').all(|part| part != "..")
}

/// `contract.toml`: the interface that tests touch; names, signatures and shapes, no algorithm.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Contract {
    /// Version of this file's format.
    pub schema: u32,
    /// The PR-new names.
    #[serde(default, rename = "name")]
    pub names: Vec<ContractName>,
    /// What of golden's the text may say all the same. No prompt shows it.
    #[serde(default, rename = "allow", skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<Allowance>,
}

/// One PR-new name of the contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContractName {
    /// Dotted name, such as `ministack.moe.ExpertDispatch`.
    pub name: String,
    /// What it is.
    pub kind: NameKind,
    /// Signature as Python writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Shapes, types, meaning; no algorithm.
    #[serde(default)]
    pub about: String,
    /// Why it is listed although no test touches it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untested: Option<String>,
}

impl ContractName {
    /// The last part of the dotted name: what a test writes. A flag or an environment variable is one part.
    pub fn word(&self) -> &str {
        match self.kind {
            NameKind::Flag | NameKind::Variable => &self.name,
            _ => self.name.rsplit('.').next().unwrap_or(&self.name),
        }
    }

    /// The last line of a `contract.toml`, counted from 1, that gives this name as its value.
    pub fn line_in(&self, text: &str) -> Option<usize> {
        let quoted = format!("\"{}\"", self.name);
        let is_it = |line: &str| {
            let value =
                line.trim_start().strip_prefix("name").and_then(|rest| rest.trim_start().strip_prefix('='));
            value.is_some_and(|value| value.trim_start().starts_with(&quoted))
        };
        let lines: Vec<&str> = text.lines().collect();
        lines.iter().rposition(|line| is_it(line)).map(|at| at + 1)
    }
}

/// What a contract's name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum NameKind {
    Module,
    Class,
    Function,
    Method,
    Attribute,
    Setting,
    Flag,
    Variable,
}

impl std::fmt::Display for NameKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            NameKind::Module => "module",
            NameKind::Class => "class",
            NameKind::Function => "function",
            NameKind::Method => "method",
            NameKind::Attribute => "attribute",
            NameKind::Setting => "setting",
            NameKind::Flag => "command-line flag",
            NameKind::Variable => "environment variable",
        })
    }
}

impl Contract {
    /// Parses and checks a `contract.toml`.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Contract, FormatError> {
        let contract: Contract = format::toml(file, bytes)?;
        let text = format::utf8(file, bytes)?;
        format::schema(file, contract.schema, TASK_SCHEMA).map_err(|error| error.locate(text))?;
        for (at, listed) in contract.names.iter().enumerate() {
            let refuse = |what: String| {
                let mut error = FormatError::new(file, Some("name.name"), what);
                error.line = listed.line_in(text);
                Err(error)
            };
            if listed.name.trim().is_empty() || listed.name.contains(char::is_whitespace) {
                return refuse(format!("`{}` is no name", listed.name));
            }
            if contract.names[..at].iter().any(|other| other.name == listed.name) {
                return refuse(format!("`{}` is listed twice", listed.name));
            }
        }
        contract.check_allowances(file, text)?;
        Ok(contract)
    }
}

/// `adversarial/<name>.toml`: a patch that passes the official tests and breaks a promise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdversarialSpec {
    /// Version of this file's format.
    pub schema: u32,
    /// The promise of the change that it breaks.
    pub promise: String,
    /// A unified diff beside this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// What the diff applies to.
    #[serde(default)]
    pub on: PatchedOn,
    /// Files of golden's change taken back to base.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub take_back: Vec<String>,
    /// Texts of golden replaced by others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replace: Vec<Replacement>,
}

/// The tree that an adversarial diff applies to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PatchedOn {
    /// The base tree: the diff is a whole submission.
    Base,
    /// The golden tree: the diff shows the flaw alone.
    #[default]
    Golden,
}

/// A text of golden, which must stand in the file exactly once, replaced by another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Replacement {
    /// Path in the tree.
    pub file: String,
    /// The text to find.
    pub find: String,
    /// What stands in its place.
    pub with: String,
}

impl AdversarialSpec {
    /// Parses and checks an adversarial patch's description.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<AdversarialSpec, FormatError> {
        let spec: AdversarialSpec = format::toml(file, bytes)?;
        let text = format::utf8(file, bytes)?;
        format::schema(file, spec.schema, TASK_SCHEMA).map_err(|error| error.locate(text))?;
        let refuse = |key: &str, what: &str| Err(FormatError::new(file, Some(key), what).locate(text));
        if spec.promise.trim().is_empty() {
            return refuse("promise", "says which promise of the change the patch breaks");
        }
        let taken = spec.take_back.iter().enumerate().map(|(at, file)| (format!("take_back[{at}]"), file));
        let replaced = spec.replace.iter().enumerate();
        let replaced = replaced.map(|(at, replacement)| (format!("replace[{at}].file"), &replacement.file));
        if let Some((key, file)) = taken.chain(replaced).find(|(_, file)| !is_tree_path(file)) {
            return refuse(&key, &format!("`{file}` is not a path inside the tree"));
        }
        let mutated = !spec.take_back.is_empty() || !spec.replace.is_empty();
        if spec.patch.is_some() == mutated {
            return refuse(
                "patch",
                "give either `patch`, or a mutation of golden by `take_back` and `replace`",
            );
        }
        Ok(spec)
    }
}

/// An adversarial patch as the store read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adversarial {
    /// The file's stem.
    pub name: String,
    /// Its description.
    pub spec: AdversarialSpec,
    /// The diff's bytes, where the description names one.
    pub patch: Option<Vec<u8>>,
}

/// What an attempt may see of a task: nothing in it can leak golden, official tests or probes.
#[derive(Debug, Clone, PartialEq)]
pub struct PublicTask {
    /// `task.toml` (the names of official test files are public; their content is not).
    pub spec: TaskSpec,
    /// `spec.md`.
    pub description: String,
    /// `contract.toml`.
    pub contract: Contract,
    /// `description.md`: the pull request's own description, where the task keeps it.
    pub pull_request: Option<String>,
    /// The environment that the task names.
    pub environment: EnvironmentSpec,
    /// Where the base tree comes from.
    pub base: BaseSource,
}

/// Where a task's base tree comes from, with absolute paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BaseSource {
    /// A folder.
    Folder(std::path::PathBuf),
    /// A commit of a git repository given by path or url.
    Commit {
        /// Path or url.
        repository: String,
        /// Commit of the pre-PR snapshot.
        base: String,
        /// Commit of the merged change.
        head: String,
    },
}

/// A task with all that grading needs.
#[derive(Debug, Clone, PartialEq)]
pub struct SealedTask {
    /// What an attempt may see.
    pub public: PublicTask,
    /// The pack's name.
    pub pack: String,
    /// The task's folder.
    pub folder: std::path::PathBuf,
    /// Source part of the change, a diff against base.
    pub golden: Vec<u8>,
    /// Test part of the change, a diff against base.
    pub official: Vec<u8>,
    /// Probe files by name (`judge_*.py`, `observe_*.py`).
    pub probes: BTreeMap<String, Vec<u8>>,
    /// Adversarial patches by name.
    pub adversarial: Vec<Adversarial>,
    /// Mutants of golden that are listed as equivalent to it.
    pub equivalent: Vec<EquivalentMutant>,
    /// The bytes of the environment's lock, where it has one.
    pub lock: Option<Vec<u8>>,
    /// The pack's canary. What is above is without it.
    pub canary: Option<Canary>,
}

impl SealedTask {
    /// The task's id.
    pub fn id(&self) -> &str {
        &self.public.spec.id
    }

    /// `pack.toml` of its pack, two folders up.
    pub fn pack_toml(&self) -> std::path::PathBuf {
        let pack = self.folder.parent().and_then(std::path::Path::parent);
        pack.map_or_else(|| "pack.toml".into(), |pack| pack.join("pack.toml"))
    }

    /// Digest of all that decides a trial's outcome apart from base tree, environment and patch: task.toml's running
    /// part, the framework, official tests and probes. Titles, specs, adversarial patches and listed mutants do not count, so that
    /// a better spec does not throw away a calibration.
    pub fn suites_digest(&self) -> Digest {
        let spec = &self.public.spec;
        let mut digest = DigestBuilder::new("infradev suites v1");
        let framework = &self.public.environment.framework;
        let running = (&spec.tests, &spec.timeouts, &spec.limits, spec.gpus, framework);
        digest.part("running", &serde_json::to_vec(&running).unwrap_or_default());
        if let Some(build) = &spec.build {
            digest.part("build", &serde_json::to_vec(build).unwrap_or_default());
        }
        if let BaseSource::Commit { base, head, .. } = &self.public.base {
            digest.part("base", base.as_bytes()).part("head", head.as_bytes());
        }
        digest.part("golden", &self.golden).part("official", &self.official);
        for (name, bytes) in &self.probes {
            digest.part(name, bytes);
        }
        digest.finish()
    }
}
