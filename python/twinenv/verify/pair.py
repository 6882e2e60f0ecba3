"""What the verifier needs of an environment: the pair of a fast side and its references.

Both sides speak of many environments at once. `Rows` are NumPy arrays by name with one leading
axis; canonical states, outputs and draws are all rows, of the same names and dtypes on both sides.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

import numpy as np

from twinenv.fields import Field

__all__ = [
    "Backend",
    "FastSide",
    "Margin",
    "Pair",
    "Policy",
    "Reference",
    "Rows",
    "Scenario",
    "Step",
]

Rows = dict[str, np.ndarray]
Policy = Callable[[np.random.Generator, "Step"], np.ndarray]
"""Actions for every row, given the last step (its output and, where known, its state)."""
Actor = Callable[[np.ndarray, "np.ndarray | None", int], np.ndarray]
"""A trained policy: actions from observations, action mask or None, and the number of the step.

The same call always gives the same answer, so that both sides can ask it.
"""


@dataclasses.dataclass(frozen=True)
class Step:
    """What one step (or a reset) of every environment came to.

    Attributes:
        state: canonical states after the step; empty if the backend cannot dump.
        output: what a user sees: `observation`, `reward`, `terminated`, `truncated`, ...; after a
            reset only `observation`.
        draws: random outcomes that the step used, to be handed to the other side; empty where the
            generator is part of the state.
    """

    state: Rows
    output: Rows
    draws: Rows = dataclasses.field(default_factory=dict)


class Backend(Protocol):
    """A running reference: `num_envs` environments that go on after an episode as it does."""

    num_envs: int

    def reset(self, seed: int) -> Step:
        """Start all environments afresh."""
        ...

    def step(self, actions: np.ndarray) -> Step:
        """Step all environments."""
        ...

    def load(self, state: Rows) -> None:
        """Set canonical states; only with the capability "load"."""
        ...

    def close(self) -> None:
        """Free what it holds."""
        ...


@dataclasses.dataclass(frozen=True)
class Reference:
    """A reference that can be opened.

    Attributes:
        open: `open(num_envs, **options)` starts a backend; raises
            `twinenv.references.MissingReferenceError` if it isn't installed.
        version: pinned version, recorded in traces and reports.
        capabilities: of "load" (set states), "dump" (read states), "draws" (report random
            outcomes), "feed" (take the outcomes of the next step by a method `feed(draws: Rows)`).
            Those missing degrade a level, which the report says.
        configurations: those of the pair's configurations that it judges; () means all.
    """

    open: Callable[..., Backend]
    version: str
    capabilities: frozenset[str]
    configurations: tuple[str, ...] = ()

    def judges(self, configuration: str) -> bool:
        """Whether it judges a configuration of the pair."""
        return not self.configurations or configuration in self.configurations


class FastSide(Protocol):
    """The twin at one configuration: pure functions of rows.

    Two methods may be left out, and what needs them is then reported as skipped:
    `observe(state: Rows) -> np.ndarray` gives the observations of states, to compare those of
    resets; `env_state(state: Rows) -> Any` gives the environment's own batched states, to run
    `env.step` under index checks from boundary states.
    """

    def reset(self, seed: int, num_envs: int) -> Step:
        """New episodes from a seed, without a reference."""
        ...

    def start(self, first: Step) -> Rows:
        """States that correspond to a reference's `reset` (from its state, or else its draws)."""
        ...

    def step(self, state: Rows, actions: np.ndarray, draws: Rows) -> Step:
        """One step of every row; `draws` may be empty where the state holds the generator."""
        ...


@dataclasses.dataclass(frozen=True)
class Scenario:
    """A named situation: one rule, or a pair of rules that meet.

    Attributes:
        name: in words, such as "point with frames left".
        configuration: name of one of the pair's configurations.
        state: canonical state without the leading axis.
        actions: one action per step, most often a single one.
        events: rule events that must occur in its course, on the reference.
    """

    name: str
    configuration: str
    state: Mapping[str, Any]
    actions: tuple[Any, ...]
    events: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Margin:
    """When mean returns count as equal, where draws can't be taped (physics); see level 4.

    Attributes:
        value: largest difference of mean returns that counts as none, fixed before looking.
        why: how it was chosen.
        seeds: policies to train in each direction; they, not episodes, are the units.
        steps: after which an episode counts as over; 0 plays every episode to its own end.
        alpha: level of each one-sided test.
        power: least chance of seeing equivalence that the test must have had.
    """

    value: float
    why: str
    seeds: int
    steps: int = 0
    alpha: float = 0.05
    power: float = 0.8


