"""The environment: Gymnasium's rules, options, bad input; the API contract is tested elsewhere."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from importlib import resources

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import halfcheetah_jax
from halfcheetah_jax import EnvParams, EnvState, observation
from twinenv import fields, stages

NUM_ENVS = 6
KEYS = jax.random.split(jax.random.key(0), NUM_ENVS)
INFO = ("x_position", "x_velocity", "reward_forward", "reward_ctrl")


def states(qpos, qvel, time=0):
    """Batched states of JAX's present floating type."""
    number = jnp.result_type(float)
    return EnvState(
        qpos=jnp.asarray(qpos, number),
        qvel=jnp.asarray(qvel, number),
        qacc_warmstart=jnp.zeros(np.shape(qpos), number),
        time=jnp.full(np.shape(qpos)[:-1], time, jnp.int32),
    )


def started(seed):
    rng = np.random.default_rng(seed)
    qpos = rng.uniform(-0.1, 0.1, (NUM_ENVS, 9))
    return states(qpos, 0.1 * rng.standard_normal((NUM_ENVS, 9)))


def random_actions(seed, *shape, most=1.3):
    """Actions that leave [-1, 1] now and then."""
    return np.random.default_rng(seed).uniform(-most, most, (*shape, 6)).astype(np.float32)


# Gymnasium.


def gymnasium_envs(count, **options):
    pytest.importorskip("mujoco", reason="MuJoCo is not installed; pip install mujoco")
    import gymnasium
    import mujoco

    mujoco.set_mju_user_warning(lambda text: None)  # of the model's own form
    made = [
        gymnasium.make("HalfCheetah-v5", disable_env_checker=True, **options) for _ in range(count)
    ]
    for env in made:
        env.reset(seed=0)
        env.unwrapped.model.opt.tolerance = 0.0  # otherwise MuJoCo stops early now and then
    return made


def compare_with_gymnasium(env, params, step, num_steps, **options):
    """Both from the same states under the same actions, never put together again."""
    others = gymnasium_envs(NUM_ENVS, **options)
    state = started(1)
    for n, other in enumerate(others):
        other.unwrapped.set_state(np.asarray(state.qpos[n]), np.asarray(state.qvel[n]))
    for actions in random_actions(2, num_steps, NUM_ENVS):
        obs, state, reward, done, info = step(KEYS, state, actions, params)
        assert not info["illegal_action"].any()
        assert info["solver_converged"].all() and not info["blew_up"].any()
        for n, other in enumerate(others):
            want, paid, terminated, truncated, said = other.step(actions[n])
            np.testing.assert_allclose(obs[n], want, rtol=0, atol=1e-6)
            np.testing.assert_allclose(reward[n], paid, rtol=0, atol=1e-4)
            assert (terminated, truncated, bool(done[n])) == (False, False, False)
            assert set(said) == set(INFO)
            for name in INFO:
                np.testing.assert_allclose(info[name][n], said[name], rtol=0, atol=1e-4)
    assert env.observation_space(params).shape == others[0].observation_space.shape


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"forward_reward_weight": 2.5},
        {"ctrl_cost_weight": 0.7},
        {"forward_reward_weight": -1.0, "ctrl_cost_weight": 0.0},
    ],
)
def test_steps_are_those_of_gymnasium(steps, options):
    env, params, step = steps
    with jax.enable_x64(True):
        compare_with_gymnasium(env, params.replace(**options), step, 22, **options)


def test_steps_with_other_options_are_those_of_gymnasium():
    options = {"frame_skip": 2, "exclude_current_positions_from_observation": False}
    env, params = halfcheetah_jax.make(**options)
    step = jax.jit(jax.vmap(env.step, (0, 0, 0, None)))
    with jax.enable_x64(True):
        compare_with_gymnasium(env, params, step, 25, **options)
    names = observation.index(True)
    assert names[:3] == ("rootx", "rootz", "rooty") and names[9:11] == (
        "rootx_speed",
        "rootz_speed",
    )
    assert env.observation_space(params).shape == (len(names),)


