"""rejax, unedited, trains on Pong through the five-value API."""

import runpy
from pathlib import Path

import jax
import numpy as np

import twinenv

EXAMPLE = Path(__file__).parents[2] / "examples" / "rejax_pong.py"


def test_ppo_learns():
    train = runpy.run_path(str(EXAMPLE))["train"]
    returns, lengths = train(196_608, 65_536)
    assert returns.shape == (3,)
    # A random player's mean return is -0.95; a game is won with 1 and 0.1 for every ball returned.
    assert np.isfinite(returns).all()
    assert returns[-1] > 0.5
    assert returns[-1] > returns[0] + 0.3
    assert lengths[-1] > lengths[0]


def test_ppo_takes_continuous_actions():
    import rejax

    env, params = twinenv.make("PongJAX-v0", frameskip=8, continuous=True)
    ppo = rejax.PPO.create(env=env, env_params=params, total_timesteps=8192, eval_freq=8192)
    _, (lengths, returns) = jax.eval_shape(ppo.train, jax.random.key(0))
    assert lengths.shape == returns.shape == (2, 128)
