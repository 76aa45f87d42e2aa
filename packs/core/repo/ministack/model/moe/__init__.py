"""Mixture of experts: router, dispatcher, experts."""

from ministack.model.moe.dispatcher import AllGatherDispatcher
from ministack.model.moe.experts import Experts
from ministack.model.moe.layer import MoELayer
from ministack.model.moe.router import TopKRouter

__all__ = ["AllGatherDispatcher", "Experts", "MoELayer", "TopKRouter"]
