"""Whole training loops on CartPole against Stable-Baselines3; run by hand.

    pip install stable-baselines3        # brings torch
    python benchmarks/sb3_cartpole.py --json benchmarks/results/sb3_cartpole.json

Both train the same network on 64 environments with one thread, ours as in `twinenv bench ppo` (64
steps, 4 epochs, 4 minibatches). Stable-Baselines3 runs twice: with the same numbers, so that the
arithmetic is equal, and with its own defaults (2048 steps in all between updates, 10 epochs,
minibatches of 64), which take many more gradient steps.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twinenv.bench import Benchmark, Facts, run
from twinenv.bench.ppo import TwinSide
from twinenv.versions import versions

NUM_ENVS, STEPS, CHECKED_STEPS, LEARNED = 64, 65_536, 262_144, 60.0
SETTINGS = {
    "equal arithmetic": {
        "n_steps": 64,
        "batch_size": 1024,
        "n_epochs": 4,
        "learning_rate": 1e-3,
        "ent_coef": 0.01,
    },
    "its defaults": {"n_steps": 2048 // NUM_ENVS},
}


class Sb3Side:
    """Stable-Baselines3's PPO on Gymnasium's CartPole."""

    def __init__(self, num_envs: int, settings: str) -> None:
        import torch

        torch.set_num_threads(1)
        self._num_envs, self._settings = num_envs, SETTINGS[settings]
        self.facts = Facts(versions("stable-baselines3", "torch", "gymnasium"))

    def _learn(self, steps: int) -> Any:
        from stable_baselines3 import PPO
        from stable_baselines3.common.env_util import make_vec_env

        envs = make_vec_env("CartPole-v1", n_envs=self._num_envs, seed=0)
        agent = PPO("MlpPolicy", envs, seed=0, device="cpu", **self._settings)
        return agent.learn(steps)

    def check(self, given: Mapping[str, Any]) -> dict[str, Any]:
        agent = self._learn(CHECKED_STEPS)
        size = sum(weights.numel() for weights in agent.policy.parameters())
        returns = [episode["r"] for episode in agent.ep_info_buffer]
        return {"sums": [size, float(sum(returns) / len(returns) >= LEARNED)]}

    def work(self) -> int:
        return int(self._learn(STEPS).num_timesteps)


class OurSide(TwinSide):
    """Our trainer, with a check that both sides can make."""

    def __init__(self, num_envs: int, settings: str) -> None:
        super().__init__(num_envs)

    def check(self, given: Mapping[str, Any]) -> dict[str, Any]:
        size, _, learned = super().check(given)["sums"]
        return {"sums": [size, learned]}


def benchmark(settings: str) -> Benchmark:
    """The comparison with one of `SETTINGS`."""
    return Benchmark(
        env="PPO on CartPole-v1",
        unit="environment step of the whole training loop",
        batch=NUM_ENVS,
        against=f"stable-baselines3, {settings}",
        fast="sb3_cartpole:OurSide",
        reference="sb3_cartpole:Sb3Side",
        options={"num_envs": NUM_ENVS, "settings": settings},
        target=10.0,
        notes={"network": "two MLPs 4-64-64, tanh", "stable-baselines3": SETTINGS[settings]},
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    command = f"python benchmarks/sb3_cartpole.py --rounds {options.rounds}"
    here = str(Path(__file__).parent)
    # Where the worker processes find the sides.
    os.environ["PYTHONPATH"] = os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])
    records = [
        run(benchmark(settings), rounds=options.rounds) | {"command": command}
        for settings in SETTINGS
    ]
    print(json.dumps(records, indent=1))
    if options.json:
        options.json.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
