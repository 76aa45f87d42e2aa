//! What a test file says about where it runs and what it looks at: ranks, GPUs, comparisons of numbers, meters.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{CmpOp, Decorator, Expr, ExprCall, Stmt};

use crate::definitions::dotted;
use crate::module::Module;

/// One thing that a test asks for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ask {
    /// So many ranks: a guard, a parallel layout, a count of processes.
    Ranks(u32),
    /// So many GPUs.
    Gpus(u32),
    /// A process group is opened.
    ProcessGroup,
    /// A CUDA device.
    Cuda,
    /// Numbers or tensors are compared.
    Numbers,
    /// Memory, time or bytes are looked at.
    Resources,
}

/// An ask, and the text that makes it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Asked {
    /// What is asked for.
    pub ask: Ask,
    /// The text, on one line and cut.
    pub text: String,
}

/// Names that compare numbers.
const NUMBERS: &[&str] = &[
    "allclose",
    "approx",
    "array_equal",
    "assert_allclose",
    "assert_almost_equal",
    "assert_array_almost_equal",
    "assert_array_equal",
    "assert_close",
    "assertAlmostEqual",
    "assert_tensors_equal",
    "isclose",
];

/// Names that read meters.
const RESOURCES: &[&str] = &[
    "elapsed_time",
    "element_size",
    "getsizeof",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "monotonic",
    "nbytes",
    "perf_counter",
    "reset_peak_memory_stats",
    "tracemalloc",
    "_record_memory_history",
];

const GROUPS: &[&str] =
    &["init_process_group", "initialize_distributed", "initialize_model_parallel", "init_device_mesh"];

/// Words of a name or text that stands for a number of ranks, and of one that stands for GPUs.
const RANK_WORDS: &[&str] = &["world_size", "WORLD_SIZE", "num_ranks", "nprocs", "num_processes"];
const GPU_WORDS: &[&str] = &["device_count", "num_gpus", "n_gpus", "gpu_count", "num_devices"];

impl Module {
    /// What the tests of a file ask for. `changed` names functions and methods by qualified name: what they hold counts, and
    /// what they reach in the file by name (helpers, fixtures, the set-up of their class, marks of the module). With none
    /// given, everything counts.
    pub fn asks(&self, changed: &HashSet<String>) -> Vec<Asked> {
        let mut owners = Vec::new();
        let mut module = Owner::named("", "");
        let known = parametrized(self.body());
        for statement in self.body() {
            collect(statement, "", self, &known, &mut owners, &mut module);
        }
        let reached = reached(&owners, &module, changed);
        let mut found: BTreeSet<Asked> = module.asked.into_iter().collect();
        for (owner, wanted) in owners.into_iter().zip(reached) {
            if wanted {
                found.extend(owner.asked);
            }
        }
        found.into_iter().collect()
    }
}

/// A function or method with what it asks and mentions.
struct Owner {
    qualified: String,
    class: String,
    mentions: HashSet<String>,
    asked: Vec<Asked>,
}

impl Owner {
    fn named(qualified: &str, class: &str) -> Owner {
        Owner {
            qualified: qualified.into(),
            class: class.into(),
            mentions: HashSet::new(),
            asked: Vec::new(),
        }
    }

    fn simple(&self) -> &str {
        self.qualified.rsplit('.').next().unwrap_or(&self.qualified)
    }

    /// Runs without being called by name.
    fn is_set_up(&self) -> bool {
        let name = self.simple();
        name.starts_with("setup") || name.starts_with("setUp") || name == "_setup"
    }
}

fn reached(owners: &[Owner], module: &Owner, changed: &HashSet<String>) -> Vec<bool> {
    if !owners.iter().any(|owner| changed.contains(&owner.qualified)) {
        return vec![true; owners.len()];
    }
    let mut wanted: Vec<bool> = owners.iter().map(|owner| changed.contains(&owner.qualified)).collect();
    let classes: HashSet<&str> =
        owners.iter().zip(&wanted).filter(|(_, w)| **w).map(|(owner, _)| owner.class.as_str()).collect();
    for (at, owner) in owners.iter().enumerate() {
        wanted[at] |= owner.is_set_up() && classes.contains(owner.class.as_str());
    }
    loop {
        let mut named: HashSet<&str> = module.mentions.iter().map(String::as_str).collect();
        for (owner, wanted) in owners.iter().zip(&wanted) {
            if *wanted {
                named.extend(owner.mentions.iter().map(String::as_str));
            }
        }
        let more: Vec<usize> = (0..owners.len())
            .filter(|at| {
                !wanted[*at]
                    && !owners[*at].simple().starts_with("test")
                    && named.contains(owners[*at].simple())
            })
            .collect();
        if more.is_empty() {
            return wanted;
        }
        for at in more {
            wanted[at] = true;
        }
    }
}

