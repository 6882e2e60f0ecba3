"""Environments around environments; all of them keep the functional API.

env = EpisodeStatistics(FlattenObservation(env))
"""

from twinenv.wrappers.actions import LegalActions
from twinenv.wrappers.base import Wrapper, WrapperState
from twinenv.wrappers.observation import FlattenObservation, FrameStack, FrameStackState
from twinenv.wrappers.opponents import (
    FrozenPolicy,
    Opponent,
    RandomOpponent,
    ScriptedOpponent,
    params_with_opponent,
)
from twinenv.wrappers.players import (
    SelfPlay,
    Versus,
    VersusState,
    merge_seats,
    split_seats,
    versus,
)
from twinenv.wrappers.statistics import EpisodeStatistics, EpisodeStatisticsState

__all__ = [
    "EpisodeStatistics",
    "EpisodeStatisticsState",
    "FlattenObservation",
    "FrameStack",
    "FrameStackState",
    "FrozenPolicy",
    "LegalActions",
    "Opponent",
    "RandomOpponent",
    "ScriptedOpponent",
    "SelfPlay",
    "Versus",
    "VersusState",
    "Wrapper",
    "WrapperState",
    "merge_seats",
    "params_with_opponent",
    "split_seats",
    "versus",
]
