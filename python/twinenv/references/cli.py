"""`twinenv references`: install the outside references, and show where they are."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from twinenv import references
from twinenv.references.store import InstallError

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run `twinenv references ...`: exit status 0, or 2 if something could not be installed."""
    options = _parser().parse_args(sys.argv[1:] if argv is None else argv)
    if options.action == "install":
        return _install(options.names or references.names("verification"))
    for found in map(references.status, references.names()):
        where = found.problem or found.path
        print(f"{found.name:<10} {found.version:<8} {found.purpose:<13} {where}")
    return 0


def _install(names: Sequence[str]) -> int:
    for name in names:
        try:
            print(f"{name}: {references.install(name)}")
        except (InstallError, ValueError, OSError) as error:
            print(f"twinenv references: {error}", file=sys.stderr)
            return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "twinenv references",
        description="Outside references, in a cache folder apart from the environment's packages.",
    )
    actions = parser.add_subparsers(dest="action", required=True)
    checked, measured = (
        ", ".join(references.names(purpose)) for purpose in ("verification", "benchmarks")
    )
    about = (
        f"Without a name, what `twinenv verify` needs: {checked}. "
        f"What only `twinenv bench` needs is installed when it is named: {measured}."
    )
    wanted = actions.add_parser("install", help="fetch references", description=about)
    wanted.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(references.names())}"
    )
    actions.add_parser("status", help="show what is installed, what for, and where")
    return parser
