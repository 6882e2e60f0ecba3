"""The compiled program: keys, chunks, scores, side-by-side seeds."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from line import Glide, Line

from twinenv.ppo import checkpoint, load_policy, train, update
from twinenv.ppo.engine import JaxEngine
from twinenv.ppo.program import initial_score, metric_names, scored


def same(a, b):
    a, b = checkpoint.arrays_of(a), checkpoint.arrays_of(b)
    assert a.keys() == b.keys()
    for name, value in a.items():
        np.testing.assert_array_equal(value, b[name], err_msg=name)


@pytest.fixture(scope="module")
def twelve(config, new_task):
    """State and metrics after twelve updates in one chunk."""
    engine = JaxEngine(Line(), None, config, new_task())
    return engine.advance(engine.initial(), 12)


def test_chunks_of_any_size_give_the_same_run(config, new_task, twelve):
    engine = JaxEngine(Line(), None, config, new_task())
    state, rows = engine.initial(), []
    for most in (1, 0, 5, 2, 4):
        state, new = engine.advance(state, most)
        assert new.shape[0] == most
        rows.append(new)
    same(state, twelve[0])
    np.testing.assert_array_equal(np.concatenate(rows), twelve[1])


def test_another_seed_is_another_run(config, new_task, twelve):
    engine = JaxEngine(Line(), None, dataclasses.replace(config, seed=1), new_task())
    state = engine.advance(engine.initial(), 12)[0]
    for name in ("learner.params.params.heads.kernel", "actors.env_state.cell"):
        ours, theirs = checkpoint.arrays_of(state)[name], checkpoint.arrays_of(twelve[0])[name]
        assert (ours != theirs).any(), name


def test_seeds_side_by_side_are_single_runs(config, new_task, twelve):
    """To float32 precision: the batched program adds in another order."""
    engine = JaxEngine(Line(), None, dataclasses.replace(config, seeds=2), new_task())
    state, rows = engine.advance(engine.initial(), 3)
    one = JaxEngine(Line(), None, config, new_task())
    _, alone = one.advance(one.initial(), 3)
    np.testing.assert_allclose(rows[:, 0], alone[:, 0], rtol=1e-3, atol=1e-4)
    entropy = rows[..., metric_names({"moved": None}).index("entropy")]
    assert (entropy[:, 0] != entropy[:, 1]).all()
    assert state.update.shape == (2,)


def test_every_seed_has_its_policy(config, new_task, tmp_path):
    two = dataclasses.replace(config, seeds=2, total_steps=config.steps_per_update)
    result = train(Line(), None, two, run_dir=tmp_path / "run", task=new_task())
    assert len(result.policies) == 2 and result.policy is result.policies[0]
    for seed, policy in enumerate(result.policies):
        kept = load_policy(tmp_path / "run", seed=seed)
        jax.tree.map(np.testing.assert_array_equal, policy.params, kept.params)
        jax.tree.map(np.testing.assert_array_equal, policy.obs_moments, kept.obs_moments)


@pytest.mark.parametrize("env", [Line(), Glide()])
def test_no_key_is_used_twice(config, new_task, env):
    small = dataclasses.replace(config, num_steps=2, num_epochs=2)
    engine = JaxEngine(env, None, small, new_task(outcomes={}, target=None))
    state = engine.initial()
    with jax.debug_key_reuse(True):
        limits, target = np.asarray([1, 1, 0], np.int32), np.float32(np.inf)
        engine._program.chunk.lower(state, env.default_params, limits, target)


def test_a_second_use_of_a_key_would_be_seen(config, new_task, monkeypatch):
    """The test above can fail: shuffle with the key that the environments have used."""
    from twinenv.ppo import program

    def careless(network, config, learner, tally, rollout, schedule):
        jax.random.bits(schedule[0])
        return learn(network, config, learner, tally, rollout, schedule)

    learn = program.learn
    monkeypatch.setattr(program, "learn", careless)
    small = dataclasses.replace(config, num_steps=3)
    engine = JaxEngine(Line(), None, small, new_task(outcomes={}, target=None))
    state = engine.initial()
    with pytest.raises(jax.errors.KeyReuseError), jax.debug_key_reuse(True):
        limits, target = np.asarray([1, 1, 0], np.int32), np.float32(np.inf)
        engine._program.chunk.lower(state, Line().default_params, limits, target)


def test_every_environment_is_in_one_minibatch_of_each_epoch(config, monkeypatch):
    config = dataclasses.replace(config, num_envs=12, num_minibatches=3, num_epochs=4)
    seen = []

    def record(apply, params, batch, rows, config):
        jax.debug.callback(lambda rows: seen.append(np.asarray(rows)), rows, ordered=True)
        zeros = update.Losses(*[jnp.zeros((), jnp.float32)] * 5)
        return jax.tree.map(jnp.zeros_like, params), zeros

    monkeypatch.setattr(update, "gradient", record)
    params = {"w": jnp.zeros(2)}
    learned = (params, update.optimizer(config, params).init(params))
    rate = jnp.float32(0.1)
    update.epochs(None, learned, None, rate, jax.random.key(0), config)
    jax.effects_barrier()
    assert len(seen) == 12
    orders = [np.concatenate([r.reshape(-1) for r in seen[3 * e : 3 * e + 3]]) for e in range(4)]
    for order in orders:
        np.testing.assert_array_equal(np.sort(order), np.arange(12))
    assert len({tuple(order) for order in orders}) == 4


def test_a_score_is_the_mean_of_at_least_a_hundred():
    score = jax.jit(scored)
    state, target = initial_score(), jnp.float32(0.5)
    state = score(state, (jnp.float32(50), jnp.float32(60)), target, jnp.int32(1))
    assert np.isnan(state.value) and state.reached_at == 0
    state = score(state, (jnp.float32(5), jnp.float32(60)), target, jnp.int32(2))
    assert state.value == jnp.float32(55 / 120) and state.reached_at == 0
    state = score(state, (jnp.float32(70), jnp.float32(100)), target, jnp.int32(3))
    assert state.value == jnp.float32(0.7) and state.reached_at == 3
    state = score(state, (jnp.float32(90), jnp.float32(100)), target, jnp.int32(4))
    assert state.reached_at == 3


def test_a_run_stops_in_the_update_that_reaches_the_target(config, new_task):
    from twinenv.ppo import Target

    task = new_task(target=Target("moved", 0.01), stop=True)
    engine = JaxEngine(Line(), None, config, task)
    state, rows = engine.advance(engine.initial(), 12)
    # 48 steps an update: the third has a hundred.
    assert len(rows) == 3 and int(state.score.reached_at) == int(state.update) == 3
    assert len(engine.advance(state, 5)[1]) == 0


def test_a_target_of_an_unknown_metric_is_refused(new_task):
    from twinenv.ppo import Target

    with pytest.raises(ValueError, match="'won'; accepted is one of return, length, moved"):
        new_task(target=Target("won", 0.5))
    assert new_task(target=Target("length", 3.0)).target.metric == "length"


def test_the_policy_learns_the_line(config, new_task):
    """From the first cells, three to five steps to the right are the best there is."""
    longer = dataclasses.replace(config, total_steps=400 * config.steps_per_update)
    engine = JaxEngine(Line(), None, longer, new_task())
    state, first = engine.advance(engine.initial(), 20)
    state, _ = engine.advance(state, 200)
    _, last = engine.advance(state, 180)
    returns = [np.nanmean(rows[-20:, 0, 1]) for rows in (first, last)]
    assert returns[0] < 0.2 < 0.6 < returns[1]
