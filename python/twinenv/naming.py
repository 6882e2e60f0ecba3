"""What to say about a name that nobody knows."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["unknown"]


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """`unknown WHAT 'NAME'; did you mean 'NEAREST'? Accepted are ...`, whatever the case."""
    by_lower = {option.lower(): option for option in known}
    near = difflib.get_close_matches(str(name).lower(), by_lower, n=1, cutoff=0.3)
    hint = f"did you mean {by_lower[near[0]]!r}? " if near else ""
    return f"unknown {what} {name!r}; {hint}Accepted are {', '.join(sorted(by_lower.values()))}"
