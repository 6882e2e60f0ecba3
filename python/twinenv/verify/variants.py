"""Judging changed copies of a house, in a process of their own.

The parent copies the house's package, writes down what to change, and reads one line of JSON per
variant; a variant that hangs or kills the process is recorded as killed by that.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
import logging
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["Variant", "Verdict", "judge", "work"]

_log = logging.getLogger(__name__)

_BASELINE = "the unchanged house"
_LEAST_SECONDS, _SLOWER = 60.0, 3.0  # than the unchanged house, which answers everything
_A_PROCESS = 100  # variants judged by one process: each leaves modules and caches behind


class ForeignError(RuntimeError):
    """The process would judge another copy of the house than the changed one."""


@dataclasses.dataclass(frozen=True)
class Variant:
    """A changed house.

    Attributes:
        name: for the report.
        files: new text by path relative to the house's package.
        first: level that is asked first; 0 goes by speed.
    """

    name: str
    files: Mapping[str, str]
    first: int = 0


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What became of a variant.

    Attributes:
        name: the variant's.
        killed_by: "L1" to "L3", "import", "time" or "process"; empty if it survived.
        why: by killer.
    """

    name: str
    killed_by: tuple[str, ...]
    why: Mapping[str, str]


def judge(house: Path, exam: Path, variants: Sequence[Variant], **how: bool) -> list[Verdict]:
    """Judge variants one after the other, each from an unchanged copy.

    Args:
        house: folder of the package.
        exam: what `exam.prepare` wrote.
        variants: what to judge.
        **how: `every_level` and `deep`, as `Exam.examine` has them.

    Raises:
        RuntimeError: the unchanged house does not pass, or cannot be judged.
    """
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        ignored = shutil.ignore_patterns("__pycache__", "*.pyc", "*.so")
        shutil.copytree(house.resolve(), root / "house" / house.name, ignore=ignored)
        limit = _SLOWER * _unchanged(root, exam, how)
        verdicts: list[Verdict] = []
        for start in range(0, len(variants), _A_PROCESS):
            part = variants[start : start + _A_PROCESS]
            for verdict in _judged(root, exam, part, how, max(_LEAST_SECONDS, limit)):
                verdicts.append(verdict)
                killers = ", ".join(verdict.killed_by) or "SURVIVED"
                _log.info("%d/%d %s %s", len(verdicts), len(variants), killers, verdict.name)
        return verdicts


def _unchanged(root: Path, exam: Path, how: Mapping[str, bool]) -> float:
    """Seconds that the unchanged house takes to answer everything."""
    start, baseline = time.monotonic(), Variant(_BASELINE, {})
    with _process(root, exam, [baseline], {**how, "every_level": True}) as (process, results):
        verdict = next(_read(process, results, 1, math.inf), None)
        ended = process.poll()
    if verdict is None:
        why = f"exit status {ended}: {_tail(root / 'log')}"
        raise RuntimeError(f"{_BASELINE} cannot be judged: {why}")
    if verdict.killed_by:
        raise RuntimeError(f"{_BASELINE} does not pass its own exam: {dict(verdict.why)}")
    return time.monotonic() - start


def _judged(
    root: Path, exam: Path, variants: Sequence[Variant], how: Mapping[str, bool], limit: float
) -> Iterator[Verdict]:
    """Verdicts in order; a process that hangs or dies is replaced after the variant it was at."""
    left = list(variants)
    while left:
        with _process(root, exam, left, how) as (process, results):
            for verdict in _read(process, results, len(left), limit):
                yield verdict
                left.pop(0)
            ended = process.poll()
        if not left:
            return
        killer = "time" if ended is None else "process"
        why = "it hangs" if ended is None else f"exit status {ended}: {_tail(root / 'log')}"
        yield Verdict(left.pop(0).name, (killer,), {killer: why})


