"""Equivalence of means by two one-sided tests (TOST), with interval and power."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

__all__ = ["Equivalence", "tost", "tost_power"]


@dataclasses.dataclass(frozen=True)
class Equivalence:
    """What a test of equivalence says.

    Attributes:
        difference: mean of the first less mean of the second sample.
        low: lower end of the (1 - 2 alpha) confidence interval of the difference.
        high: its upper end.
        p: the larger p-value of the two one-sided tests.
        power: chance of declaring equivalence at this spread and size if the true means are equal.
        margin: largest difference that counts as none.
        alpha: level of each one-sided test.
        size: independent units in each sample.
    """

    difference: float
    low: float
    high: float
    p: float
    power: float
    margin: float
    alpha: float
    size: tuple[int, int]

    @property
    def equivalent(self) -> bool:
        """Whether both tests reject: the interval lies inside the margin."""
        return self.p < self.alpha

    def __str__(self) -> str:
        level = 100 * (1 - 2 * self.alpha)
        return (
            f"difference {self.difference:.4g}, {level:.0f} % interval {self.low:.4g} to "
            f"{self.high:.4g}, margin {self.margin:.4g}, p {self.p:.3g}, power {self.power:.2f}, "
            f"units {self.size[0]} and {self.size[1]}"
        )


def tost(
    x: np.ndarray, y: np.ndarray, margin: float, *, alpha: float = 0.05, paired: bool = False
) -> Equivalence:
    """Test whether two means differ by less than a margin.

    Args:
        x: one value per independent unit (a seed's mean, not an episode), at least two.
        y: the other sample; of the same units in the same order if `paired`.
        margin: fixed before looking at the data.
        alpha: level of each one-sided test.
        paired: test differences within units instead of Welch's two-sample test.

    Raises:
        ValueError: too few units, different sizes of a paired test, a margin that is not positive,
            or values that are not finite.
    """
    from scipy import stats

    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if min(len(x), len(y)) < 2 or (paired and len(x) != len(y)):
        raise ValueError(f"{len(x)} and {len(y)} units; needed are at least 2, as many if paired")
    if not margin > 0 or not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError(f"margin is {margin} and must be positive; all values must be finite")
    difference = float(x.mean() - y.mean())
    error, freedom = _paired(x - y) if paired else _welch(x, y)
    if error == 0:
        p, reach = float(abs(difference) >= margin), 0.0
    else:
        p_low = float(stats.t.sf((difference + margin) / error, freedom))
        p_high = float(stats.t.cdf((difference - margin) / error, freedom))
        p, reach = max(p_low, p_high), float(stats.t.isf(alpha, freedom)) * error
    power = tost_power(error, freedom, margin, alpha)
    low, high = difference - reach, difference + reach
    return Equivalence(difference, low, high, p, power, margin, alpha, (len(x), len(y)))


def tost_power(error: float, freedom: float, margin: float, alpha: float, true: float = 0) -> float:
    """Chance that both tests reject.

    Args:
        error: standard error of the difference.
        freedom: its degrees of freedom.
        margin: the margin.
        alpha: level of each test.
        true: the true difference.
    """
    from scipy import stats

    if error == 0:
        return float(abs(true) < margin)
    critical = float(stats.t.isf(alpha, freedom))
    below = stats.nct.cdf(-critical, freedom, (true - margin) / error)
    above = stats.nct.cdf(critical, freedom, (true + margin) / error)
    return max(float(below - above), 0.0)


def _paired(d: np.ndarray) -> tuple[float, float]:
    return float(d.std(ddof=1)) / math.sqrt(len(d)), len(d) - 1.0


def _welch(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    a, b = float(x.var(ddof=1)) / len(x), float(y.var(ddof=1)) / len(y)
    if a + b == 0:
        return 0.0, len(x) + len(y) - 2.0
    freedom = (a + b) ** 2 / (a**2 / (len(x) - 1) + b**2 / (len(y) - 1))
    return math.sqrt(a + b), freedom
