"""Collectives with gradients.

Each pairs a communication in forward with its adjoint in backward. Over a group of one they do nothing.
"""

from __future__ import annotations

import torch
import torch.distributed as dist

from ministack.parallel.groups import Group


def all_reduce(x: torch.Tensor, group: Group) -> torch.Tensor:
    """The sum of ``x`` over ``group``, as a new tensor; no gradient."""
    out = x.clone().contiguous()
    if group.size > 1:
        dist.all_reduce(out, group=group.handle)
    return out


def all_gather(x: torch.Tensor, group: Group) -> torch.Tensor:
    """``x`` of each rank of ``group``, concatenated along dimension 0; no gradient."""
    if group.size == 1:
        return x
    out = x.new_empty((x.shape[0] * group.size, *x.shape[1:]))
    dist.all_gather_into_tensor(out, x.contiguous(), group=group.handle)
    return out


def reduce_scatter(x: torch.Tensor, group: Group) -> torch.Tensor:
    """This rank's slice along dimension 0 of the sum of ``x`` over ``group``; no gradient."""
    if group.size == 1:
        return x
    out = x.new_empty((x.shape[0] // group.size, *x.shape[1:]))
    dist.reduce_scatter_tensor(out, x.contiguous(), group=group.handle)
    return out


class _Copy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return all_reduce(grad, ctx.group), None


class _Reduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        return all_reduce(x, group)

    @staticmethod
    def backward(ctx, grad):
        return grad, None


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group, ctx.width = group, x.shape[-1]
        return torch.cat(all_gather(x.unsqueeze(0), group).unbind(0), dim=-1)

    @staticmethod
    def backward(ctx, grad):
        start = ctx.group.rank * ctx.width
        return grad[..., start : start + ctx.width].contiguous(), None


class _GatherTokens(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return all_gather(x, group)

    @staticmethod
    def backward(ctx, grad):
        return reduce_scatter(grad, ctx.group), None


class _ReduceScatterTokens(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return reduce_scatter(x, group)

    @staticmethod
    def backward(ctx, grad):
        return all_gather(grad, ctx.group), None


def copy_to_group(x: torch.Tensor, group: Group) -> torch.Tensor:
    """Identity forward, sum of gradients backward: the way into a column-parallel region."""
    return x if group.size == 1 else _Copy.apply(x, group)


def reduce_from_group(x: torch.Tensor, group: Group) -> torch.Tensor:
    """Sum forward, identity backward: the way out of a row-parallel region."""
    return x if group.size == 1 else _Reduce.apply(x, group)


def gather_from_group(x: torch.Tensor, group: Group) -> torch.Tensor:
    """Concatenate the last dimension over ``group``; backward keeps this rank's slice."""
    return x if group.size == 1 else _Gather.apply(x, group)


def gather_tokens(x: torch.Tensor, group: Group) -> torch.Tensor:
    """Concatenate dimension 0 over ``group``; backward reduce-scatters."""
    return x if group.size == 1 else _GatherTokens.apply(x, group)


def reduce_scatter_tokens(x: torch.Tensor, group: Group) -> torch.Tensor:
    """Sum over ``group`` and keep this rank's slice of dimension 0; backward gathers."""
    return x if group.size == 1 else _ReduceScatterTokens.apply(x, group)
