"""Hyperparameters of a training run, each with its meaning and its limits."""

from __future__ import annotations

import dataclasses
import json
import math
import numbers
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from twinenv.naming import unknown
from twinenv.ppo.networks import ACTIVATIONS

__all__ = ["Config", "Outcome", "Preset", "Target", "demand_integers", "from_file", "replaced"]

Outcome = Callable[[Mapping[str, Any]], tuple[Any, Any]]
"""From the `info` of a step to what counts for a ratio and what it is counted among, each `[N]`."""


@dataclasses.dataclass(frozen=True)
class Config:
    """Hyperparameters of PPO and of the run."""

    total_steps: int = 10_000_000
    """Environment steps of the whole run, over all environments; rounded up to whole updates."""
    num_envs: int = 1024
    """Environments that are stepped together."""
    num_steps: int = 64
    """Steps of each environment between two updates."""
    num_epochs: int = 2
    """Passes over the data of an update."""
    num_minibatches: int = 16
    """Gradient steps in a pass; a minibatch is made of whole columns, one per environment."""
    micro_batch: int = 0
    """Samples whose gradient is computed at once; 0 chooses what fits the cache. It changes speed
    and memory, not the gradient."""
    learning_rate: float = 3e-4
    """Adam's step size at the beginning."""
    anneal: bool = True
    """Lower the learning rate linearly, update by update, to 0 at the end of the run."""
    adam_eps: float = 1e-5
    """Adam's epsilon."""
    gamma: float = 0.99
    """Discount per step."""
    gae_lambda: float = 0.95
    """Weight of longer returns in the advantage."""
    clip: float = 0.2
    """How far the probability ratio may leave 1 before the policy loss is flat."""
    value_clip: float = 0.2
    """How far a value may leave its old estimate before the value loss is flat; 0 turns it off."""
    entropy_coef: float = 0.01
    """Weight of the entropy bonus."""
    value_coef: float = 0.5
    """Weight of the value loss, which is half the mean squared error."""
    max_grad_norm: float = 0.5
    """Global norm to which gradients are clipped."""
    normalize_advantage: bool = True
    """Standardise the advantages of each minibatch."""
    normalize_observation: bool = False
    """Standardise observations by running statistics."""
    normalize_reward: bool = False
    """Divide rewards by the running standard deviation of the discounted return."""
    hidden: tuple[int, ...] = (64, 64)
    """Width of each hidden layer of the built-in policy."""
    activation: str = "tanh"
    """Activation of the built-in policy: relu, tanh, swish or gelu."""
    shared: bool = True
    """One trunk for action and value, or one each."""
    initial_std: float = 1.0
    """Standard deviation of continuous actions at the beginning; the limits are -1 and 1."""
    seed: int = 0
    """Everything random follows from it."""
    seeds: int = 1
    """Runs with seeds seed, seed + 1, ... trained side by side in one program."""
    checkpoint_seconds: float = 60.0
    """Time between two checkpoints; one is always written at the end and on Ctrl-C."""
    quick_compile: bool = False
    """Compile in about half the time to a slower program: by about a tenth with relu, by about half
    with tanh; good for short runs (only on the CPU)."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = _plain(field.name, getattr(self, field.name), type(field.default))
            object.__setattr__(self, field.name, value)
        for name in ("total_steps", "num_envs", "num_steps", "num_epochs", "num_minibatches"):
            self._demand(name, "an integer from 1", getattr(self, name) >= 1)
        self._demand("micro_batch", "an integer from 0", self.micro_batch >= 0)
        self._demand("seeds", "an integer from 1", self.seeds >= 1)
        most = (1 << 32) - self.seeds
        self._demand("seed", f"an integer from 0 to {most}", 0 <= self.seed <= most)
        for name in ("learning_rate", "adam_eps", "clip", "max_grad_norm", "initial_std"):
            self._demand(name, "a positive number", 0 < getattr(self, name) < math.inf)
        for name in ("value_clip", "entropy_coef", "value_coef", "checkpoint_seconds"):
            self._demand(name, "a number from 0", 0 <= getattr(self, name) < math.inf)
        for name in ("gamma", "gae_lambda"):
            self._demand(name, "a number from 0 to 1", 0 <= getattr(self, name) <= 1)
        self._demand("activation", f"one of {sorted(ACTIVATIONS)}", self.activation in ACTIVATIONS)
        self._demand("hidden", "positive widths", all(width >= 1 for width in self.hidden))
        if self.num_envs % self.num_minibatches:
            raise ValueError(
                f"num_minibatches is {self.num_minibatches}; minibatches are made of whole "
                f"environments, so accepted is a divisor of num_envs = {self.num_envs}"
            )

    def _demand(self, name: str, accepted: str, holds: bool) -> None:
        if not holds:
            raise ValueError(f"{name} is {getattr(self, name)!r}; accepted is {accepted}")

    def compiled(self) -> Config:
        """This configuration without what does not change the compiled program."""
        return dataclasses.replace(self, total_steps=1, seed=0, checkpoint_seconds=0.0)

    @property
    def steps_per_update(self) -> int:
        """Environment steps in one update."""
        return self.num_envs * self.num_steps

    @property
    def num_updates(self) -> int:
        """Updates of the whole run."""
        return -(-self.total_steps // self.steps_per_update)


@dataclasses.dataclass(frozen=True)
class Target:
    """When an environment counts as solved.

    Attributes:
        metric: "return", "length" or the name of one of the preset's outcomes.
        value: the least value that counts.
    """

    metric: str = "return"
    value: float = math.inf


@dataclasses.dataclass(frozen=True)
class Preset:
    """The baseline of an environment.

    Attributes:
        env: options of `twinenv.make`.
        config: hyperparameters.
        outcomes: ratios to report, by name.
        target: when the environment counts as solved, None if nobody has said.
    """

    env: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    config: Config = dataclasses.field(default_factory=Config)
    outcomes: Mapping[str, Outcome] = dataclasses.field(default_factory=dict)
    target: Target | None = None


def replaced(config: Config, changes: Mapping[str, Any]) -> Config:
    """`config` with some options changed.

    Raises:
        ValueError: an unknown option (the message suggests the nearest), or a value of the wrong
            type or out of range.
    """
    known = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    for name in changes:
        if name not in known:
            raise ValueError(unknown("option", name, known))
    return Config(**{**known, **changes})


def demand_integers(least: int, **values: int) -> None:
    """Refuse arguments, given by name, that are no integers from `least` to what 32 bits hold."""
    most = (1 << 32) - 1
    for name, value in values.items():
        if not (isinstance(value, numbers.Integral) and least <= value <= most):
            accepted = f"an integer from {least} to {most}"
            raise ValueError(f"{name} is {value!r}; accepted is {accepted}")


_KINDS = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a text",
    tuple: "a list of integers",
}


def _plain(name: str, value: Any, kind: type) -> Any:
    try:
        return _converted(value, kind)
    except (TypeError, OverflowError):
        raise ValueError(f"{name} is {value!r}; accepted is {_KINDS[kind]}") from None


def _converted(value: Any, kind: type) -> Any:
    """`value` as Python's own `kind`; NumPy's numbers, whole floats and lists are taken too."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if kind is tuple and isinstance(value, list | tuple):
        return tuple(_converted(item, int) for item in value)
    if kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise TypeError
    return value


def from_file(path: str | Path) -> dict[str, Any]:
    """The options in a TOML file, or in the `config.json` of a run.

    Raises:
        ValueError: the file cannot be read.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".json":
            data = json.loads(text)
            return data["config"] | {"env": data.get("env_options", {})}
        return tomllib.loads(text)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"cannot read options from {path}: {error}") from error
