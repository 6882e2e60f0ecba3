"""What is on the disk: metrics, checkpoints, and a process killed in the middle."""

import dataclasses
import math
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from line import CELLS, Line

from twinenv.ppo import CheckpointError, MLPPolicy, checkpoint, load_policy, train
from twinenv.ppo.metrics import MetricsLog

COLUMNS = ("update", "steps", "seed", "value")
ARRAYS = {"a.b": np.arange(6, dtype=np.float32).reshape(2, 3), "c": np.asarray(3, np.int32)}


def rows(*updates):
    return np.asarray([[u, 10 * u, 0, u / 3 if u % 2 else math.nan] for u in updates], np.float64)


def test_metrics_are_on_the_disk_after_each_chunk(tmp_path):
    path = tmp_path / "metrics.csv"
    log = MetricsLog(path, COLUMNS)
    log.append(rows(1, 2))
    assert path.read_text() == "update,steps,seed,value\n1,10,0,0.333333333\n2,20,0,\n"
    log.append(rows(3))
    assert path.read_text().endswith("\n3,30,0,1\n")
    np.testing.assert_allclose(log.table()["value"], rows(1, 2, 3)[:, 3], rtol=1e-8)


def test_metrics_hold_every_float32(tmp_path):
    values = np.random.default_rng(0).standard_normal(500).astype(np.float32) * np.float32(1e-5)
    log = MetricsLog(tmp_path / "metrics.csv", ("update", "value"))
    log.append(np.column_stack([np.arange(500), values]).astype(np.float64))
    np.testing.assert_array_equal(log.table()["value"].astype(np.float32), values)


def test_metrics_survive_a_full_disk(tmp_path, monkeypatch):
    """Half of a line gets through; the next attempt writes everything, and nothing twice."""
    path = tmp_path / "metrics.csv"
    log = MetricsLog(path, COLUMNS)
    log.append(rows(1))
    opened = Path.open

    class Full:
        def __init__(self, file):
            self.file = file

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

        def write(self, data):
            self.file.write(data[:3])
            raise OSError(28, "No space left on device")

        def __getattr__(self, name):
            return getattr(self.file, name)

    monkeypatch.setattr(Path, "open", lambda self, *a, **k: Full(opened(self, *a, **k)))
    with pytest.raises(CheckpointError, match="No space left on device"):
        log.append(rows(2))
    monkeypatch.undo()
    assert path.read_text().endswith("\n2,2")
    log.append(rows(3))
    lines = ["update,steps,seed,value", "1,10,0,0.333333333", "2,20,0,", "3,30,0,1", ""]
    assert path.read_text().split("\n") == lines


def test_metrics_after_a_checkpoint_are_dropped_on_resuming(tmp_path):
    path = tmp_path / "metrics.csv"
    MetricsLog(path, COLUMNS).append(rows(1, 2, 3))
    with path.open("a") as file:
        file.write("4,4")
    log = MetricsLog(path, COLUMNS)
    log.keep_until(2)
    log.append(rows(3))
    lines = ["update,steps,seed,value", "1,10,0,0.333333333", "2,20,0,", "3,30,0,1", ""]
    assert path.read_text().split("\n") == lines


def test_a_checkpoint_gives_back_what_it_was_given(tmp_path):
    tree = {"key": jax.random.key(3), "x": [jnp.ones((2, 3)), jnp.int32(7)], "none": None}
    arrays = checkpoint.arrays_of(tree)
    saved = checkpoint.save(tmp_path, arrays, 5, math.nan)
    found, read = checkpoint.latest(tmp_path, pytest.fail)
    assert (found.path, found.update) == (saved.path, 5) and math.isnan(found.score)
    back = checkpoint.restored(jax.eval_shape(lambda: tree), read)
    assert back["none"] is None and back["x"][1].dtype == jnp.int32
    np.testing.assert_array_equal(back["x"][0], tree["x"][0])
    assert (jax.random.bits(back["key"]) == jax.random.bits(tree["key"])).all()


def test_a_leaf_without_a_place_is_refused():
    like = {"a": jax.ShapeDtypeStruct((), jnp.int32)}
    with pytest.raises(CheckpointError, match=r"it holds b\.c, for which there is no place"):
        checkpoint.restored(like, {"a": np.asarray(3, np.int32), "b.c": np.zeros(2)})


def test_the_last_two_and_the_best_are_kept(tmp_path):
    for update, score in enumerate([0.1, 0.9, math.nan, 0.3, 0.2], 1):
        checkpoint.save(tmp_path, ARRAYS, update, score)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["00000002", "00000004", "00000005"]
    assert checkpoint.best(tmp_path).name == "00000002"


def test_a_flipped_bit_is_noticed(tmp_path):
    saved = checkpoint.save(tmp_path, ARRAYS, 1, 0.0)
    meta = saved.path / "meta.json"
    meta.write_text(meta.read_text().replace(saved.digest[:4], "0000"))
    with pytest.raises(CheckpointError, match="do not match their digest"):
        checkpoint.read(saved.path)
    told = []
    with pytest.raises(CheckpointError, match="no usable checkpoint"):
        checkpoint.latest(tmp_path, told.append)
    assert len(told) == 1


def test_an_unfinished_checkpoint_is_none(tmp_path):
    checkpoint.save(tmp_path, ARRAYS, 1, 0.0)
    half = tmp_path / ".tmp-00000002" / "state"
    half.mkdir(parents=True)
    assert checkpoint.latest(tmp_path, pytest.fail)[0].update == 1
    checkpoint.save(tmp_path, ARRAYS, 3, 0.0)
    assert not half.exists()


