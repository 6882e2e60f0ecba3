"""Small runs that many tests look at; equal configurations share one compiled program."""

import dataclasses
import sys
from pathlib import Path

import pytest

_HERE = Path(__file__).resolve().parent
if str(_HERE) not in sys.path:
    sys.path.append(str(_HERE))

from line import Line, moved  # noqa: E402

from twinenv.ppo import Config, Target, Task, train  # noqa: E402
from twinenv.ppo.networks import Actions, MLPPolicy  # noqa: E402
from twinenv.ppo.views import view_of  # noqa: E402

CONFIG = Config(
    total_steps=8 * 6 * 12,
    num_envs=8,
    num_steps=6,
    num_epochs=2,
    num_minibatches=2,
    learning_rate=3e-3,
    hidden=(8,),
    normalize_observation=True,
    normalize_reward=True,
    quick_compile=True,
)
OUTCOMES = {"moved": moved}


class Quiet:
    """A reporter that remembers."""

    def __init__(self):
        self.said, self.shown = [], []

    def progress(self, progress):
        self.shown.append(progress)

    def say(self, message):
        self.said.append(message)


def task(**more):
    """The task of most tests; `reporter.said` has what the user was told."""
    given = {"outcomes": OUTCOMES, "target": Target("moved", 2.0), "reporter": Quiet()}
    return Task(**(given | more))


@pytest.fixture(scope="session")
def config():
    return CONFIG


@pytest.fixture(scope="session")
def line():
    return view_of(Line(), Line().default_params)


@pytest.fixture(scope="session")
def network():
    return MLPPolicy(Actions(True, 3), (8,))


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A run of 12 updates that was never interrupted, and its folder."""
    folder = tmp_path_factory.mktemp("runs") / "finished"
    return train(Line(), None, CONFIG, run_dir=folder, task=task()), folder


@pytest.fixture(scope="session")
def new_task():
    return task


@pytest.fixture
def shorter(config):
    """The same run with another number of updates."""

    def made(updates):
        return dataclasses.replace(config, total_steps=config.steps_per_update * updates)

    return made
