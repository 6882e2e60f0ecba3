"""Evaluation: complete episodes of a fixed policy, on either side of a twin."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np

from twinenv.ppo.config import Outcome, demand_integers
from twinenv.ppo.engine import spec_of
from twinenv.ppo.policy import Policy
from twinenv.ppo.steppers import JaxStepper, Stepper, VectorStepper, is_vector_env
from twinenv.ppo.views import view_of

__all__ = ["Estimate", "Evaluation", "Plan", "evaluate", "played", "stepper_of"]


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
        cut: how many of the episodes were cut at the most steps an episode may have.
    """

    returns: np.ndarray
    lengths: np.ndarray
    mean_return: Estimate
    mean_length: Estimate
    outcomes: Mapping[str, Estimate]
    cut: int


@dataclasses.dataclass(frozen=True)
class Plan:
    """How an evaluation is played.

    Attributes:
        episodes: how many, in all.
        greedy: likeliest actions instead of samples.
        seed: of environments and samples.
        num_envs: environments that play side by side, at most.
        max_steps: an episode that is longer is cut there, and counts with what it had.

    Raises:
        ValueError: a number is out of range.
    """

    episodes: int
    greedy: bool
    seed: int
    num_envs: int = 128
    max_steps: int = 100_000

    def __post_init__(self) -> None:
        demand_integers(1, episodes=self.episodes, num_envs=self.num_envs, max_steps=self.max_steps)
        demand_integers(0, seed=self.seed)

    @property
    def side_by_side(self) -> int:
        """Environments that are needed."""
        return min(self.num_envs, self.episodes)


def evaluate(  # noqa: PLR0913 (each is one choice of the caller's)
    policy: Policy,
    env: Any,
    params: Any = None,
    *,
    episodes: int = 256,
    greedy: bool = False,
    seed: int = 0,
    num_envs: int = 128,
    outcomes: Mapping[str, Outcome] | None = None,
    max_steps: int = 100_000,
) -> Evaluation:
    """Play complete episodes.

    Args:
        policy: who plays.
        env: a twinenv environment, one of gymnax >= 1.0, or a `gymnasium.vector.VectorEnv` that
            resets in the same step.
        params: parameters of a JAX environment; None stands for its defaults.
        episodes: how many.
        greedy: likeliest actions instead of samples.
        seed: of environments and samples.
        num_envs: environments that play side by side; a `VectorEnv` has a number of its own.
        outcomes: ratios to report, by name.
        max_steps: an episode that is longer is cut there, and counts with what it had.

    Raises:
        TypeError: this environment cannot be played.
        ValueError: the policy does not fit the environment, or a number is out of range.
    """
    plan = Plan(episodes, greedy, seed, num_envs, max_steps)
    return played(policy, stepper_of(policy, env, params, plan), outcomes or {}, plan)


def stepper_of(policy: Policy, env: Any, params: Any, plan: Plan) -> Stepper:
    """The environments, which fit the policy; see `evaluate`."""
    stepper: Stepper
    if is_vector_env(env):
        stepper = VectorStepper(env)
    else:
        params = getattr(env, "default_params", None) if params is None else params
        view = view_of(env, params)
        stepper = JaxStepper(view, spec_of(view, params), params, plan.side_by_side)
    if stepper.spec != policy.spec:
        raise ValueError(
            f"the policy was trained on {policy.spec} and this environment has {stepper.spec}; "
            "make it with the options of the run"
        )
    return stepper


def played(
    policy: Policy, stepper: Stepper, outcomes: Mapping[str, Outcome], plan: Plan
) -> Evaluation:
    """Play complete episodes.

    How many episodes each environment plays is fixed beforehand, so that long ones count as much
    as short ones. Single environments cannot be reset, so one whose episode was cut waits for the
    others, and then all begin anew.
    """
    players, keys = _Players(stepper.num_envs, plan, list(outcomes)), _keys(plan.seed)
    for again in itertools.count():
        obs, mask = stepper.reset((plan.seed + again) % (1 << 32))
        carry = policy.initial_carry(stepper.num_envs)
        reset = np.ones(stepper.num_envs, np.bool_)
        players.begin()
        while players.playing.any():
            inputs = (obs, mask, carry, reset)
            action, carry = policy.step(*inputs, next(keys), greedy=plan.greedy)
            seen = stepper.step(np.asarray(action))
            counted = {name: outcome(seen.info) for name, outcome in outcomes.items()}
            players.record(seen.reward, seen.done, counted)
            obs, mask, reset = seen.obs, seen.mask, seen.done
        if players.finished:
            break
    return players.result()


def _keys(seed: int) -> Iterator[jax.Array]:
    """A key for every step, apart from those the environments get."""
    key = jax.random.fold_in(jax.random.key(seed), 1)
    for block in itertools.count():
        words = np.asarray(
            jax.random.key_data(jax.random.split(jax.random.fold_in(key, block), 1000))
        )
        yield from (jax.random.wrap_key_data(word) for word in words)


class _Players:
    """The score sheet of an evaluation.

    Attributes:
        playing: `bool[N]`, environments whose steps count.
    """

    def __init__(self, num_envs: int, plan: Plan, outcomes: list[str]) -> None:
        share, extra = divmod(plan.episodes, num_envs)
        self._left = np.full(num_envs, share) + (np.arange(num_envs) < extra)
        self._max_steps, self._names = plan.max_steps, outcomes
        self._now = np.zeros((num_envs, 2 + 2 * len(outcomes)))
        self._rows: list[np.ndarray] = []
        self._cut = 0

    def begin(self) -> None:
        """All environments have been reset."""
        self.playing = self._left > 0
        self._now[:] = 0.0

    def record(self, reward: np.ndarray, done: np.ndarray, counted: Mapping[str, Any]) -> None:
        """Add a step."""
        parts = [part for name in self._names for part in counted[name]]
        values = [reward, np.ones_like(reward), *parts]
        self._now += np.stack([np.asarray(value, np.float64) for value in values], axis=1)
        cut = self.playing & ~done & (self._now[:, 1] >= self._max_steps)
        ended = self.playing & (done | cut)
        self._rows.append(self._now[ended])
        self._cut += int(cut.sum())
        self._left -= ended
        self.playing &= (self._left > 0) & ~cut
        self._now[done] = 0.0

    @property
    def finished(self) -> bool:
        """Every environment has played its episodes."""
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
        return Evaluation(returns, lengths.astype(np.int64), *means, ratios, self._cut)


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
