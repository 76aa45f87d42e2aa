"""Optimizer, clipping, checkpoints and the training loop."""

from ministack.training.checkpoint import load_checkpoint, save_checkpoint
from ministack.training.clip import clip_grad_norm
from ministack.training.loop import Trainer
from ministack.training.optimizer import MasterAdamW

__all__ = ["MasterAdamW", "Trainer", "clip_grad_norm", "load_checkpoint", "save_checkpoint"]
