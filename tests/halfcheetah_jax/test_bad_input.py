"""What no environment should be given: told of, put right, and kept from its neighbours."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cheetahs import KEYS, NUM_ENVS, random_actions, started, states

import halfcheetah_jax

# Bad input inside a program.


def mujoco_after_reset(frames):
    """MuJoCo after as many time steps from its first state, motors off."""
    from halfcheetah_jax.reference import Simulation

    simulation = Simulation()
    simulation.load(np.zeros(9), np.zeros(9), np.zeros(9), np.zeros(6))
    return simulation.step(frames)


BAD_STATES = {
    "NaN position": ("qpos", 4, np.nan),
    "infinite position": ("qpos", 1, np.inf),
    "position beyond 1e10": ("qpos", 0, -2e10),
    "NaN speed": ("qvel", 7, np.nan),
    "speed beyond 1e10": ("qvel", 2, 1.1e10),
}


@pytest.mark.parametrize("what", BAD_STATES)
def test_a_bad_state_is_reset_as_mujoco_does_and_hurts_no_other(steps, what):
    pytest.importorskip("mujoco", reason="MuJoCo is not installed; pip install mujoco")
    from halfcheetah_jax.reference import Simulation

    _, params, step = steps
    name, index, value = BAD_STATES[what]
    good, actions = started(6), random_actions(7, NUM_ENVS)
    bad = good.replace(**{name: getattr(good, name).at[2, index].set(value)})
    outcome = step(KEYS, bad, actions, params)
    _, state, _, _, info = outcome
    assert np.asarray(info["blew_up"]).tolist() == [n == 2 for n in range(NUM_ENVS)]
    simulation = Simulation()
    simulation.load(*(np.asarray(x[2], np.float64) for x in (bad.qpos, bad.qvel)), np.zeros(9), 0.5)
    for theirs, clean in zip(simulation.step(5), mujoco_after_reset(5), strict=True):
        np.testing.assert_array_equal(theirs, clean)
    for got, want in zip((state.qpos[2], state.qvel[2]), mujoco_after_reset(5), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-5)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(outcome[:3]))
    assert float(info["reward_forward"][2]) == pytest.approx(0, abs=1e-4)
    others = [n for n in range(NUM_ENVS) if n != 2]
    alone = step(KEYS, good, actions, params)
    for a, b in zip(*map(jax.tree.leaves, (outcome, alone)), strict=True):
        np.testing.assert_array_equal(np.asarray(a)[others], np.asarray(b)[others])


def test_a_state_that_blows_up_in_a_step_ends_as_mujocos_first(steps):
    """MuJoCo falls on from there for the rest of the step; here the rest is dropped."""
    _, params, step = steps
    good, actions = started(6), random_actions(7, NUM_ENVS)
    fast = good.replace(
        qpos=good.qpos.at[2, 0].set(7.0), qvel=good.qvel.at[2].set(jnp.full(9, 9e9, jnp.float32))
    )
    obs, state, reward, _, info = step(KEYS, fast, actions, params)
    assert np.asarray(info["blew_up"]).tolist() == [n == 2 for n in range(NUM_ENVS)]
    assert not obs[2].any() and not state.qpos[2].any() and not state.qacc_warmstart[2].any()
    assert float(info["x_velocity"][2]) == 0.0 and np.isfinite(reward).all()
    # The next step is an ordinary one.
    _, after, _, _, info = step(KEYS, state, np.zeros_like(actions), params)
    assert not info["blew_up"].any()
    for got, want in zip((after.qpos[2], after.qvel[2]), mujoco_after_reset(5), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-5)


def test_a_bad_start_of_the_solver_is_a_bad_state(steps):
    _, params, step = steps
    good = started(6)
    bad = good.replace(qacc_warmstart=good.qacc_warmstart.at[1, 3].set(jnp.nan))
    _, state, _, _, info = step(KEYS, bad, random_actions(7, NUM_ENVS), params)
    assert bool(info["blew_up"][1]) and np.isfinite(state.qpos).all()


@pytest.mark.parametrize(
    ("value", "played"), [(np.nan, None), (np.inf, 1.0), (-np.inf, -1.0), (3e10, 1.0)]
)
def test_bad_actions_move_the_motors_as_in_mujoco(steps, value, played):
    """No number stops all motors; what is too large is clipped, also where it is paid for."""
    pytest.importorskip("mujoco", reason="MuJoCo is not installed; pip install mujoco")
    from halfcheetah_jax.reference import Simulation

    _, params, step = steps
    state, actions = started(6), random_actions(7, NUM_ENVS)
    actions[3, 1] = value
    _, after, reward, _, info = step(KEYS, state, actions, params)
    assert np.asarray(info["illegal_action"]).tolist() == [n == 3 for n in range(NUM_ENVS)]
    assert not info["blew_up"].any()
    simulation, begun = Simulation(), (np.asarray(x[3], float) for x in (state.qpos, state.qvel))
    simulation.load(*begun, np.zeros(9), actions[3].astype(np.float64))
    np.testing.assert_allclose(after.qpos[3], simulation.step(5)[0], atol=1e-4)
    clean = actions.copy()
    clean[3] = np.zeros(6) if played is None else np.where(np.arange(6) == 1, played, actions[3])
    for a, b in zip((after, reward), step(KEYS, state, clean, params)[1:3], strict=True):
        jax.tree.map(np.testing.assert_array_equal, a, b)


def test_a_solver_that_does_not_end_is_told_of(steps):
    """States to which no bound of the solver was made; the flag belongs to each environment."""
    _, params, step = steps
    good = started(6)
    rng = np.random.default_rng(0)
    wild = good.replace(qvel=good.qvel.at[:3].set(jnp.asarray(rng.normal(0, 1e8, (3, 9)))))
    _, state, _, _, info = step(KEYS, wild, random_actions(7, NUM_ENVS), params)
    assert info["solver_converged"].shape == (NUM_ENVS,) and info["solver_converged"][3:].all()
    assert (info["blew_up"] | info["solver_converged"])[:3].all()
    assert np.isfinite(state.qpos).all() and np.isfinite(state.qvel).all()


# Eight contacts, deep in the floor and upside down: one in a hundred thousand random states.
ROUND = {
    "qpos": (0.0, -0.7377157, 3.276035, -0.04594576, 0.2897626, 0.39649075, -0.5679961, 0.82713187,
             0.8972751),
    "qvel": (13.808949, 11.4769964, -16.033453, -13.4698925, 4.728088, -4.490496, -2.246761,
             -5.4099717, 17.360144),
    "action": (0.91113365, 0.9671879, 0.91975701, 0.33723545, -1.0024557, 0.22868499),
}  # fmt: skip


@pytest.mark.parametrize("wide", [False, True])
def test_the_solver_ends_where_whole_newton_steps_go_round_in_a_circle(steps, wide):
    pytest.importorskip("mujoco", reason="MuJoCo is not installed; pip install mujoco")
    from halfcheetah_jax.reference import Simulation

    _, params, step = steps
    given = {name: np.asarray(row, np.float32) for name, row in ROUND.items()}
    simulation = Simulation()
    simulation.load(given["qpos"], given["qvel"], np.zeros(9), given["action"])
    with jax.enable_x64(wide):
        rows = (np.tile(given[name], (NUM_ENVS, 1)) for name in ("qpos", "qvel", "action"))
        qpos, qvel, actions = rows
        _, after, _, _, info = step(KEYS, states(qpos, qvel), actions, params)
    assert info["solver_converged"].all()
    for got, want in zip((after.qpos[0], after.qvel[0]), simulation.step(5), strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-9 if wide else 2e-2)


# Bad input outside of a program.


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"frame_skip": 0}, ValueError, "frame_skip is 0; accepted is an integer from 1"),
        ({"frame_skip": 2.5}, ValueError, "frame_skip is 2.5"),
        ({"exclude_current_positions_from_observation": 1}, ValueError, "accepted is True or"),
        ({"differentiable": "yes"}, ValueError, "differentiable is 'yes'"),
        ({"frction": 1.0}, TypeError, "unknown parameter 'frction'"),
        ({"mass": (1.0,)}, TypeError, "mass is (1.0,); accepted is a tuple of 7 numbers"),
        ({"mass": 3.0}, TypeError, "mass is 3.0; accepted is a tuple of 7 numbers"),
        ({"mass": (-1.0, *[1.0] * 6)}, ValueError, "mass has -1.0; accepted is finite positive"),
        ({"mass": (math.nan, *[1.0] * 6)}, ValueError, "mass has nan"),
        ({"damping": [-0.1] * 6}, ValueError, "damping has -0.1; accepted is finite numbers from"),
        ({"gear": [math.inf] * 6}, ValueError, "gear has inf"),
        ({"friction": 0}, ValueError, "friction has 0; accepted is a finite number from 1e-5"),
        ({"friction": "much"}, TypeError, "friction"),
        ({"friction": (0.4,)}, TypeError, "friction is (0.4,); accepted is one number"),
        ({"friction": np.ones(3)}, TypeError, "friction"),
        ({"forward_reward_weight": 1 + 2j}, TypeError, "forward_reward_weight has (1+2j)"),
        ({"gravity": math.inf}, ValueError, "gravity has inf"),
        ({"gravity": None}, TypeError, "gravity"),
        ({"reset_noise_scale": -1.0}, ValueError, "reset_noise_scale has -1.0"),
        ({"ctrl_cost_weight": math.nan}, ValueError, "ctrl_cost_weight has nan"),
        ({"max_steps_in_episode": 0}, ValueError, "max_steps_in_episode has 0"),
    ],
)
def test_bad_options_are_refused_in_one_sentence(options, error, words):
    with pytest.raises(error) as caught:
        halfcheetah_jax.make(**options)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300


def test_bad_params_are_refused_by_reset_and_step():
    env, params = halfcheetah_jax.make()
    state, action = jax.tree.map(lambda leaf: leaf[0], started(0)), np.zeros(6, np.float32)
    for changed, words in (
        (params.replace(mass=params.mass[:3]), "a tuple of 7 numbers"),
        (params.replace(gear=jnp.ones(6)), "a tuple of 6 numbers"),
        (params.replace(friction=-0.4), "friction has -0.4"),
    ):
        for call in (
            lambda p: env.reset(jax.random.key(0), p),
            lambda p: env.step(jax.random.key(0), state, action, p),
        ):
            with pytest.raises((TypeError, ValueError)) as caught:
                call(changed)
            assert words in str(caught.value)
    with pytest.raises(TypeError, match="tuple of 7 numbers"):
        jax.eval_shape(env.reset, jax.random.key(0), params.replace(mass=params.mass[:3]))


@pytest.mark.parametrize(
    ("change", "action", "words"),
    [
        ({"qpos": np.zeros(9)}, np.zeros(6, np.float32), "state.qpos is float64[9]; accepted is"),
        ({"qvel": np.zeros(8, np.float32)}, np.zeros(6, np.float32), "state.qvel is float32[8]"),
        ({}, np.zeros(5, np.float32), "takes one float32[6] action"),
        ({}, np.zeros(6, np.int32), "takes one float32[6] action"),
        ({}, 0.5, "takes one float32[6] action"),
    ],
)
def test_bad_states_and_actions_are_refused_in_one_sentence(change, action, words):
    env, params = halfcheetah_jax.make()
    state = jax.tree.map(lambda leaf: leaf[0], started(0)).replace(**change)
    with pytest.raises(TypeError) as caught:
        env.step(jax.random.key(0), state, action, params)
    assert words in str(caught.value) and "\n" not in str(caught.value)
