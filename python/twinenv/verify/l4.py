"""Level 4, transfer: a policy trained on either side is worth the same on both.

The weakest detector of the four: it says that training carries over, not that the rules are equal.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from twinenv import registry
from twinenv.verify.compare import compare
from twinenv.verify.diagnostic import Divergence
from twinenv.verify.ledger import Ledger, Setting
from twinenv.verify.pair import Actor, Margin, Rows, Step
from twinenv.verify.sides import Sides, each_sides, guarded
from twinenv.verify.stats import tost

__all__ = ["Evaluation", "check", "play_taped"]

_MAX_STEPS = 20_000
_MOST_TIES = 0.01  # of the episodes


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """First episodes of a batch on both sides.

    Attributes:
        expected: returns on the reference, `float64[episodes]`.
        got: returns on the twin.
        tied: episodes in which observations that agree within their tolerance led to different
            actions; from there on they are different games, and nothing is compared.
        cut: episodes that were still going on at the last step.
    """

    expected: np.ndarray
    got: np.ndarray
    tied: np.ndarray
    cut: int


def check(setting: Setting, ledger: Ledger) -> None:
    """Train on the twin and on the most trusted reference; play each policy on both sides.

    Only the first configuration is trained on. Each side acts on its own observations, with the
    same draws. Without a margin every episode's returns must be equal; with one, mean returns of
    seeds must be equivalent.
    """
    pair, configuration = setting.pair, setting.configurations[0]
    usable = [part for part in each_sides(setting, ledger) if part[1] == configuration]
    if not usable:
        return
    ledger.details |= {"configuration": configuration, "transfer": []}
    seeds = range(setting.seed, setting.seed + (pair.margin.seeds if pair.margin else 1))
    for trained_on in ("fast", usable[0][0]):
        limit = setting.budget.rows
        actors = pair.train(configuration, trained_on, seeds, limit)
        for _, _, opened in usable:
            with opened() as both:
                twin = guarded(pair, configuration, as_trained=True)
                sides = dataclasses.replace(both, fast=twin)
                _judge(_Direction(sides, trained_on, setting.seed), actors, ledger)


def play_taped(sides: Sides, actor: Actor, seed: int, steps: int = 0) -> Evaluation:
    """The first episode of every environment on both sides, each acting on what it sees itself.

    Args:
        sides: both sides.
        actor: the policy.
        seed: of the reference's reset, from which the twin starts too.
        steps: after which an episode counts as over; 0 plays every episode to its own end.
    """
    want = sides.backend.reset(seed)
    state = sides.fast.start(want)
    got = Step(state, dict(want.output))
    if observe := getattr(sides.fast, "observe", None):
        got.output["observation"] = observe(state)
    book = _Book(sides)
    for number in range(steps or _MAX_STEPS):
        for_want, for_got = (_act(actor, step.output, number) for step in (want, got))
        book.meet(want.output, got.output, for_want, for_got)
        want = sides.backend.step(for_want)
        got = sides.fast.step(got.state, for_got, want.draws)
        if book.add(want.output, got.output):
            break
    return book.close(within_steps=steps > 0)


class _Book:
    """Returns of both sides while their first episodes last."""

    def __init__(self, sides: Sides) -> None:
        size = sides.backend.num_envs
        self._schema = {"observation": sides.pair.schema["observation"]}
        self._returns = np.zeros((2, size))
        self._running = np.ones((2, size), np.bool_)
        self._tied, self._apart = np.zeros(size, np.bool_), np.zeros(size, np.bool_)

    def meet(self, want: Rows, got: Rows, for_want: np.ndarray, for_got: np.ndarray) -> None:
        """Note where the sides part: at an observation, or only at an action."""
        seen = [{"observation": output["observation"]} for output in (want, got)]
        going = self._running.all(axis=0)
        for difference in compare(self._schema, *seen):
            self._apart |= difference.rows & going & ~self._tied
        size = len(for_want)
        chosen = (for_want != for_got).reshape(size, -1).any(axis=1)
        self._tied |= chosen & going & ~self._apart

    def add(self, want: Rows, got: Rows) -> bool:
        """Add a step; true once every first episode is over."""
        for side, output in enumerate((want, got)):
            running = self._running[side]
            self._returns[side] += np.where(running, output["reward"], 0)
            truncated = output.get("truncated", np.zeros_like(output["terminated"]))
            self._running[side] = running & ~(output["terminated"] | truncated)
        return not self._running.any()

    def close(self, within_steps: bool) -> Evaluation:
        cut = 0 if within_steps else int(self._running.any(axis=0).sum())
        return Evaluation(self._returns[0], self._returns[1], self._tied & ~self._apart, cut)


@dataclasses.dataclass(frozen=True)
class _Direction:
    """Where policies were trained, and the sides that they play on."""

    sides: Sides
    trained_on: str
    seed: int

    @property
    def check(self) -> str:
        return f"trained on {self.trained_on}, played on both sides"

    def place(self) -> dict[str, Any]:
        sides = self.sides
        place = {"configuration": sides.configuration, "reference": sides.reference_name}
        return place | {"seed": self.seed, "field": "return", "kind": "value"}


def _judge(direction: _Direction, actors: Sequence[Actor], ledger: Ledger) -> None:
    sides, margin = direction.sides, direction.sides.pair.margin
    play = functools.partial(play_taped, sides, steps=margin.steps if margin else 0)
    played = [play(actor, direction.seed + i) for i, actor in enumerate(actors)]
    at_random = play(_random_actor(sides), direction.seed).expected.mean()
    mean = float(np.mean([p.expected.mean() for p in played]))
    told = {
        "trained on": direction.trained_on,
        "reference": sides.reference_name,
        "mean return on the reference": mean,
        "mean return on the twin": float(np.mean([p.got.mean() for p in played])),
        "mean return at random": float(at_random),
        "episodes": sum(len(p.expected) for p in played),
        "ties": sum(int(p.tied.sum()) for p in played),
        "cut": sum(p.cut for p in played),
    }
    if not mean > at_random:
        ledger.skip(f"{direction.check}: return {mean:.3g} is no better than random play's")
    if margin is None:
        _equal(direction, played[0], ledger)
    else:
        told |= _equivalent(direction, played, margin, ledger)
    ledger.details["transfer"].append(told)


def _equal(direction: _Direction, played: Evaluation, ledger: Ledger) -> None:
    compared = ~played.tied
    ledger.count(int(compared.sum()), ("return",))
    pair, differ = direction.sides.pair.name, compared & (played.expected != played.got)
    if differ.any():
        row = int(np.argmax(differ))
        told = Divergence(
            level=4,
            pair=pair,
            check=direction.check,
            row=row,
            expected=float(played.expected[row]),
            got=float(played.got[row]),
            error=float(np.abs(played.expected - played.got)[differ].max()),
            rows_affected=int(differ.sum()),
            rows_total=int(compared.sum()),
            **direction.place(),
        )
        ledger.add([told])
    if played.tied.mean() > _MOST_TIES:
        share = f"{played.tied.mean():.1%} of the episodes part at a tie; at most {_MOST_TIES:.0%}"
        ledger.add([Divergence.said(pair, 4, direction.check, share, **direction.place())])


def _equivalent(
    direction: _Direction, played: list[Evaluation], margin: Margin, ledger: Ledger
) -> dict[str, Any]:
    """The same policies on both sides, a seed's mean return being one unit."""
    means = np.array([[p.got.mean(), p.expected.mean()] for p in played])
    test = tost(means[:, 0], means[:, 1], margin.value, alpha=margin.alpha, paired=True)
    ledger.count(sum(len(p.expected) for p in played), ("return",))
    if not test.equivalent or test.power < margin.power:
        verdict = "underpowered" if test.power < margin.power else "not equivalent"
        pair = direction.sides.pair.name
        words = f"{verdict}: {test}; needed are p < {margin.alpha} and power {margin.power}"
        ledger.add([Divergence.said(pair, 4, direction.check, words, **direction.place())])
    here, there = means.mean(axis=0)
    returns = f"mean return {here:.5g} on the twin, {there:.5g} on {direction.sides.reference_name}"
    ledger.details.setdefault("notes", []).append(f"{direction.check}: {returns}; {test}")
    return {"test": str(test), "returns on twin and reference": means.round(1).tolist()}


def _act(actor: Actor, output: Rows, number: int) -> np.ndarray:
    return np.asarray(actor(output["observation"], output.get("action_mask"), number))


def _random_actor(sides: Sides) -> Actor:
    """Random legal actions, for comparison."""
    env, _ = registry.make(sides.pair.env_id, **sides.pair.configurations[sides.configuration])

    def act(obs: np.ndarray, mask: np.ndarray | None, number: int) -> np.ndarray:
        rng, size = np.random.default_rng(number), len(obs)
        if not env.is_discrete:
            return rng.uniform(-1, 1, (size, *env.action_shape)).astype(np.float32)
        weights = rng.random((size, *env.action_shape, env.num_actions))
        legal = weights if mask is None else weights * mask
        return legal.argmax(axis=-1).astype(np.int32)

    return act
