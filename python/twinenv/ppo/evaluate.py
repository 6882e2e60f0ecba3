"""Evaluation: complete episodes of a fixed policy, on either side of a twin."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from twinenv.ppo.config import Outcome
from twinenv.ppo.policy import Policy
from twinenv.ppo.steppers import Stepper

__all__ = ["Estimate", "Evaluation", "evaluate"]


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A mean and its 95 % confidence interval; the limits are NaN for a single episode."""

    mean: float
    low: float
    high: float


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """What the episodes came to.

    Attributes:
        returns: undiscounted return of each episode, `float64[episodes]`.
        lengths: steps of each episode, `int64[episodes]`.
        mean_return: over episodes.
        mean_length: over episodes.
        outcomes: ratios over all episodes, by name.
    """

    returns: np.ndarray
    lengths: np.ndarray
    mean_return: Estimate
    mean_length: Estimate
    outcomes: Mapping[str, Estimate]


def evaluate(
    policy: Policy,
    stepper: Stepper,
    outcomes: Mapping[str, Outcome],
    *,
    episodes: int,
    greedy: bool,
    seed: int = 0,
) -> Evaluation:
    """Play complete episodes.

    How many episodes each environment plays is fixed beforehand, so that long ones count as much
    as short ones.

    Args:
        policy: who plays.
        stepper: environments of either side.
        outcomes: ratios to report, by name.
        episodes: how many.
        greedy: likeliest actions instead of samples.
        seed: of environments and samples.

    Raises:
        ValueError: the policy does not fit the environment, or `episodes` is below 1.
        RuntimeError: the episodes do not end.
    """
    if episodes < 1:
        raise ValueError(f"episodes is {episodes}; accepted is an integer from 1")
    if stepper.spec != policy.spec:
        raise ValueError(
            f"the policy was trained on {policy.spec} and this environment has {stepper.spec}; "
            "make it with the options of the run"
        )
    players = _Players(stepper.num_envs, episodes, list(outcomes))
    obs, mask = stepper.reset(seed)
    carry = policy.initial_carry(stepper.num_envs)
    reset = np.ones(stepper.num_envs, np.bool_)
    for key in _keys(seed):
        action, carry = policy.step(obs, mask, carry, reset, key, greedy=greedy)
        seen = stepper.step(np.asarray(action))
        counted = {name: outcome(seen.info) for name, outcome in outcomes.items()}
        if players.record(seen.reward, seen.done, counted):
            break
        obs, mask, reset = seen.obs, seen.mask, seen.done
    return players.result()


_PATIENCE = 1_000_000


def _keys(seed: int) -> Any:
    """A key for every step, apart from those the environments get."""
    key = jax.random.fold_in(jax.random.key(seed), 1)
    for block in range(_PATIENCE // 1000):
        words = np.asarray(
            jax.random.key_data(jax.random.split(jax.random.fold_in(key, block), 1000))
        )
        yield from (jax.random.wrap_key_data(word) for word in words)
    raise RuntimeError(
        f"the episodes did not end within {_PATIENCE} steps; give the environment a time limit"
    )


class _Players:
    """The score sheet of an evaluation."""

    def __init__(self, num_envs: int, episodes: int, outcomes: list[str]) -> None:
        share, extra = divmod(episodes, num_envs)
        self._left = np.full(num_envs, share) + (np.arange(num_envs) < extra)
        self._names = outcomes
        self._now = np.zeros((num_envs, 2 + 2 * len(outcomes)))
        self._rows: list[np.ndarray] = []

    def record(self, reward: np.ndarray, done: np.ndarray, counted: Mapping[str, Any]) -> bool:
        """Add a step; true when every environment has played its episodes."""
        parts = [part for name in self._names for part in counted[name]]
        values = [reward, np.ones_like(reward), *parts]
        self._now += np.stack([np.asarray(value, np.float64) for value in values], axis=1)
        ended = done & (self._left > 0)
        self._rows.append(self._now[ended])
        self._left -= ended
        self._now[done] = 0.0
        return not self._left.any()

    def result(self) -> Evaluation:
        rows = np.concatenate(self._rows)
        ratios = {
            name: _ratio(rows[:, 2 + 2 * i], rows[:, 3 + 2 * i])
            for i, name in enumerate(self._names)
        }
        one = np.ones(len(rows))
        returns, lengths = rows[:, 0], rows[:, 1]
        means = _ratio(returns, one), _ratio(lengths, one)
        return Evaluation(returns, lengths.astype(np.int64), *means, ratios)


def _ratio(parts: np.ndarray, among: np.ndarray) -> Estimate:
    """`sum(parts) / sum(among)` over episodes, with the interval of the ratio estimator."""
    from scipy.special import stdtrit

    count, total = len(parts), float(among.sum())
    if total == 0:
        return Estimate(math.nan, math.nan, math.nan)
    mean = float(parts.sum()) / total
    if count < 2:
        return Estimate(mean, math.nan, math.nan)
    spread = float(np.sqrt(np.sum((parts - mean * among) ** 2) / (count - 1)))
    half = float(stdtrit(count - 1, 0.975)) * spread / (total / count) / math.sqrt(count)
    return Estimate(mean, mean - half, mean + half)
