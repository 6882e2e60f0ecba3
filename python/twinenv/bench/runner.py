"""Running a benchmark: both sides in turn on one core, speeds only after equal checks."""

from __future__ import annotations

import dataclasses
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from twinenv.bench.benchmark import Benchmark
from twinenv.bench.hardware import describe

__all__ = ["BenchmarkError", "run"]

_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}


class BenchmarkError(RuntimeError):
    """A benchmark could not run, or its two sides disagree; no speed is reported."""


def run(benchmark: Benchmark, *, rounds: int = 5, core: int | None = None) -> dict[str, Any]:
    """Measure one benchmark.

    Args:
        benchmark: what to measure.
        rounds: of each side, at least 1; they alternate.
        core: number of the core to pin both sides to; None takes the last usable one.

    Returns:
        One record, JSON values only.

    Raises:
        BenchmarkError: a side failed, or the checks differ.
    """
    pinned = max(_usable_cores()) if core is None else core
    with (
        _Worker(benchmark.reference, benchmark.options, pinned) as reference,
        _Worker(benchmark.fast, benchmark.options, pinned) as fast,
    ):
        facts = {"fast": fast.ask("facts"), "reference": reference.ask("facts")}
        _check(benchmark, fast, reference)
        for worker in (fast, reference):
            worker.ask("round")  # warms caches and clocks
        speeds = [(_speed(fast), _speed(reference)) for _ in range(rounds)]
    return _record(benchmark, facts, speeds)


def _check(benchmark: Benchmark, fast: _Worker, reference: _Worker) -> None:
    theirs = reference.ask("check {}")
    ours = fast.ask("check " + json.dumps(theirs.get("given", {})))
    want, got = np.asarray(theirs["sums"], float), np.asarray(ours["sums"], float)
    if want.shape != got.shape or not want.size:
        raise BenchmarkError(f"the sides checked different things: {want.shape} and {got.shape}")
    worst = float(np.max(np.abs(want - got)))
    if not worst <= benchmark.tolerance:
        raise BenchmarkError(
            f"{benchmark.env} and {benchmark.against} disagree by {worst:g} (accepted is "
            f"{benchmark.tolerance:g}), so no speed is reported; run `twinenv verify`"
        )


def _speed(worker: _Worker) -> float:
    answer = worker.ask("round")
    return answer["units"] / answer["cpu_s"]


def _record(
    benchmark: Benchmark, facts: Mapping[str, Any], speeds: Sequence[tuple[float, float]]
) -> dict[str, Any]:
    ratios = [fast / reference for fast, reference in speeds]
    ours, ratio = facts["fast"], statistics.median(ratios)
    return {
        "env": benchmark.env,
        "unit": benchmark.unit,
        "batch": benchmark.batch,
        "against": benchmark.against,
        "ratio_median": round(ratio, 3),
        "ratio_min": round(min(ratios), 3),
        "ratio_max": round(max(ratios), 3),
        "target": benchmark.target,
        # By Amdahl's law: the ratio if only what both sides must do took time on ours.
        "ceiling": round(ratio / ours["shared"], 2) if ours["shared"] else None,
        "fast_per_cpu_s": round(statistics.median(fast for fast, _ in speeds), 1),
        "reference_per_cpu_s": round(statistics.median(reference for _, reference in speeds), 1),
        "rounds": len(ratios),
        "cores": 1,
        "load_average": round(os.getloadavg()[0], 2),
        "state_bytes": ours["state_bytes"],
        "compile_cpu_s": round(ours["compile_cpu_s"], 2),
        "stablehlo_lines": ours["stablehlo_lines"],
        "versions": {**facts["reference"]["versions"], **ours["versions"]},
        "options": dict(benchmark.options),
        "notes": dict(benchmark.notes),
        "hardware": dataclasses.asdict(describe()),
    }


def _usable_cores() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


class _Worker:
    """A side in a process of its own."""

    def __init__(self, where: str, options: Mapping[str, Any], core: int) -> None:
        self._where = where
        command = [sys.executable, "-m", "twinenv.bench.worker", where]
        self._process = subprocess.Popen(
            [*command, json.dumps(dict(options)), str(core)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **_ONE_THREAD},
        )

    def ask(self, request: str) -> dict[str, Any]:
        """One request, one answer."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            print(request, file=self._process.stdin, flush=True)
            answer = json.loads(self._process.stdout.readline() or '{"error": "it ended"}')
        except BrokenPipeError:
            answer = {"error": "it ended"}
        if "error" in answer:
            raise BenchmarkError(f"{self._where}: {answer['error']}")
        return answer

    def __enter__(self) -> _Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
