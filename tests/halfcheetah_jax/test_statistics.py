"""Beyond short trajectories: episodes are as MuJoCo's in distribution.

Trajectories part for good after some dozen steps, those of MuJoCo from its own, begun a hair's
breadth away, no less. How far the measures of an episode move in that way is the null; it is taken
in the same run, and ours may not be farther from MuJoCo's than it explains.
"""

from __future__ import annotations

import functools

import jax
import numpy as np
import pytest
from scipy import stats

import halfcheetah_jax
from halfcheetah_jax import laws
from halfcheetah_jax.dynamics import COMPILED
from twinenv.verify.stats import tost

pytest.importorskip("mujoco", reason="MuJoCo is not installed; pip install mujoco")

from halfcheetah_jax.reference import Simulation

MUJOCO_TOLERANCE = 1e-8  # its default
MARGIN = 6.0  # standard errors of the null's mean, which leave a true twin four to err by
EVERY = 10  # steps between two states whose energy is computed


def random_play(rng, num_envs, num_steps):
    return rng.uniform(-1, 1, (num_steps, num_envs, 6)).astype(np.float32)


def gaits(rng, num_envs, num_steps):
    """Each limb of each episode swings in a beat of its own strength and phase, with noise."""
    time = np.arange(num_steps)[:, None, None] * 0.05
    beat = rng.uniform(1.5, 4.0, (num_envs, 1))
    phase, size = rng.uniform(0, 2 * np.pi, (num_envs, 6)), rng.uniform(0.3, 1.2, (num_envs, 6))
    swing = size * np.sin(2 * np.pi * beat * time + phase)
    return np.clip(swing + rng.normal(0, 0.1, swing.shape), -1, 1).astype(np.float32)


def beginnings(rng, num_envs):
    """Positions and speeds as a reset draws them, rounded as the twin keeps them."""
    qpos, qvel = rng.uniform(-0.1, 0.1, (num_envs, 9)), 0.1 * rng.standard_normal((num_envs, 9))
    return tuple(part.astype(np.float32).astype(np.float64) for part in (qpos, qvel))


def played_by_mujoco(begun, actions):
    """Positions and speeds `[num_steps, num_envs, 9]` after each step."""
    num_steps, num_envs = actions.shape[:2]
    qpos, qvel = np.empty((2, num_steps, num_envs, 9))
    simulation, zeros = Simulation(MUJOCO_TOLERANCE), np.zeros(9)
    for n in range(num_envs):
        simulation.load(begun[0][n], begun[1][n], zeros, np.zeros(6))
        for t in range(num_steps):
            simulation.data.ctrl[:] = actions[t, n]
            qpos[t, n], qvel[t, n] = simulation.step(5)
    return qpos, qvel


@functools.cache
def compiled():
    env, _ = halfcheetah_jax.make()
    step = jax.vmap(env.step_env, (None, 0, 0, None))

    @jax.jit
    def play(state, actions, params):
        def one(state, action):
            _, state, _, _, info = step(jax.random.key(0), state, action, params)
            return state, (state.qpos, state.qvel, info["solver_converged"] & ~info["blew_up"])

        return jax.lax.scan(one, state, actions)[1]

    return env, play


def played_by_us(begun, actions, params):
    env, play = compiled()
    _, state = jax.vmap(env.reset)(jax.random.split(jax.random.key(0), len(begun[0])))
    state = state.replace(qpos=begun[0].astype(np.float32), qvel=begun[1].astype(np.float32))
    qpos, qvel, sound = play(state, actions, params)
    assert np.asarray(sound).all()
    return np.asarray(qpos, np.float64), np.asarray(qvel, np.float64)


def measures(begun, actions, played):
    """Of each episode; all but the return are means over its steps."""
    qpos, qvel = played
    cost = 0.1 * np.square(actions.astype(np.float64)).sum(axis=(0, 2))
    low, high = np.asarray(COMPILED["range"]).T
    beyond = (qpos[..., 3:] < low) | (qpos[..., 3:] > high)
    some = {"qpos": qpos[::EVERY].reshape(-1, 9), "qvel": qvel[::EVERY].reshape(-1, 9)}
    shape = qpos[::EVERY].shape[:2]
    energy = laws.energy(some, halfcheetah_jax.EnvParams())
    return {
        "return": (qpos[-1, :, 0] - begun[0][:, 0]) / 0.05 - cost,
        "contacts": laws.touches(some["qpos"]).sum(axis=1).reshape(shape).mean(axis=0),
        "limits": beyond.sum(axis=2).mean(axis=0),
        "speed": np.abs(qvel).mean(axis=(0, 2)),
        "kinetic energy": energy.kinetic.reshape(shape).mean(axis=0),
        "potential energy": energy[1].reshape(shape).mean(axis=0),
    }


def compare(policy, seed, num_envs, num_steps, noise, **changes):
    """Paired tests of the means and tests of the distributions, for each measure."""
    rng = np.random.default_rng(seed)
    begun, actions = beginnings(rng, num_envs), policy(rng, num_envs, num_steps)
    moved = begun[0] + noise * rng.standard_normal((num_envs, 9)), begun[1]
    theirs = measures(begun, actions, played_by_mujoco(begun, actions))
    again = measures(begun, actions, played_by_mujoco(moved, actions))
    mine = measures(
        begun, actions, played_by_us(begun, actions, halfcheetah_jax.EnvParams(**changes))
    )
    failed = []
    for name, values in theirs.items():
        spread = np.std(again[name] - values, ddof=1)
        margin = MARGIN * spread / np.sqrt(num_envs)
        found = tost(mine[name], values, margin, paired=True)
        alike = stats.ks_2samp(mine[name], values).pvalue
        ratio = np.std(mine[name] - values, ddof=1) / spread
        print(f"{policy.__name__} {name}: mean {values.mean():.4g}; {found}; KS {alike:.2g}; "
              f"spread {ratio:.2f} of the null's")  # fmt: skip
        if not (found.equivalent and alike > 0.001 and ratio < 1.5):
            failed.append(f"{name}: {found}, KS {alike:.2g}, spread {ratio:.2f}")
    assert not failed, "\n".join(failed)


@pytest.mark.parametrize("policy", [random_play, gaits])
def test_short_episodes_are_mujocos_in_distribution(policy):
    """Noise of the size of float32's rounding in a step, to have as many steps to part in."""
    compare(policy, seed=1, num_envs=64, num_steps=200, noise=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("policy", [random_play, gaits])
def test_whole_episodes_are_mujocos_in_distribution(policy):
    """256 paired episodes each; the null is MuJoCo moved by 1e-12."""
    compare(policy, seed=2, num_envs=256, num_steps=1000, noise=1e-12)


def test_the_comparison_finds_a_slightly_different_mechanism():
    """A twin with a third less friction is not taken for MuJoCo's."""
    with pytest.raises(AssertionError, match="margin"):
        compare(gaits, seed=1, num_envs=64, num_steps=200, noise=1e-6, friction=0.27)
