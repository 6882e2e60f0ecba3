"""How far steps are from MuJoCo's, over a hundred thousand states and against MJX."""

from __future__ import annotations

import functools
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("mujoco", reason="MuJoCo is not installed; pip install mujoco")

from test_dynamics import _compare_rows, compiled, inputs, stepped

from halfcheetah_jax import EnvParams
from halfcheetah_jax.dynamics import Body, problem_of
from halfcheetah_jax.dynamics.inertia import full_matrix, mass_matrix
from halfcheetah_jax.dynamics.solver import minimise
from halfcheetah_jax.dynamics.tree import Dofs, Limbs
from halfcheetah_jax.params import model_of
from halfcheetah_jax.reference import Simulation
from halfcheetah_jax.situations import States, mixed_states
from twinenv import references

MANY = 100_000
DEFAULT = 1e-8  # MuJoCo's own tolerance
pytestmark = pytest.mark.slow


@functools.cache
def pool():
    """States, of which the last fifth are extreme, all at x = 0, as the environment steps them."""
    found = mixed_states(np.random.default_rng(11), MANY, Simulation())
    return found._replace(qpos=found.qpos * np.r_[0.0, np.ones(8)])


@functools.cache
def theirs(tolerance, frame_skip):
    return stepped(Simulation(tolerance), pool(), frame_skip)


@functools.cache
def ours(wide, frame_skip):
    """Positions and speeds after a step, and which states the solver did not end in."""
    number = jnp.float64 if wide else jnp.float32
    with jax.enable_x64(wide):
        args = *inputs(pool(), number), model_of(EnvParams(), number)
        body, converged = compiled(frame_skip)(*args)
        found = tuple(np.asarray(part, np.float64) for part in body[:2])
    return *found, np.flatnonzero(~np.asarray(converged))


def errors(wide, frame_skip, tolerance=0.0):
    """Largest errors of positions and of speeds in each state."""
    qpos, qvel, stuck = ours(wide, frame_skip)
    wanted = theirs(tolerance, frame_skip)
    found = [np.abs(a - b).max(axis=1) for a, b in zip((qpos, qvel), wanted, strict=True)]
    label = f"float{64 if wide else 32}, {frame_skip} time steps, tolerance {tolerance:g}"
    for name, error in zip(("qpos", "qvel"), found, strict=True):
        print(f"{label}, {name}: {summary(error)}")
    assert stuck.tolist() == [], f"the solver did not end in states {stuck}"
    return found


def summary(error):
    at = np.quantile(error, [0.5, 0.99, 0.999])
    over = {f"{limit:g}": int((error > limit).sum()) for limit in (1e-3, 2e-3, 5e-3)}
    return f"median {at[0]:.2g}, p99 {at[1]:.2g}, p99.9 {at[2]:.2g}, max {error.max():.3g}, {over}"


@pytest.mark.parametrize("frame_skip", [1, 5])
def test_float64_is_mujoco_in_every_state(frame_skip):
    qpos, qvel = errors(True, frame_skip)
    assert qpos.max() <= 1e-11
    assert qvel.max() <= 1e-9


@pytest.mark.parametrize("frame_skip", [1, 5])
def test_float64_is_mujoco_with_its_default_tolerance(frame_skip):
    _, qvel = errors(True, frame_skip, DEFAULT)
    assert np.quantile(qvel, 0.999) <= 1e-9
    assert qvel.max() <= 1e-5


def test_float32_is_at_its_noise_floor():
    _, qvel = errors(False, 1)
    assert np.median(qvel) <= 5e-6
    assert np.quantile(qvel, 0.99) <= 2e-4
    assert qvel.max() <= 2e-3


def test_float32_steps_of_the_environment_are_at_their_noise_floor():
    """Five time steps let an error grow."""
    _, qvel = errors(False, 5)
    assert np.median(qvel) <= 5e-6
    assert np.quantile(qvel, 0.99) <= 2e-4


