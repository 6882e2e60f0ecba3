"""What the HalfCheetah is measured against, and how all sides of its benchmarks are driven.

Each side plays random actions from a table that is drawn beforehand. Before it is timed, all but
Brax step the same states under the same actions.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from halfcheetah_jax.reference import Simulation
from halfcheetah_jax.situations import States, played_states
from twinenv import references
from twinenv.bench.benchmark import Facts
from twinenv.stages import cpu_compiler_options
from twinenv.versions import versions

__all__ = [
    "CHECKED",
    "BraxSide",
    "GymnasiumSide",
    "Loop",
    "MjxSide",
    "MujocoSide",
    "RolloutSide",
    "actions",
    "checked_states",
    "given_of",
    "numbers",
]

CHECKED = 256
"""Environments whose step is compared."""
_TABLE, _EPISODE, _FRAME_SKIP = 128, 1_000, 5
_TOLERANCE = 1e-8  # MuJoCo's default


def actions(num_envs: int) -> np.ndarray:
    """The table of actions, `float32[128, num_envs, 6]`."""
    shape = (_TABLE, num_envs, 6)
    return np.random.default_rng(0).uniform(-1.0, 1.0, shape).astype(np.float32)


def checked_states() -> States:
    """The states that are stepped on both sides, with their actions as `ctrl`."""
    return played_states(np.random.default_rng(1), CHECKED, _simulation())


def numbers(qpos: Any, qvel: Any, reward: Any = ()) -> list[float]:
    """What must agree after a step: positions, speeds and perhaps rewards of the first states."""
    parts = (np.asarray(part, np.float64)[:CHECKED] for part in (qpos, qvel, reward))
    return np.concatenate([part.reshape(-1) for part in parts]).tolist()


def given_of(states: States) -> dict[str, Any]:
    """What our side is given to step the same states."""
    return {name: getattr(states, name).tolist() for name in ("qpos", "qvel", "ctrl")}


def _simulation() -> Simulation:
    try:
        return Simulation(_TOLERANCE)
    except ImportError as error:
        raise references.MissingReferenceError(
            f"{error}; run `pip install gymnasium mujoco==4.0.0`"
        ) from error


class Loop:
    """Environments stepped by XLA in one compiled call.

    Args:
        advance: from what is carried and the actions `[N, 6]` to what is carried.
        carry: what is carried, every leaf `[N, ...]`.
        devices: over which the environments are spread.
    """

    def __init__(
        self, advance: Callable[[Any, jax.Array], Any], carry: Any, devices: int = 1
    ) -> None:
        self.num_envs = len(jax.tree.leaves(carry)[0])
        self._table = jnp.asarray(actions(self.num_envs))

        def play(carry: Any, table: jax.Array, count: jax.Array) -> Any:
            def one(t: jax.Array, carry: Any) -> Any:
                row = jax.lax.dynamic_index_in_dim(table, t % _TABLE, keepdims=False)
                return advance(carry, row)

            return jax.lax.fori_loop(jnp.int32(0), count, one, carry)

        if devices > 1:
            kinds = (jax.sharding.AxisType.Auto,)
            mesh = jax.make_mesh((devices,), ("env",), axis_types=kinds)
            over, rows = jax.P("env"), jax.P(None, "env")
            play = jax.shard_map(
                play, mesh=mesh, in_specs=(over, rows, jax.P()), out_specs=over, check_vma=False
            )
        options = cpu_compiler_options()
        jitted = jax.jit(play, donate_argnums=0, compiler_options=options)
        start = time.process_time()
        self._compiled = jitted.lower(carry, self._table, np.int32(1)).compile()
        self.compile_cpu_s = time.process_time() - start
        shardings = self._compiled.input_shardings[0]
        self.carry, self._table = jax.device_put((carry, self._table), shardings[:2])
        self._shardings = shardings

    def play(self, steps: int) -> int:
        """Step all environments; returns how many steps of one environment that was."""
        self.carry = self._compiled(self.carry, self._table, np.int32(steps))
        jax.block_until_ready(self.carry)
        return steps * self.num_envs

    def once(self, carry: Any, ctrl: np.ndarray) -> Any:
        """One step of other environments, by the same compiled call."""
        row = np.resize(np.asarray(ctrl, np.float32), (self.num_envs, 6))
        table = jnp.broadcast_to(row, (_TABLE, self.num_envs, 6))
        carry, table = jax.device_put((carry, table), self._shardings[:2])
        return self._compiled(carry, table, np.int32(1))


class MujocoSide:
    """`mj_step` of one simulation in C, five time steps a call."""

    def __init__(self, steps_of_peer: int, **ours: Any) -> None:
        self._simulation, self._steps = _simulation(), steps_of_peer
        self._table = actions(64).reshape(-1, 6).astype(np.float64)
        self.facts = Facts(versions("mujoco"))

    def check(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """One step of each of the states."""
        states, after = checked_states(), []
        for qpos, qvel, ctrl in zip(states.qpos, states.qvel, states.ctrl, strict=True):
            self._simulation.load(qpos, qvel, np.zeros(9), ctrl)
            after.append(self._simulation.step(_FRAME_SKIP))
        return {"sums": numbers(*zip(*after, strict=True)), "given": given_of(states)}

    def work(self) -> int:
        """Episodes of 1,000 steps."""
        import mujoco

        step, table = mujoco.mj_step, self._table
        model, data = self._simulation.model, self._simulation.data
        rng = np.random.default_rng(0)
        for t in range(self._steps):
            if t % _EPISODE == 0:
                mujoco.mj_resetData(model, data)
                data.qpos[:], data.qvel[:] = rng.uniform(-0.1, 0.1, 9), rng.normal(0, 0.1, 9)
            data.ctrl[:] = table[t % len(table)]
            step(model, data, nstep=_FRAME_SKIP)
        return self._steps


class RolloutSide:
    """`mujoco.rollout`: 64 simulations on several threads, 250 steps a call."""

    _ENVS, _STEPS = 64, 250

    def __init__(self, threads: int, steps_of_peer: int, **ours: Any) -> None:
        self._simulation, self._steps = _simulation(), steps_of_peer
        rollout = importlib.import_module("mujoco.rollout")
        self._mujoco = importlib.import_module("mujoco")
        self._rollout = rollout.Rollout(nthread=threads)
        model = self._simulation.model
        self._datas = [self._mujoco.MjData(model) for _ in range(threads)]
        played = np.resize(actions(self._ENVS), (self._STEPS, self._ENVS, 6))
        self._control = played.swapaxes(0, 1).repeat(_FRAME_SKIP, 1).astype(np.float64)
        rng = np.random.default_rng(0)
        self._now = self._full(
            rng.uniform(-0.1, 0.1, (self._ENVS, 9)), rng.normal(0, 0.1, (self._ENVS, 9))
        )
        shape = (self._ENVS, self._STEPS * _FRAME_SKIP, self._now.shape[1])
        self._out = np.empty(shape)  # the same buffer at each call
        self.facts = Facts(versions("mujoco"))

    def _full(self, qpos: np.ndarray, qvel: np.ndarray) -> np.ndarray:
        """States as MuJoCo lays them out: time, positions, speeds."""
        return np.concatenate([np.zeros((len(qpos), 1)), qpos, qvel], axis=1)

    def check(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """One step of each of the states."""
        states = checked_states()
        control = states.ctrl[:, None].repeat(_FRAME_SKIP, 1)
        start = self._full(states.qpos, states.qvel)
        after, _ = self._rollout.rollout(self._simulation.model, self._datas, start, control)
        last = after[:, -1]
        return {"sums": numbers(last[:, 1:10], last[:, 10:19]), "given": given_of(states)}

    def work(self) -> int:
        """Calls that each begin where the last one ended."""
        calls = max(self._steps // (self._ENVS * self._STEPS), 1)
        for _ in range(calls):
            self._rollout.rollout(
                self._simulation.model, self._datas, self._now, self._control, state=self._out
            )
            self._now = self._out[:, -1].copy()
        return calls * self._ENVS * self._STEPS


class GymnasiumSide:
    """Gymnasium's HalfCheetah-v5, one environment, with its time limit."""

    def __init__(self, steps_of_peer: int, **ours: Any) -> None:
        _simulation()  # says what is missing
        import gymnasium

        # The checker looks at every step anew.
        self._env = gymnasium.make("HalfCheetah-v5", disable_env_checker=True)
        self._env.reset(seed=0)
        self._table, self._steps = actions(64).reshape(-1, 6), steps_of_peer
        self.facts = Facts(versions("gymnasium", "mujoco"))

    def check(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """One step of each of the states, with its reward."""
        states, env = checked_states(), self._env
        inner: Any = env.unwrapped
        after = []
        for qpos, qvel, ctrl in zip(states.qpos, states.qvel, states.ctrl, strict=True):
            env.reset()
            inner.set_state(qpos, qvel)
            obs, reward, *_ = env.step(ctrl)
            after.append(([inner.data.qpos[0], *obs[:8]], obs[8:], reward))
        return {
            "sums": numbers(*zip(*after, strict=True)),
            "given": given_of(states) | {"rewards": True},
        }

    def work(self) -> int:
        """Steps, with a reset where the time limit asks for it."""
        step, table = self._env.step, self._table
        for t in range(self._steps):
            _, _, terminated, truncated, _ = step(table[t % len(table)])
            if terminated or truncated:
                self._env.reset()
        return self._steps


class MjxSide:
    """MJX on the same model, `mjx.step` five times under `jax.vmap`; no reset.

    Args:
        num_envs: environments.
        steps_of_peer: of each environment in a round.
        iterations: of the solver; 0 leaves the model's own 100.
        ls_iterations: of its line search; 0 leaves the model's own 50.
    """

    def __init__(
        self,
        num_envs: int,
        steps_of_peer: int,
        iterations: int = 0,
        ls_iterations: int = 0,
        **ours: Any,
    ) -> None:
        references.use("mjx")
        mjx = importlib.import_module("mujoco.mjx")
        model = _simulation().model
        model.opt.iterations = iterations or model.opt.iterations
        model.opt.ls_iterations = ls_iterations or model.opt.ls_iterations
        device_model, blank = mjx.put_model(model), mjx.make_data(model)

        def advance(data: Any, ctrl: jax.Array) -> Any:
            def one(data: Any, ctrl: jax.Array) -> Any:
                data = data.replace(ctrl=ctrl.astype(data.qpos.dtype))
                step = lambda data, _: (mjx.step(device_model, data), None)  # noqa: E731
                return jax.lax.scan(step, data, None, _FRAME_SKIP)[0]

            return jax.vmap(one)(data, ctrl)

        def begin(qpos: Any, qvel: Any) -> Any:
            resized = (np.resize(np.asarray(x, np.float32), (num_envs, 9)) for x in (qpos, qvel))
            place = jax.vmap(lambda qpos, qvel: blank.replace(qpos=qpos, qvel=qvel))
            return place(*map(jnp.asarray, resized))

        states = checked_states()
        self._begin, self._steps = begin, steps_of_peer
        self._loop = Loop(advance, begin(states.qpos, states.qvel))
        self.facts = Facts(
            versions("mujoco-mjx", "mujoco", "jax"),
            compile_cpu_s=self._loop.compile_cpu_s,
            device=jax.devices()[0].device_kind,
        )

    def check(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """One step of each of the states."""
        states = checked_states()
        after = self._loop.once(self._begin(states.qpos, states.qvel), states.ctrl)
        return {"sums": numbers(after.qpos, after.qvel), "given": given_of(states)}

    def work(self) -> int:
        """Steps that go on where the last ones ended."""
        return self._loop.play(self._steps)


class BraxSide:
    """Brax's halfcheetah under `jax.vmap`, which is other physics; no reset.

    Args:
        num_envs: environments.
        steps_of_peer: of each environment in a round.
        backend: Brax's name of the physics.
    """

    def __init__(self, num_envs: int, steps_of_peer: int, backend: str, **ours: Any) -> None:
        references.use("brax")
        self._env = importlib.import_module("brax.envs").get_environment(
            "halfcheetah", backend=backend
        )
        keys = jax.random.split(jax.random.key(0), num_envs)
        state = jax.jit(jax.vmap(self._env.reset))(keys)
        self._loop, self._steps = Loop(jax.vmap(self._env.step), state), steps_of_peer
        self.facts = Facts(
            versions("brax", "mujoco-mjx", "jax"),
            compile_cpu_s=self._loop.compile_cpu_s,
            device=jax.devices()[0].device_kind,
        )

    def check(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Sizes, the length of a step, and whether all stay finite."""
        self.work()
        obs = self._loop.carry.obs
        sizes = [obs.shape[-1], int(self._env.action_size), float(self._env.dt)]
        return {"sums": [*sizes, float(jnp.isfinite(obs).all())], "given": {"sizes": True}}

    def work(self) -> int:
        """Steps that go on where the last ones ended."""
        return self._loop.play(self._steps)
