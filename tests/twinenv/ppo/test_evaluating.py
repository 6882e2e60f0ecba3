"""Evaluation, against counting by hand."""

import jax
import numpy as np
import pytest
import scipy.stats
from line import Glide, Line, moved

from twinenv.ppo import Config, evaluate, train
from twinenv.ppo.evaluation import Plan, played
from twinenv.ppo.steppers import Seen


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


def scores(policy, stepper, outcomes, *, episodes, max_steps=100_000):
    return played(policy, stepper, outcomes, Plan(episodes, True, 0, max_steps=max_steps))


def test_every_environment_plays_a_number_of_episodes_fixed_beforehand(policy):
    """Five episodes of two environments: three and two, however short the others are."""
    stepper = Scripted(policy.spec, [[7, 2, 3, 1], [1, 1, 1, 1, 1, 1]])
    outcomes = {"odd among three": lambda info: (info["odd"] & info["three"], info["three"])}
    found = scores(policy, stepper, outcomes, episodes=5)
    np.testing.assert_array_equal(np.sort(found.lengths), [1, 1, 2, 3, 7])
    np.testing.assert_allclose(np.sort(found.returns), [2, 2, 2.5, 3, 5])
    # Steps 3 and 6 of the first episode, step 3 of the third.
    assert found.outcomes["odd among three"].mean == pytest.approx(2 / 3)
    assert found.mean_return.mean == pytest.approx(14.5 / 5)


def test_the_interval_of_a_mean_is_students(policy):
    stepper = Scripted(policy.spec, [[7, 2, 3, 1, 5, 9]])
    found = scores(policy, stepper, {}, episodes=6).mean_length
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
        found = scores(policy, stepper, outcomes, episodes=40).outcomes["odd"]
        covered += found.low <= truth <= found.high
    assert covered >= 60 * 0.85


def test_one_episode_has_no_interval(policy):
    found = scores(policy, Scripted(policy.spec, [[3]]), {}, episodes=1)
    assert found.mean_return.mean == 3.0 and np.isnan(found.mean_return.low)


def test_an_episode_that_does_not_end_is_cut(policy):
    """The environment with the long episode waits for the other, and both begin anew."""
    stepper, seeds = Scripted(policy.spec, [[6, 1], [1, 2, 1]]), []
    reset = stepper.reset
    stepper.reset = lambda seed: seeds.append(seed) or reset(seed)
    outcomes = {"three": lambda info: (info["three"], np.ones(2))}
    found = scores(policy, stepper, outcomes, episodes=5, max_steps=4)
    # Three times cut in the first environment, and that at once after the second is done.
    np.testing.assert_array_equal(found.lengths, [1, 2, 4, 4, 4])
    np.testing.assert_allclose(found.returns, [2, 2.5, 3.5, 3.5, 3.5])
    assert found.cut == 3 and seeds == [0, 1, 2] and found.outcomes["three"].mean == 3 / 15
    assert scores(policy, Scripted(policy.spec, [[4]]), {}, episodes=1, max_steps=4).cut == 0


@pytest.fixture
def lines():
    """The line on either side: what `evaluate` takes."""
    from gymnasium.vector import AutoresetMode, SyncVectorEnv
    from test_host import GymLine

    vector = SyncVectorEnv([GymLine] * 4, autoreset_mode=AutoresetMode.SAME_STEP)
    yield {"jax": (Line(), None), "host": (vector, None)}
    vector.close()


@pytest.mark.parametrize("side", ["jax", "host"])
def test_samples_and_greedy_play_of_an_environment(policy, lines, side):
    how = {"episodes": 24, "num_envs": 4, "outcomes": {"moved": moved}}
    runs = [
        evaluate(policy, *lines[side], greedy=greedy, seed=seed, **how)
        for greedy, seed in ((False, 0), (False, 0), (False, 1), (True, 0))
    ]
    np.testing.assert_array_equal(runs[0].returns, runs[1].returns)
    assert not np.array_equal(runs[0].returns, runs[2].returns)
    assert all(len(run.returns) == 24 and run.lengths.max() <= 9 for run in runs)
    assert 0 < runs[0].outcomes["moved"].mean < 1


def test_an_environment_of_gymnax_is_evaluated():
    import gymnax

    env, params = gymnax.make("CartPole-v1")
    config = Config(
        total_steps=8, num_envs=4, num_steps=2, num_minibatches=1, hidden=(4,), quick_compile=True
    )
    trained = train(env, params, config).policy
    found = evaluate(trained, env, params, episodes=3, num_envs=2)
    np.testing.assert_array_equal(found.returns, found.lengths)
    assert len(found.returns) == 3 and found.outcomes == {}


def test_a_policy_acts_in_and_outside_of_a_program(policy):
    obs, mask = np.random.default_rng(0).random((5, 7), np.float32), np.ones((5, 3), np.bool_)
    key = jax.random.key(3)

    def act(obs, mask, key):
        return policy.act(obs, mask, key), policy.act(obs, mask, greedy=True)

    jax.tree.map(np.testing.assert_array_equal, jax.jit(act)(obs, mask, key), act(obs, mask, key))
    with pytest.raises(ValueError, match="this policy takes a batch"):
        jax.jit(act)(obs[0], mask, key)


@pytest.mark.parametrize("name", ["episodes", "num_envs", "max_steps", "seed"])
def test_impossible_numbers_are_refused(policy, name):
    value = -1 if name == "seed" else 0
    with pytest.raises(ValueError, match=f"^{name} is {value}; accepted is an integer from"):
        evaluate(policy, Line(), **{name: value})


def test_another_environment_is_refused(policy):
    with pytest.raises(ValueError, match="make it with the options of the run"):
        evaluate(policy, Glide())