def test_failing_to_write_leaves_the_older_ones(tmp_path, monkeypatch):
    checkpoint.save(tmp_path, ARRAYS, 1, 0.0)

    def fail(path, text):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoint, "_write_text", fail)
    with pytest.raises(CheckpointError, match="the last complete one is 00000001"):
        checkpoint.save(tmp_path, ARRAYS, 2, 0.0)
    assert [path.name for path in tmp_path.iterdir()] == ["00000001"]
    with pytest.raises(CheckpointError, match="there is no complete one yet"):
        checkpoint.save(tmp_path / "other", ARRAYS, 2, 0.0)


KILLED = """
import os, signal, sys
sys.path[:0] = sys.argv[2].split(os.pathsep)
from conftest import CONFIG, Quiet, task
from line import Line
import dataclasses
from twinenv.ppo import train

class Deadly(Quiet):
    def progress(self, progress):
        if progress.update >= 4:
            os.kill(os.getpid(), signal.SIGKILL)

config = dataclasses.replace(CONFIG, checkpoint_seconds=0)
train(Line(), None, config, run_dir=sys.argv[1], task=task(reporter=Deadly()))
"""


def test_a_killed_process_loses_only_what_came_after_its_checkpoint(tmp_path, finished, new_task):
    """SIGKILL after the metrics of a chunk are written and before its checkpoint is."""
    folder = tmp_path / "run"
    paths = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    child = subprocess.run([sys.executable, "-c", KILLED, str(folder), paths], check=False)
    assert child.returncode == -signal.SIGKILL
    saved = checkpoint.latest(folder / "checkpoints", pytest.fail)[0].update
    written = len((folder / "metrics.csv").read_text().splitlines()) - 1
    assert 0 < saved < written
    task = new_task()
    resumed = train(Line(), None, None, run_dir=folder, resume=True, task=task)
    whole = finished[0]
    ours, theirs = checkpoint.arrays_of(resumed.state), checkpoint.arrays_of(whole.state)
    assert ours.keys() == theirs.keys()
    for name, leaf in ours.items():
        np.testing.assert_array_equal(leaf, theirs[name], err_msg=name)
    for name in set(whole.metrics) - {"cpu_s"}:
        np.testing.assert_array_equal(resumed.metrics[name], whole.metrics[name], err_msg=name)


def test_policies_can_be_loaded_best_or_last(finished, tmp_path):
    result, folder = finished
    obs = np.random.default_rng(0).random((5, 7)).astype(np.float32)
    mask = np.ones((5, 3), np.bool_)
    for which in ("last", "best"):
        policy = load_policy(folder, which=which)
        expected = result.policy.act(obs, mask, jax.random.key(1))
        np.testing.assert_array_equal(policy.act(obs, mask, jax.random.key(1)), expected)
    with pytest.raises(ValueError, match=r"which is .first"):
        load_policy(folder, which="first")
    with pytest.raises(ValueError, match="seed is 1; this run has 1"):
        load_policy(folder, seed=1)
    with pytest.raises(ValueError, match="holds no run"):
        load_policy(tmp_path)


class Named(NamedTuple):
    """The later name comes first."""

    where: Any
    since: Any


@dataclasses.dataclass(frozen=True)
class Nested(Line):
    """The line, its observation in parts."""

    named: bool = False

    def get_obs(self, state, params=None, key=None):
        obs = super().get_obs(state, params, key)
        where, since = obs[:CELLS], {"steps": obs[CELLS:]}
        return Named(where, since) if self.named else {"where": (where, where[:2]), "since": since}


class Looking(nn.Module):
    """A policy that knows the parts by name."""

    inner: MLPPolicy

    def initial_carry(self, num_envs):
        return ()

    def __call__(self, obs, mask, carry, reset):
        return self.inner((obs["where"][0], obs["since"]["steps"]), mask, carry, reset)


@pytest.mark.parametrize("kind", ["named", "dictionary", "own network"])
def test_a_loaded_policy_sees_observations_in_parts(config, network, new_task, tmp_path, kind):
    env, own = Nested(kind == "named"), Looking(network) if kind == "own network" else None
    task = new_task(network=own)
    result = train(env, None, config, run_dir=tmp_path / "run", task=task)
    policy = load_policy(tmp_path / "run", network=own)
    obs = jax.vmap(env.get_obs)(env.state_class(*np.arange(15, dtype=np.int32).reshape(3, 5)))
    mask = np.ones((5, 3), np.bool_)
    (loaded, _), (trained, _) = (
        jax.tree.flatten(each.obs_moments) for each in (policy, result.policy)
    )
    jax.tree.map(np.testing.assert_array_equal, loaded, trained)
    actions = [each.act(obs, mask, jax.random.key(1)) for each in (policy, result.policy)]
    np.testing.assert_array_equal(*actions)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"obs": np.zeros((5, 6), np.float32)}, "this policy takes a batch"),
        ({"obs": np.zeros(7, np.float32)}, "this policy takes a batch"),
        ({"mask": np.ones((4, 3), np.bool_)}, "mask is of shape"),
        ({"key": None}, "sampling needs a key"),
    ],
)
def test_a_policy_says_what_it_takes(finished, arguments, words):
    given = {"obs": np.zeros((5, 7), np.float32), "mask": None, "key": jax.random.key(0)}
    with pytest.raises(ValueError, match=words):
        finished[0].policy.act(**(given | arguments))
