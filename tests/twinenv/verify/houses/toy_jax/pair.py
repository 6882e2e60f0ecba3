"""The duel and its reference, with knobs that tests turn."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from toy_jax.env import DuelState, make, observe
from toy_jax.reference import Arena
from toy_jax.rules.duel import FULL, play, restart
from twinenv.fields import Field, fields_of
from twinenv.verify.pair import Pair, Reference, Scenario, Step

EVERYTHING = frozenset({"load", "dump", "draws", "feed"})
_STATE = {name: info for name, info in fields_of(DuelState).items() if name != "time"}
_OUTPUT = {
    "observation": Field("seen", "float32", shape=(4,)),
    "reward": Field("reward", "float32", low=-1, high=1),
    "terminated": Field("over", "bool"),
}


@functools.cache
def _compiled(hard):
    """One compiled step for all the pairs that tests make."""

    def one(hp, boost, burned, action, roll):
        hp, boost, burned, reward, over = play(hp, boost, burned, action, roll)
        hp, boost, burned = restart(over, hp, boost, burned)
        if hard:
            hp = jnp.where(over, hp - jnp.array([8, 0], jnp.int16), hp)
        seen = observe(DuelState(hp, boost, burned, jnp.zeros((), jnp.int32)))
        return hp, boost, burned, seen, reward, over

    return jax.jit(jax.vmap(one))


class FastDuel:
    """The rules in JAX; `tamper(before, actions, step)` lets a test spoil what they return."""

    def __init__(self, hard, tamper):
        self.hard, self.tamper = hard, tamper
        self._step = _compiled(hard)

    def reset(self, seed, num_envs):
        state = {
            "hp": np.full((num_envs, 2), FULL, np.int16),
            "boost": np.zeros(num_envs, np.int16),
            "burned": np.zeros(num_envs, np.bool_),
        }
        state["hp"][:, 0] -= 8 * self.hard
        return Step(state, {"observation": self.observe(state)})

    def start(self, first):
        return first.state or self.reset(0, len(first.output["observation"])).state

    def observe(self, state):
        seen = [state["hp"][:, 0], state["hp"][:, 1], state["boost"], state["burned"]]
        return np.stack(seen, -1).astype(np.float32) / np.float32(16)

    def env_state(self, state):
        time = jnp.zeros(len(state["boost"]), jnp.int32)
        return DuelState(*map(jnp.asarray, (state["hp"], state["boost"], state["burned"])), time)

    def step(self, state, actions, draws):
        rows = (state["hp"], state["boost"], state["burned"], actions, draws["roll"])
        values = map(np.asarray, self._step(*rows))
        names = ("hp", "boost", "burned", "observation", "reward", "terminated")
        made = dict(zip(names, values, strict=True))
        step = Step({n: made[n] for n in names[:3]}, {n: made[n] for n in names[3:]})
        return self.tamper(state, actions, step) if self.tamper else step


def _careful(rng, last):
    charge = rng.random(len(last.output["observation"])) < 0.5
    weak = last.output["observation"][:, 2] < 0.15
    return np.where(weak & charge, 1, 0).astype(np.int32)


def _random(rng, last):
    return rng.integers(0, 3, len(last.output["observation"]), dtype=np.int32)


class DuelPair(Pair):
    name = "toy_jax"
    env_id = "ToyDuel-v0"
    schema = _STATE | _OUTPUT
    configurations = {"normal": {}, "hard": {"hard": True}}  # noqa: RUF012
    policies = {"random": _random, "careful": _careful}  # noqa: RUF012
    event_names = ("attack", "boosted", "halved", "charge", "charge_at_cap", "rest")
    quota = 3
    num_envs = 32

    def __init__(self, *, fault="", able=EVERYTHING, installed=True, tamper=None):
        opened = functools.partial(Arena, fault=fault, installed=installed, dumps="dump" in able)
        self.references = {"arena": Reference(opened, "1.0", able)}
        self.tamper = tamper
        kinds = ("attack", "charge", "rest")
        one_action = "a round has one action"
        self.excluded_pairs = {
            tuple(sorted((a, b))): one_action for a in kinds for b in kinds if a < b
        }
        for action, dependent in (
            ("attack", ("boosted", "halved")),
            ("charge", ("charge_at_cap",)),
        ):
            for other in {*kinds} - {action}:
                for name in dependent:
                    self.excluded_pairs[tuple(sorted((other, name)))] = one_action
        self.excluded_pairs |= {
            ("boosted", "charge_at_cap"): one_action,
            ("charge_at_cap", "halved"): one_action,
        }

    def fast(self, configuration):
        return FastDuel(configuration == "hard", self.tamper)

    def states(self, rng, num_rows, configuration):
        hp = rng.choice(np.array([1, 2, 4, 5, 17, 18, 20], np.int16), (num_rows, 2))
        boost = rng.integers(0, 4, num_rows, dtype=np.int16)
        return {"hp": hp, "boost": boost, "burned": rng.random(num_rows) < 0.5}

    def actions(self, rng, state, configuration):
        return rng.integers(0, 3, len(state["boost"]), dtype=np.int32)

    def draws(self, rng, num_rows, configuration):
        return {"roll": rng.integers(0, 4, num_rows, dtype=np.uint32)}

    def scenarios(self):
        state = {
            "hp": np.array([20, 20], np.int16),
            "boost": np.int16(0),
            "burned": np.bool_(False),
        }
        burnt, full = state | {"burned": np.bool_(True)}, state | {"boost": np.int16(3)}
        return (
            Scenario("plain attack", "normal", state, (0,), ("attack",)),
            Scenario("attack while burned", "normal", burnt, (0,), ("attack", "halved")),
            Scenario("charge, then attack", "normal", state, (1, 0), ("charge", "boosted")),
            Scenario("charge at the cap", "hard", full, (1,), ("charge_at_cap",)),
        )

    def events(self, state, actions, configuration):
        attack, charge, rest = (actions == kind for kind in range(3))
        return {
            "attack": attack,
            "boosted": attack & (state["boost"] > 0),
            "halved": attack & state["burned"],
            "charge": charge,
            "charge_at_cap": charge & (state["boost"] == 3),
            "rest": rest,
        }

    def invariants(self):
        return {
            "hit points at most full": lambda before, actions, step, configuration: np.all(
                step.state["hp"] <= FULL, axis=-1
            ),
            "one boost at a time": lambda before, actions, step, configuration: (
                step.state["boost"] - before["boost"] <= 1
            ),
        }

    def symmetries(self):
        def order(fast, state, actions, configuration):
            draws = {"roll": np.zeros(len(actions), np.uint32)}
            mirrored = {name: values[::-1] for name, values in state.items()}
            one = fast.step(state, actions, draws)
            other = fast.step(mirrored, actions[::-1], draws)
            return np.all(one.state["hp"] == other.state["hp"][::-1], axis=-1)

        return {"rows do not meet": order}


PAIR = DuelPair()
__all__ = ["EVERYTHING", "PAIR", "DuelPair", "FastDuel", "make"]
