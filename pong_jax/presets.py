"""The PPO baseline of Pong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twinenv.ppo.config import Config, Preset, Target

__all__ = ["PRESETS", "point_win_rate"]


def point_win_rate(info: Mapping[str, Any]) -> tuple[Any, Any]:
    """Points won among all points, `bool[N]` each."""
    point = info["point"]
    return point > 0, point != 0


PRESETS = {
    # The 0.1 for a bounce is a trap for weak updates: they learn to rally and never win a point.
    "default": Preset(
        env={"frameskip": 8},
        config=Config(
            total_steps=12_000_000,
            num_envs=1024,
            num_steps=64,
            num_epochs=2,
            num_minibatches=16,
            learning_rate=1e-2,
            gamma=0.961,
            gae_lambda=0.885,
            clip=0.22,
            value_clip=0.2,
            entropy_coef=0.002,
            value_coef=2.0,
            max_grad_norm=0.5,
            hidden=(128,),
            activation="relu",
            quick_compile=True,
        ),
        outcomes={"point_win_rate": point_win_rate},
        target=Target("point_win_rate", 0.95),
    ),
}
