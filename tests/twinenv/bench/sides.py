"""Tiny sides for the benchmark runner; importable by the worker processes."""

from __future__ import annotations

import os
import time

from twinenv.bench import Facts
from twinenv.references import MissingReferenceError


class Counter:
    def __init__(self, loops: int = 20_000, value: float = 1.0, fault: str = "") -> None:
        if fault == "missing":
            raise MissingReferenceError("run `twinenv references install counter`")
        self.loops, self.value, self.fault = loops, value, fault
        self.facts = Facts({"counter": "1"}, state_bytes=8, compile_cpu_s=0.5, stablehlo_lines=3)

    def check(self, given):
        if self.fault == "shape":
            return {"sums": [self.value] * 3}
        return {"sums": [self.value, float(given.get("word", 2.0))], "given": {"word": 2.0}}

    def work(self) -> int:
        if self.fault == "dies":
            raise SystemExit(3)
        start = time.process_time()
        while time.process_time() - start < self.loops * 1e-6:
            pass
        return 1000


class Slow(Counter):
    def __init__(self, **options) -> None:
        super().__init__(**{**options, "loops": 80_000})


class Other(Counter):
    def __init__(self, **options) -> None:
        super().__init__(**{**options, "value": 1.5})


class OtherShape(Counter):
    def __init__(self, **options) -> None:
        super().__init__(**{**options, "fault": "shape"})


class Missing(Counter):
    def __init__(self, **options) -> None:
        super().__init__(**{**options, "fault": "missing"})


class Dies(Counter):
    def __init__(self, **options) -> None:
        super().__init__(**{**options, "fault": "dies"})


class Hangs(Counter):
    def __init__(self, **options) -> None:
        while True:
            time.sleep(1)


class Cores(Counter):
    """Takes time without computing, and says what it may use."""

    def __init__(self, **options) -> None:
        super().__init__()
        devices = os.environ["XLA_FLAGS"].partition("device_count=")[2] or "1"
        self.facts = Facts({"cores": str(len(os.sched_getaffinity(0))), "devices": devices})

    def work(self) -> int:
        time.sleep(0.05)
        return 1000


class Sleeps(Cores):
    def work(self) -> int:
        time.sleep(0.2)
        return 1000
