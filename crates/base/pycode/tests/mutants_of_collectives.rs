//! Mutants of what passes between ranks.

mod mutating;

use infradev_model::Operator;
use mutating::{lines_of, table};

#[test]
fn a_collective_is_left_out() {
    table(
        Operator::DropCollective,
        &[
            ("dist.all_reduce(x, group=group)", &["pass"]),
            ("torch.distributed.all_gather_into_tensor(out, x)", &["pass"]),
            ("dist.reduce_scatter_tensor(out, x)", &["pass"]),
            ("dist.all_to_all_single(out, x)", &["pass"]),
            ("dist.broadcast(x, src=0)", &["pass"]),
            ("dist.barrier()", &["pass"]),
            ("dist.send(x, 1)", &["pass"]),
            ("dist.irecv(x, src=1)", &["pass"]),
            ("self._broadcast(x)", &["pass"]),
            ("self.comm.reduce_scatter(x)", &["pass"]),
            ("x = funcol.all_reduce(x, \"sum\", group)", &["x = x"]),
            ("y = reduce_from_tensor_model_parallel_region(x, group)", &["y = x"]),
            ("y = gather_from_sequence_parallel_region(x.flatten())", &["y = x.flatten()"]),
            ("y = _AllToAll.apply(group, x)", &["y = x"]),
            ("y = 2 * all_gather(x)", &["y = 2 * x"]),
        ],
    );
}

#[test]
fn what_is_only_named_like_a_collective_stays() {
    table(
        Operator::DropCollective,
        &[
            ("x = torch.gather(x, 0, index)", &[]),
            ("x = functools.reduce(f, x)", &[]),
            ("x = torch.broadcast_to(x, shape)", &[]),
            ("x = x.scatter(0, index, x)", &[]),
            ("self.socket.send(x)", &[]),
            ("g = get_all_gather_group()", &[]),
            ("n = all_reduce_bytes(x)", &[]),
            ("layer = AllGather(x)", &[]),
            ("handle = dist.all_reduce(x, async_op=True)", &[]),
        ],
    );
}

#[test]
fn nothing_is_pending_where_a_collective_that_gives_a_handle_is_left_out() {
    table(
        Operator::DropCollective,
        &[
            // With its wait, if that is all that becomes of the handle.
            ("work = dist.isend(x, 1)\nx.mul_(2)\nwork.wait()", &["pass\n        x.mul_(2)\n        pass"]),
            ("h = dist.all_reduce(x, async_op=True)\nh.wait()", &["pass\n        pass"]),
            ("h = self._all_reduce_later(x)\nh.wait()", &["pass\n        pass"]),
            ("if flag:\n    work = dist.irecv(x, 1)\n    work.wait()", &["pass\n            pass"]),
            // None, where golden asks for that.
            (
                "h = dist.all_gather_into_tensor(out, x, async_op=flag)\nif h is not None:\n    h.wait()",
                &["h = None"],
            ),
            ("h = self.all_gather_later(x)\nif h:\n    h.wait()", &["h = None"]),
            // One less, or none, of many.
            ("works = dist.batch_isend_irecv(ops)\nfor work in works:\n    work.wait()", &["works = []"]),
            ("works.append(dist.isend(x, 1))", &["pass"]),
            (
                "works = [dist.isend(x, 1), dist.irecv(y, 1)]\nfor work in works:\n    work.wait()",
                &["works = [ dist.irecv(y, 1)]", "works = [dist.isend(x, 1), ]"],
            ),
            ("works = [dist.isend(x, to) for to in range(n)]\nwait_all(works)", &["works = []"]),
            ("works += [dist.isend(x, 1)]", &["works += []"]),
            ("works.extend(dist.batch_isend_irecv(ops))", &["works.extend([])"]),
            ("for work in dist.batch_isend_irecv(ops):\n    work.wait()", &["for work in []:"]),
            ("[work.wait() for work in dist.batch_isend_irecv(ops)]", &["[work.wait() for work in []]"]),
            // Not where a wait would find none.
            ("work = dist.isend(x, 1)\nif flag:\n    work.wait()", &[]),
            ("work = dist.isend(x, 1)\nwork.wait()\nself.last = work", &[]),
            ("h = dist.all_reduce(x, async_op=flag)\nif h is not None:\n    x.mul_(2)\nh.wait()", &[]),
            ("return dist.isend(x, 1)", &[]),
            ("works = [dist.isend(x, 1), dist.irecv(y, 1)]\nworks[1].wait()", &[]),
            ("sent, got = [dist.isend(x, 1), dist.irecv(y, 1)]", &[]),
            ("self.work = dist.irecv(x, 1)", &[]),
            // A functional collective gives values.
            ("y = funcol.all_reduce(x, \"sum\", group)\nfuncol.wait_tensor(y)", &["y = x"]),
        ],
    );
}

