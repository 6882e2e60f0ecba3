"""The physics against MuJoCo: stage by stage, and step by step from the same states."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from halfcheetah_jax import EnvParams
from halfcheetah_jax.dynamics import Body, advance, problem_of, tiled_steps
from halfcheetah_jax.dynamics.inertia import full_matrix, mass_matrix
from halfcheetah_jax.dynamics.solver import minimise
from halfcheetah_jax.dynamics.tree import Dofs, Limbs
from halfcheetah_jax.params import model_of
from halfcheetah_jax.situations import States, extreme_states, mixed_states
from twinenv import stages

pytest.importorskip("mujoco", reason="MuJoCo is not installed; pip install mujoco")

from halfcheetah_jax.reference import Simulation

CHANGES = {
    "mass": {"mass": (5.0, 2.0, 1.0, 1.5, 1.2, 1.4, 0.7)},
    "damping": {"damping": (1.0, 0.0, 8.0, 4.0, 2.5, 0.5)},
    "gear": {"gear": (90.0, 100.0, 10.0, 200.0, 30.0, 60.0)},
    "friction": {"friction": 0.9},
    "gravity": {"gravity": 3.7},
}


def inputs(states, number):
    qpos, qvel, warm, ctrl = (jnp.asarray(part, number) for part in states)
    return Body(qpos, qvel, warm), ctrl


@pytest.fixture(scope="module")
def states():
    return mixed_states(np.random.default_rng(0), 1500, Simulation())


def stepped(simulation, states, steps=1):
    found = []
    for row in zip(*states, strict=True):
        simulation.load(*row)
        found.append(simulation.step(steps))
    return tuple(np.stack(part) for part in zip(*found, strict=True))


@functools.cache
def compiled(frame_skip=1):
    return jax.jit(functools.partial(tiled_steps, frame_skip=frame_skip))


def ours(states, number, params=None):
    body, converged = compiled()(*inputs(states, number), model_of(params or EnvParams(), number))
    assert np.asarray(converged).all()
    return tuple(np.asarray(part, np.float64) for part in body[:2])


def test_constants_are_those_of_the_compiled_model():
    from halfcheetah_jax.data import generate

    kept = json.loads((Path(generate.__file__).parent / "half_cheetah.json").read_text())
    fresh = generate.constants(Simulation().model)
    assert kept.keys() == fresh.keys()
    for name, value in fresh.items():
        if isinstance(value[0] if isinstance(value, list) else value, str):
            assert kept[name] == value
        else:
            np.testing.assert_allclose(kept[name], value, rtol=1e-14, atol=1e-15, err_msg=name)


def test_weights_are_those_of_the_compiler():
    with jax.enable_x64(True):
        model, compiled = model_of(EnvParams(), jnp.float64), Simulation().model
        slope = 2 * 0.4**2 * (1 + 0.4**2)
        np.testing.assert_allclose(
            1 / np.asarray(model.contact_weights) / slope, compiled.body_invweight0[1:, 0]
        )
        np.testing.assert_allclose(1 / np.asarray(model.limit_weights), compiled.dof_invweight0[3:])


def test_stages_are_those_of_mj_forward(states):
    """Mass matrix, bias, constraint rows and accelerations in float64."""
    few = States(*(part[:400] for part in states))
    with jax.enable_x64(True):
        model = model_of(EnvParams(), jnp.float64)

        @jax.jit
        @jax.vmap
        def staged(body, ctrl):
            body = Body(*map(Dofs.of, body))
            problem = problem_of(body, Limbs.of(ctrl), model)
            mass = mass_matrix(problem.inertias, problem.hinges, problem.armature)
            return problem, full_matrix(mass), minimise(problem, body.qacc_warmstart)[0].rows()

        problem, mass, qacc = jax.tree.map(np.asarray, staged(*inputs(few, jnp.float64)))
    simulation = Simulation()
    for n, row in enumerate(zip(*few, strict=True)):
        simulation.load(*row)
        want = simulation.forward()
        np.testing.assert_allclose(mass[n], want["mass"], rtol=0, atol=1e-10)
        _compare_rows(jax.tree.map(lambda x, n=n: x[n], problem.constraints), want)
        np.testing.assert_allclose(
            qacc[n], want["qacc"], rtol=1e-9, atol=1e-8 * np.abs(want["qacc"]).max()
        )


def _compare_rows(c, want):
    """Our rows, four a contact, are MuJoCo's, which come in another order."""
    rows = []
    for limits in c.limits:
        d, target = (np.ravel(part) for part in (limits.d, limits.target))
        rows += [(d, target) for d, target in zip(d, target, strict=True) if target > -1e29]
    for contacts in c.contacts:
        parts = (np.ravel(part) for part in (contacts.d, contacts.normal, contacts.slope))
        for d, normal, slope in zip(*parts, strict=True):
            if normal > -1e29:
                rows += [(d, t) for t in (normal + slope, normal - slope, normal, normal)]
    rows = np.asarray(rows).reshape(-1, 2)
    theirs = np.stack([want["efc_D"], want["efc_aref"]], axis=1)
    assert rows.shape == theirs.shape
    order, other = (np.lexsort(np.round(both, 5).T) for both in (rows, theirs))
    np.testing.assert_allclose(rows[order], theirs[other], rtol=1e-9, atol=1e-9)


