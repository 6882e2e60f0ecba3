"""The verifier's levels on the HalfCheetah, as `twinenv verify HalfCheetahJAX-v0` runs them."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pytest

from halfcheetah_jax.pair import PAIR
from twinenv.verify.levels import run
from twinenv.verify.testing import check_faults

GOLDEN = Path(__file__).parent / "golden"
FAULTS = Path(__file__).parent / "faults"

needs_reference = pytest.mark.skipif(
    importlib.util.find_spec("mujoco") is None,
    reason="MuJoCo is not installed; pip install mujoco",
)


def passed(result):
    assert not result.divergences, [str(found) for found in result.divergences]
    assert (result.status, result.skipped) == ("passed", ())
    return result


@pytest.mark.l1
def test_properties_hold():
    result = passed(run(PAIR, 1, budget="20000rows", configurations=["v5", "one_time_step"]))
    assert result.rows > 20_000
    assert result.details["contract checked as"] == {"one_time_step": "v5"}


@pytest.mark.l2
@pytest.mark.reference
@needs_reference
def test_single_steps_equal_the_reference():
    result = passed(run(PAIR, 2, budget="20000rows"))
    assert result.rows > 20_000
    assert result.details["scenarios"] == len(PAIR.scenarios()) >= 15


@pytest.mark.l3
def test_golden_traces_are_reproduced():
    """Recorded traces alone, so this runs without the reference."""
    result = run(PAIR, 3, budget="1rows", golden=GOLDEN, configurations=["v5", "one_time_step"])
    assert not result.divergences
    assert result.details["golden rows"] > 4_000


@pytest.mark.l3
@pytest.mark.reference
@needs_reference
def test_live_play_equals_the_reference_and_meets_every_pair_of_events():
    result = passed(run(PAIR, 3, budget="20000rows", configurations=["v5"], golden=GOLDEN))
    together = np.array(result.details["coverage"]["together"])
    events = together.shape[0]
    met = (np.triu(together) >= PAIR.quota).sum()
    assert met == events * (events + 1) // 2 - len(PAIR.excluded_pairs)


# One of each kind; every other one takes as long, because each is compiled.
CHEAP = (
    "blown-up-state-stays",
    "coriolis-force-reversed",
    "cost-of-clipped-action",
    "dampers-explicit-in-euler",
    "episodes-begin-at-the-line",
    "friction-rows-dropped",
    "impedance-from-zero",
    "inverse-weights-of-the-default-model",
    "limits-only-when-well-beyond",
    "newton-stops-near-its-start",
    "one-normal-row-of-two",
    "reward-by-last-speed",
    "tiles-mix-environments",
    "torso-carries-the-back-leg-twice",
)


def test_planted_faults_of_every_kind_are_killed_by_their_level(tmp_path):
    for name in CHEAP:
        shutil.copy(FAULTS / f"{name}.patch", tmp_path)
    graded = check_faults(PAIR, tmp_path, GOLDEN)
    assert graded["killed"] == graded["total"] == len(CHEAP)


@pytest.mark.slow
def test_every_planted_fault_is_killed_by_its_level():
    graded = check_faults(PAIR, FAULTS, GOLDEN)
    assert graded["killed"] == graded["total"] >= 30
