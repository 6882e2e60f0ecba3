"""What machine a measurement was made on."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import platform

from twinenv.stages import has_avx512

__all__ = ["Hardware", "describe"]


@dataclasses.dataclass(frozen=True)
class Hardware:
    """The machine.

    Attributes:
        processor: its model.
        cores: logical cores.
        avx512: whether it has AVX-512.
        memory_gib: main memory.
        system: operating system and its version.
    """

    processor: str
    cores: int
    avx512: bool
    memory_gib: float
    system: str


def describe() -> Hardware:
    """This machine."""
    cpuinfo, memory = "", 0.0
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        cpuinfo = file.read()
    with contextlib.suppress(OSError, ValueError, AttributeError):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    models = [line.split(":")[1].strip() for line in cpuinfo.splitlines() if "model name" in line]
    return Hardware(
        processor=models[0] if models else platform.processor() or platform.machine(),
        cores=os.cpu_count() or 1,
        avx512=has_avx512(),
        memory_gib=round(memory, 1),
        system=f"{platform.system()} {platform.release().split('-')[0]}",
    )