def test_options_and_defaults_are_those_of_gymnasium():
    pytest.importorskip("mujoco", reason="MuJoCo is not installed; pip install mujoco")
    import inspect

    from gymnasium.envs.mujoco.half_cheetah_v5 import HalfCheetahEnv

    theirs = inspect.signature(HalfCheetahEnv).parameters
    env, params = halfcheetah_jax.make()
    ours = vars(env) | vars(params)
    files = {"xml_file", "default_camera_config", "kwargs"}
    assert {name: p.default for name, p in theirs.items() if name not in files} == {
        name: ours[name] for name in theirs if name not in files
    }


@pytest.mark.parametrize("scale", [0.1, 0.5])
def test_resets_are_distributed_as_gymnasiums(scale):
    """Uniform positions and normal speeds of all nine, independent of one another."""
    env, params = halfcheetah_jax.make(reset_noise_scale=scale)
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(5), 4000)
        obs, state = jax.jit(jax.vmap(env.reset, (0, None)))(keys, params)
    qpos, qvel = np.asarray(state.qpos), np.asarray(state.qvel)
    assert np.abs(qpos).max() <= scale
    assert not state.qacc_warmstart.any() and not state.time.any()
    np.testing.assert_array_equal(obs, np.concatenate([qpos[:, 1:], qvel], axis=1))
    uniform, normal = stats.uniform(-scale, 2 * scale), stats.norm(0, scale)
    least = min(
        [stats.kstest(column, uniform.cdf).pvalue for column in qpos.T]
        + [stats.kstest(column, normal.cdf).pvalue for column in qvel.T]
    )
    assert least > 0.01 / 18
    together = np.corrcoef(np.concatenate([qpos, qvel], axis=1).T) - np.eye(18)
    assert np.abs(together).max() < 5 / math.sqrt(4000)
    # Gymnasium's own draws, by the same test.
    others = gymnasium_envs(1, reset_noise_scale=scale)[0]
    drawn = np.stack([others.reset(seed=seed)[0] for seed in range(300)])
    assert min(stats.kstest(column, uniform.cdf).pvalue for column in drawn[:, :8].T) > 0.01 / 17
    assert min(stats.kstest(column, normal.cdf).pvalue for column in drawn[:, 8:].T) > 0.01 / 17


def test_an_episode_is_cut_at_exactly_a_thousand_steps(steps):
    _, params, step = steps
    assert params.max_steps_in_episode == 1000
    state, actions = started(3), np.zeros((NUM_ENVS, 6), np.float32)
    for time in range(1000):
        obs, state, _, done, info = step(KEYS, state, actions, params)
        assert not info["terminated"].any()
        assert (np.asarray(done) == (time == 999)).all()
    assert info["truncated"].all() and (info["discount"] == 1.0).all()
    assert not state.time.any()
    assert np.abs(state.qpos).max() <= 0.1  # of the next episode
    assert not np.array_equal(obs, info["final_observation"])
    [other] = gymnasium_envs(1)
    ends = [other.step(actions[0])[2:4] for _ in range(1000)]
    assert ends == [(False, False)] * 999 + [(False, True)]


# Numbers.


def test_far_away_the_reward_is_still_exact(steps):
    """At x = 100 km float32 resolves centimetres, at which a step's way would be lost."""
    _, params, step = steps
    near = started(4)
    far = near.replace(qpos=near.qpos.at[:, 0].add(1e5))
    actions = random_actions(5, NUM_ENVS)
    here, there = (step(KEYS, state, actions, params) for state in (near, far))
    np.testing.assert_array_equal(here[0], there[0])
    np.testing.assert_array_equal(here[2], there[2])
    for name in INFO[1:]:
        np.testing.assert_array_equal(here[4][name], there[4][name])
    np.testing.assert_array_equal(there[1].qpos[:, 0], there[4]["x_position"])
    way = np.asarray(here[4]["x_velocity"]) * 0.05
    np.testing.assert_allclose(there[1].qpos[:, 0], far.qpos[:, 0] + way, rtol=1e-7)
    assert np.abs(way).min() > 1e-4


