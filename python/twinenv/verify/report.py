"""Results as JSON, as a terminal table and as one self-contained HTML page."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
from rich.console import Console
from rich.table import Table

from twinenv.verify.diagnostic import save_repro, to_json
from twinenv.verify.ledger import LevelResult
from twinenv.verify.pair import Pair
from twinenv.versions import versions

__all__ = ["print_results", "summary", "write_json", "write_report"]

LEVEL_NAMES = {1: "property", 2: "interaction", 3: "rollout", 4: "transfer"}
_COLOURS = {"passed": "green", "failed": "red", "partial": "yellow", "not run": "yellow"}
_MOST_LINES = 20


def summary(pair: Pair, results: Sequence[LevelResult], command: str) -> dict[str, Any]:
    """What `--json` writes: `env`, `levels`, `versions`, `command`; divergences are counted."""
    levels = [
        {
            "level": result.level,
            "status": result.status,
            "rows": result.rows,
            "divergences": len(result.divergences),
            "skipped": list(result.skipped),
            "seconds": round(result.seconds, 3),
        }
        for result in results
    ]
    return {
        "env": pair.env_id,
        "levels": levels,
        "versions": versions() | {n: r.version for n, r in pair.references.items()},
        "command": command,
    }


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write JSON, making the folder if needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(to_json(content), indent=1, allow_nan=False) + "\n")


def write_report(
    folder: Path,
    pair: Pair,
    results: Sequence[LevelResult],
    command: str,
) -> list[LevelResult]:
    """Write `report.json`, `report.html` and one file per divergence that can be replayed.

    Args:
        folder: made if missing.
        pair: the house's pair.
        results: of the levels.
        command: the command line.

    Returns:
        The results, their divergences naming the files that replay them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    results = [_saved(pair, result, folder) for result in results]
    content = summary(pair, results, command)
    content["diagnostics"] = [d.to_json() for r in results for d in r.divergences]
    content["details"] = {f"level {r.level}": r.details for r in results}
    write_json(folder / "report.json", content)
    (folder / "report.html").write_text(_page(pair, results, content), encoding="utf-8")
    return results


def print_results(pair: Pair, results: Sequence[LevelResult], console: Console) -> None:
    """The table of levels, then one line per divergence, skipped part and note."""
    table = Table(title=f"{pair.env_id} against {', '.join(pair.references)}")
    for heading in ("level", "status", "rows", "divergences", "skipped", "seconds"):
        table.add_column(heading, justify="left" if heading in ("level", "status") else "right")
    for result in results:
        colour = _COLOURS[result.status]
        table.add_row(
            f"L{result.level} {LEVEL_NAMES[result.level]}",
            f"[{colour}]{result.status}[/]",
            f"{result.rows:,}",
            str(len(result.divergences)),
            str(len(result.skipped)),
            f"{result.seconds:.1f}",
        )
    console.print(table)
    for result in results:
        lines = [divergence.line() for divergence in result.divergences]
        lines += [f"L{result.level} skipped: {reason}" for reason in result.skipped]
        lines += [f"L{result.level} {note}" for note in result.details.get("notes", ())]
        for line in lines[:_MOST_LINES]:
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        if len(lines) > _MOST_LINES:
            more = len(lines) - _MOST_LINES
            console.print(f"L{result.level}: {more} more lines, all of them in a --report")


def _saved(pair: Pair, result: LevelResult, folder: Path) -> LevelResult:
    kept = []
    for divergence in result.divergences:
        if divergence.repro:
            reference = pair.references.get(divergence.reference)
            version = reference.version if reference else ""
            divergence = save_repro(divergence, pair.env_id, version, folder / "divergences")
        kept.append(divergence)
    return dataclasses.replace(result, divergences=tuple(kept))


def _page(pair: Pair, results: Sequence[LevelResult], content: dict[str, Any]) -> str:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("twinenv.verify", ""),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    coverage = next((r.details["coverage"] for r in results if "coverage" in r.details), None)
    timelines = [_timeline(d) for r in results for d in r.divergences if d.timeline]
    return environment.get_template("report.html.jinja").render(
        pair=pair,
        results=results,
        names=LEVEL_NAMES,
        coverage=coverage,
        timelines=timelines,
        content=content,
    )


def _timeline(divergence: Any) -> dict[str, Any]:
    """Steps as columns and fields as rows, each cell (expected, got, whether they differ)."""
    entries = divergence.timeline
    fields = list(dict.fromkeys(name for e in entries for name in (*e["expected"], *e["got"])))
    rows = []
    for name in fields:
        cells = [(e["expected"].get(name), e["got"].get(name)) for e in entries]
        differing = [
            name in e["expected"] and a != b for e, (a, b) in zip(entries, cells, strict=True)
        ]
        rows.append((name, [(*cell, bad) for cell, bad in zip(cells, differing, strict=True)]))
    return {"line": divergence.line(), "steps": [e["step"] for e in entries], "rows": rows}
