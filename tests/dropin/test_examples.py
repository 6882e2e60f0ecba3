"""The scripts in `examples/` run."""

import runpy
from pathlib import Path

import jax
import numpy as np
import pytest

import twinenv
from twinenv.wrappers import EpisodeStatistics

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_quickstart(capsys):
    runpy.run_path(str(EXAMPLES / "quickstart.py"), run_name="__main__")
    assert "(1000, 8)" in capsys.readouterr().out


def purejaxrl(updates):
    make_train = runpy.run_path(str(EXAMPLES / "purejaxrl_style.py"))["make_train"]
    env, params = twinenv.make("PongJAX-v0", frameskip=8, max_score=1)
    return make_train(EpisodeStatistics(env), params, updates)


def test_a_loop_in_the_style_of_purejaxrl_can_be_traced():
    returns = jax.eval_shape(purejaxrl(3), jax.random.key(0))[1]
    assert returns.shape == (3,)


@pytest.mark.slow
def test_a_loop_in_the_style_of_purejaxrl_learns():
    returns = np.asarray(purejaxrl(150)(jax.random.key(0))[1])
    assert returns[-10:].mean() > returns[:10].mean() + 0.8
