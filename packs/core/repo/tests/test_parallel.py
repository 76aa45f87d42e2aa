import pytest
import torch
import torch.distributed as dist

from ministack.parallel import Group, ParallelGroups, gather_tokens, reduce_scatter_tokens
from ministack.parallel.mappings import all_gather, all_reduce, reduce_scatter


def test_single_process_groups():
    groups = ParallelGroups.single()
    assert groups.tp.size == groups.dp.size == groups.ep.size == groups.edp.size == 1
    assert all_reduce(torch.ones(3), groups.tp).tolist() == [1, 1, 1]


def test_sizes_need_a_process_group(world_size):
    if world_size > 1:
        pytest.skip("there is a process group")
    with pytest.raises(ValueError, match="process group"):
        ParallelGroups.create(tp=2)


def test_layout(needs_ranks):
    groups = ParallelGroups.create(tp=2)
    rank = dist.get_rank()
    assert groups.tp.ranks == (rank // 2 * 2, rank // 2 * 2 + 1)
    assert groups.dp.size == needs_ranks // 2
    assert groups.dp.rank == rank // 2


def test_expert_layout(needs_ranks):
    groups = ParallelGroups.create(ep=2)
    rank = dist.get_rank()
    assert groups.ep.ranks == (rank // 2 * 2, rank // 2 * 2 + 1)
    assert groups.edp.ranks == tuple(range(rank % 2, needs_ranks, 2))


def test_indivisible_sizes_are_refused(needs_ranks):
    with pytest.raises(ValueError, match="multiple"):
        ParallelGroups.create(tp=3)
    with pytest.raises(ValueError, match="multiple"):
        ParallelGroups.create(ep=3)


def test_collectives(needs_ranks, device):
    group = ParallelGroups.create().dp
    x = torch.full((2, 3), float(group.rank), device=device)
    assert all_gather(x, group)[:, 0].tolist() == [r for r in range(group.size) for _ in range(2)]
    assert all_reduce(x, group)[0, 0].item() == sum(range(group.size))
    parts = torch.arange(group.size, dtype=torch.float32, device=device)[:, None]
    assert reduce_scatter(parts, group).tolist() == [[group.rank * group.size]]


def test_gather_and_reduce_scatter_are_adjoint(needs_ranks, device):
    group = ParallelGroups.create().dp
    x = torch.randn(2, 3, device=device, requires_grad=True)
    (gather_tokens(x, group) * 2).sum().backward()
    torch.testing.assert_close(x.grad, torch.full_like(x, 2.0 * group.size))
    y = torch.randn(2 * group.size, 3, device=device, requires_grad=True)
    reduce_scatter_tokens(y, group).sum().backward()
    torch.testing.assert_close(y.grad, torch.ones_like(y))


def test_group_of_one_is_the_identity():
    x = torch.randn(2, 3)
    assert gather_tokens(x, Group.single()) is x
