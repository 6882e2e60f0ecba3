"""`twinenv bench`: measure a twin against its reference."""

from __future__ import annotations

import argparse
import importlib
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from twinenv import registry
from twinenv.bench.benchmark import Benchmark
from twinenv.bench.runner import TIMEOUT_S, BenchmarkError, run
from twinenv.naming import unknown

__all__ = ["main"]

_MOST_LINES = 25_000


def main(argv: Sequence[str] | None = None) -> int:
    """Run `twinenv bench ...`: exit status 0, or 2 if a benchmark could not run."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    options = _parser().parse_args(arguments)
    command = shlex.join(["twinenv", "bench", *arguments])
    records: list[dict[str, Any]] = []
    failed = False
    try:
        for benchmark in _chosen(options):
            print(f"{benchmark.env} against {benchmark.against}: {benchmark.unit}", file=sys.stderr)
            record = _measured(benchmark, options)
            failed |= record is None
            if record is not None:
                records.append(record | {"command": command})
            if options.json:  # after each, so that what ends the run loses nothing
                options.json.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    except (OSError, ValueError) as error:
        print(f"twinenv bench: {error}", file=sys.stderr)
        return 2
    if records:
        _print(records, Console(width=200 if not sys.stdout.isatty() else None))
    return 2 if failed else 0


def _measured(benchmark: Benchmark, options: argparse.Namespace) -> dict[str, Any] | None:
    """The record, or None: the others can be measured all the same."""
    try:
        return run(benchmark, rounds=options.rounds, core=options.core, timeout_s=options.timeout)
    except BenchmarkError as error:
        print(f"twinenv bench: {error}", file=sys.stderr)
        return None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "twinenv bench",
        description="Measure a twin against its reference: in turn, pinned to the same core.",
    )
    parser.add_argument("env", metavar="ENV", help="an id such as PongJAX-v0, its package, or ppo")
    parser.add_argument(
        "--against", type=lambda text: text.split(","), metavar="NAME,...", help="default: all"
    )
    parser.add_argument("--batch", type=int, metavar="N", help="only this number of environments")
    parser.add_argument("--unit", metavar="TEXT", help="only what has this text in its unit")
    parser.add_argument("--rounds", type=_positive, default=5, metavar="N", help="default 5")
    parser.add_argument("--core", type=int, metavar="N", help="core to pin to; default the last")
    parser.add_argument(
        "--timeout",
        type=_positive,
        default=TIMEOUT_S,
        metavar="S",
        help=f"end a side that takes longer over compiling or a round; default {TIMEOUT_S:g}",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the records here")
    return parser


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer from 1")
    return int(text)


def _chosen(options: argparse.Namespace) -> list[Benchmark]:
    found = _benchmarks(options.env)
    names = sorted({benchmark.against for benchmark in found})
    for name in options.against or ():
        if name not in names:
            raise ValueError(f"{options.env} is measured against {', '.join(names)}; not {name!r}")
    wanted = [b for b in found if not options.against or b.against in options.against]
    chosen = [b for b in wanted if options.batch in (None, b.batch)]
    if options.unit:
        named = [b for b in chosen if options.unit in b.unit]
        if chosen and not named:
            units = "; ".join(sorted({b.unit for b in chosen}))
            raise ValueError(f"{options.env} is measured in {units}; none has {options.unit!r}")
        chosen = named
    if not chosen:
        batches = ", ".join(map(str, sorted({b.batch for b in wanted})))
        raise ValueError(f"{options.env} is measured with a batch of {batches}")
    return chosen


def _benchmarks(env: str) -> Sequence[Benchmark]:
    if env == "ppo":
        module = "twinenv.bench.ppo"
    else:
        houses = {env_id: registry.house_of(env_id).__name__ for env_id in registry.list_ids()}
        house = houses.get(env, env)
        if house not in houses.values():
            raise ValueError(unknown("environment", env, (*houses, *houses.values(), "ppo")))
        module = f"{house}.bench"
    return importlib.import_module(module).BENCHMARKS


def _print(records: Sequence[dict[str, Any]], console: Console) -> None:
    table = Table(title="Median of the ratio (smallest to largest), both sides in turn")
    for column in ("what", "unit", "batch", "against", "ratio", "target", "clock", "rounds"):
        table.add_column(column, justify="left" if column in ("what", "unit") else "right")
    table.add_column("load", justify="right")
    for r in records:
        ratio = f"{r['ratio_median']:.2f} ({r['ratio_min']:.2f} to {r['ratio_max']:.2f})"
        target = f">= {r['target']:g}" if r["target"] else "-"
        clock = f"{r['clock']}, {r['cores']} core{'s' * (r['cores'] > 1)}"
        cells = (r["env"], r["unit"], r["batch"], r["against"], ratio, target, clock)
        table.add_row(*map(str, (*cells, r["rounds"], r["load_average"])))
    console.print(table)
    for r in records:
        for line in _remarks(r):
            console.print(line, highlight=False)


def _remarks(r: dict[str, Any]) -> list[str]:
    """What is said of a record below the table."""
    lines = []
    if r["checked"]:
        share = f" in all but {r['outliers']:.1%}" if r["outliers"] else ""
        lines.append(
            f"{r['unit']}, against {r['against']}: within {r['tolerance']:g}{share} of each other "
            f"were {r['checked']}"
        )
    if r["clock"] == "wall":
        load = r["load_average_before"]
        lines.append(f"{r['unit']}, batch of {r['batch']}: the load before it was {load}")
    if r["stablehlo_lines"]:
        lines.append(
            f"{r['unit']}, batch of {r['batch']}: full step {r['stablehlo_lines']:,} StableHLO "
            f"lines (at most {_MOST_LINES:,}), compiled in {r['compile_cpu_s']:.1f} CPU-s (at most "
            f"{r['most_compile_s']:g}), {r['state_bytes']} bytes per environment"
        )
    if r["ceiling"]:
        notes = ", ".join(f"{name}: {value}" for name, value in r["notes"].items())
        lines.append(f"batch of {r['batch']}, {notes}: the gradients alone allow {r['ceiling']:g}x")
    return lines