type Rows = Vec<HashMap<String, u32>>;

fn collect(
    statement: &Stmt,
    class: &str,
    module: &Module,
    known: &HashMap<String, u32>,
    owners: &mut Vec<Owner>,
    rest: &mut Owner,
) {
    match statement {
        Stmt::FunctionDef(function) => {
            let qualified = if class.is_empty() {
                function.name.to_string()
            } else {
                format!("{class}.{}", function.name)
            };
            let mut owner = Owner::named(&qualified, class);
            owner.mentions.extend(function.parameters.iter().map(|p| p.name().to_string()));
            let rows = rows_of(&function.decorator_list);
            let layout = rows.iter().map(layout_of).max().unwrap_or(1);
            let mut reader = Reader { module, owner: &mut owner, rows, known, fallback: 0 };
            reader.visit_stmt(statement);
            let faked = owner.mentions.iter().any(|name| name.starts_with("fake_initialize"));
            if layout > 1 && !faked {
                let text = format!("parameters of {qualified}");
                owner.asked.push(Asked { ask: Ask::Ranks(layout), text });
            }
            owners.push(owner);
        }
        Stmt::ClassDef(definition) => {
            let name = if class.is_empty() {
                definition.name.to_string()
            } else {
                format!("{class}.{}", definition.name)
            };
            let mut own = Owner::named(&format!("{name}.setup"), &name);
            for decorator in &definition.decorator_list {
                let mut reader = Reader { module, owner: &mut own, rows: Vec::new(), known, fallback: 0 };
                reader.visit_decorator(decorator);
            }
            for inner in &definition.body {
                collect(inner, &name, module, known, owners, &mut own);
            }
            owners.push(own);
        }
        other => {
            let mut reader = Reader { module, owner: rest, rows: Vec::new(), known, fallback: 0 };
            reader.visit_stmt(other);
        }
    }
}

/// The largest number that each parameter of the file's parametrised tests takes.
fn parametrized(body: &[Stmt]) -> HashMap<String, u32> {
    let mut found: HashMap<String, u32> = HashMap::new();
    for statement in body {
        let decorators = match statement {
            Stmt::FunctionDef(function) => &function.decorator_list,
            Stmt::ClassDef(class) => {
                for (name, most) in parametrized(&class.body) {
                    let entry = found.entry(name).or_default();
                    *entry = most.max(*entry);
                }
                &class.decorator_list
            }
            Stmt::Assign(assign) => {
                if let ([Expr::Name(name)], Some(number)) = (&assign.targets[..], number(&assign.value)) {
                    found.insert(name.id.to_string(), number);
                }
                continue;
            }
            _ => continue,
        };
        for row in rows_of(decorators) {
            for (name, value) in row {
                let entry = found.entry(name).or_default();
                *entry = value.max(*entry);
            }
        }
    }
    found
}

/// Most combinations of parameters that are looked at.
const COMBINATIONS: usize = 4096;

/// The combinations of numbers that the parameters take.
fn rows_of(decorators: &[Decorator]) -> Rows {
    let mut all: Rows = vec![HashMap::new()];
    for decorator in decorators {
        let Expr::Call(call) = &decorator.expression else { continue };
        if dotted(&call.func).last() != Some(&"parametrize") {
            continue;
        }
        let [names, values, ..] = &call.arguments.args[..] else { continue };
        let names: Vec<String> = match names {
            Expr::StringLiteral(text) => {
                text.value.to_str().split(',').map(|name| name.trim().to_owned()).collect()
            }
            Expr::Tuple(tuple) => tuple.elts.iter().filter_map(text_of).collect(),
            Expr::List(list) => list.elts.iter().filter_map(text_of).collect(),
            _ => continue,
        };
        let Some(values) = elements(values) else { continue };
        let rows: Rows = values
            .iter()
            .map(|value| {
                let value = match value {
                    // pytest.param(1, 2, marks=…)
                    Expr::Call(call) if dotted(&call.func).last() == Some(&"param") => {
                        call.arguments.args.iter().collect()
                    }
                    value if names.len() == 1 => vec![value],
                    value => elements(value).unwrap_or_default().iter().collect::<Vec<_>>(),
                };
                let pairs = names.iter().zip(value);
                pairs.filter_map(|(name, value)| Some((name.clone(), number(value)?))).collect()
            })
            .collect();
        if rows.is_empty() || all.len() * rows.len() > COMBINATIONS {
            continue;
        }
        all = all
            .iter()
            .flat_map(|one| {
                rows.iter().map(move |row| {
                    let mut both = one.clone();
                    both.extend(row.iter().map(|(name, value)| (name.clone(), *value)));
                    both
                })
            })
            .collect();
    }
    all
}

