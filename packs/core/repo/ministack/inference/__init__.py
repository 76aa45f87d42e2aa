"""Serving: paged KV cache, scheduler, sampler, engine."""

from ministack.inference.engine import Engine, EngineConfig
from ministack.inference.request import Completion, SamplingParams

__all__ = ["Completion", "Engine", "EngineConfig", "SamplingParams"]
