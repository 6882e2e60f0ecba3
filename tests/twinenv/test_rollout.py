"""Rollouts: what they record, how often they compile, on one device and on four."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toys import Corridor, Duel, first_legal, trained

import twinenv
from twinenv import rollout as rollout_function
from twinenv.wrappers import FlattenObservation, versus

KEY = jax.random.key(0)


def right(obs, mask, key):
    """Always walk right; where the wall forbids it that is no legal action."""
    return jnp.full(mask.shape[:1], 2, jnp.int32)


@dataclasses.dataclass(frozen=True)
class Walker:
    step: int

    def act(self, obs, mask, key):
        return jnp.full(mask.shape[:1], self.step, jnp.int32)


class Unhashable:
    __hash__ = None

    def act(self, obs, mask, key):
        return mask.argmax(-1)


def test_a_trajectory_fits_together():
    env = Corridor()
    trajectory, states = rollout_function(env, None, None, KEY, 6, 20)
    assert jax.tree.leaves(trajectory)[0].shape[:2] == (20, 6)
    assert states.time.shape == (6,)
    taken = jnp.take_along_axis(trajectory.mask, trajectory.action[..., None], axis=-1)
    assert bool(jnp.all(taken))
    assert not bool(jnp.any(trajectory.info["illegal_action"]))
    assert len(np.unique(trajectory.action)) == 3
    # What is seen is what the step before led to.
    final = trajectory.info["final_observation"]["where"][:-1]
    same = (final == trajectory.obs["where"][1:]) | trajectory.done[:-1]
    assert bool(jnp.all(same))
    assert bool(jnp.any(trajectory.done))


def test_it_equals_a_loop():
    env = Corridor()
    params = env.default_params
    trajectory, states = rollout_function(env, params, Walker(2), KEY, 2, 9)
    key_reset, key_play = jax.random.split(KEY)
    reset, step = jax.jit(env.reset), jax.jit(env.step)
    for n, key in enumerate(jax.random.split(key_reset, 2)):
        _, state = reset(key, params)
        for t, (_, key_step) in enumerate(jax.random.split(key_play, (9, 2))):
            own = jax.random.split(key_step, 2)[n]
            _, state, reward, done, _ = step(own, state, 2, params)
            assert float(trajectory.reward[t, n]) == float(reward)
            assert bool(trajectory.done[t, n]) == bool(done)
        assert int(states.position[n]) == int(state.position)


def test_it_compiles_once_per_configuration():
    compiled = sys.modules["twinenv.rollout"]._compiled()
    rollout_function(Corridor(), None, Walker(2), KEY, 2, 9)
    before = compiled._cache_size()
    for slip in (0.5, 0.25):
        params = Corridor().default_params.replace(slip=slip)
        rollout_function(Corridor(), params, Walker(2), jax.random.key(8), 2, 9)
    assert compiled._cache_size() == before
    trajectory, _ = rollout_function(Corridor(), None, Walker(0), KEY, 2, 9)
    assert compiled._cache_size() == before + 1
    assert bool(jnp.all(trajectory.action == 0))


def test_functions_continuous_actions_and_two_players():
    def shapes(env, params, policy):
        return jax.eval_shape(lambda key: rollout_function(env, params, policy, key, 3, 4), KEY)[0]

    assert shapes(Duel(), None, None).action.shape == (4, 3, 2)
    assert shapes(Duel(), None, None).reward.shape == (4, 3, 2)
    assert shapes(versus(Duel(), first_legal), None, None).reward.shape == (4, 3)
    assert shapes(Corridor(), None, right).action.shape == (4, 3)
    flat = FlattenObservation(Corridor())
    assert shapes(flat, None, trained(flat, 0)).action.shape == (4, 3)
    env, params = twinenv.make("PongJAX-v0", continuous=True)
    action = shapes(env, params, None).action
    assert (action.shape, action.dtype) == ((4, 3, 1), jnp.float32)


def test_bad_arguments():
    for wrong in (0, -1, 2.5):
        with pytest.raises(ValueError, match="num_envs is"):
            rollout_function(Corridor(), None, None, KEY, wrong, 3)
        with pytest.raises(ValueError, match="num_steps is"):
            rollout_function(Corridor(), None, None, KEY, 3, wrong)
    with pytest.raises(TypeError, match="policy is str"):
        rollout_function(Corridor(), None, "right", KEY, 2, 3)
    unhashable = Unhashable()
    with pytest.raises(TypeError, match="its method `act`"):
        rollout_function(Corridor(), None, unhashable, KEY, 2, 3)
    with pytest.raises(TypeError, match="params"):
        rollout_function(Corridor(), {}, None, KEY, 2, 3)


ON_DEVICES = """
import sys
import jax, numpy as np
import twinenv
env, params = twinenv.make("PongJAX-v0", frameskip=8, max_score=1)
trajectory, states = twinenv.rollout(env, params, None, jax.random.key(0), 8, 12)
devices = len(states.time.sharding.device_set)
leaves = [np.asarray(x) for x in jax.tree.leaves((trajectory, states))]
np.savez(sys.argv[1], devices=devices, **{f"x{i}": x for i, x in enumerate(leaves)})
"""


def test_four_devices_give_what_one_gives(tmp_path):
    results = []
    for count in (1, 4):
        flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={count}"
        path = tmp_path / f"{count}.npz"
        subprocess.run(
            [sys.executable, "-c", ON_DEVICES, str(path)],
            env=os.environ | {"XLA_FLAGS": flags, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=True,
            cwd=Path(__file__).parent,
        )
        results.append(np.load(path))
    one, four = results
    assert int(one["devices"]) == 1
    assert int(four["devices"]) == 4
    for name in set(one.files) - {"devices"}:
        assert one[name].dtype == four[name].dtype
        if one[name].dtype == np.float32:  # a division may round otherwise in a wider vector
            np.testing.assert_allclose(one[name], four[name], rtol=0, atol=1e-6)
        else:
            np.testing.assert_array_equal(one[name], four[name])