def test_types_follow_x64(steps):
    env, params, step = steps
    for wide, number in ((False, jnp.dtype("float32")), (True, jnp.dtype("float64"))):
        with jax.enable_x64(wide):
            args = KEYS, started(0), np.zeros((NUM_ENVS, 6), np.float32), params
            obs, state, reward, _, info = jax.eval_shape(step, *args)
            space = env.observation_space(params)
        assert {x.dtype for x in (obs, state.qpos, state.qvel, state.qacc_warmstart)} == {number}
        assert {info[name].dtype for name in INFO} == {number} and space.dtype == number
        assert reward.dtype == info["discount"].dtype == jnp.dtype("float32")


def test_other_numbers_are_not_compiled_anew(steps):
    _, params, step = steps
    args = KEYS, started(0), random_actions(1, NUM_ENVS)
    before = step(*args, params)
    compiled = step._cache_size()
    changed = params.replace(ctrl_cost_weight=0.25, mass=tuple(2 * m for m in params.mass))
    after = step(*args, changed)
    assert step._cache_size() == compiled
    assert not np.array_equal(before[0], after[0])
    cost = 0.25 * np.square(args[2]).sum(axis=1)
    np.testing.assert_allclose(after[4]["reward_ctrl"], -cost, rtol=1e-6)


@pytest.mark.parametrize("wide", [False, True])
def test_numbers_of_any_type_are_taken(steps, wide):
    _, params, step = steps
    with jax.enable_x64(wide):
        args = KEYS, started(0), random_actions(1, NUM_ENVS)
        for given in (1, 0.25, np.float32(0.25), np.float64(0.25), np.int32(1), jnp.float32(0.25)):
            changed = params.replace(ctrl_cost_weight=given, friction=given, gravity=given)
            outcome = jax.eval_shape(step, *args, changed)
            assert outcome[4]["reward_ctrl"].dtype == outcome[0].dtype == jnp.result_type(float)


def test_whole_numbers_and_lists_are_taken():
    env, params = halfcheetah_jax.make(
        gear=[1, 2, 3, 4, 5, 6], mass=np.ones(7), gravity=4, friction=1
    )
    assert params.gear == (1, 2, 3, 4, 5, 6) and params.mass == (1.0,) * 7
    args = jax.random.key(0), started(0), np.zeros((NUM_ENVS, 6), np.float32)[0], params
    state = jax.tree.map(lambda leaf: leaf[0], args[1])
    assert jax.eval_shape(env.step, args[0], state, *args[2:])[0].dtype == jnp.float32


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


# Derivatives and compilation.


def test_the_reward_of_a_step_can_be_differentiated():
    env, params = halfcheetah_jax.make(frame_skip=1, differentiable=True)
    with jax.enable_x64(True):
        state = jax.tree.map(lambda leaf: leaf[0], started(0))

        @jax.jit
        @jax.value_and_grad
        def way(qvel, action):
            outcome = env.step(KEYS[0], state.replace(qvel=qvel), action, params)
            return outcome[4]["x_velocity"]

        action = random_actions(3, most=0.9)
        _, slopes = way(state.qvel, action)
        for i in range(9):
            ends = [way(state.qvel.at[i].add(move), action)[0] for move in (1e-6, -1e-6)]
            assert float(slopes[i]) == pytest.approx(float(ends[0] - ends[1]) / 2e-6, abs=1e-6)
    assert np.all(np.abs(slopes[:3]) > 1e-4)


