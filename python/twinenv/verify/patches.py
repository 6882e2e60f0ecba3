"""Unified diffs, applied strictly: every line of context must be where it says, or near."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping

__all__ = ["Fault", "PatchError", "apply", "parse"]

_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")
_DRIFT = 50  # lines that a hunk may have moved


class PatchError(ValueError):
    """A patch is malformed or does not fit the file it names."""


@dataclasses.dataclass(frozen=True)
class Fault:
    """A planted fault.

    Attributes:
        name: of its file, without the suffix.
        level: the level that must kill it, 1 to 3.
        rule: what it breaks, in words.
        diff: the unified diff, against the repository's root.
    """

    name: str
    level: int
    rule: str
    diff: str


def parse(name: str, text: str) -> Fault:
    """A patch file: a header with `level: 2` and `rule: ...`, then a unified diff.

    Raises:
        PatchError: no header, or no diff.
    """
    head, found, diff = text.partition("--- ")
    fields = dict(re.findall(r"^#?\s*(level|rule):\s*(.+?)\s*$", head, re.MULTILINE))
    level = fields.get("level", "").removeprefix("L")
    if level not in ("1", "2", "3") or not fields.get("rule"):
        raise PatchError(
            f"{name} must begin with the lines `# level: 1, 2 or 3` and `# rule: what it breaks`"
        )
    if not found:
        raise PatchError(f"{name} has no unified diff after its header")
    return Fault(name, int(level), fields["rule"], found + diff)


def apply(diff: str, read: Callable[[str], str]) -> Mapping[str, str]:
    """The changed files of a diff: new text by path, with the `a/` and `b/` prefixes taken off.

    Args:
        diff: one or more files' hunks.
        read: the present text of a path.

    Raises:
        PatchError: a hunk does not fit.
    """
    changed: dict[str, str] = {}
    for part in re.split(r"^--- ", diff, flags=re.MULTILINE)[1:]:
        lines = part.split("\n")
        if len(lines) < 2 or not lines[1].startswith("+++ "):
            raise PatchError(f"`--- {lines[0]}` is not followed by a `+++` line")
        path = re.sub(r"^[ab]/", "", lines[1][4:].split("\t")[0].strip())
        changed[path] = _patched(path, read(path), lines[2:])
    return changed


def _patched(path: str, text: str, lines: list[str]) -> str:
    source, offset = text.split("\n"), 0
    starts = [i for i, line in enumerate(lines) if _HUNK.match(line)]
    if not starts:
        raise PatchError(f"the patch of {path} has no hunk")
    for start, stop in zip(starts, [*starts[1:], len(lines)], strict=True):
        body = [line for line in lines[start + 1 : stop] if line[:1] in (" ", "-", "+")]
        old = [line[1:] for line in body if line[0] != "+"]
        new = [line[1:] for line in body if line[0] != "-"]
        match = _HUNK.match(lines[start])
        assert match is not None
        at = _find(source, old, int(match[1]) - 1 + offset)
        if at is None:
            raise PatchError(f"{lines[start]} does not fit {path}; it looks for {old[:3]}")
        source[at : at + len(old)] = new
        offset += len(new) - len(old)
    return "\n".join(source)


def _find(source: list[str], old: list[str], expected: int) -> int | None:
    """Where the old lines are, nearest to where the hunk says."""
    for drift in sorted(range(-_DRIFT, _DRIFT + 1), key=abs):
        at = expected + drift
        if at >= 0 and source[at : at + len(old)] == old:
            return at
    return None