@contextlib.contextmanager
def _process(
    root: Path, exam: Path, variants: Sequence[Variant], how: Mapping[str, bool]
) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    house = next(path.name for path in (root / "house").iterdir())
    results, job = root / "results.jsonl", root / "job.json"
    results.write_text("")
    plan: dict[str, Any] = {
        "house": house,
        "root": str(root / "house"),
        "exam": str(exam),
        "how": how,
    }
    plan |= {"results": str(results), "variants": [dataclasses.asdict(v) for v in variants]}
    job.write_text(json.dumps(plan, default=dict))
    environment = {
        **os.environ,
        # The copy first, so that it is imported in place of the original.
        "PYTHONPATH": os.pathsep.join([str(root / "house"), *filter(None, sys.path)]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "JAX_PLATFORMS": "cpu",
    }
    # -P: without the present folder, which may hold the original.
    program = "from twinenv.verify.variants import work; work()"
    command = [sys.executable, "-P", "-c", program, str(job)]
    with open(root / "log", "wb") as log:
        process = subprocess.Popen(
            command, env=environment, stdout=log, stderr=log, start_new_session=True
        )
        try:
            yield process, results
        finally:
            process.kill()
            process.wait()


def _read(
    process: subprocess.Popen[bytes], results: Path, count: int, limit: float
) -> Iterator[Verdict]:
    """Verdicts as they are written, until all are there, the process ends or one takes too long."""
    last, seen = time.monotonic(), 0
    while seen < count:
        ended = process.poll() is not None
        lines = results.read_text().splitlines(keepends=True)
        for line in lines[seen:]:
            if line.endswith("\n"):
                last, seen = time.monotonic(), seen + 1
                values = json.loads(line)
                yield Verdict(values["name"], tuple(sorted(values["killed"])), values["killed"])
        if ended or time.monotonic() - last > limit:
            return
        time.sleep(0.02)


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "no output"


def work() -> None:
    """Judge the variants of the job that the command line names; what the child process runs."""
    import jax

    from twinenv.verify.exam import Exam

    parent = os.getppid()
    job: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text())
    house, root = job["house"], Path(job["root"])
    jax.config.update("jax_numpy_dtype_promotion", "strict")
    pair = _imported(house, root).PAIR
    exam = Exam(Path(job["exam"]), pair)
    with open(job["results"], "a", buffering=1) as results:
        for variant in job["variants"]:
            if os.getppid() != parent:
                return  # nobody reads any more
            with _changed(root / house, variant["files"]):
                how = {"first": variant["first"], **job["how"]}
                killed = _killed(house, root, exam, how)
                results.write(json.dumps({"name": variant["name"], "killed": killed}) + "\n")


@contextlib.contextmanager
def _changed(package: Path, files: Mapping[str, str]) -> Iterator[None]:
    before = {path: (package / path).read_text() for path in files}
    try:
        for path, text in files.items():
            (package / path).write_text(text)
        yield
    finally:
        for path, text in before.items():
            (package / path).write_text(text)


def _imported(house: str, root: Path) -> Any:
    """The house's `pair`, imported anew from the copy.

    Raises:
        ForeignError: another copy of the house was imported.
    """
    for name in [n for n in sys.modules if n == house or n.startswith(f"{house}.")]:
        del sys.modules[name]
    importlib.invalidate_caches()
    module = importlib.import_module(f"{house}.pair")
    if not Path(str(module.__file__)).is_relative_to(root):
        raise ForeignError(f"imported {module.__file__} instead of the copy in {root}")
    return module


def _killed(house: str, root: Path, exam: Any, how: Mapping[str, Any]) -> dict[str, str]:
    from twinenv.verify.sides import BlindError

    try:
        return exam.examine(_imported(house, root).PAIR, **how)
    except (BlindError, ForeignError):
        raise
    except Exception as error:  # of a faulty twin that cannot even be imported
        return {"import": f"{type(error).__name__}: {error}"}
