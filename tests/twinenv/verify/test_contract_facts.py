"""Each fact of the API contract holds of the toy, and does not hold of a spoilt play."""

import copy
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from twinenv import registry
from twinenv.verify import contract
from twinenv.verify.contract import FACTS, Play
from twinenv.verify.ledger import Ledger


@pytest.fixture(scope="module")
def duel(houses):
    return registry.make("ToyDuel-v0")


@pytest.fixture(scope="module")
def boundary(houses):
    from toy_jax.pair import DuelPair

    return contract._boundary_states(DuelPair(), "normal", Ledger())


@pytest.fixture(scope="module")
def play(duel, boundary):
    return Play(*duel, 0, boundary)


@pytest.mark.parametrize("name", FACTS)
def test_facts_hold_of_the_toy(play, name):
    assert FACTS[name](play) is True


def spoilt(play, change, step=2):
    """The play with one step's results changed: `change(obs, state, reward, done, info)`."""
    other = copy.copy(play)
    other.results = list(play.results)
    other.results[step] = change(*other.results[step])
    return other


def reward_off(obs, state, reward, done, info):
    return obs, state, reward.at[1].add(1.0), done, info


def wide_reward(obs, state, reward, done, info):
    return obs, state, np.asarray(reward, np.float64), done, info


def obs_outside(obs, state, reward, done, info):
    return obs.at[5, 0].set(99.0), state, reward, done, info


def state_outside(obs, state, reward, done, info):
    return obs, state.replace(boost=state.boost + jnp.int16(9)), reward, done, info


def time_stands(obs, state, reward, done, info):
    return obs, state.replace(time=jnp.zeros_like(state.time)), reward, done, info


def discount_of_one(obs, state, reward, done, info):
    return obs, state, reward, done, info | {"discount": jnp.ones_like(info["discount"])}


def nothing_illegal(obs, state, reward, done, info):
    calm = jnp.zeros_like(info["illegal_action"])
    return obs, state, reward, done, info | {"illegal_action": calm}


def other_last_observation(obs, state, reward, done, info):
    return obs, state, reward, done, info | {"final_observation": obs + 1}


def never_truncated(obs, state, reward, done, info):
    never = jnp.zeros_like(info["truncated"])
    return obs, state, reward, done, info | {"truncated": never}


# A step in the middle; the first one is what jit and eager compare; the fifth meets the limit.
SPOILT = [
    ("spaces contain what reset and step return", obs_outside, 2),
    ("spaces contain what reset and step return", state_outside, 2),
    ("structure, shapes and dtypes stay the same", wide_reward, 2),
    ("jit equals eager", reward_off, 0),
    ("vmap equals a loop", reward_off, 2),
    ("the same key gives the same step", reward_off, 2),
    ("an illegal action acts as the first legal one", nothing_illegal, 2),
    ("an episode that ends is reset in the same step", time_stands, 2),
    ("an episode that ends is reset in the same step", other_last_observation, 2),
    ("an episode that ends is reset in the same step", discount_of_one, 4),
    ("the time limit truncates", never_truncated, 4),
]


@pytest.mark.parametrize(("name", "change", "step"), SPOILT)
def test_facts_do_not_hold_of_a_spoilt_play(play, name, change, step):
    assert FACTS[name](spoilt(play, change, step)) is not True


@pytest.mark.parametrize(("name", "step"), [("jit equals eager", 0), ("vmap equals a loop", 2)])
def test_floats_may_differ_by_the_rounding_that_a_pair_declares(play, name, step):
    def nudged(obs, state, reward, done, info):
        return obs, state, reward + np.float32(1e-5), done, info

    def miscounted(obs, state, reward, done, info):
        return obs, state.replace(boost=state.boost + jnp.int16(1)), reward, done, info

    other = spoilt(play, nudged, step)
    assert not FACTS[name](other)
    other.rounding = 1e-4
    assert FACTS[name](other)
    other.rounding = 1e-6
    assert not FACTS[name](other)
    wrong = spoilt(play, miscounted, step)
    wrong.rounding = 10.0
    assert not FACTS[name](wrong)


def test_an_empty_mask_is_found(play):
    class Stuck(type(play.env)):
        def action_mask(self, state, params=None):
            return jnp.zeros((3,), jnp.bool_)

    other = copy.copy(play)
    other.env = Stuck()
    assert not FACTS["some action is legal"](other)


def test_spaces_must_contain_what_boundary_states_lead_to(play):
    other = copy.copy(play)
    other.further = [obs_outside(*play.further[0])]
    assert len(play.further) == len(play.results)
    fact = FACTS["spaces contain what reset and step return"]
    assert fact(other) == "observation[0] is 99, declared -1 to 3"
    other.further = [state_outside(*play.further[0])]
    assert fact(other).startswith("state.boost is 1")


def test_every_fact_has_a_spoilt_play():
    assert {name for name, _, _ in SPOILT} | {"some action is legal"} == set(FACTS)


@dataclasses.dataclass(frozen=True)
class OffTheTable:
    """A wrapper whose step reads past the end of a table, which JAX clamps silently."""

    inner: object

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def step(self, key, state, action, params=None):
        obs, state, reward, done, info = self.inner.step(key, state, action, params)
        table = jnp.zeros((3,), jnp.float32)
        return obs, state, reward + table[state.boost + 1], done, info


def test_indices_past_the_end_are_found(duel, play):
    ledger = Ledger()
    assert contract._checked(play, ledger) == ""
    assert ledger.rows == 64 * (len(play.states) + len(play.boundary))
    other = copy.copy(play)
    other.env = OffTheTable(duel[0])
    # Play has not come to three charges; the boundary states have.
    other.states = play.states[:1]
    assert "out-of-bounds indexing" in contract._checked(other, Ledger())


def test_boundary_states_need_a_way_into_the_environment(duel_pair, monkeypatch):
    from toy_jax.pair import FastDuel

    monkeypatch.delattr(FastDuel, "env_state")
    ledger = Ledger()
    assert contract._boundary_states(duel_pair(), "normal", ledger) == []
    assert ledger.skipped == ["contract from boundary states: the fast side has no `env_state`"]


def test_an_environment_that_cannot_be_played_is_a_divergence(duel_pair, monkeypatch):
    def broken(*args, **options):
        raise TypeError("no such option")

    monkeypatch.setattr(registry, "make", broken)
    ledger = Ledger()
    contract.check(duel_pair(), "normal", 0, ledger)
    assert "no such option" in ledger.divergences[0].line()


def test_what_does_not_hold_is_told(duel_pair, monkeypatch):
    def raises(play):
        raise RuntimeError("boom")

    monkeypatch.setattr(contract, "FACTS", {"fine": lambda play: True, "bad": raises})
    monkeypatch.setattr(contract, "_checked", lambda *_: "index 7")
    monkeypatch.setattr(contract, "Play", lambda *_: None)
    monkeypatch.setattr(contract, "_boundary_states", lambda *_: [])
    ledger = Ledger()
    contract.check(duel_pair(), "normal", 3, ledger)
    assert [(d.check, d.message) for d in ledger.divergences] == [
        ("contract: bad", "raised RuntimeError: boom"),
        ("index and NaN checks", "index 7"),
    ]
    assert {d.seed for d in ledger.divergences} == {3}


def test_jax_itself_clamps(duel):
    """Why indices are checked at all."""
    assert float(jax.jit(lambda i: jnp.arange(3.0)[i])(7)) == 2.0
