"""rejax, unedited, trains on Pong through the five-value API."""

import runpy
from pathlib import Path

import numpy as np

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