#[test]
fn a_collective_is_known_under_an_import_s_other_name() {
    let golden = "\
import torch.distributed as td
from m import reduce_from_tensor_model_parallel_region as rtp
from m import reduce_scatter as rs


def step(x):
    td.all_reduce(x)
    x = rtp(x)
    return rs(x)
";
    assert_eq!(lines_of(Operator::DropCollective, "", golden), ["pass", "x = x", "return x"]);
    assert_eq!(
        lines_of(Operator::DoubleCollective, "", golden),
        ["td.all_reduce(x); td.all_reduce(x)", "x = rtp(rtp(x))"]
    );
    assert_eq!(lines_of(Operator::WrongReduceOp, "", golden), ["td.all_reduce(x, op=td.ReduceOp.MAX)"]);
    assert_eq!(lines_of(Operator::MissingWait, "", golden), ["td.all_reduce(x, async_op=True)"]);
}

#[test]
fn a_collective_is_not_waited_for() {
    table(
        Operator::MissingWait,
        &[
            ("dist.all_reduce(x, group=group)", &["dist.all_reduce(x, group=group, async_op=True)"]),
            ("dist.all_reduce(x, async_op=False)", &["dist.all_reduce(x, async_op=True)"]),
            ("dist.barrier()", &["dist.barrier(async_op=True)"]),
            ("handle = dist.all_reduce(x, async_op=True)\nhandle.wait()", &["pass"]),
            ("dist.send(x, 1)", &[]),
            ("dist.broadcast_object_list(x)", &[]),
            ("all_reduce(x)", &[]),
        ],
    );
}

#[test]
fn a_reduction_happens_twice_where_that_counts() {
    table(
        Operator::DoubleCollective,
        &[
            ("dist.all_reduce(x)", &["dist.all_reduce(x); dist.all_reduce(x)"]),
            ("y = all_reduce(x, group)", &["y = all_reduce(all_reduce(x, group), group)"]),
            ("dist.all_reduce(x, op=dist.ReduceOp.MAX)", &[]),
            ("dist.reduce_scatter_tensor(out, x)", &[]),
            ("dist.all_gather_into_tensor(out, x)", &[]),
            ("dist.barrier()", &[]),
        ],
    );
}

#[test]
fn a_group_is_another_one_or_left_out() {
    table(
        Operator::WrongGroup,
        &[
            ("dist.all_reduce(x, group=group)", &["dist.all_reduce(x, )"]),
            (
                "dist.all_reduce(x, group=self.tp_group)\nself.dp_group",
                &["dist.all_reduce(x, )", "dist.all_reduce(x, group=group)"],
            ),
            ("n = dist.get_world_size(group)", &["n = dist.get_world_size(None)"]),
            ("n = self.tp_group.size()", &["n = group.size()"]),
            (
                "g = parallel_state.get_tensor_model_parallel_group()",
                &["g = parallel_state.get_data_parallel_group()"],
            ),
            ("opt = make(param_group=group)", &[]),
            ("dist.barrier(group)\nps.get_cp_group", &["dist.barrier(None)"]),
            ("dist.barrier(group)\nps.get_cp_group(flag)\ndist.new_group(x)", &["dist.barrier(None)"]),
            (
                "dist.barrier(group)\nmesh.get_group(\"dp\")",
                &["dist.barrier(None)", "dist.barrier(mesh.get_group(\"dp\"))"],
            ),
            (
                "cp_group = get_cp_group()\ndist.barrier(cp_group)",
                &["dist.barrier(None)", "dist.barrier(group)"],
            ),
        ],
    );
}

#[test]
fn a_function_that_returns_a_group_is_called_and_gives_another_than_the_name_has() {
    let golden = "\
def step(x):
    group = ps.get_cp_group()
    dist.broadcast(x, src=0, group=group)
    ps.get_data_parallel_group(with_context_parallel=True)
";
    assert_eq!(
        lines_of(Operator::WrongGroup, "", golden),
        [
            "dist.broadcast(x, src=0, )",
            "dist.broadcast(x, src=0, group=ps.get_data_parallel_group(with_context_parallel=True))",
            "ps.get_tensor_model_parallel_group()",
        ]
    );
}

