"""The contract of the functional API: what every environment, wrapped or not, must keep.

A test module subclasses `Contract` and provides a fixture `case` that returns a `Case`.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import pickle
from typing import Any

import gymnax.environments.spaces as gymnax_spaces
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from contract_play import (
    BAD_ARGUMENTS,
    ENVS,
    LIMIT,
    LIMITS,
    STEPS,
    Unknown,
    assert_equal,
    assert_inside,
    choose,
    index,
    layout,
    noise_for,
)

KEYS_OF_INFO = {"terminated", "truncated", "final_observation", "discount", "illegal_action"}
SIGNATURES = {
    "reset": ["key", "params"],
    "reset_env": ["key", "params"],
    "step": ["key", "state", "action", "params"],
    "step_env": ["key", "state", "action", "params"],
    "observe": ["key", "state", "action", "params"],
    "get_obs": ["state", "params", "key"],
    "action_mask": ["state", "params"],
    "render": ["state", "params"],
    "action_space": ["params"],
    "observation_space": ["params"],
    "state_space": ["params"],
}


class Contract:
    """The tests; numbers are those of the design's section on the API."""

    # 1. Arguments.

    @pytest.mark.parametrize("method", SIGNATURES)
    def test_parameter_names(self, case, method):
        parameters = inspect.signature(getattr(case.env, method)).parameters
        assert list(parameters) == SIGNATURES[method]
        assert parameters["params"].default is None
        assert all(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters.values())

    def test_every_way_to_call_gives_the_same_numbers(self, case):
        """Keywords, legacy keys, eager: the same as positions, typed keys and `jax.jit`."""
        env, state, action = (
            case.env,
            index(case.record.before, 6, 1),
            index(case.record.action, 6, 1),
        )
        typed, legacy = jax.random.key(2), jax.random.PRNGKey(2)
        eager = env.step(action=action, params=case.short, state=state, key=legacy)
        assert_equal(eager, case.step(typed, state, action, case.short), rtol=case.rtol)
        eager = env.reset(params=case.short, key=legacy)
        assert_equal(eager, case.reset(typed, case.short), rtol=1e-6)

    def test_no_params_are_the_default_params(self, case):
        env, (key, state, action) = case.env, (jax.random.key(5), case.start[1], case.action)
        default = env.default_params
        assert_equal(env.reset(key), env.reset(key, default))
        for method in ("step", "step_env", "observe"):
            call = getattr(env, method)
            assert_equal(call(key, state, action), call(key, state, action, default))
        for method in ("get_obs", "action_mask"):
            assert_equal(getattr(env, method)(state), getattr(env, method)(state, default))
        for space in ("action_space", "observation_space", "state_space"):
            assert repr(getattr(env, space)(None)) == repr(getattr(env, space)(default))

    # 2. Step, automatic reset, info.

    def test_time_limit_and_automatic_reset(self, case):
        record, info = case.record, case.record.info
        after = record.before.time + np.int32(1)
        np.testing.assert_array_equal(info["truncated"], (after >= LIMITS) & ~info["terminated"])
        np.testing.assert_array_equal(record.done, info["terminated"] | info["truncated"])
        expected = np.where(record.done, np.int32(0), after)
        np.testing.assert_array_equal(record.state.time, expected)
        assert info["truncated"].any()
        assert info["terminated"].any() or not case.ends

    def test_observation_belongs_to_the_returned_state(self, case):
        record, done = case.record, case.record.done
        for t, n in np.argwhere(done)[:3]:
            first = case.env.get_obs(index(record.state, t, n), case.short)
            assert_equal(first, index(record.obs, t, n), rtol=1e-6)
        keep = functools.partial(jax.tree.map, lambda x: x[~done])
        assert_equal(keep(record.info["final_observation"]), keep(record.obs))

    def test_discount_is_zero_only_on_a_natural_end(self, case):
        info = case.record.info
        expected = 1 - info["terminated"].astype(np.float32)
        np.testing.assert_array_equal(info["discount"], expected)

    def test_info_has_the_same_arrays_from_step_and_step_env(self, case):
        env = case.env
        args = jax.random.key(0), case.start[1], case.action, case.params
        outcomes = [jax.eval_shape(f, *args)[4] for f in (env.step, env.step_env)]
        assert set(outcomes[0]) >= KEYS_OF_INFO
        assert layout(outcomes[0]) == layout(outcomes[1])
        assert not any(x.weak_type for x in jax.tree.leaves(outcomes))

    # 3. The other functions.

    def test_step_env_neither_resets_nor_truncates(self, case):
        env, params = case.env, case.params.replace(max_steps_in_episode=1)

        @jax.jit
        def one(state, key, noise):
            action = choose(env, env.action_mask(state, params), noise)
            obs, state, _, terminated, info = env.step_env(key, state, action, params)
            return state, obs, terminated, info, env.action_mask(state, params)

        state, noise, over = case.start[1], noise_for(env, STEPS), False
        for t, key in enumerate(jax.random.split(jax.random.key(1), STEPS)):
            state, obs, terminated, info, mask = one(state, key, noise[t])
            if env.num_players == 2:
                assert_equal(info["to_move"], np.asarray(mask).sum(axis=-1) > 1)
            assert int(state.time) == t + 1
            assert bool(info["terminated"]) == bool(terminated)
            assert not bool(info["truncated"])
            assert_equal(info["final_observation"], obs)
            over |= bool(terminated)
        assert over or not case.ends

    def test_there_is_always_a_legal_action(self, case):
        mask = case.record.mask
        players = (2,) if case.env.num_players == 2 else ()
        assert mask.dtype == jnp.bool_
        assert mask.shape == (STEPS, ENVS, *players, case.env.num_actions)
        assert mask.any(axis=-1).all()
        assert case.env.masked or mask.all()
        assert not case.record.info["illegal_action"].any()

    def test_render(self, case):
        for state, params in ((case.start[1], case.params), (index(case.record.state, 5, 2), None)):
            picture = case.env.render(state, params)
            assert isinstance(picture, np.ndarray)
            assert picture.dtype == np.uint8
            assert picture.ndim == 3
            assert picture.shape[2] == 3
            assert picture.any()

    # 4. Parameters and states.

    def test_params_are_frozen_scalars(self, case):
        params = case.params
        with pytest.raises(dataclasses.FrozenInstanceError):
            params.max_steps_in_episode = 3
        assert params.replace(max_steps_in_episode=3).max_steps_in_episode == 3
        assert any(leaf is params.max_steps_in_episode for leaf in jax.tree.leaves(params))
        # Arrays are allowed in a documented subclass, of which only the added fields are arrays.
        if all(isinstance(leaf, int | float) for leaf in jax.tree.leaves(params)):
            assert hash(params) == hash(case.build()[1])
            assert params == case.build()[1]
        else:
            assert type(params).__mro__[1] is type(case.env.unwrapped.default_params)

    def test_time_limit_can_be_any_number(self, case):
        env, params = case.env, case.params
        for limit in (1, 1.0, params.max_steps_in_episode + 1, np.inf, jnp.float32(3)):
            longer = params.replace(max_steps_in_episode=limit)
            assert env.resolve(longer) is longer
            expected = int(case.start[1].time) >= float(limit)
            assert bool(env.is_truncated(case.start[1], longer)) is expected

    def test_reset_and_step_return_the_same_structure(self, case):
        env = case.env
        begun = jax.eval_shape(env.reset, jax.random.key(0), case.params)
        args = jax.random.key(0), begun[1], case.action, case.params
        for step in (env.step, env.step_env):
            outcome = jax.eval_shape(step, *args)
            assert layout(outcome[:2]) == layout(begun)
            assert not any(x.weak_type for x in jax.tree.leaves(outcome))
            players = (2,) if env.num_players == 2 else ()
            assert (outcome[2].shape, outcome[2].dtype) == (players, jnp.float32)
            assert (outcome[3].shape, outcome[3].dtype) == ((), jnp.bool_)
        time = begun[1].time
        assert (time.shape, time.dtype) == ((), jnp.int32)
        assert isinstance(case.start[1], env.state_class)

    # 5. Spaces.

    def test_spaces(self, case):
        env, record = case.env, case.record
        space = env.action_space(case.short)
        assert isinstance(space, gymnax_spaces.Discrete | gymnax_spaces.Box)
        assert_inside(space, space.sample(jax.random.key(0)))
        assert_inside(space, record.action)
        assert space.dtype == (jnp.int32 if env.is_discrete else jnp.float32)
        seen = env.observation_space(case.short)
        if _is_bounded(seen):  # of others gymnax has no samples
            assert_inside(seen, seen.sample(jax.random.key(0)))
        assert_inside(seen, record.obs)
        assert_inside(seen, record.info["final_observation"])
        assert_inside(seen, case.start[0])
        assert_inside(env.state_space(case.short), record.state)
        if env.is_discrete:
            assert space.n == env.num_actions

    # 6. Identity.

    def test_equal_configurations_are_equal_and_compile_once(self, case):
        traces = []

        @functools.partial(jax.jit, static_argnums=0)
        def reset(env, key, params):
            traces.append(env)
            return env.reset(key, params)

        env, again = case.env, case.build()[0]
        assert again is not env
        others = (copy.copy(env), copy.deepcopy(env), pickle.loads(pickle.dumps(env)), again)
        for other in (env, *others):
            assert other == env
            assert hash(other) == hash(env)
            assert other.name == env.name
            reset.trace(other, jax.random.key(0), case.short)
        # Other values of the parameters are not traced anew either.
        reset.trace(env, jax.random.key(0), case.short.replace(max_steps_in_episode=LIMIT + 1))
        assert len(traces) == 1
        assert env != Unknown()

    def test_params_can_be_copied(self, case):
        for other in (copy.deepcopy(case.params), pickle.loads(pickle.dumps(case.params))):
            assert type(other) is type(case.params)
            assert_equal(other, case.params)

    # 7. Two players.

    def test_two_players(self, case):
        if case.env.num_players != 2:
            pytest.skip("one player")
        record = case.record
        for leaf in jax.tree.leaves((record.obs, record.reward, record.info["illegal_action"])):
            assert leaf.shape[:3] == (STEPS, ENVS, 2)
        assert record.done.shape == (STEPS, ENVS)
        assert case.env.action_shape == (2,)
        env, state = case.env.unwrapped, _innermost(record.state)
        for t in range(STEPS // 2):
            mask = env.action_mask(index(state, t, 0), case.short)
            expected = np.asarray(mask).sum(axis=-1) > 1
            np.testing.assert_array_equal(record.info["to_move"][t, 0], expected)

    # 9. Illegal actions and bad arguments.

    def test_illegal_actions_act_as_the_first_legal_one(self, case):
        env, key = case.env, jax.random.key(6)
        if not env.is_discrete:
            pytest.skip("continuous")
        state = index(case.record.before, 6, 1)
        mask = np.asarray(env.action_mask(state, case.short))
        shape = env.action_shape
        first = jnp.asarray(np.argmax(mask, axis=-1), jnp.int32)
        expected = case.step(key, state, first, case.short)
        forbidden = [
            i for i in range(env.num_actions) if not mask.reshape(-1, mask.shape[-1])[:, i].any()
        ]
        for wrong in (-1, env.num_actions, 2**31 - 1, -(2**31), *forbidden):
            outcome = case.step(key, state, jnp.full(shape, wrong, jnp.int32), case.short)
            assert bool(jnp.all(outcome[4].pop("illegal_action")))
            assert_equal(
                outcome[4], {k: v for k, v in expected[4].items() if k != "illegal_action"}
            )
            assert_equal(outcome[:4], expected[:4])

    def test_continuous_actions_are_clipped(self, case):
        env, key = case.env, jax.random.key(6)
        if env.is_discrete:
            pytest.skip("discrete")
        state = index(case.record.before, 6, 1)
        for asked, played in ((7.0, 1.0), (-np.inf, -1.0), (np.nan, 0.0)):
            action = jnp.full(env.action_shape, asked, jnp.float32)
            outcome = case.step(key, state, action, case.short)
            expected = case.step(key, state, jnp.full_like(action, played), case.short)
            # What has to be paid for cannot be infinite.
            odd = not np.isfinite(asked) if case.pays_excess else np.isnan(asked)
            assert bool(outcome[4].pop("illegal_action")) is bool(odd)
            expected[4].pop("illegal_action")
            if case.pays_excess and not odd:
                assert_equal(outcome[:2], expected[:2])
                assert float(outcome[2]) < float(expected[2])
            else:
                assert_equal(outcome, expected)

    @pytest.mark.parametrize("what", BAD_ARGUMENTS)
    def test_bad_arguments_raise_one_clear_sentence(self, case, what):
        wrong, word = BAD_ARGUMENTS[what]
        good = {
            "key": jax.random.key(0),
            "state": case.start[1],
            "action": case.action,
            "params": case.params,
        }
        for method in ("step", "step_env", "reset"):
            takes = SIGNATURES[method]
            if not set(wrong) <= set(takes):
                continue
            with pytest.raises(TypeError) as error:
                getattr(case.env, method)(**{k: (good | wrong)[k] for k in takes})
            _assert_clear(error.value, word)

    def test_a_batch_without_vmap_raises(self, case):
        batch = index(case.record.before, 0)
        for method in ("step", "step_env"):
            with pytest.raises(TypeError) as error:
                getattr(case.env, method)(jax.random.key(0), batch, case.action, case.params)
            _assert_clear(error.value, "vmap")

    @pytest.mark.parametrize("limit", [0, -3, 0.5, float("nan")])
    def test_parameters_out_of_range_raise(self, case, limit):
        params = case.params.replace(max_steps_in_episode=limit)
        for call in (
            lambda: case.env.reset(jax.random.key(0), params),
            lambda: case.env.step(jax.random.key(0), case.start[1], case.action, params),
        ):
            with pytest.raises(ValueError, match=f"max_steps_in_episode.*{limit}") as error:
                call()
            _assert_clear(error.value, "accepted")

    # One trace, many ways to run it.

    def test_vmap_equals_loop(self, case):
        record = case.record
        for t in (0, LIMIT - 1, LIMIT):
            for n in range(3):
                key, state, action = (
                    index(x, t, n) for x in (record.key, record.before, record.action)
                )
                looped = case.step(key, state, action, case.short)
                batched = (record.obs, record.state, record.reward, record.done, record.info)
                assert_equal(looped, index(batched, t, n), rtol=case.rtol)

    # 10. Conveniences.

    def test_states_can_be_saved(self, case):
        for state in (case.start[1], index(case.record.state, 6)):
            data = case.env.save_state(state)
            assert isinstance(data, bytes)
            assert_equal(case.env.load_state(data), state)

    def test_damaged_bytes_never_become_another_state(self, case):
        data = case.env.save_state(case.start[1])
        for damaged in (b"", b"nonsense", data[:-30], data[: len(data) // 2], data[40:]):
            with pytest.raises(ValueError, match="damaged"):
                case.env.load_state(damaged)
        for at in range(0, len(data), max(1, len(data) // 40)):
            flipped = data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :]
            try:
                loaded = case.env.load_state(flipped)
            except ValueError:
                continue
            assert_equal(loaded, case.start[1])

    def test_foreign_bytes_raise(self, case):
        from twinenv import saving

        foreign = saving.to_bytes("Another-v0", case.start[1])
        with pytest.raises(ValueError, match="Another-v0"):
            case.env.load_state(foreign)
        other_shape = saving.to_bytes(case.env.name, (np.zeros(3, np.float64),))
        with pytest.raises(ValueError, match="configuration"):
            case.env.load_state(other_shape)
        with pytest.raises(TypeError, match="Unknown"):
            case.env.save_state(Unknown())

    def test_reset_to_a_given_state(self, case):
        inner = case.env.unwrapped
        _, state = inner.reset(jax.random.key(9), case.params)
        obs, own = case.env.reset_to(jax.random.key(1), state, case.params)
        assert_equal(_innermost(own), state)
        assert layout(jax.eval_shape(lambda: (obs, own))) == layout(
            jax.eval_shape(case.env.reset, jax.random.key(0), case.params)
        )
        assert_equal(case.env.get_obs(own, case.params), obs)


def _assert_clear(error: Exception, word: str) -> None:
    message = str(error)
    assert word in message
    assert "\n" not in message
    assert 20 < len(message) < 500


def _is_bounded(space: Any) -> bool:
    """Whether a box, if it is one, has finite limits."""
    limits = (space.low, space.high) if isinstance(space, gymnax_spaces.Box) else ()
    return all(np.isfinite(limit).all() for limit in limits)


def _innermost(state: Any) -> Any:
    return _innermost(state.env_state) if hasattr(state, "env_state") else state
