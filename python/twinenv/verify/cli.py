"""`twinenv verify`: check a twin against its reference."""

from __future__ import annotations

import argparse
import contextlib
import logging
import shlex
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rich.console import Console

from twinenv.references import MissingReferenceError
from twinenv.verify import report
from twinenv.verify.ledger import Budget, exit_code
from twinenv.verify.levels import LEVELS, find_pair, golden_folder, run
from twinenv.verify.pair import Pair
from twinenv.verify.replay import replay
from twinenv.verify.trace import record, save_traces

__all__ = ["main"]

_EXIT = "exit status: 0 passed, 1 divergence, 2 could not run, 3 passed with parts skipped"


def main(argv: Sequence[str] | None = None) -> int:
    """Run `twinenv verify ...`; returns the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    commands: dict[str, Callable[[list[str]], int]] = {
        "replay": _replay,
        "record": _record,
        "faults": _faults,
        "mutate": _mutate,
    }
    command = commands.get(arguments[0] if arguments else "")
    try:
        return command(arguments[1:]) if command else _verify(arguments)
    except (ValueError, OSError, MissingReferenceError) as error:
        print(f"twinenv verify: {error}", file=sys.stderr)
    except ModuleNotFoundError as error:
        print(f"twinenv verify: {error}; install twinenv[reference,test]", file=sys.stderr)
    except Exception:  # of a pair or a reference: whatever it is, nothing was verified
        traceback.print_exc()
        print("twinenv verify: could not run, see above", file=sys.stderr)
    return 2


def _verify_parser() -> argparse.ArgumentParser:
    parser = _parser("", "Check a twin against its reference, level by level.")
    parser.epilog = f"also: verify replay | record | faults | mutate, each with --help; {_EXIT}"
    _add_env(parser)
    parser.add_argument(
        "--level", type=int, choices=sorted(LEVELS), help="only this level; default all of them"
    )
    parser.add_argument(
        "--budget",
        default="60s",
        metavar="B",
        help="for each level: time such as 60s, 5m, 2h, or steps such as 10Mrows; default 60s. "
        "Level 1 checks the API contract of the configurations first, ten to forty seconds each. "
        "Level 3 may take as much again for rule events still missed; level 4 trains by the "
        "house's preset, which only a budget of steps cuts short",
    )
    _add_seed(parser)
    parser.add_argument(
        "--configuration",
        action="append",
        default=[],
        metavar="NAME",
        help="only this configuration of the pair; may be given again; default all",
    )
    parser.add_argument(
        "--golden",
        type=Path,
        metavar="DIR",
        help="golden traces for level 3; default tests/<house>/golden of the present folder, which "
        "should then be a checkout",
    )
    parser.add_argument(
        "--report",
        type=Path,
        metavar="DIR",
        help="write report.json, report.html and the divergences here; default: verify-<house>, "
        "and only if something diverged",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write a short summary here")
    return parser


def _verify(argv: list[str]) -> int:
    options = _verify_parser().parse_args(argv)
    pair, budget = find_pair(options.env), Budget.parse(options.budget)
    levels = [options.level] if options.level else sorted(LEVELS)
    results = [
        run(
            pair,
            level,
            budget=budget,
            seed=options.seed,
            configurations=options.configuration,
            golden=options.golden,
        )
        for level in levels
    ]
    command = shlex.join(["twinenv", "verify", *argv])
    if options.report or any(result.divergences for result in results):
        folder = options.report or Path(f"verify-{pair.name}")
        results = report.write_report(folder, pair, results, command)
    report.print_results(pair, results, Console())
    if options.json:
        report.write_json(options.json, report.summary(pair, results, command))
    return exit_code(results)


def _replay(argv: list[str]) -> int:
    parser = _parser(" replay", "Run a saved divergence again on both sides.")
    parser.add_argument("file", type=Path, metavar="FILE", help="a JSON file of a report")
    result = replay(parser.parse_args(argv).file)
    for divergence in result.divergences:
        print(divergence.line())
    for reason in result.skipped:
        print(f"skipped: {reason}")
    if not result.divergences:
        print("nothing could be compared" if result.status == "not run" else "the sides agree now")
    return exit_code([result])


def _record(argv: list[str]) -> int:
    parser = _parser(" record", "Have the reference write golden traces.")
    _add_env(parser)
    _add_seed(parser)
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="folder; default tests/<house>/golden"
    )
    options = parser.parse_args(argv)
    pair = find_pair(options.env)
    traces = []
    for name, reference in pair.references.items():
        for configuration in filter(reference.judges, pair.configurations):
            traces += record(pair, name, configuration, options.seed)
    folder = options.out or golden_folder(pair)
    save_traces(folder, traces)
    print(f"{sum(trace.num_rows for trace in traces):,} steps in {len(traces)} files in {folder}")
    return 0


def _faults(argv: list[str]) -> int:
    from twinenv.verify import faults

    parser = _parser(" faults", "Check that the verifier kills the house's planted faults.")
    _add_env(parser)
    parser.add_argument(
        "--faults", type=Path, metavar="DIR", help="of patches; default tests/<house>/faults"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write who killed what here")
    options = parser.parse_args(argv)
    pair = find_pair(options.env)
    with _progress():
        graded = faults.run_faults(pair, options.faults, _golden(pair))
    print(*faults.table(graded), sep="\n")
    print(f"{graded['killed']} of {graded['total']} planted faults killed")
    if options.json:
        report.write_json(options.json, graded)
    return int(bool(graded["missed"]))


def _mutate(argv: list[str]) -> int:
    from twinenv.verify import mutate

    parser = _parser(" mutate", "Check that the verifier kills mutants of the house's rules.")
    _add_env(parser)
    _add_seed(parser)
    parser.add_argument("--sample", type=int, default=300, metavar="N", help="default 300")
    parser.add_argument(
        "--every-level",
        action="store_true",
        help="ask every level of every mutant, instead of stopping at the first that kills it",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write who killed what here")
    options = parser.parse_args(argv)
    pair = find_pair(options.env)
    with _progress():
        graded = mutate.run_mutants(
            pair,
            sample=options.sample,
            seed=options.seed,
            golden=_golden(pair),
            every_level=options.every_level,
        )
    for fault in graded["faults"]:
        if not fault["killed_by"] and not fault["expected"]:
            print(f"SURVIVED {fault['name']}")
    for name in graded["contradicted"]:
        print(f"KILLED, though listed as equivalent: {name}")
    print(
        f"{graded['killed']} of {graded['total']} mutants killed ({graded['rate']:.1%}), "
        f"{graded['equivalent']} equivalent; by {graded['by_level']}"
    )
    if options.json:
        report.write_json(options.json, graded)
    return int(graded["rate"] < mutate.LEAST_RATE or bool(graded["contradicted"]))


@contextlib.contextmanager
def _progress() -> Iterator[None]:
    """Show each verdict on standard error as it comes: there may be minutes between them."""
    log, handler = logging.getLogger("twinenv.verify"), logging.StreamHandler()
    before = log.level
    log.setLevel(logging.INFO)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)


def _golden(pair: Pair) -> Path | None:
    folder = golden_folder(pair)
    return folder if folder.is_dir() else None


def _parser(command: str, description: str) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(
        f"twinenv verify{command}", description=description, epilog=_EXIT
    )


def _add_env(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("env", metavar="ENV", help="an id such as PongJAX-v0, or its package")


def _add_seed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="default 0")
