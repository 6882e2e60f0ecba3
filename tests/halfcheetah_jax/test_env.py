"""The environment: Gymnasium's rules and options; the API contract is tested elsewhere."""

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
from cheetahs import KEYS, NUM_ENVS, random_actions, started
from scipy import stats

import halfcheetah_jax
from halfcheetah_jax import EnvParams, EnvState, observation
from twinenv import fields, stages

INFO = ("x_position", "x_velocity", "reward_forward", "reward_ctrl")

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


def test_readme_has_the_field_table_and_all_options():
    readme = (resources.files("halfcheetah_jax") / "README.md").read_text()
    assert fields.table(EnvState) in readme
    env, params = halfcheetah_jax.make()
    for name in (*vars(env), *vars(params)):
        assert f"| `{name}` |" in readme
    for name in (*INFO, "solver_converged", "blew_up"):
        assert f"`{name}`" in readme
    assert isinstance(params, EnvParams)
