//! Mutants of shards, copies, memory, types, gradients, pending operations and caches.

mod mutating;

use infradev_model::Operator;
use mutating::table;

#[test]
fn the_whole_is_used_for_a_shard() {
    table(
        Operator::FullMaterialisation,
        &[
            ("y = x.narrow(0, start, n)", &["y = x"]),
            ("y = torch.narrow(x, 0, start, n)", &["y = x"]),
            ("y = torch.narrow(x, dim=0, start=start, length=n)", &["y = x"]),
            ("y = x.chunk(n, dim=0)[self.rank]", &["y = x"]),
            ("y = x.split(n)[rank]", &["y = x"]),
            ("y = torch.split(x, n)[rank]", &["y = x"]),
            ("y = torch.chunk(x + 1, n)[rank].sum()", &["y = (x + 1).sum()"]),
            ("y = torch.tensor_split(input=x, sections=n)[rank]", &["y = x"]),
            ("import torch as th\ny = th.chunk(x, n)[rank]", &["y = x"]),
            ("y = chunk(x, n)[rank]", &["y = x"]),
            ("y = torch.chunk(*x)[rank]", &[]),
            ("y = x[rank * n : (rank + 1) * n]", &["y = x"]),
            ("y = x[:, start:end]", &["y = x"]),
            ("y = split_tensor_into_1d_equal_chunks(x)", &["y = x"]),
            ("y = x[1:]", &[]),
            // A name that the function gives to this rank's number.
            ("r = dist.get_rank()\ny = x[r * n : (r + 1) * n]", &["y = x"]),
            (
                "r, n = dist.get_rank(), dist.get_world_size()\ny = x.chunk(n, dim=0)[r].contiguous()",
                &["y = x.contiguous()"],
            ),
            ("r = group.rank()\ny = x.split(n)[r]", &["y = x"]),
            ("r = self.tp_rank\nlow = r * n\ny = x[low : low + n]", &["y = x"]),
            ("me = int(os.environ[\"LOCAL_RANK\"])\ny = x[:, me * n :]", &["y = x"]),
            ("r = len(x)\ny = x[r * n : (r + 1) * n]", &[]),
            ("r = self.lora_rank\ny = x[:r]", &[]),
            ("r = rank_by_score(x)\ny = x[r:]", &[]),
            ("x[start:end] = y", &[]),
        ],
    );
}

#[test]
fn a_view_is_a_copy_and_a_copy_is_none() {
    table(
        Operator::CopyForView,
        &[
            ("y = x.view(-1)", &["y = x.view(-1).clone()"]),
            ("self.y = x.narrow(0, 0, n)", &["self.y = x.narrow(0, 0, n).clone()"]),
            ("y = x.view(-1) + 1", &[]),
            // Of a part only where it lasts, and is a tensor's.
            ("self.y = x.reshape(-1)[0:2]\ntorch", &["self.y = x.reshape(-1)[0:2].clone()"]),
            ("self.y = x[:4]\nx.detach()", &["self.y = x[:4].clone()"]),
            ("if flag:\n    return x[4:]\nz = x.is_cuda", &["return x[4:].clone()"]),
            ("if flag:\n    return x.transpose(0, 1)\ntorch", &["return x.transpose(0, 1).clone()"]),
            ("self.y = torch.permute(x, (1, 0))", &["self.y = torch.permute(x, (1, 0)).clone()"]),
            ("self.y = x[:4]", &[]),
            ("self.views.append(x.view(-1))", &["self.views.append(x.view(-1).clone())"]),
            ("views.insert(0, x.narrow(0, 0, n))", &["views.insert(0, x.narrow(0, 0, n).clone())"]),
            ("y, z = x.view(-1), x.unbind(0)", &["y, z = x.view(-1).clone(), x.unbind(0)"]),
            ("y, self.z = x[:4], x[4:]\nx.detach()", &["y, self.z = x[:4], x[4:].clone()"]),
            ("self.sums.append(x.view(-1) + 1)", &[]),
            ("self.y = np.transpose(x)", &[]),
            ("self.y = x.transpose(1, 0)", &[]),
            ("y = x[:4]\nx.detach()", &[]),
            ("y = x.transpose(0, 1)\ntorch", &[]),
            ("self.y = x[0]\nx.detach()", &[]),
        ],
    );
    table(
        Operator::ViewForCopy,
        &[
            ("y = x.clone()", &["y = x"]),
            ("y = (x + 1).contiguous()", &["y = (x + 1)"]),
            ("y = copy.deepcopy(x)", &["y = x"]),
            ("y = list(self.blocks)", &["y = self.blocks"]),
            ("y = self.blocks.copy()", &["y = self.blocks"]),
            ("y = list(range(3))", &[]),
        ],
    );
}