def test_steps_outside_of_a_program_are_compiled_once():
    env, params = halfcheetah_jax.make(frame_skip=1)
    key, action = jax.random.key(0), np.zeros(6, np.float32)
    _, state = env.reset(key, params)
    env.step(key, state, action, params)
    compiled = []

    def listen(event, *_, **__):
        compiled.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        env.step(key, state, action + 0.5, params.replace(friction=0.9))
        assert compiled == []
        jax.jit(lambda x: x + 1)(1)
        assert compiled != []  # the events are still reported
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


def test_the_compiled_batch_carries_the_hints_and_without_them_nothing(steps):
    env, params, step = steps
    args = KEYS, started(0), np.zeros((NUM_ENVS, 6), np.float32), params
    text = step.lower(*args).as_text()
    assert ('inlineable = "false"' in text) is stages.enabled()
    with stages.disabled():
        plain = jax.jit(lambda *a: jax.vmap(env.step, (0, 0, 0, None))(*a)).lower(*args).as_text()
    assert "inlineable" not in plain and "xla_cpu_small_call" not in plain


ROLLOUT = """
import jax, numpy as np, twinenv
env, params = twinenv.make("HalfCheetahJAX-v0", frame_skip=1, max_steps_in_episode=5)
played, state = twinenv.rollout(env, params, None, jax.random.key(7), 4, 8)
print(jax.device_count(), len(state.qpos.sharding.device_set))
shown = played.obs, played.reward, played.done, state.qpos
print(*(np.asarray(part).tobytes().hex() for part in shown))
"""


def test_a_rollout_over_two_devices_is_that_over_one():
    outputs = []
    for devices in (1, 2):
        flags = f"--xla_force_host_platform_device_count={devices}"
        done = subprocess.run(
            [sys.executable, "-c", ROLLOUT],
            env=os.environ | {"XLA_FLAGS": flags, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout.splitlines())
    assert [lines[0] for lines in outputs] == ["1 1", "2 2"]
    assert outputs[0][1] == outputs[1][1]


# Pictures and papers.


def test_pictures_are_those_of_the_pose_and_follow_the_torso():
    env, params = halfcheetah_jax.make()
    state = jax.tree.map(lambda leaf: leaf[0], states(np.zeros((1, 9)), np.zeros((1, 9))))
    picture = env.render(state, params)
    assert picture.shape == (240, 480, 3) and picture.dtype == np.uint8
    legs = np.argwhere((picture == (153, 94, 51)).all(-1) | (picture == (179, 115, 66)).all(-1))
    # The feet hang 7.6 cm above the floor, which is at row 200, at 130 rows a metre.
    assert abs(legs[:, 0].max() - (200 - 0.0764 * 130)) < 1.5
    far = env.render(state.replace(qpos=state.qpos.at[0].set(2.0)), params)  # two tiles on
    np.testing.assert_array_equal(far, picture)
    half = env.render(state.replace(qpos=state.qpos.at[0].set(0.5)), params)
    assert (half[:200] == picture[:200]).all() and (half[201:] != picture[201:]).any()
    turned = env.render(state.replace(qpos=state.qpos.at[2].set(math.pi)), params)
    assert (turned[:200] != picture[:200]).any()


def test_what_cannot_be_drawn_is_refused():
    env, _ = halfcheetah_jax.make()
    batch = started(0)
    with pytest.raises(TypeError, match=r"state.qpos is \[6, 9\]"):
        env.render(batch)
    one = jax.tree.map(lambda leaf: leaf[0], batch)
    with pytest.raises(ValueError, match="accepted are finite numbers"):
        env.render(one.replace(qpos=one.qpos.at[3].set(jnp.nan)))


def test_readme_has_the_field_table_and_all_options():
    readme = (resources.files("halfcheetah_jax") / "README.md").read_text()
    assert fields.table(EnvState) in readme
    env, params = halfcheetah_jax.make()
    for name in (*vars(env), *vars(params)):
        assert f"| `{name}` |" in readme
    for name in (*INFO, "solver_converged", "blew_up"):
        assert f"`{name}`" in readme
    assert isinstance(params, EnvParams)
