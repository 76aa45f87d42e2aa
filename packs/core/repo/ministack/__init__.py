"""A small stack for training, serving and reinforcement learning of transformers."""

from ministack.config import ModelConfig, TrainConfig

__version__ = "0.4.0"
__all__ = ["ModelConfig", "TrainConfig", "__version__"]
