"""How a run is shown while it goes: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import sys
import time
from typing import Any

from twinenv.ppo.trainer import Progress

__all__ = ["Console", "line"]

_PLAIN_SECONDS = 10.0


def line(progress: Progress) -> str:
    """Steps, speed, return and outcomes, time left, in one line."""
    total = progress.steps * progress.num_updates // max(progress.update, 1)
    parts = [f"{_short(progress.steps)}/{_short(total)} steps"]
    parts.append(f"{_short(progress.steps_per_second)} steps/s")
    names = [name for name in progress.values if name not in _HIDDEN]
    values = {name: progress.values[name] for name in names}
    parts += [f"{name} {value:.3g}" for name, value in values.items() if not math.isnan(value)]
    left = (total - progress.steps) / max(progress.steps_per_second, 1e-9)
    minutes, seconds = divmod(round(left), 60)
    return " · ".join([*parts, f"{minutes}:{seconds:02d} left"])


_HIDDEN = {
    "episodes",
    "length",
    "policy_loss",
    "value_loss",
    "approx_kl",
    "clip_fraction",
    "explained_variance",
    "grad_norm",
    "learning_rate",
}


class Console:
    """Shows progress on standard error."""

    def __init__(self, title: str, *, quiet: bool = False) -> None:
        self._title, self._quiet = title, quiet
        self._shown = -math.inf
        self._live: Any = None
        if not quiet and sys.stderr.isatty():
            from rich.console import Console as RichConsole
            from rich.live import Live

            console = RichConsole(stderr=True)
            self._live = Live("", console=console, auto_refresh=False, transient=False)
            self._live.start()

    def progress(self, progress: Progress) -> None:
        """Show the last chunk."""
        if self._quiet:
            return
        text = f"{self._title} · {line(progress)}"
        if self._live is not None:
            from rich.text import Text

            self._live.update(Text(text, overflow="ellipsis", no_wrap=True), refresh=True)
        elif progress.update == progress.num_updates or self._due():
            print(text, file=sys.stderr, flush=True)

    def say(self, message: str) -> None:
        """Print a message, above the live line if there is one."""
        if self._live is not None:
            self._live.console.print(message, highlight=False, markup=False)
        else:
            print(message, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave the last line as it is."""
        if self._live is not None:
            self._live.stop()

    def _due(self) -> bool:
        due = time.monotonic() - self._shown >= _PLAIN_SECONDS
        if due:
            self._shown = time.monotonic()
        return due


def _short(number: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"