class Pair(abc.ABC):
    """An environment and its references, as `<house>.pair.PAIR`.

    Attributes:
        name: the house's package, such as "pong_jax".
        env_id: canonical id.
        schema: field metadata of canonical states and outputs; decides how each is compared.
        configurations: environment options by name; the first is the default.
        references: by name, the most trusted first.
        policies: by name; play under each of them counts towards the quotas.
        event_names: every rule event that `events` can report.
        quota: how often every event and every pair of events must occur in level 3.
        excluded_pairs: pairs (sorted tuples) that cannot occur in one step, with the reason.
        num_envs: environments in a batch; smaller for a slow reference.
        unjudged: configurations that only level 1 checks, with the reason; a reference that runs
            one judges it all the same.
        horizon: steps after which both sides of a chaotic system are far apart, however equal their
            rules, so that a rollout begins afresh; 0 if there is no such time.
        growth: how many times further apart both sides may be after one more step of such a
            rollout, for a chaotic system magnifies what they differ by.
        rounding: how far apart numbers of one step may be, relative to their size and absolutely,
            when they are computed with or without `jax.jit`, alone or in a batch, for XLA rounds
            products and sums as it likes; 0 demands equal bits.
        same_program: configurations whose program is another one's, with other numbers in it:
            the API contract of that one is theirs, too.
        compiled_exam: configurations, in the order in which to ask them, for which an exam compiles
            every changed twin, with few optimisations; () means that it runs them un-jitted, which
            is dear where loops have thousands of primitives.
        margin: of level 4; None demands equal returns, episode by episode.
    """

    name: ClassVar[str]
    env_id: ClassVar[str]
    schema: ClassVar[Mapping[str, Field]]
    configurations: ClassVar[Mapping[str, Mapping[str, Any]]]
    references: ClassVar[Mapping[str, Reference]]
    policies: ClassVar[Mapping[str, Policy]]
    event_names: ClassVar[tuple[str, ...]]
    quota: ClassVar[int]
    excluded_pairs: ClassVar[Mapping[tuple[str, str], str]]
    num_envs: ClassVar[int] = 1024
    horizon: ClassVar[int] = 0
    growth: ClassVar[float] = 1.0
    rounding: ClassVar[float] = 0.0
    same_program: ClassVar[Mapping[str, str]] = MappingProxyType({})
    compiled_exam: ClassVar[tuple[str, ...]] = ()
    unjudged: ClassVar[Mapping[str, str]] = MappingProxyType({})
    margin: ClassVar[Margin | None] = None

    @abc.abstractmethod
    def fast(self, configuration: str) -> FastSide:
        """The twin at a configuration; episode limits off."""

    @abc.abstractmethod
    def states(self, rng: np.random.Generator, num_rows: int, configuration: str) -> Rows:
        """Boundary-biased random canonical states, all of them legal."""

    @abc.abstractmethod
    def actions(self, rng: np.random.Generator, state: Rows, configuration: str) -> np.ndarray:
        """A random legal action for each row."""

    def draws(self, rng: np.random.Generator, num_rows: int, configuration: str) -> Rows:
        """Random outcomes for one step of each row, where `FastSide.step` needs them."""
        return {}

    @abc.abstractmethod
    def scenarios(self) -> tuple[Scenario, ...]:
        """Named situations for level 2."""

    @abc.abstractmethod
    def events(self, state: Rows, actions: np.ndarray, configuration: str) -> Rows:
        """Which rule events the reference meets in a step from `state`: bool rows by event name."""

    def as_trained(self, configuration: str) -> FastSide:
        """The twin as policies are trained on it, for level 4, where that is not `fast`."""
        return self.fast(configuration)

    def train(
        self, configuration: str, side: str, seeds: Sequence[int], max_steps: int | None
    ) -> Sequence[Actor]:
        """Policies for level 4, by default from PPO with the house's preset.

        Args:
            configuration: name.
            side: "fast", or the name of the reference to train on.
            seeds: of training, one for each policy, in a row.
            max_steps: environment steps of each at most; None leaves it to the preset.
        """
        from twinenv.verify.training import train_ppo

        return train_ppo(self, configuration, side, seeds, max_steps)

    @abc.abstractmethod
    def invariants(self) -> Mapping[str, Callable[[Rows, np.ndarray, Step, str], np.ndarray]]:
        """By name: `check(state before, actions, step, configuration)` -> bool per row."""

    @abc.abstractmethod
    def symmetries(self) -> Mapping[str, Callable[[FastSide, Rows, np.ndarray, str], np.ndarray]]:
        """By name: `check(fast, state, actions, configuration)` -> bool per row."""
