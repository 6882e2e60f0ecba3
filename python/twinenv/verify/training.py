"""Level 4's default trainer: PPO with the house's preset."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from twinenv import ppo, registry
from twinenv.verify.pair import Actor, Pair

__all__ = ["train_ppo"]


def train_ppo(
    pair: Pair, configuration: str, side: str, seeds: Sequence[int], max_steps: int | None
) -> list[Actor]:
    """Train by `<house>.presets.PRESETS["default"]` until its target is reached.

    Args:
        pair: the house's pair.
        configuration: name.
        side: "fast", where all policies are trained side by side, or a reference's name for
            `<house>.reference.vector_env`.
        seeds: of training, one for each policy, in a row.
        max_steps: environment steps of each at most; None takes the preset's.

    Raises:
        MissingReferenceError: the reference to train on is not installed.
    """
    preset = importlib.import_module(f"{pair.name}.presets").PRESETS["default"]
    steps = min(preset.config.total_steps, max_steps or preset.config.total_steps)
    config = dataclasses.replace(preset.config, seed=seeds[0], total_steps=steps)
    task = ppo.Task(outcomes=preset.outcomes, target=preset.target, stop=True)
    options = pair.configurations[configuration]
    if side == "fast":
        env, params = registry.make(pair.env_id, **options)
        config = dataclasses.replace(config, seeds=len(seeds))
        policies = ppo.train(env, params, config, task=task).policies
    else:
        house = importlib.import_module(f"{pair.name}.reference")
        envs = house.vector_env(config.num_envs, **options)
        configs = (dataclasses.replace(config, seed=seed) for seed in seeds)
        try:
            policies = tuple(ppo.train(envs, None, each, task=task).policy for each in configs)
        finally:
            envs.close()
    return [_actor(policy, seed) for policy, seed in zip(policies, seeds, strict=True)]


def _actor(policy: ppo.Policy, seed: int) -> Actor:
    """Samples of the policy; the same key in the same step on either side."""
    root = jax.random.key(seed)

    def act(obs: np.ndarray, mask: np.ndarray | None, number: int) -> Any:
        return policy.act(obs, mask, jax.random.fold_in(root, number))

    return act
