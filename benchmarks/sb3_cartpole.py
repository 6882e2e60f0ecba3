"""Whole training loops on CartPole against Stable-Baselines3; run by hand.

    pip install stable-baselines3        # brings torch
    python benchmarks/sb3_cartpole.py --json benchmarks/results/sb3_cartpole.json

Stable-Baselines3 runs its PPO with its own defaults for vectorised training (2048 steps in all
between updates, 10 epochs, minibatches of 64) and the same network, 64 environments, one thread.
Ours runs as in `twinenv bench ppo`, so epochs and minibatches differ: this compares what users of
either get, not the same arithmetic.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twinenv.bench import Benchmark, Facts, run
from twinenv.bench.ppo import TwinSide

NUM_ENVS, STEPS, CHECKED_STEPS, LEARNED = 64, 65_536, 131_072, 60.0


class Sb3Side:
    """Stable-Baselines3's PPO on Gymnasium's CartPole."""

    def __init__(self, num_envs: int) -> None:
        import torch

        torch.set_num_threads(1)
        self._num_envs = num_envs
        names = ("stable-baselines3", "torch", "gymnasium")
        self.facts = Facts({name: importlib.metadata.version(name) for name in names})

    def _learn(self, steps: int) -> Any:
        from stable_baselines3 import PPO
        from stable_baselines3.common.env_util import make_vec_env

        envs = make_vec_env("CartPole-v1", n_envs=self._num_envs, seed=0)
        agent = PPO(
            "MlpPolicy", envs, n_steps=2048 // self._num_envs, batch_size=64, seed=0, device="cpu"
        )
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

    def check(self, given: Mapping[str, Any]) -> dict[str, Any]:
        size, _, learned = super().check(given)["sums"]
        return {"sums": [size, learned]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    benchmark = Benchmark(
        env="PPO on CartPole-v1",
        unit="environment step of the whole training loop",
        batch=NUM_ENVS,
        against="stable-baselines3",
        fast="sb3_cartpole:OurSide",
        reference="sb3_cartpole:Sb3Side",
        options={"num_envs": NUM_ENVS},
        target=10.0,
        notes={"network": "two MLPs 4-64-64, tanh", "ours": "4 epochs, 4 minibatches"},
    )
    record = run(benchmark, rounds=options.rounds) | {
        "command": f"python benchmarks/sb3_cartpole.py --rounds {options.rounds}"
    }
    print(json.dumps(record, indent=1))
    if options.json:
        options.json.write_text(json.dumps([record], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
