"""Process groups and the collectives over them."""

from ministack.parallel.groups import Group, ParallelGroups, local_device
from ministack.parallel.mappings import (
    copy_to_group,
    gather_from_group,
    gather_tokens,
    reduce_from_group,
    reduce_scatter_tokens,
)

__all__ = [
    "Group",
    "ParallelGroups",
    "copy_to_group",
    "gather_from_group",
    "gather_tokens",
    "local_device",
    "reduce_from_group",
    "reduce_scatter_tokens",
]
