"""HalfCheetah on a GPU: ours against MJX, 1,024 to 1,048,576 environments; run by hand.

    pip install "twinenv[cuda]" gymnasium mujoco==4.0.0
    twinenv references install mjx
    python benchmarks/gpu_halfcheetah.py --json gpu_halfcheetah.json

Time is that of the clock on the wall, both sides in turn in processes of their own, float32. MJX
runs with its default of 100 iterations and with iterations=4, ls_iterations=8. A batch that does
not fit into memory, or a side that hangs, is recorded with its reason and the others go on.
Without a GPU the exit status is 2; `--cpu` makes a trial run there, which measures nothing.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from halfcheetah_jax.bench import BENCHMARKS
from twinenv.bench import Benchmark, BenchmarkError, run

BATCHES = tuple(1024 * 4**power for power in range(6))
OUR_STEPS, MJX_STEPS = 100, 10


def benchmarks(batches: list[int], our_steps: int, mjx_steps: int) -> list[Benchmark]:
    """Those against MJX, with these batches and the wall's clock."""
    chosen = [benchmark for benchmark in BENCHMARKS if benchmark.against == "mjx"]
    return [
        dataclasses.replace(
            benchmark,
            batch=batch,
            options={
                **benchmark.options,
                "num_envs": batch,
                "steps": our_steps,
                "steps_of_peer": mjx_steps,
            },
            target=0.0,
            clock="wall",
            cores=0,
        )
        for batch in batches
        for benchmark in chosen
    ]


def measured(benchmark: Benchmark, options: argparse.Namespace) -> dict[str, Any]:
    """The record, or what the benchmark is and why it has none."""
    try:
        return run(benchmark, rounds=options.rounds, timeout_s=options.timeout)
    except BenchmarkError as error:
        names = ("env", "unit", "batch", "against")
        return {name: getattr(benchmark, name) for name in names} | {"error": str(error)}


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=int, nargs="+", default=list(BATCHES), metavar="N")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--timeout", type=float, default=900.0, metavar="S")
    parser.add_argument("--cpu", action="store_true", help="a trial run without a GPU")
    parser.add_argument("--json", type=Path, metavar="FILE")
    return parser.parse_args()


def main() -> int:
    options = parsed()
    # Two processes share the GPU, so neither may take most of its memory at once.
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    our_steps, mjx_steps = OUR_STEPS, MJX_STEPS
    if options.cpu:
        # With as few threads as a small machine has cores, MJX can wait for itself for ever.
        os.environ |= {"JAX_PLATFORMS": "cpu", "NPROC": "4"}
        our_steps = mjx_steps = 1
    elif not has_gpu():
        print("gpu_halfcheetah.py: JAX finds no GPU here; --cpu makes a trial run", file=sys.stderr)
        return 2
    command, records = shlex.join(["python", *sys.argv]), []
    for benchmark in benchmarks(options.batches, our_steps, mjx_steps):
        record = measured(benchmark, options) | {"command": command}
        records.append(record)
        print(json.dumps(record), flush=True)
        if options.json:  # after each, so that what ends the run loses nothing
            options.json.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    return 2 if all("error" in record for record in records) else 0


def has_gpu() -> bool:
    """Whether JAX has a GPU; asked in a way that leaves this process without one."""
    ask = "import jax, sys; sys.exit(jax.default_backend() != 'gpu')"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, check=False)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