#[test]
fn memory_is_not_given_back() {
    table(
        Operator::NoFree,
        &[
            ("del x", &["pass"]),
            ("y = x.cpu()", &["y = x"]),
            ("y = x.to(\"cpu\", non_blocking=True)", &["y = x"]),
            ("torch.cuda.empty_cache()", &["pass"]),
            ("x.untyped_storage().resize_(0)", &["pass"]),
            ("self.pool.free(x)", &["pass"]),
            ("self.pool.release_memory_blocks(x)", &["pass"]),
            ("y = x * 2\ny = None", &["pass"]),
            ("y = None", &[]),
        ],
    );
}

#[test]
fn a_cache_or_a_captured_buffer_is_stale() {
    table(
        Operator::StaleCache,
        &[
            ("self.static_input.copy_(x)", &["pass"]),
            ("self.cache.invalidate(x)", &["pass"]),
            ("self.version += 1", &["pass"]),
            ("self._cache[key] = x", &["pass"]),
            ("if key in self._cache:\n    x = self._cache[key]", &["if True:"]),
            ("if key not in self._graphs:\n    self.capture(key)", &["if False:"]),
            ("if key in names:\n    x = 1", &[]),
        ],
    );
}

#[test]
fn numbers_are_kept_in_a_narrower_type() {
    table(
        Operator::WrongDtype,
        &[
            ("y = x.float()", &["y = x"]),
            ("y = x.to(torch.float32)", &["y = x", "y = x.to(torch.bfloat16)"]),
            ("y = x.sum(dtype=torch.float32)", &["y = x.sum(dtype=torch.bfloat16)"]),
            ("y = x.to(x.dtype)", &["y = x"]),
            ("y = np.zeros(3, dtype=np.float64)", &["y = np.zeros(3, dtype=np.float32)"]),
            ("y = float(x)", &[]),
        ],
    );
}

#[test]
fn a_gradient_flows_where_golden_cuts_it() {
    table(
        Operator::MissingDetach,
        &[
            ("y = x.detach()", &["y = x"]),
            ("y = x.detach().clone()", &["y = x.clone()"]),
            ("x.detach_()", &["pass"]),
            ("with torch.no_grad():\n    x.add_(1)", &["with torch.enable_grad():"]),
        ],
    );
}

#[test]
fn a_gradient_is_cut_where_golden_lets_it_flow() {
    table(
        Operator::CutGradient,
        &[
            ("if x > 1:\n    return x * 2", &["return (x * 2).detach()", "return x.detach()"]),
            ("if x > 1:\n    return x, None", &["return x.detach()"]),
        ],
    );
    let in_method = |class: &str| {
        let golden = format!("{class}\n    @staticmethod\n    def forward(ctx, x):\n        return x * 2\n");
        mutating::lines_of(Operator::CutGradient, "", &golden)
    };
    assert_eq!(in_method("class Twice(nn.Module):"), ["return (x * 2).detach()"]);
    // Autograd attaches its node to whatever this returns.
    assert_eq!(in_method("class Twice(torch.autograd.Function):"), [""; 0]);
    assert_eq!(in_method("from torch.autograd import Function as Fn\nclass Twice(Fn):"), [""; 0]);
    let elsewhere = "def loss(x):\n    return x\n";
    assert_eq!(mutating::lines_of(Operator::CutGradient, "", elsewhere), [""; 0]);
}

#[test]
fn what_is_pending_is_not_waited_for() {
    table(
        Operator::MissingWait,
        &[
            ("handle.wait()", &["pass"]),
            ("torch.cuda.current_stream().wait_stream(self.stream)", &["pass"]),
            ("torch.cuda.synchronize()", &["pass"]),
            ("self.finish_grad_sync()", &["pass"]),
            ("y = x.result()", &[]),
        ],
    );
}
