"""Properties of the physics that need more than a step, and that each property can fail."""

from __future__ import annotations

import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from halfcheetah_jax import EnvParams, invariants, laws
from halfcheetah_jax.dynamics import Body, tiled_steps
from halfcheetah_jax.invariants import INVARIANTS, RELATIONS
from halfcheetah_jax.pair import PAIR
from halfcheetah_jax.params import model_of
from halfcheetah_jax.situations import near_states
from twinenv.verify.compiling import lightly_compiled
from twinenv.verify.pair import Step

ROWS = PAIR.num_envs
HIGH = 3.0  # m above the usual height: nothing touches the floor for a while


def body_of(state, number=jnp.float64):
    parts = (state["qpos"], state["qvel"], np.zeros_like(state["qpos"]))
    return Body(*(jnp.asarray(part, number) for part in parts))


@pytest.fixture(scope="module")
def one_step():
    """A time step of a model that is an argument, in its floating type; compiled once for each."""
    stepped = jax.jit(functools.partial(tiled_steps, frame_skip=1))

    def call(state, controls, model):
        number = model.gravity.dtype
        with jax.enable_x64(number == jnp.float64), lightly_compiled():
            body, converged = stepped(body_of(state, number), jnp.asarray(controls, number), model)
        assert np.asarray(converged).all()
        qpos, qvel, _ = (np.asarray(part, np.float64) for part in body)
        return {"qpos": qpos, "qvel": qvel}

    return call


@pytest.fixture(scope="module")
def model():
    with jax.enable_x64(True):
        return model_of(EnvParams(), jnp.float64)


@pytest.fixture(scope="module")
def states():
    found = near_states(np.random.default_rng(0), ROWS)
    return {"qpos": found.qpos, "qvel": found.qvel}


@pytest.fixture(scope="module")
def airborne(states):
    """Poses within the limits, high above the floor."""
    rng = np.random.default_rng(1)
    qpos = rng.uniform(-0.35, 0.35, (ROWS, 9))
    qpos[:, 1] += HIGH
    return {"qpos": qpos, "qvel": rng.normal(0, 2, (ROWS, 9))}


def free(model, seconds):
    """The model without springs and dampers, with another time step."""
    none = jnp.zeros(6, jnp.float64)
    return model._replace(stiffness=none, damping=none, timestep=jnp.asarray(seconds, jnp.float64))


def test_energy_and_momentum_drift_by_the_first_order_of_the_step(one_step, airborne, model):
    """In the air without springs, dampers and motors: half the drift with half the step."""
    params, seconds, drifts, gaps = EnvParams(), 0.05, [], []
    fall = np.array([0, -params.gravity * sum(params.mass) * seconds])
    start, momentum = sum(laws.energy(airborne, params)), momentum_of(airborne, params)
    for steps in (25, 50, 100):
        with jax.enable_x64(True):
            loose, state = free(model, seconds / steps), airborne
        for _ in range(steps):
            state = one_step(state, np.zeros((ROWS, 6)), loose)
        assert not laws.touches(state["qpos"]).any()
        drifts.append(np.abs(sum(laws.energy(state, params)) - start))
        gaps.append(np.abs(momentum_of(state, params) - momentum - fall).max(axis=1))
    for errors in (drifts, gaps):
        assert np.median(errors[-1]) < 0.02
        for coarse, fine in itertools.pairwise(errors):
            assert 1.9 < np.median(coarse / fine) < 2.1


def momentum_of(state, params):
    matrix = laws.mass_matrix(state["qpos"], params)
    return np.einsum("nij,nj->ni", matrix, state["qvel"])[:, :2]


def test_float32_stays_near_float64(one_step, model):
    found = near_states(np.random.default_rng(2), 8 * ROWS)
    errors = []
    for part in range(8):
        rows = slice(part * ROWS, (part + 1) * ROWS)
        state = {"qpos": found.qpos[rows], "qvel": found.qvel[rows]}
        narrow = one_step(state, found.ctrl[rows], model_of(EnvParams(), jnp.float32))
        wide = one_step(state, found.ctrl[rows], model)
        errors.append(np.abs(narrow["qvel"] - wide["qvel"]).max(axis=1))
    error = np.concatenate(errors)
    assert 0 < np.median(error) <= 1e-5
    assert np.quantile(error, 0.99) <= 1e-3
    assert error.max() <= 1e-2


class Spoilt:
    """The twin, a time step at a time, with a change to what it returns."""

    def __init__(self, spoil=None, start=None):
        self._inner, self._spoil, self._start = PAIR.fast("one_time_step"), spoil, start

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def reset(self, seed, num_envs):
        step = self._inner.reset(seed, num_envs)
        if not self._start:
            return step
        state = {name: rows.copy() for name, rows in step.state.items()}
        self._start(state, np.random.default_rng(0))
        seen = np.concatenate([state["qpos"][:, 1:], state["qvel"]], axis=1)
        return Step(state, {"observation": seen})

    def step(self, state, actions, draws):
        step = self._inner.step(state, actions, draws)
        after, output = (
            {k: v.copy() for k, v in part.items()} for part in (step.state, step.output)
        )
        if self._spoil:
            self._spoil(state, actions, after, output)
        return Step(after, output)


def no_number(state, actions, after, output):
    after["qvel"][5, 2] = np.nan


def falls_end_it(state, actions, after, output):
    output["terminated"] |= after["qpos"][:, 1] < 0


def clipped_cost(state, actions, after, output):
    spared = np.square(actions) - np.square(np.clip(actions, -1, 1))
    output["reward"] += np.float32(0.1) * spared.sum(axis=1)


def x_observed(state, actions, after, output):
    output["observation"][:, 0] = after["qpos"][:, 0]


