"""Evaluation, against counting by hand."""

import jax
import numpy as np
import pytest
import scipy.stats
from line import Line, moved

from twinenv.ppo.engine import spec_of
from twinenv.ppo.evaluate import evaluate
from twinenv.ppo.steppers import JaxStepper, Seen
from twinenv.ppo.views import view_of


class Scripted:
    """Environments whose episodes have lengths and rewards fixed beforehand; actions do nothing."""

    def __init__(self, spec, lengths):
        self.spec, self.lengths, self.num_envs = spec, lengths, len(lengths)

    def reset(self, seed):
        self.left = [list(lengths) for lengths in self.lengths]
        self.time = np.zeros(self.num_envs, int)
        return self._obs()

    def _obs(self):
        return np.zeros((self.num_envs, 7), np.float32), np.ones((self.num_envs, 3), np.bool_)

    def step(self, action):
        self.time += 1
        done = np.asarray([t == left[0] for t, left in zip(self.time, self.left, strict=True)])
        for index in np.flatnonzero(done):
            self.left[index].pop(0)
            self.left[index].append(99)
        info = {"odd": self.time % 2 == 1, "three": self.time % 3 == 0}
        reward = np.where(self.time == 1, 2.0, 0.5).astype(np.float32)
        self.time[done] = 0
        obs, mask = self._obs()
        return Seen(obs, mask, reward, done, np.zeros_like(done), obs, info)


@pytest.fixture(scope="module")
def policy(finished):
    return finished[0].policy


def test_every_environment_plays_a_number_of_episodes_fixed_beforehand(policy):
    """Five episodes of two environments: three and two, however short the others are."""
    stepper = Scripted(policy.spec, [[7, 2, 3, 1], [1, 1, 1, 1, 1, 1]])
    outcomes = {"odd among three": lambda info: (info["odd"] & info["three"], info["three"])}
    found = evaluate(policy, stepper, outcomes, episodes=5, greedy=True)
    np.testing.assert_array_equal(np.sort(found.lengths), [1, 1, 2, 3, 7])
    np.testing.assert_allclose(np.sort(found.returns), [2, 2, 2.5, 3, 5])
    # Steps 3 and 6 of the first episode, step 3 of the third.
    assert found.outcomes["odd among three"].mean == pytest.approx(2 / 3)
    assert found.mean_return.mean == pytest.approx(14.5 / 5)


def test_the_interval_of_a_mean_is_students(policy):
    stepper = Scripted(policy.spec, [[7, 2, 3, 1, 5, 9]])
    found = evaluate(policy, stepper, {}, episodes=6, greedy=True).mean_length
    lengths = [7, 2, 3, 1, 5, 9]
    low, high = scipy.stats.t.interval(0.95, 5, np.mean(lengths), scipy.stats.sem(lengths))
    np.testing.assert_allclose([found.low, found.high], [low, high])


def test_the_interval_of_a_ratio_covers_it(policy):
    """Simulated: the share of odd steps of episodes of random length, whose true value is known."""
    rng, covered = np.random.default_rng(0), 0
    truth = np.mean([(n + 1) // 2 for n in range(1, 9)]) / np.mean(range(1, 9))
    outcomes = {"odd": lambda info: (info["odd"], np.ones_like(info["odd"]))}
    for _ in range(60):
        stepper = Scripted(policy.spec, rng.integers(1, 9, (20, 2)).tolist())
        found = evaluate(policy, stepper, outcomes, episodes=40, greedy=True).outcomes["odd"]
        covered += found.low <= truth <= found.high
    assert covered >= 60 * 0.85


def test_one_episode_has_no_interval(policy):
    found = evaluate(policy, Scripted(policy.spec, [[3]]), {}, episodes=1, greedy=True)
    assert found.mean_return.mean == 3.0 and np.isnan(found.mean_return.low)


def test_samples_and_greedy_play_of_a_jax_environment(policy):
    view, params = view_of(Line(), None), Line().default_params
    stepper = JaxStepper(view, spec_of(view, params), params, 4)
    runs = [
        evaluate(policy, stepper, {"moved": moved}, episodes=24, greedy=greedy, seed=seed)
        for greedy, seed in ((False, 0), (False, 0), (False, 1), (True, 0))
    ]
    np.testing.assert_array_equal(runs[0].returns, runs[1].returns)
    assert not np.array_equal(runs[0].returns, runs[2].returns)
    assert all(len(run.returns) == 24 and run.lengths.max() <= 9 for run in runs)
    assert 0 < runs[0].outcomes["moved"].mean < 1


def test_a_policy_acts_in_and_outside_of_a_program(policy):
    obs, mask = np.random.default_rng(0).random((5, 7), np.float32), np.ones((5, 3), np.bool_)
    key = jax.random.key(3)

    def act(obs, mask, key):
        return policy.act(obs, mask, key), policy.act(obs, mask, greedy=True)

    jax.tree.map(np.testing.assert_array_equal, jax.jit(act)(obs, mask, key), act(obs, mask, key))
    with pytest.raises(ValueError, match="this policy takes a batch"):
        jax.jit(act)(obs[0], mask, key)


def test_another_environment_is_refused(policy):
    stepper = Scripted(policy.spec, [[3]])
    stepper.spec = type(policy.spec)(policy.spec.obs, policy.spec.actions, masked=False)
    with pytest.raises(ValueError, match="make it with the options of the run"):
        evaluate(policy, stepper, {}, episodes=1, greedy=True)
    with pytest.raises(ValueError, match="episodes is 0"):
        evaluate(policy, Scripted(policy.spec, [[3]]), {}, episodes=0, greedy=True)
