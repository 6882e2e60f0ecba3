"""The test of equivalence against known values, against simulation, and its traps."""

import numpy as np
import pytest
from scipy import stats

from twinenv.verify.stats import tost, tost_power


def test_p_values_are_those_of_two_shifted_welch_tests():
    rng = np.random.default_rng(0)
    x, y = rng.normal(0, 1, 12), rng.normal(0.3, 2, 17)
    test = tost(x, y, 1.5)
    low = stats.ttest_ind(x + 1.5, y, alternative="greater", equal_var=False)
    high = stats.ttest_ind(x - 1.5, y, alternative="less", equal_var=False)
    assert test.p == pytest.approx(max(low.pvalue, high.pvalue), rel=1e-12)
    interval = stats.ttest_ind(x, y, equal_var=False).confidence_interval(0.9)
    assert (test.low, test.high) == pytest.approx((interval.low, interval.high), rel=1e-12)


def test_paired_p_values_are_those_of_the_differences():
    rng = np.random.default_rng(1)
    x = rng.normal(0, 1, 9)
    y = x + rng.normal(0, 0.1, 9)
    test = tost(x, y, 0.2, paired=True)
    low = stats.ttest_1samp(x - y, -0.2, alternative="greater")
    high = stats.ttest_1samp(x - y, 0.2, alternative="less")
    assert test.p == pytest.approx(max(low.pvalue, high.pvalue), rel=1e-12)


def test_equivalence_means_the_interval_lies_inside_the_margin():
    rng = np.random.default_rng(2)
    for gap in np.linspace(0, 1.5, 30):
        test = tost(rng.normal(gap, 1, 30), rng.normal(0, 1, 30), 1.0)
        assert test.equivalent == (test.low > -1.0 and test.high < 1.0)


def simulated(gap, margin, size, repeats=4000):
    """How often equivalence is declared; computed for all repeats at once."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(gap, 1, (repeats, size)), rng.normal(0, 1, (repeats, size))
    options = {"equal_var": False, "axis": 1}
    low = stats.ttest_ind(x + margin, y, alternative="greater", **options).pvalue
    high = stats.ttest_ind(x - margin, y, alternative="less", **options).pvalue
    return np.mean(np.maximum(low, high) < 0.05)


@pytest.mark.parametrize(("margin", "size"), [(1.0, 23), (0.5, 88)])
def test_power_is_what_simulation_gives(margin, size):
    power = tost_power(np.sqrt(2 / size), 2 * size - 2, margin, 0.05)
    # 90 % by design; three standard errors of the simulation.
    assert power == pytest.approx(0.9, abs=0.02)
    assert simulated(0.0, margin, size) == pytest.approx(power, abs=0.015)


def test_a_gap_as_large_as_the_margin_is_rarely_called_none():
    assert simulated(1.0, 1.0, 30) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 4000)
    power = tost_power(np.sqrt(2 / 30), 58, 1.0, 0.05, true=1.0)
    assert power == pytest.approx(0.05, abs=0.002)


def test_few_units_have_no_power():
    rng = np.random.default_rng(4)
    test = tost(rng.normal(0, 1, 3), rng.normal(0, 1, 3), 0.5)
    assert not test.equivalent
    assert test.power == 0.0


def test_identical_units_need_no_luck():
    same = tost(np.ones(3), np.ones(3), 0.1)
    assert same.equivalent
    assert (same.power, same.low, same.high) == (1.0, 0.0, 0.0)
    assert not tost(np.ones(3), np.full(3, 1.1), 0.1).equivalent
    paired = tost(np.array([1.0, 5.0]), np.array([1.0, 5.0]), 0.1, paired=True)
    assert paired.equivalent


@pytest.mark.parametrize(
    ("x", "y", "margin", "paired"),
    [
        ([1.0], [1.0, 2.0], 1.0, False),
        ([1.0, 2.0, 3.0], [1.0, 2.0], 1.0, True),
        ([1.0, 2.0], [1.0, 2.0], 0.0, False),
        ([1.0, np.nan], [1.0, 2.0], 1.0, False),
    ],
)
def test_bad_input_is_refused(x, y, margin, paired):
    with pytest.raises(ValueError, match=r"units|margin"):
        tost(np.array(x), np.array(y), margin, paired=paired)
