"""A model's weights on their way to someone else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn


@dataclass(frozen=True)
class WeightContainer:
    """Named tensors of one version of a model, as ``state_dict`` names them.

    A tensor that the model has under several names (an output head tied to the embedding) is held once; ``ties`` maps
    the other names to the one it is held under.
    """

    version: int
    tensors: dict[str, torch.Tensor]
    ties: dict[str, str]

    @classmethod
    def from_model(cls, model: nn.Module, version: int) -> WeightContainer:
        """Copy parameters and persistent buffers to the CPU."""
        tensors, ties, seen = {}, {}, {}
        for name, tensor in model.state_dict(keep_vars=True).items():
            if id(tensor) in seen:
                ties[name] = seen[id(tensor)]
                continue
            seen[id(tensor)] = name
            tensors[name] = tensor.detach().to("cpu", copy=True)
        return cls(version=version, tensors=tensors, ties=ties)

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors."""
        return sum(t.numel() * t.element_size() for t in self.tensors.values())

    @torch.no_grad()
    def load_into(self, model: nn.Module) -> None:
        """Copy into ``model``, cast to its own types. Names and shapes must be the model's."""
        targets = model.state_dict(keep_vars=True)
        missing = targets.keys() - self.tensors.keys() - self.ties.keys()
        unknown = (self.tensors.keys() | self.ties.keys()) - targets.keys()
        if missing or unknown:
            raise ValueError(f"the container does not fit the model: missing {sorted(missing)}, unknown {sorted(unknown)}")
        for name, tensor in self.tensors.items():
            targets[name].copy_(tensor)
        for name, held in self.ties.items():
            if targets[name] is not targets[held]:
                targets[name].copy_(self.tensors[held])

    def save(self, path: Path) -> None:
        """Write to a file."""
        torch.save({"version": self.version, "tensors": self.tensors, "ties": self.ties}, path)

    @classmethod
    def load(cls, path: Path) -> WeightContainer:
        """Read what ``save`` wrote."""
        return cls(**torch.load(path, weights_only=True))
