"""The verifier's levels on Pong, as `twinenv verify PongJAX-v0` runs them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pong_jax.pair import PAIR
from twinenv import references
from twinenv.verify.levels import run
from twinenv.verify.testing import check_faults

GOLDEN = Path(__file__).parent / "golden"

needs_reference = pytest.mark.skipif(
    bool(references.status("pufferlib").problem),
    reason="PufferLib is not installed; run `twinenv references install pufferlib`",
)


def passed(result):
    assert not result.divergences, [str(found) for found in result.divergences]
    assert (result.status, result.skipped) == ("passed", ())
    return result


@pytest.mark.l1
@pytest.mark.parametrize("configuration", ["frameskip8", "fractions", "continuous"])
def test_properties_hold(configuration):
    result = passed(run(PAIR, 1, budget="40000rows", configurations=[configuration]))
    assert result.rows > 20_000


@pytest.mark.l2
@pytest.mark.reference
@needs_reference
def test_single_steps_equal_the_reference():
    result = passed(run(PAIR, 2, budget="200000rows"))
    assert result.rows > 200_000
    assert result.details["scenarios"] == len(PAIR.scenarios()) >= 60


@pytest.mark.l3
def test_golden_traces_are_reproduced():
    """Recorded traces alone, so this runs without the reference."""
    result = run(PAIR, 3, budget="1rows", golden=GOLDEN)
    assert not result.divergences
    assert result.details["golden rows"] > 60_000


@pytest.mark.l3
@pytest.mark.reference
@needs_reference
def test_live_play_equals_the_reference_and_meets_every_pair_of_rules():
    result = passed(
        run(
            PAIR,
            3,
            budget="3000000rows",
            configurations=["narrow_court", "frameskip8"],
            golden=GOLDEN,
        )
    )
    together = np.array(result.details["coverage"]["together"])
    excluded = len(PAIR.excluded_pairs)
    assert (np.triu(together) >= PAIR.quota).sum() == together.shape[0] * (
        together.shape[0] + 1
    ) // 2 - excluded


@pytest.mark.l3
@pytest.mark.reference
@pytest.mark.slow
@needs_reference
@pytest.mark.parametrize("configuration", ["frameskip1", "frameskip8"])
def test_ten_million_steps(configuration):
    result = run(PAIR, 3, budget="21000000rows", configurations=[configuration], golden=GOLDEN)
    assert not result.divergences
    assert result.details["live rows"]["wheel"] >= 10_000_000


@pytest.mark.l4
@pytest.mark.reference
@pytest.mark.slow
@needs_reference
def test_trained_policies_are_worth_the_same_on_both_sides():
    result = passed(run(PAIR, 4, budget="12000000rows", configurations=["frameskip8"]))
    assert len(result.details["transfer"]) >= 2


def test_every_planted_fault_is_killed_by_its_level():
    graded = check_faults(PAIR, GOLDEN.parent / "faults", GOLDEN)
    assert graded["killed"] == graded["total"] >= 20
