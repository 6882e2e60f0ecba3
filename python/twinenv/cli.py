"""The `twinenv` command: finds the subcommand and hands it its arguments."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence

__all__ = ["main"]

_COMMANDS = {
    "list": ("twinenv.cli:list_main", "list the environments"),
    "train": ("twinenv.ppo.cli:train_main", "train a PPO agent"),
    "eval": ("twinenv.ppo.cli:eval_main", "evaluate a trained agent, here or on the reference"),
    "play": ("twinenv.ppo.cli:play_main", "write a GIF or MP4 of a trained agent"),
    "verify": ("twinenv.verify.cli:main", "check a twin against its reference"),
    "bench": ("twinenv.bench.cli:main", "measure a twin against its reference"),
    "references": ("twinenv.references.cli:main", "install the outside references"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(
        "twinenv",
        description="Verified, high-performance twins of reinforcement-learning environments.",
        epilog="commands:\n" + "\n".join(f"  {n:<11} {h}" for n, (_, h) in _COMMANDS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=_version())
    parser.add_argument("command", choices=_COMMANDS, metavar="COMMAND", help="see below")
    command = parser.parse_args(arguments[:1] or ["--help"]).command
    return _load(_COMMANDS[command][0])(arguments[1:])


def list_main(argv: Sequence[str]) -> int:
    """`twinenv list`."""
    from twinenv import registry

    argparse.ArgumentParser("twinenv list", description="List the environments.").parse_args(argv)
    for env_id in registry.list_ids():
        print(f"{env_id:<24} {registry.house_of(env_id).__doc__.splitlines()[0]}")
    return 0


def _load(where: str) -> Callable[[Sequence[str]], int]:
    module, name = where.split(":")
    return getattr(importlib.import_module(module), name)


def _version() -> str:
    from twinenv import __version__

    return f"twinenv {__version__}"
