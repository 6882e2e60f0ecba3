"""What a benchmark is: two sides that do the same work, each in a process of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Protocol

__all__ = ["Benchmark", "Facts", "Side"]


@dataclasses.dataclass(frozen=True)
class Facts:
    """What a side says of itself once it is ready.

    Attributes:
        versions: of the libraries that do its work.
        state_bytes: bytes of one environment's state, 0 if unknown.
        compile_cpu_s: CPU seconds of compiling, left out of all rounds.
        stablehlo_lines: of one full step with its automatic reset, 0 if it isn't compiled by XLA.
        shared: part of this side's time that goes into what both sides must do and no simulator
            makes faster, such as gradients; 0 if unknown.
        device: what it ran on.
    """

    versions: Mapping[str, str]
    state_bytes: int = 0
    compile_cpu_s: float = 0.0
    stablehlo_lines: int = 0
    shared: float = 0.0
    device: str = "cpu"


class Side(Protocol):
    """One side of a benchmark, made in its own process by `factory(**options)`."""

    facts: Facts

    def check(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Do a small known piece of work.

        Args:
            given: what the other side's check returned as `given`, for the side that is asked last.

        Returns:
            `sums`: numbers that must agree on both sides; and perhaps `given`.
        """
        ...

    def work(self) -> int:
        """Do one round's work; returns how many units it was."""
        ...


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """Two sides, and how to compare them.

    Attributes:
        env: canonical id, or what is measured.
        unit: what one unit of work is, in words.
        batch: environments side by side.
        against: name of the other side.
        fast: `module:factory` of our side.
        reference: `module:factory` of the other one.
        options: keywords of both factories, JSON values.
        checked: what the checks compare, in words.
        tolerance: largest difference of the checks' sums.
        outliers: share of the sums that may differ by more, for a peer that is not always exact.
        target: the ratio aimed for, 0 if none.
        most_compile_s: CPU seconds that compiling may take.
        clock: "cpu" for the CPU time of all threads, "wall" for time that passes.
        cores: that each side is pinned to, and may have threads for; 0 leaves both as they are, as
            an accelerator needs it.
        notes: what else a reader must know, such as the network of a training loop.

    Raises:
        ValueError: an unknown clock.
    """

    env: str
    unit: str
    batch: int
    against: str
    fast: str
    reference: str
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    checked: str = ""
    tolerance: float = 0.0
    outliers: float = 0.0
    target: float = 0.0
    most_compile_s: float = 60.0
    clock: str = "cpu"
    cores: int = 1
    notes: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.clock not in ("cpu", "wall"):
            raise ValueError(f"clock is {self.clock!r}; accepted is 'cpu' or 'wall'")