fn elements(expr: &Expr) -> Option<&[Expr]> {
    match expr {
        Expr::List(list) => Some(&list.elts),
        Expr::Tuple(tuple) => Some(&tuple.elts),
        _ => None,
    }
}

fn text_of(expr: &Expr) -> Option<String> {
    expr.as_string_literal_expr().map(|text| text.value.to_str().to_owned())
}

fn number(expr: &Expr) -> Option<u32> {
    let Expr::NumberLiteral(number) = expr else { return None };
    number.value.as_int()?.as_u64()?.try_into().ok()
}

/// The dimension of a parallel layout that a name stands for.
fn dimension(name: &str) -> Option<&'static str> {
    Some(match name {
        "tensor_model_parallel_size" | "tensor_parallel_size" | "tp" | "tp_size" => "tensor",
        "pipeline_model_parallel_size" | "pipeline_parallel_size" | "pp" | "pp_size" => "pipeline",
        "context_parallel_size" | "cp" | "cp_size" => "context",
        "expert_model_parallel_size" | "expert_parallel_size" | "ep" | "ep_size" => "expert",
        "expert_tensor_parallel_size" | "etp" | "etp_size" => "expert_tensor",
        "dp_size" | "data_parallel_size" => "data",
        _ => return None,
    })
}

/// The ranks that a layout needs at least.
fn ranks(sizes: &BTreeMap<&str, u32>) -> u32 {
    let size = |name: &str| sizes.get(name).copied().unwrap_or(1).max(1);
    let product =
        |names: [&str; 4]| names.into_iter().fold(1, |all: u32, name| all.saturating_mul(size(name)));
    let dense = product(["tensor", "pipeline", "context", "data"]);
    dense.max(product(["expert", "expert_tensor", "pipeline", "data"])).min(4096)
}

fn layout_of(row: &HashMap<String, u32>) -> u32 {
    ranks(&row.iter().filter_map(|(name, value)| Some((dimension(name)?, *value))).collect())
}

struct Reader<'a> {
    module: &'a Module,
    owner: &'a mut Owner,
    rows: Rows,
    known: &'a HashMap<String, u32>,
    /// How many branches with another one on the CPU are around.
    fallback: u32,
}

