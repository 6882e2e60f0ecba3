"""Running a benchmark: both sides in turn on the same cores, speeds only after equal checks."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import queue
import statistics
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from twinenv.bench.benchmark import Benchmark
from twinenv.bench.hardware import describe

__all__ = ["TIMEOUT_S", "BenchmarkError", "run"]

TIMEOUT_S = 900.0
"""How long a side may take over one request: compiling, a check or a round."""


class BenchmarkError(RuntimeError):
    """A benchmark could not run, or its two sides disagree; no speed is reported."""


class _Speed(NamedTuple):
    """Units a second of one round, of CPU time and of time that passed."""

    cpu: float
    wall: float


def run(
    benchmark: Benchmark,
    *,
    rounds: int = 5,
    core: int | None = None,
    timeout_s: float = TIMEOUT_S,
) -> dict[str, Any]:
    """Measure one benchmark.

    Args:
        benchmark: what to measure.
        rounds: of each side, at least 1; they alternate.
        core: number of the core to pin both sides to; None takes the last usable ones.
        timeout_s: how long a side may take over one request before it is ended.

    Returns:
        One record, JSON values only.

    Raises:
        BenchmarkError: a side failed or did not answer in time, the checks differ, or there are
            not as many cores.
    """
    load = os.getloadavg()[0]
    cores = _cores(benchmark.cores, core)
    with (
        _Worker(benchmark.reference, benchmark.options, cores, timeout_s) as reference,
        _Worker(benchmark.fast, benchmark.options, cores, timeout_s) as fast,
    ):
        facts = {"fast": fast.ask("facts"), "reference": reference.ask("facts")}
        difference = _check(benchmark, fast, reference)
        for worker in (fast, reference):
            worker.ask("round")  # warms caches and clocks
        speeds = [(_speed(fast), _speed(reference)) for _ in range(rounds)]
    also = {"difference_max": difference, "load_average_before": round(load, 2)}
    return _record(benchmark, facts, speeds) | also


def _check(benchmark: Benchmark, fast: _Worker, reference: _Worker) -> float:
    """The largest difference of the sums, if it is accepted."""
    theirs = reference.ask("check {}")
    ours = fast.ask("check " + json.dumps(theirs.get("given", {})))
    want, got = np.asarray(theirs["sums"], float), np.asarray(ours["sums"], float)
    if want.shape != got.shape or not want.size:
        raise BenchmarkError(f"the sides checked different things: {want.shape} and {got.shape}")
    differences = np.abs(want - got)
    beyond = ~(differences <= benchmark.tolerance)  # what is no number is beyond, too
    if np.mean(beyond) > benchmark.outliers:
        share = f" in all but {benchmark.outliers:.1%}" if benchmark.outliers else ""
        raise BenchmarkError(
            f"{benchmark.env} and {benchmark.against} disagree by {np.max(differences):g} "
            f"(accepted is {benchmark.tolerance:g}{share}), so no speed is reported; run "
            "`twinenv verify`"
        )
    return float(np.max(differences))


def _speed(worker: _Worker) -> _Speed:
    answer = worker.ask("round")
    return _Speed(answer["units"] / answer["cpu_s"], answer["units"] / answer["wall_s"])


def _record(
    benchmark: Benchmark, facts: Mapping[str, Any], speeds: Sequence[tuple[_Speed, _Speed]]
) -> dict[str, Any]:
    by_clock = {
        clock: [(getattr(fast, clock), getattr(reference, clock)) for fast, reference in speeds]
        for clock in _Speed._fields
    }
    ratios = [fast / reference for fast, reference in by_clock[benchmark.clock]]
    ours, ratio = facts["fast"], statistics.median(ratios)
    medians = {
        f"{side}_per_{clock}_s": round(statistics.median(pair[index] for pair in pairs), 1)
        for clock, pairs in by_clock.items()
        for index, side in enumerate(("fast", "reference"))
    }
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
        "clock": benchmark.clock,
        **medians,
        "rounds": len(ratios),
        "cores": benchmark.cores or os.cpu_count(),
        "device": ours["device"],
        "load_average": round(os.getloadavg()[0], 2),
        "state_bytes": ours["state_bytes"],
        "compile_cpu_s": round(ours["compile_cpu_s"], 2),
        "most_compile_s": benchmark.most_compile_s,
        "stablehlo_lines": ours["stablehlo_lines"],
        "checked": benchmark.checked,
        "tolerance": benchmark.tolerance,
        "outliers": benchmark.outliers,
        "versions": {**facts["reference"]["versions"], **ours["versions"]},
        "options": dict(benchmark.options),
        "notes": dict(benchmark.notes),
        "hardware": dataclasses.asdict(describe()),
    }


def _cores(count: int, first: int | None) -> list[int]:
    """The last `count` usable cores, or as many from `first` on."""
    if not count:
        return []
    usable = sorted(_usable_cores())
    chosen = usable[-count:] if first is None else [first + index for index in range(count)]
    if len(chosen) < count or not set(chosen) <= set(usable):
        raise BenchmarkError(f"this needs {count} core(s) {chosen}; usable are {usable}")
    return chosen


def _usable_cores() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def _threads(cores: int) -> dict[str, str]:
    """Environment variables for as many threads as cores."""
    if not cores:
        return {}
    devices = f" --xla_force_host_platform_device_count={cores}" if cores > 1 else ""
    return {
        "OMP_NUM_THREADS": str(cores),
        "OPENBLAS_NUM_THREADS": str(cores),
        "XLA_FLAGS": f"--xla_cpu_multi_thread_eigen=false{devices}",
    }


class _Worker:
    """A side in a process of its own."""

    def __init__(
        self, where: str, options: Mapping[str, Any], cores: Sequence[int], timeout_s: float
    ) -> None:
        self._where, self._timeout_s = where, timeout_s
        command = [sys.executable, "-m", "twinenv.bench.worker", where]
        self._process = subprocess.Popen(
            [*command, json.dumps(dict(options)), *map(str, cores)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **_threads(len(cores))},
        )
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        """A pipe cannot be read with a time limit, a queue can."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put('{"error": "it ended"}')

    def ask(self, request: str) -> dict[str, Any]:
        """One request, one answer."""
        assert self._process.stdin is not None
        try:
            print(request, file=self._process.stdin, flush=True)
            answer = json.loads(self._answers.get(timeout=self._timeout_s))
        except BrokenPipeError:
            answer = {"error": "it ended"}
        except queue.Empty:
            word = request.split()[0]
            answer = {"error": f"no answer to {word!r} within {self._timeout_s:g} s, so it hangs"}
        if "error" in answer:
            raise BenchmarkError(f"{self._where}: {answer['error']}")
        return answer

    def __enter__(self) -> _Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._listener.join()  # it ends with the pipe
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