def test_a_step_in_float64_is_mujocos(states):
    qpos, qvel = stepped(Simulation(), states)
    with jax.enable_x64(True):
        got = ours(states, jnp.float64)
    assert np.abs(got[0] - qpos).max() <= 1e-11
    assert np.abs(got[1] - qvel).max() <= 1e-9


def test_without_hints_for_the_compiler_a_step_is_the_same(states):
    with jax.enable_x64(True):
        args = *inputs(states, jnp.float64), model_of(EnvParams(), jnp.float64)
        hinted = compiled().lower(*args).compile()
        with stages.disabled():
            plain = jax.jit(lambda *args: tiled_steps(*args, 1)).lower(*args).compile()
        after = plain(*args)[0], hinted(*args)[0]
    assert "inlineable" in hinted.as_text() and "inlineable" not in plain.as_text()
    got, want = after
    np.testing.assert_allclose(got.qpos, want.qpos, rtol=0, atol=1e-11)
    np.testing.assert_allclose(got.qvel, want.qvel, rtol=0, atol=1e-9)


def test_a_step_in_float32_is_at_its_noise_floor(states):
    qpos, qvel = stepped(Simulation(), states)
    got = ours(states, jnp.float32)
    error = np.abs(got[1] - qvel).max(axis=1)
    assert np.median(error) <= 5e-6
    assert np.quantile(error, 0.99) <= 2e-4
    assert error.max() <= 2e-3
    # The root's x is large here, which the environment avoids.
    assert np.abs(got[0] - qpos)[:, 1:].max() <= 1e-4


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_changed_numbers_are_those_of_a_changed_model(states, name):
    few = States(*(part[:200] for part in states))
    qpos, qvel = stepped(Simulation(changes=CHANGES[name]), few)
    base = stepped(Simulation(), few)
    assert np.abs(base[1] - qvel).max() > 1e-3
    with jax.enable_x64(True):
        got = ours(few, jnp.float64, EnvParams(**CHANGES[name]))
    assert np.abs(got[0] - qpos).max() <= 1e-11
    assert np.abs(got[1] - qvel).max() <= 1e-9


