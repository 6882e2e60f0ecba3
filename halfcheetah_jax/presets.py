"""The PPO baseline of the HalfCheetah."""

from __future__ import annotations

from twinenv.ppo.config import Config, Preset

__all__ = ["PRESETS"]

PRESETS = {
    "default": Preset(
        config=Config(
            total_steps=50_000_000,
            num_envs=2048,
            num_steps=32,
            num_epochs=4,
            num_minibatches=16,
            learning_rate=1e-3,
            gamma=0.99,
            gae_lambda=0.95,
            clip=0.2,
            value_clip=0.0,
            entropy_coef=0.0,
            value_coef=0.5,
            max_grad_norm=0.5,
            normalize_observation=True,
            normalize_reward=True,
            hidden=(64, 64),
            activation="tanh",
            shared=False,
        ),
    ),
}
