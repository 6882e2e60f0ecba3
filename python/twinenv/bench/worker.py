"""The process of one side: pinned to its cores, it works when it is told to.

    python -m twinenv.bench.worker MODULE:FACTORY OPTIONS [CORE ...]

It answers each line on its input (`facts`, `check JSON`, `round`) with one line of JSON.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
import os
import sys
import time
import traceback
from typing import Any

__all__ = ["main"]


def main(where: str, options: str, *cores: str) -> None:
    """Answer requests until the input ends."""
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(map(int, cores)))
    answers, sys.stdout = sys.stdout, sys.stderr
    side = None
    for line in sys.stdin:
        command, _, text = line.strip().partition(" ")
        try:
            side = side or _make(where, json.loads(options))
            answer = _answer(side, command, text)
        except Exception as error:  # told to the parent, which stops
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(answer), file=answers, flush=True)


def _make(where: str, options: dict[str, Any]) -> Any:
    module, factory = where.split(":")
    return getattr(importlib.import_module(module), factory)(**options)


def _answer(side: Any, command: str, text: str) -> dict[str, Any]:
    if command == "facts":
        return dataclasses.asdict(side.facts)
    if command == "check":
        return side.check(json.loads(text))
    wall, cpu = time.perf_counter(), time.process_time()
    units = side.work()
    cpu_s, wall_s = time.process_time() - cpu, time.perf_counter() - wall
    return {"units": units, "cpu_s": cpu_s, "wall_s": wall_s}


if __name__ == "__main__":
    main(*sys.argv[1:])
