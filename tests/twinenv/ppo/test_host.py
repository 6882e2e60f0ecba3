"""Environments on the host: what Gymnasium gives, and what training makes of it."""

import dataclasses

import gymnasium
import jax
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from line import CELLS, moved

from twinenv.ppo import CheckpointError, checkpoint, train
from twinenv.ppo.host import HostEngine
from twinenv.ppo.learn import policy_of
from twinenv.ppo.rollout import once
from twinenv.ppo.steppers import VectorStepper


class GymLine(gymnasium.Env):
    """The line, in plain Python: from cell 0, 1 or 2 to the last; cut short after 9 steps."""

    observation_space = gymnasium.spaces.Box(0.0, 100.0, (CELLS + 1,), np.float32)
    action_space = gymnasium.spaces.Discrete(3, start=-1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell, self.time = int(self.np_random.integers(3)), 0
        return self._obs(), self._info(False)

    def step(self, action):
        assert action in (-1, 0, 1) and not (self.cell == 0 and action == -1)
        self.cell, self.time = self.cell + int(action), self.time + 1
        goal = self.cell == CELLS - 1
        cut = not goal and self.time == 9
        return self._obs(), 1.0 if goal else -0.1, goal, cut, self._info(action != 0)

    def _obs(self):
        return np.append(np.eye(CELLS)[self.cell], self.time).astype(np.float32)

    def _info(self, has_moved):
        mask = np.asarray([self.cell > 0, True, True])
        return {"action_mask": mask, "moved": bool(has_moved), "cell": self.cell}


class GymSlide(gymnasium.Env):
    """One continuous action with limits of its own, which it shows in the observation."""

    observation_space = gymnasium.spaces.Box(-100.0, 100.0, (1,), np.float32)
    action_space = gymnasium.spaces.Box(np.float32(-2), np.float32(6), (1, 1), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.asarray(action[0], np.float32), 0.0, False, False, {}


def lines(count, mode=AutoresetMode.SAME_STEP, kind=GymLine):
    return SyncVectorEnv([kind] * count, autoreset_mode=mode)


@pytest.fixture
def engine(config, new_task):
    config = dataclasses.replace(config, num_steps=24, normalize_observation=False)
    return HostEngine(lines(8), config, new_task())


def test_a_step_at_an_episodes_end_tells_both_sides_of_it():
    stepper = VectorStepper(lines(2))
    assert stepper.spec.masked and stepper.spec.actions.size == 3
    obs, mask = stepper.reset(0)
    np.testing.assert_array_equal(mask[:, 0], obs[:, 0] == 0)
    steps = [(obs, stepper.step(np.full(2, 2)))]
    while not steps[-1][1].done.any():
        steps.append((steps[-1][1].obs, stepper.step(np.full(2, 2))))
    before, seen = steps[-1]
    ended = seen.done
    assert before[ended, CELLS - 2].all()
    assert seen.final_obs[ended, CELLS - 1].all() and (seen.obs[ended, CELLS] == 0).all()
    # `info` of the reset says that nothing moved; that of the step is what counts.
    assert seen.info["moved"].all() and (seen.info["cell"][ended] == CELLS - 1).all()
    np.testing.assert_array_equal(seen.mask[:, 0], seen.obs[:, 0] == 0)
    assert not seen.truncated.any() and seen.reward.dtype == np.float32


def test_continuous_actions_are_scaled_to_their_limits():
    stepper = VectorStepper(lines(3, kind=GymSlide))
    stepper.reset(0)
    seen = stepper.step(np.asarray([[-1.0], [0.0], [1.0]], np.float32))
    np.testing.assert_allclose(seen.obs[:, 0], [-2.0, 2.0, 6.0])


def test_a_host_rollout_is_consistent(engine):
    """Masks, resets, bootstraps and probabilities, checked against the observations."""
    state = engine.initial()
    engine._collect(state)
    rollout, counts = engine._collect(state)
    obs, done = rollout.obs, rollout.done
    np.testing.assert_array_equal(rollout.mask[..., 0], obs[..., 0] == 0)
    np.testing.assert_array_equal(rollout.reset, obs[..., CELLS] == 0)
    np.testing.assert_array_equal(rollout.reset[1:], done[:-1])
    reached = rollout.reward == 1.0
    cut = done & ~reached
    assert reached.any() and cut.any()
    assert (rollout.bootstrap[~cut] == 0).all()
    cell = obs[cut][:, :CELLS].argmax(axis=1) + rollout.action[cut] - 1
    final = np.column_stack([np.eye(CELLS)[cell], obs[cut][:, CELLS] + 1]).astype(np.float32)
    apply = policy_of(engine.network, state.learner.params, None)
    fresh = np.zeros(len(final), np.bool_)
    value = once(apply, final, np.ones((len(final), 3), np.bool_), (), fresh).value
    np.testing.assert_allclose(rollout.bootstrap[cut], value, rtol=1e-5, atol=1e-6)
    output = apply(obs, rollout.mask, (), rollout.reset)
    log_prob = output.distribution.log_prob(rollout.action)
    np.testing.assert_allclose(rollout.log_prob, log_prob, rtol=1e-5, atol=1e-6)
    assert counts["moved"][0] == (rollout.action != 1).sum() and counts["moved"][1] == done.size


def test_equal_seeds_give_equal_host_runs_and_a_run_resumes(config, new_task, tmp_path):
    config = dataclasses.replace(config, num_steps=24, normalize_observation=False)
    results = [
        train(lines(8), None, config, run_dir=tmp_path / name, task=new_task())
        for name in ("one", "two")
    ]
    ours, theirs = (result.state.learner.params for result in results)
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)
    again = train(lines(8), run_dir=tmp_path / "one", resume=True, task=new_task())
    jax.tree.map(np.testing.assert_array_equal, again.state.learner.params, ours)
    assert results[0].summary["steps"] == config.num_updates * config.steps_per_update


@pytest.mark.parametrize(
    ("envs", "changes", "error", "words"),
    [
        (lines(8, AutoresetMode.NEXT_STEP), {}, TypeError, "training needs SAME_STEP"),
        (lines(4), {}, ValueError, "num_envs is 8; this SyncVectorEnv has 4"),
        (lines(8), {"seeds": 2}, ValueError, "train one seed"),
        (object(), {}, TypeError, "cannot train on a object; accepted are"),
    ],
)
def test_what_cannot_be_trained_on_says_why(config, new_task, envs, changes, error, words):
    with pytest.raises(error, match=words):
        train(envs, None, dataclasses.replace(config, **changes), task=new_task())


def test_a_jax_run_is_not_resumed_on_the_host(finished, config, new_task):
    """The policy would fit, but its environments have a state that a host run has not."""
    _, folder = finished
    with pytest.raises(ValueError, match=r"environment Line\(\) \(not SyncVectorEnv"):
        train(lines(8), run_dir=folder, resume=True, task=new_task())
    engine = HostEngine(lines(8), config, new_task())
    arrays = checkpoint.latest(folder / "checkpoints", pytest.fail)[1]
    with pytest.raises(CheckpointError, match=r"it holds actors\."):
        engine.adopt(arrays)


def test_moves_are_counted_on_either_side():
    assert moved({"moved": np.asarray([True, False])})[1].all()


class GymParts(GymLine):
    """The line, its observation in parts."""

    observation_space = gymnasium.spaces.Dict(
        {
            "where": gymnasium.spaces.Dict({"cell": gymnasium.spaces.Box(0, 1, (CELLS,))}),
            "since": gymnasium.spaces.Box(0, 100, (1,)),
        }
    )

    def _obs(self):
        obs = super()._obs()
        return {"where": {"cell": obs[:CELLS]}, "since": obs[CELLS:]}


def test_observations_in_parts_train_on_the_host(config, new_task):
    short = dataclasses.replace(config, total_steps=config.steps_per_update * 2)
    result = train(lines(8, kind=GymParts), None, short, task=new_task())
    assert np.isfinite(result.metrics["policy_loss"]).all()