def test_stages_are_those_of_mj_forward_in_ten_thousand_states():
    """Mass matrix, forces, bias, rows of constraints and accelerations, in float64."""
    few = States(*(part[::10] for part in pool()))
    assert len(few.qpos) == 10_000
    with jax.enable_x64(True):
        model = model_of(EnvParams(), jnp.float64)

        @jax.jit
        @jax.vmap
        def stages(body, ctrl):
            body = Body(*map(Dofs.of, body))
            problem = problem_of(body, Limbs.of(ctrl), model)
            mass = mass_matrix(problem.inertias, problem.hinges, problem.armature)
            qacc, converged = minimise(problem, body.qacc_warmstart)
            return (
                problem.constraints,
                problem.smooth.rows(),
                full_matrix(mass),
                qacc.rows(),
                converged,
            )

        found = jax.tree.map(np.asarray, stages(*inputs(few, jnp.float64)))
    constraints, smooth, mass, qacc, converged = found
    simulation = Simulation()
    for n, row in enumerate(zip(*few, strict=True)):
        simulation.load(*row)
        want, data = simulation.forward(), simulation.data
        np.testing.assert_allclose(mass[n], want["mass"], rtol=0, atol=1e-10)
        bias = data.qfrc_actuator + data.qfrc_passive - smooth[n]
        np.testing.assert_allclose(bias, want["bias"], rtol=0, atol=1e-10)
        _compare_rows(jax.tree.map(lambda x, n=n: x[n], constraints), want)
        most = np.abs(want["qacc"]).max()
        if converged[n]:
            np.testing.assert_allclose(qacc[n], want["qacc"], rtol=1e-9, atol=1e-8 * most)
    assert converged.all()


MJX = """
import json, sys
import numpy as np
from twinenv import references
references.use("mjx")
import jax, jax.numpy as jnp
from mujoco import mjx
from halfcheetah_jax.reference import Simulation
given = np.load(sys.argv[1])
model = Simulation(1e-8).model
device, blank = mjx.put_model(model), mjx.make_data(model)
def one(qpos, qvel, warm, ctrl):
    data = blank.replace(qpos=qpos, qvel=qvel, qacc_warmstart=warm, ctrl=ctrl)
    data = mjx.step(device, data)
    return data.qpos, data.qvel
parts = [jnp.asarray(given[n], jnp.float32) for n in ("qpos", "qvel", "qacc_warmstart", "ctrl")]
step, size = jax.jit(jax.vmap(one)), 256
after = [step(*(p[i:i + size] for p in parts)) for i in range(0, len(parts[0]), size)]
np.save(sys.argv[2], np.concatenate([np.asarray(qvel) for _, qvel in after]))
"""


def test_float32_is_as_exact_as_mjx(tmp_path):
    try:
        references.locate("mjx")
    except references.MissingReferenceError as error:
        pytest.skip(str(error))
    qvel, wanted = ours(False, 1)[1], theirs(0.0, 1)[1]
    error = np.abs(qvel - wanted).max(axis=1)
    drawn = np.random.default_rng(0).choice(MANY, 20_000, replace=False)
    rows = np.concatenate([drawn, np.argsort(error)[-64:]])  # and our worst, to be printed
    np.savez(tmp_path / "given.npz", **{n: p[rows] for n, p in pool()._asdict().items()})
    # On two cores MJX hangs at times with a pool of as many threads.
    settings = {"NPROC": "4", "JAX_NUMPY_DTYPE_PROMOTION": "standard", "PYTHONWARNINGS": "ignore"}
    paths = [str(tmp_path / name) for name in ("given.npz", "after.npy")]
    done = subprocess.run(
        [sys.executable, "-c", MJX, *paths],
        env=os.environ | settings | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr
    of_mjx = np.abs(np.load(paths[1]) - wanted[rows]).max(axis=1)
    found = {"MJX": of_mjx, "ours": error[rows]}
    for name, each in found.items():
        print(f"{name}: {summary(each[:-64])}; in our worst 64: {summary(each[-64:])}")
    ours99, mjx99 = (np.quantile(found[name][:-64], 0.99) for name in ("ours", "MJX"))
    assert ours99 <= 1.5 * mjx99