impl Reader<'_> {
    fn found(&mut self, ask: Ask, expr: &Expr) {
        let text: String = self.module.text(expr).split_whitespace().collect::<Vec<_>>().join(" ");
        let text =
            if text.chars().count() > 80 { text.chars().take(79).chain(['…']).collect() } else { text };
        self.owner.asked.push(Asked { ask, text });
    }

    fn value(&self, expr: &Expr, row: &HashMap<String, u32>) -> u32 {
        let named = |name: &str| row.get(name).or_else(|| self.known.get(name)).copied();
        let value = number(expr).or_else(|| match expr {
            Expr::Name(name) => named(&name.id),
            _ => None,
        });
        value.unwrap_or(1).clamp(1, 4096)
    }

    /// The ranks that a layout needs: the product of its sizes, over all that the parameters take.
    fn layout(&self, call: &ExprCall) -> u32 {
        let one = HashMap::new();
        let rows: Vec<&HashMap<String, u32>> =
            if self.rows.is_empty() { vec![&one] } else { self.rows.iter().collect() };
        rows.into_iter().map(|row| self.layout_at(call, row)).max().unwrap_or(1)
    }

    fn layout_at(&self, call: &ExprCall, row: &HashMap<String, u32>) -> u32 {
        let mut sizes: BTreeMap<&str, u32> = BTreeMap::new();
        for (name, argument) in ["tensor", "pipeline"].into_iter().zip(&call.arguments.args) {
            sizes.insert(name, self.value(argument, row));
        }
        for keyword in &call.arguments.keywords {
            let name = keyword.arg.as_ref().map(|name| name.as_str());
            if let Some(part) = name.and_then(dimension) {
                sizes.insert(part, self.value(&keyword.value, row));
            }
        }
        ranks(&sizes)
    }

    fn call(&mut self, call: &ExprCall, expr: &Expr) {
        let name = dotted(&call.func);
        let last = match &*call.func {
            Expr::Attribute(attribute) => attribute.attr.as_str(),
            _ => name.last().copied().unwrap_or_default(),
        };
        if GROUPS.contains(&last) {
            self.found(Ask::ProcessGroup, expr);
            if last == "initialize_model_parallel" {
                let ranks = self.layout(call);
                if ranks > 1 {
                    self.found(Ask::Ranks(ranks), expr);
                }
            }
        }
        let of_tensors = last == "equal" && matches!(name[..], ["torch", "equal"]);
        if NUMBERS.contains(&last) || of_tensors {
            self.found(Ask::Numbers, expr);
        }
        if last == "cuda" && call.arguments.args.is_empty()
            || last == "current_device" && name.contains(&"cuda")
        {
            self.cuda(expr);
        }
        for keyword in &call.arguments.keywords {
            let name = keyword.arg.as_ref().map(|name| name.as_str()).unwrap_or_default();
            if matches!(name, "nprocs" | "num_processes" | "nproc_per_node" | "world_size") {
                let ranks = self.rows.iter().map(|row| self.value(&keyword.value, row)).max();
                let ranks = ranks.unwrap_or_else(|| self.value(&keyword.value, &HashMap::new()));
                if ranks > 1 {
                    self.found(Ask::Ranks(ranks), expr);
                }
            }
        }
        if last == "parametrize"
            && let [Expr::StringLiteral(names), values, ..] = &call.arguments.args[..]
            && RANK_WORDS.contains(&names.value.to_str())
        {
            let most = elements(values).unwrap_or_default().iter().filter_map(number).max();
            if let Some(most) = most {
                self.found(Ask::Ranks(most), expr);
            }
        }
        let skips = matches!(last, "skipif" | "skipUnless" | "skipIf");
        let asks_cuda = |arg: &Expr| {
            let text = self.module.text(arg);
            text.contains("cuda.is_available()") && (last == "skipUnless" || text.contains("not "))
        };
        if skips && call.arguments.args.first().is_some_and(asks_cuda) {
            self.found(Ask::Cuda, expr);
        }
    }

    fn cuda(&mut self, expr: &Expr) {
        if self.fallback == 0 {
            self.found(Ask::Cuda, expr);
        }
    }

    /// A guard on the number of ranks or GPUs: `world_size < 4`, `device_count() != 8`, `world_size % 2`.
    fn guard(&mut self, counted: &Expr, op: CmpOp, limit: &Expr, whole: &Expr) {
        let text = self.module.text(counted);
        let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
        let gpus = says(GPU_WORDS);
        if !gpus && !says(RANK_WORDS) {
            return;
        }
        let (counted, limit) = match counted {
            Expr::BinOp(binary) if binary.op == ruff_python_ast::Operator::Mod => {
                (true, number(&binary.right))
            }
            _ => (false, number(limit)),
        };
        let Some(limit) = limit else { return };
        let least = match op {
            _ if counted => limit,
            CmpOp::Lt | CmpOp::NotEq => limit,
            CmpOp::LtE => limit + 1,
            _ => return,
        };
        if (2..=4096).contains(&least) {
            self.found(if gpus { Ask::Gpus(least) } else { Ask::Ranks(least) }, whole);
        }
    }
}

impl<'a> Visitor<'a> for Reader<'_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        // `assert world_size == 4` is a guard as `if world_size != 4: skip` is.
        if let Stmt::Assert(assert) = statement
            && let Expr::Compare(compare) = &*assert.test
            && let ([op], [right]) = (&*compare.ops, &*compare.comparators)
        {
            let turned = match op {
                CmpOp::Eq => Some(CmpOp::NotEq),
                CmpOp::GtE => Some(CmpOp::Lt),
                CmpOp::Gt => Some(CmpOp::LtE),
                _ => None,
            };
            if let Some(turned) = turned {
                self.guard(&compare.left, turned, right, &assert.test);
            }
        }
        visitor::walk_stmt(self, statement);
    }

    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Name(name) => {
                self.owner.mentions.insert(name.id.to_string());
            }
            Expr::Attribute(attribute) => {
                let name = attribute.attr.as_str();
                self.owner.mentions.insert(name.to_owned());
                if RESOURCES.contains(&name) {
                    self.found(Ask::Resources, expr);
                }
            }
            Expr::Call(call) => self.call(call, expr),
            Expr::StringLiteral(text) => {
                let text = text.value.to_str();
                if text == "cuda" || text.starts_with("cuda:") {
                    self.cuda(expr);
                }
            }
            Expr::Compare(compare) => {
                if let ([op], [right]) = (&*compare.ops, &*compare.comparators) {
                    self.guard(&compare.left, *op, right, expr);
                }
            }
            Expr::If(_) => {
                self.fallback += 1;
                visitor::walk_expr(self, expr);
                self.fallback -= 1;
                return;
            }
            _ => {}
        }
        visitor::walk_expr(self, expr);
    }
}
