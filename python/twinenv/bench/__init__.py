"""Measuring twins against their references: ratios of CPU time, both sides in turn on one core.

A house declares its benchmarks in `<house>/bench.py` as `BENCHMARKS`, so that an installed package
can measure itself.
"""

from twinenv.bench.benchmark import Benchmark, Facts, Side
from twinenv.bench.runner import BenchmarkError, run

__all__ = ["Benchmark", "BenchmarkError", "Facts", "Side", "run"]
