"""What only a fresh process can show: late imports, gymnax's registry, 64-bit mode."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import twinenv

HERE = Path(__file__).parent
HEAVY = ("gymnax", "gymnasium", "matplotlib", "pandas", "seaborn", "optax", "orbax")


def run(code: str, **environment: str) -> str:
    path = os.pathsep.join([str(HERE), str(HERE.parent), *sys.path])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=os.environ | {"PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("env_id", twinenv.list_ids())
def test_nothing_heavy_is_imported_before_it_is_needed(env_id):
    house = type(twinenv.make(env_id)[0]).__module__.split(".")[0]
    run(
        f"""
import sys
heavy = {HEAVY}
def loaded():
    return [name for name in heavy if name in sys.modules]
import jax, jax.numpy as jnp
jax.config.update("jax_platforms", "nowhere")  # an import that started a backend would fail
import twinenv
assert not loaded(), loaded()
import {house}
assert not loaded(), loaded()
jax.config.update("jax_platforms", "cpu")
env, params = twinenv.make({env_id!r})
_, state = jax.jit(env.reset)(jax.random.key(0), params)
action = jnp.zeros(env.action_shape, jnp.int32 if env.is_discrete else jnp.float32)
jax.jit(env.step)(jax.random.key(0), state, action, params)
assert not loaded(), loaded()
env.action_space(params)
assert "gymnax" in loaded()
import gymnax
assert {env_id!r} not in gymnax.registered_envs
twinenv.register_gymnax()
assert gymnax.make({env_id!r})[0].name == {env_id!r}
"""
    )


def test_ids_are_registered_at_import_after_gymnax():
    run(
        """
import gymnax
import twinenv
env, params = gymnax.make("PongJAX-v0", frameskip=8)
assert env.env.frameskip == 8
import pong_jax
twinenv.register_gymnax()
assert gymnax.registered_envs.count("PongJAX-v0") == 1
"""
    )


def test_dtypes_are_the_same_in_64_bit_mode():
    run(
        """
import jax, jax.numpy as jnp, numpy as np
from contract_play import layout
from test_contract import CASES

assert jnp.asarray(np.float64(1)).dtype == jnp.float64
wide = ("float64", "int64", "uint64")
for name, case in CASES.items():
    env, params = case.build()
    begun = jax.eval_shape(env.reset, jax.random.key(0), params)
    action = jnp.zeros(env.action_shape, jnp.int32 if env.is_discrete else jnp.float32)
    for step in (env.step, env.step_env):
        outcome = jax.eval_shape(step, jax.random.key(0), begun[1], action, params)
        assert layout(outcome[:2]) == layout(begun), name
        dtypes = {str(x.dtype) for x in jax.tree.leaves(outcome)}
        assert case.wide or not dtypes & set(wide), (name, dtypes)
    mask = jax.eval_shape(env.action_mask, begun[1], params)
    assert mask.dtype == jnp.bool_
env, params = CASES["PongJAX-v0"].build()
_, state = env.reset(jax.random.key(0), params)
assert env.step(jax.random.key(0), state, np.int64(2), params)[2].dtype == jnp.float32
""",
        JAX_ENABLE_X64="1",
    )


def test_stages_can_be_switched_off_from_outside():
    out = run(
        "from twinenv import stages; print(stages.enabled(), stages.cpu_compiler_options())",
        TWINENV_STAGES="off",
    )
    assert out.split() == ["False", "None"]
