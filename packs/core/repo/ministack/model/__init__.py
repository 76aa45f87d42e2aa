"""The transformer and its parts."""

from ministack.model.transformer import Block, Transformer

__all__ = ["Block", "Transformer"]