def test_short_trajectories_stay_together():
    """Twenty environment steps from the start of an episode, in float64."""
    rng = np.random.default_rng(3)
    start = States(
        rng.uniform(-0.1, 0.1, (8, 9)),
        rng.normal(0, 0.1, (8, 9)),
        np.zeros((8, 9)),
        np.zeros((8, 6)),
    )
    controls = rng.uniform(-1, 1, (20, 8, 6))
    simulations = [Simulation() for _ in range(8)]
    for simulation, row in zip(simulations, zip(*start, strict=True), strict=True):
        simulation.load(*row)
    with jax.enable_x64(True):
        model = model_of(EnvParams(), jnp.float64)
        body, _ = inputs(start, jnp.float64)
        for control in controls:
            body, _ = compiled(5)(body, jnp.asarray(control), model)
            for n, simulation in enumerate(simulations):
                simulation.data.ctrl[:] = control[n]
                qpos, qvel = simulation.step(5)
                got = np.concatenate([body.qpos[n], body.qvel[n]])
                assert np.abs(got - np.concatenate([qpos, qvel])).max() <= 1e-6


@pytest.mark.slow
def test_every_one_of_a_hundred_thousand_states():
    states = mixed_states(np.random.default_rng(1), 100_000, Simulation())
    qpos, qvel = stepped(Simulation(), states)
    with jax.enable_x64(True):
        got = ours(states, jnp.float64)
    assert np.abs(got[0] - qpos).max() <= 1e-11
    assert np.abs(got[1] - qvel).max() <= 1e-9


def test_a_bad_environment_does_not_reach_its_neighbours():
    """One that is no number, one that is far too fast; the others of the tile go on as alone."""
    states = extreme_states(np.random.default_rng(2), 70)
    states.qvel[3, 4] = np.nan
    states.qvel[11] = 1e12

    model = model_of(EnvParams(), jnp.float32)
    body, _ = compiled()(*inputs(states, jnp.float32), model)
    good = np.setdiff1d(np.arange(70), [3, 11])
    alone = States(*(part[good] for part in states))
    expected, converged = compiled()(*inputs(alone, jnp.float32), model)
    assert np.asarray(converged).all()
    for got, want in zip(jax.tree.leaves(body), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(np.asarray(got)[good], want)


def test_batches_of_any_shape_are_single_steps():
    states = extreme_states(np.random.default_rng(4), 6)
    model = model_of(EnvParams(), jnp.float32)
    body, ctrl = inputs(states, jnp.float32)

    def one(body, ctrl):
        return advance(body, ctrl, model, 2)[0]

    flat = jax.jit(jax.vmap(one))(body, ctrl)
    nested = jax.tree.map(lambda x: x.reshape(2, 3, -1), (body, ctrl))
    nested = jax.jit(jax.vmap(jax.vmap(one)))(*nested)
    for n in range(6):
        single = jax.jit(one)(*jax.tree.map(lambda x, n=n: x[n], (body, ctrl)))
        for a, b, c in zip(*map(jax.tree.leaves, (single, flat, nested)), strict=True):
            np.testing.assert_allclose(a, b[n], rtol=2e-4, atol=2e-3)
            np.testing.assert_array_equal(b[n], c[divmod(n, 3)])


def test_gradients_are_finite_differences_away_from_switches():
    """Of the speeds after two steps, by positions, speeds and controls, in float64."""
    with jax.enable_x64(True):
        model = model_of(EnvParams(), jnp.float64)
        qpos = jnp.asarray([0.0, -0.08, 0.1, 0.1, -0.1, 0.05, 0.1, -0.1, 0.02])
        qvel = jnp.asarray([1.0, -0.2, 0.5, 1.0, -1.0, 0.5, 0.3, -0.4, 0.2])

        def total(numbers):
            body = Body(numbers[:9], numbers[9:18], jnp.zeros(9))
            after, _ = advance(body, numbers[18:], model, 2, differentiable=True)
            return jnp.dot(jnp.arange(1.0, 10.0), after.qvel)

        at = jnp.concatenate([qpos, qvel, jnp.asarray([0.5, -0.4, 0.3, -0.2, 0.1, 0.6])])
        slopes = jax.jit(jax.grad(total))(at)
        value, step = jax.jit(total), 1e-6
        for i in range(24):
            moved = [value(at.at[i].add(sign * step)) for sign in (1, -1)]
            numeric = (moved[0] - moved[1]) / (2 * step)
            np.testing.assert_allclose(slopes[i], numeric, rtol=1e-4, atol=1e-4)
