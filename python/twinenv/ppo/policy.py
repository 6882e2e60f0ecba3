"""Trained policies, ready to act."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from twinenv.ppo import checkpoint
from twinenv.ppo.compiling import compiler_options
from twinenv.ppo.config import Config
from twinenv.ppo.learn import policy_of
from twinenv.ppo.networks import MLPPolicy
from twinenv.ppo.normalizers import Moments, initial_moments
from twinenv.ppo.rollout import once
from twinenv.ppo.runs import Run, Spec, leaf_shapes

__all__ = ["Policy", "example_of", "load_policy", "network_of", "step_function"]


def network_of(spec: Spec, config: Config) -> MLPPolicy:
    """The built-in policy that a configuration describes."""
    kind = (config.hidden, config.activation, config.shared, config.initial_std)
    return MLPPolicy(spec.actions, *kind)


@dataclasses.dataclass(frozen=True, eq=False)
class Policy:
    """A policy with its parameters.

    Attributes:
        network: the flax module.
        params: its parameters.
        obs_moments: statistics that observations are scaled by, or None.
        spec: what it sees and does.
    """

    network: nn.Module
    params: Any
    obs_moments: Moments | None
    spec: Spec

    def initial_carry(self, num_envs: int) -> Any:
        """The memory at the start of an episode; `()` for a policy without memory."""
        return self.network.initial_carry(num_envs)

    def act(
        self, obs: Any, mask: Any = None, key: jax.Array | None = None, *, greedy: bool = False
    ) -> jax.Array:
        """Actions for a batch of observations, of a policy without memory; may be traced.

        Args:
            obs: `[N, ...]`.
            mask: `bool[N, A]` of the legal actions; None means all.
            key: of the samples; may be left out if `greedy`.
            greedy: take the likeliest action (or the mean) instead of a sample.

        Returns:
            `int32[N]`, or `float32[N, ...]` within [-1, 1].

        Raises:
            ValueError: an argument is missing or of the wrong shape, or the policy has a memory.
        """
        num_envs = self._checked(obs, mask)
        carry = self.initial_carry(num_envs)
        if jax.tree.leaves(carry):
            raise ValueError("this policy has a memory; use step(), which takes and returns it")
        if key is None and not greedy:
            raise ValueError("sampling needs a key: give jax.random.key(seed), or greedy=True")
        reset = np.zeros(num_envs, np.bool_)
        return self.step(obs, mask, carry, reset, key, greedy=greedy)[0]

    def step(
        self, obs: Any, mask: Any, carry: Any, reset: Any, key: jax.Array | None, *, greedy: bool
    ) -> tuple[jax.Array, Any]:
        """Actions and the next memory; `reset: bool[N]` is true where an episode begins."""
        key = key if key is not None else jax.random.key(0)
        inputs = (obs, mask, carry, reset)
        traced = any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves((inputs, key)))
        # Compiler options are for the outermost program only.
        step = step_function if traced else _compiled_step
        step = step(self.network, self.spec.actions.shape)
        return step(self.params, self.obs_moments, inputs, key, greedy)

    def _checked(self, obs: Any, mask: Any) -> int:
        given = leaf_shapes(jax.tree.map(_as_array, obs))
        good = given.keys() == self.spec.obs.keys() and all(
            len(given[name].shape) == len(want.shape) + 1 and given[name].shape[1:] == want.shape
            for name, want in self.spec.obs.items()
        )
        if not good:
            shapes = {name: shape.shape for name, shape in given.items()}
            wanted = {name: ("N", *shape.shape) for name, shape in self.spec.obs.items()}
            raise ValueError(f"obs has shapes {shapes}; this policy takes a batch {wanted}")
        num_envs = next(iter(given.values())).shape[0]
        if mask is not None and tuple(np.shape(mask)) != (num_envs, self.spec.actions.size):
            raise ValueError(
                f"mask is of shape {tuple(np.shape(mask))}; accepted is "
                f"{(num_envs, self.spec.actions.size)}"
            )
        return num_envs


def _as_array(leaf: Any) -> Any:
    return leaf if isinstance(leaf, jax.Array) else np.asarray(leaf)


def step_function(network: nn.Module, shape: tuple[int, ...]) -> Any:
    """`(params, obs_moments, (obs, mask, carry, reset), key, greedy) -> (action, carry)`.

    Args:
        network: the flax module.
        shape: of one continuous action; () for a discrete one.
    """

    def step(
        params: Any, obs_moments: Moments | None, inputs: Any, key: jax.Array, greedy: bool
    ) -> tuple[jax.Array, Any]:
        output = once(policy_of(network, params, obs_moments), *inputs)
        distribution = output.distribution
        action = distribution.mode() if greedy else distribution.sample(key)
        if jnp.issubdtype(action.dtype, jnp.floating):
            action = jnp.clip(action, -1.0, 1.0).reshape(-1, *shape)
        return action, output.carry

    return step


@functools.lru_cache(maxsize=32)
def _compiled_step(network: nn.Module, shape: tuple[int, ...]) -> Any:
    """The compiled step, shared by all parameters of one network."""
    options = compiler_options(quick=True)
    step = step_function(network, shape)
    return jax.jit(step, static_argnames="greedy", compiler_options=options)


def load_policy(
    run: str | Path,
    *,
    which: str = "last",
    seed: int = 0,
    network: nn.Module | None = None,
    warn: Any = print,
) -> Policy:
    """The policy of a run.

    Args:
        run: the run's folder.
        which: "last" or "best" checkpoint.
        seed: which of several seeds that were trained side by side, counted from 0.
        network: the flax module, if the run was made with one of your own.
        warn: is told of damaged checkpoints that were passed over.

    Raises:
        ValueError: no such run, checkpoint or seed, or the network does not fit.
    """
    opened = Run.open(run)
    config, spec = opened.config, opened.spec
    if not 0 <= seed < config.seeds:
        raise ValueError(f"seed is {seed}; this run has {config.seeds}, counted from 0")
    arrays = _arrays(opened, which, warn)
    network = network_of(spec, config) if network is None else network
    like = jax.eval_shape(functools.partial(_initial, network, spec, config))
    try:
        params, moments = checkpoint.restored(like, _one_seed(arrays, seed, config.seeds))
    except checkpoint.CheckpointError as error:
        raise ValueError(
            f"{run} does not fit this network: {error}; give load_policy(network=...) the module "
            "that it was trained with"
        ) from error
    return Policy(network, params, moments, spec)


def _arrays(run: Run, which: str, warn: Any) -> dict[str, np.ndarray]:
    if which not in ("last", "best"):
        raise ValueError(f'which is {which!r}; accepted is "last" or "best"')
    try:
        path = checkpoint.best(run.checkpoints)
        if which == "best" and path is not None:
            return checkpoint.read(path)[1]
        return checkpoint.latest(run.checkpoints, warn)[1]
    except checkpoint.CheckpointError as error:
        raise ValueError(f"{run.path} has no policy to load: {error}") from error


def example_of(spec: Spec, network: Any, num_envs: int) -> tuple[Any, Any, Any, Any]:
    """`(obs, mask, carry, reset)` of one step of nothing, as a policy takes it."""

    def zeros(shape: jax.ShapeDtypeStruct) -> np.ndarray:
        return np.zeros((1, num_envs, *shape.shape), shape.dtype)

    mask = np.ones((1, num_envs, spec.actions.size), np.bool_) if spec.masked else None
    carry, reset = network.initial_carry(num_envs), np.ones((1, num_envs), np.bool_)
    return jax.tree.map(zeros, spec.example), mask, carry, reset


def _initial(network: Any, spec: Spec, config: Config) -> tuple[Any, Moments | None]:
    params = network.init(jax.random.key(0), *example_of(spec, network, 1))
    return params, initial_moments(
        list(spec.obs.values())
    ) if config.normalize_observation else None


def _one_seed(arrays: dict[str, np.ndarray], seed: int, seeds: int) -> dict[str, np.ndarray]:
    """The learner's arrays of one seed under the paths that `(params, moments)` has."""
    parts = {"learner.params.": "0.", "learner.obs_moments.": "1."}
    return {
        new + name.removeprefix(old): leaf[seed] if seeds > 1 else leaf
        for name, leaf in arrays.items()
        for old, new in parts.items()
        if name.startswith(old)
    }