def uphill(state, actions, after, output):
    after["qvel"][:, 0] -= 1e-6 * state["qpos"][:, 0]


def wound_up(state, actions, after, output):
    after["qvel"][:, 2] -= 1e-6 * state["qpos"][:, 2]


def stronger_motors(state, actions, after, output):
    after["qvel"][:, 3:] += 0.1 * (actions - np.clip(actions, -1, 1))


def lazy_solver(state, actions, after, output):
    after["qvel"] += 1e-9 * state.get("qacc_warmstart", 0.0)


def crowd(state, actions, after, output):
    after["qvel"] += 1e-12 * np.nanmax(state["qvel"])


def loose_solver(state, actions, after, output):
    after["qvel"][:, 4] *= 1 + 1e-6


def sticky_floor(state, actions, after, output):
    after["qvel"][:, 1] -= 1e-4


def icy_floor(state, actions, after, output):
    after["qvel"][:, 0] *= 1.1


def twice_the_torso(params, qpos):
    found = laws.mass_matrix(qpos, params)
    found[:, :2] *= 2
    return found


def turned_over(params, qpos):
    return -laws.mass_matrix(qpos, params)


@pytest.mark.parametrize("other", [twice_the_torso, turned_over])
def test_another_mass_matrix_is_noticed(states, monkeypatch, other):
    holds = RELATIONS["the mass matrix is symmetric, positive definite and that of the bodies"]
    actions = np.zeros((ROWS, 6), np.float32)
    assert holds(Spoilt(), states, actions).all()
    monkeypatch.setattr(invariants, "_mass_matrix", other)
    assert not holds(Spoilt(), states, actions).any()


def test_another_game_in_float32_is_noticed(states, monkeypatch):
    holds = RELATIONS["float32 stays near float64"]
    actions = PAIR.actions(np.random.default_rng(3), states, "one_time_step")
    assert holds(Spoilt(), states, actions).all()
    monkeypatch.setattr(invariants, "_in_float32", lambda _: Spoilt(icy_floor))
    assert not holds(Spoilt(), states, actions).all()


@pytest.mark.parametrize(("name", "said"), [("solver_converged", False), ("blew_up", True)])
def test_what_did_not_converge_is_noticed(states, name, said):
    class Odd(Spoilt):
        def info(self, state, actions):
            info = {name: rows.copy() for name, rows in self._inner.info(state, actions).items()}
            info[name][7] = said
            return info

    actions = np.zeros((ROWS, 6), np.float32)
    with lightly_compiled():
        assert RELATIONS["the solver converges"](Spoilt(), states, actions).all()
    assert np.argmin(RELATIONS["the solver converges"](Odd(), states, actions)) == 7


SPOILT = [
    ("positions and speeds stay finite", no_number),
    ("nothing ends an episode", falls_end_it),
    ("the reward is the way in its time, less the cost of the action", clipped_cost),
    ("the observation is the state but for x", x_observed),
    ("the place along x does not matter", uphill),
    ("a full turn does not matter", wound_up),
    ("controls beyond the range act as its ends", stronger_motors),
    ("where the solver begins does not matter", lazy_solver),
    ("a state that blew up begins again at rest and touches no neighbour", crowd),
    ("the acceleration is the one of Gauss's principle", loose_solver),
    ("the floor only pushes, within its friction, and only who touches it", sticky_floor),
    ("the floor only pushes, within its friction, and only who touches it", icy_floor),
]


@pytest.mark.parametrize(("name", "spoil"), SPOILT)
def test_each_property_can_fail(states, name, spoil):
    actions = PAIR.actions(np.random.default_rng(3), states, "one_time_step")

    def holds(fast):
        if check := INVARIANTS.get(name):
            return check(states, actions, fast.step(states, actions, {}), fast).all()
        return RELATIONS[name](fast, states, actions).all()

    with lightly_compiled():
        assert holds(Spoilt())
        assert not holds(Spoilt(spoil))


def normal_positions(state, rng):
    state["qpos"][:] = rng.normal(0, 0.05, state["qpos"].shape)


def at_the_line(state, rng):
    state["qpos"][:, 0] = 0


def narrow_positions(state, rng):
    state["qpos"] *= 0.5


def uniform_speeds(state, rng):
    state["qvel"][:] = rng.uniform(-0.17, 0.17, state["qvel"].shape)


@pytest.mark.parametrize("start", [normal_positions, at_the_line, narrow_positions, uniform_speeds])
def test_another_beginning_is_noticed(states, start):
    holds = RELATIONS["an episode begins with uniform positions and normal speeds"]
    actions = np.zeros((ROWS, 6), np.float32)
    assert holds(Spoilt(), states, actions).all()
    assert not holds(Spoilt(start=start), states, actions).any()


@pytest.mark.parametrize("taken", [1, 2, 3])
def test_a_step_of_two_is_two_time_steps(states, taken):
    class Double(Spoilt):
        env = dataclasses.replace(PAIR.fast("one_time_step").env, frame_skip=2)

        def step(self, state, actions, draws):
            for _ in range(taken):
                step = super().step(state, actions, draws)
                state = step.state
            return step

    actions = PAIR.actions(np.random.default_rng(3), states, "one_time_step")
    with lightly_compiled():
        found = RELATIONS["a step is its time steps"](Double(), states, actions)
    assert found.all() == (taken == 2)


def test_every_property_has_a_test_that_it_can_fail():
    tested = {name for name, _ in SPOILT} | {
        "an episode begins with uniform positions and normal speeds",
        "a step is its time steps",
        "the solver converges",
        "float32 stays near float64",
        "the mass matrix is symmetric, positive definite and that of the bodies",
    }
    assert tested == {*INVARIANTS, *RELATIONS}