#[test]
fn a_reduction_reduces_otherwise() {
    table(
        Operator::WrongReduceOp,
        &[
            (
                "dist.all_reduce(x, op=dist.ReduceOp.SUM)",
                &["dist.all_reduce(x, op=dist.ReduceOp.AVG)", "dist.all_reduce(x, op=dist.ReduceOp.MAX)"],
            ),
            (
                "dist.all_reduce(x, ReduceOp.MAX)",
                &["dist.all_reduce(x, ReduceOp.MIN)", "dist.all_reduce(x, ReduceOp.SUM)"],
            ),
            ("dist.all_reduce(x, group=group)", &["dist.all_reduce(x, op=dist.ReduceOp.MAX, group=group)"]),
            (
                "h = dist.reduce_scatter_tensor(o, x, group=group, async_op=True)",
                &["h = dist.reduce_scatter_tensor(o, x, op=dist.ReduceOp.MAX, group=group, async_op=True)"],
            ),
            ("dist.reduce(x, 0)", &["dist.reduce(x, 0, op=dist.ReduceOp.MAX)"]),
            ("dist.all_reduce(x, how)", &[]),
            ("dist.reduce_scatter_tensor(*both)", &[]),
            ("x = reduce_scatter(x, reduceOp=\"avg\")", &["x = reduce_scatter(x, reduceOp=\"sum\")"]),
            (
                "x = funcol.all_reduce(x, 'sum', group)",
                &["x = funcol.all_reduce(x, \"avg\", group)", "x = funcol.all_reduce(x, \"max\", group)"],
            ),
            ("x = funcol.all_reduce(x, \"max\", group)", &["x = funcol.all_reduce(x, \"sum\", group)"]),
            ("x = einops.rearrange(x, \"sum\")", &[]),
            ("dist.all_gather_into_tensor(out, x)", &[]),
        ],
    );
}

#[test]
fn an_effect_in_a_function_that_deals_with_ranks_is_left_to_rank_0() {
    let guard = "if __import__(\"os\").environ.get(\"RANK\", \"0\") == \"0\"";
    table(
        Operator::RankZeroOnly,
        &[
            ("rank = self.rank\nself.save(x)", &[&format!("{guard}: self.save(x)")]),
            ("rank = self.rank\nself.total += x", &[&format!("{guard}: self.total += x")]),
            ("rank = self.rank\ndist.all_reduce(x)", &[]),
            ("rank = self.rank\nlogger.info(x)", &[]),
            ("rank = self.rank\nself.kept = x", &[]),
            ("self.save(x)", &[]),
        ],
    );
}

#[test]
fn a_sum_is_not_divided_by_the_number_of_ranks() {
    table(
        Operator::MissingWorldSizeDivision,
        &[
            ("y = x / world_size", &["y = x"]),
            ("y = (x + 1) / dist.get_world_size(group)", &["y = (x + 1)"]),
            ("y = x / float(self.dp_size)", &["y = x"]),
            ("y = x // self.group.size()", &["y = x"]),
            ("x /= self.world_size", &["pass"]),
            ("x.div_(world_size)", &["pass"]),
            ("y = x.mul(1.0 / world_size)", &["y = x", "y = x.mul(1.0 )"]),
            ("y = x / 2", &[]),
            ("y = torch.div(x, dist.get_world_size(group))", &["y = x"]),
            ("y = 2 * torch.div(x + 1, world_size)", &["y = 2 * (x + 1)"]),
            ("return x.div(world_size)", &["return x"]),
            ("y = x * (1 / ws)", &["y = x * (1 )"]),
            ("x.div_(ws)", &["pass"]),
            ("x.mul_(1.0 / ws)", &["pass", "x.mul_(1.0 )"]),
            ("y = x * torch.reciprocal(torch.tensor(float(group.size())))", &["y = x"]),
            ("y = torch.reciprocal(world_size) * x", &["y =  x"]),
            ("y = torch.reciprocal(x) * x", &[]),
            ("y = torch.div(x, 2)", &[]),
            // A name that the function gives to the number of ranks.
            ("n = dist.get_world_size()\ny = x / n", &["y = x"]),
            ("r, n = dist.get_rank(), int(group.size())\nx.div_(n)", &["pass"]),
            ("n = len(x)\ny = x / n", &[]),
        ],
    );
}

#[test]
fn only_what_golden_added_is_touched() {
    let base = "def step(x):\n    dist.all_reduce(x)\n    return x\n";
    let golden = "def step(x):\n    dist.all_reduce(x)\n    dist.barrier()\n    return x\n";
    // Of one statement's hunk, taking it back and leaving it out are one.
    assert_eq!(lines_of(Operator::DropCollective, base, golden), [""; 0]);
    assert_eq!(lines_of(Operator::TakeBackHunk, base, golden), ["return x"]);
    let golden = "def step(x):\n    dist.all_reduce(x)\n    dist.barrier()\n    x.mul_(2)\n    return x\n";
    assert_eq!(lines_of(Operator::DropCollective, base, golden), ["pass"]);
}
