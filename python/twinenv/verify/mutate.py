"""Mutants: small mechanical changes of the rules that the verifier ought to notice."""

from __future__ import annotations

import ast
import dataclasses
import functools
import random
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from twinenv.verify import exam
from twinenv.verify.faults import house_folder
from twinenv.verify.pair import Pair
from twinenv.verify.variants import Variant, Verdict, judge

__all__ = ["LEAST_RATE", "Mutant", "equivalents_file", "mutants_of", "rule_files", "run_mutants"]

LEAST_RATE = 0.95
"""Part of the non-equivalent mutants that levels 1 to 3 must kill."""

_ROOMS = ("rules", "dynamics", "observation.py", "reward.py")
# Operators that change no rule (exceptions), need arguments of their own (variables), or make
# integers that take for ever to compute (powers).
_LEFT_OUT = ("ExceptionReplacer", "VariableReplacer", "VariableInserter", "_Pow")


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One change of one line.

    Attributes:
        file: path relative to the house's package.
        old: the line before, without indentation.
        new: the line after.
        text: the whole changed file.
    """

    file: str
    old: str
    new: str
    text: str

    @property
    def name(self) -> str:
        """For the report."""
        return f"{self.file}: {self.old}  ->  {self.new}"


def equivalents_file(pair: Pair) -> Path:
    """Where mutants that change nothing are listed, relative to a checkout's root."""
    return Path("tests") / pair.name / "equivalent_mutants.toml"


def rule_files(house: Path) -> list[Path]:
    """The modules that are mutated: rules or dynamics, observation, reward."""
    found = []
    for room in _ROOMS:
        path = house / room
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path] if path.is_file() else []
    return found


def mutants_of(house: Path, sample: int, seed: int) -> list[Mutant]:
    """A seeded sample of the mutants of a house's rules.

    Changes that leave the program as it was (annotations, docstrings, `__all__`) and ones that are
    no Python are not mutants.

    Args:
        house: folder of the package.
        sample: how many; fewer if there are no more.
        seed: of the sample.
    """
    sources = {path: path.read_text(encoding="utf-8") for path in rule_files(house)}
    programs = {path: _program(text) for path, text in sources.items()}
    places = [(path, *place) for path, text in sources.items() for place in _places(text)]
    random.Random(seed).shuffle(places)
    mutants: dict[str, Mutant] = {}
    for path, operator, occurrence in places:
        if len(mutants) >= sample:
            break
        text = _mutated(sources[path], operator, occurrence)
        if text is not None and _program(text) not in (None, programs[path]):
            file = path.relative_to(house).as_posix()
            # Different operators can write the same text.
            mutants.setdefault(f"{file}\n{text}", _mutant(file, sources[path], text))
    return list(mutants.values())


def run_mutants(
    pair: Pair,
    *,
    sample: int = 300,
    seed: int = 0,
    equivalents: Path | None = None,
    golden: Path | None = None,
    every_level: bool = False,
) -> dict[str, Any]:
    """Judge a sample of mutants.

    Args:
        pair: the house's pair.
        sample: how many.
        seed: of the sample.
        equivalents: TOML file of `[[equivalent]]` tables with `file`, `old`, `new` and `reason`;
            None takes `tests/<house>/equivalent_mutants.toml` where it exists.
        golden: folder of golden traces to examine with; None has the reference record.
        every_level: ask every level of every mutant, to publish the rate of each; otherwise the
            quickest questions come first, and the first that kills is the last.

    Returns:
        `total` (without the equivalent ones), `killed`, `rate`, `by_level`, `equivalent`,
        `contradicted` (listed as equivalent, and killed all the same) and `faults`, as
        `run_faults` has them.

    Raises:
        ValueError: the list of equivalents is malformed, or names a line that is not there.
        RuntimeError: the unchanged house does not pass.
    """
    house = house_folder(pair)
    known = _equivalents(equivalents or equivalents_file(pair), house)
    mutants = mutants_of(house, sample, seed)
    variants = [Variant(mutant.name, {mutant.file: mutant.text}) for mutant in mutants]
    with tempfile.TemporaryDirectory() as scratch:
        exam.prepare(pair, Path(scratch), golden)
        verdicts = judge(house, Path(scratch), variants, every_level=every_level, deep=True)
    return _graded(list(zip(mutants, verdicts, strict=True)), known)


def _graded(
    judged: Sequence[tuple[Mutant, Verdict]], known: Mapping[tuple[str, str, str], str]
) -> dict[str, Any]:
    counted = [(m, v) for m, v in judged if (m.file, m.old, m.new) not in known]
    listed = [(m, v) for m, v in judged if (m.file, m.old, m.new) in known]
    killed = sum(bool(v.killed_by) for _, v in counted)
    killers = sorted({killer for _, v in counted for killer in v.killed_by})
    return {
        "total": len(counted),
        "killed": killed,
        "rate": killed / len(counted) if counted else 0.0,
        "by_level": {k: sum(k in v.killed_by for _, v in counted) for k in killers},
        "equivalent": len(listed),
        "contradicted": [m.name for m, v in listed if v.killed_by],
        "faults": [
            {
                "name": m.name,
                "rule": known.get((m.file, m.old, m.new), ""),
                "expected": "survives: equivalent" if (m.file, m.old, m.new) in known else "",
                "killed_by": list(v.killed_by),
                "why": dict(v.why),
            }
            for m, v in judged
        ],
    }


def _equivalents(path: Path, house: Path) -> dict[tuple[str, str, str], str]:
    if not path.is_file():
        return {}
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8"))["equivalent"]
        known = {(e["file"], e["old"], e["new"]): e["reason"] for e in entries}
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path}: each [[equivalent]] needs file, old, new and reason; {error!r}"
        ) from error
    for (file, old, _), reason in known.items():
        lines = (house / file).read_text(encoding="utf-8").splitlines()
        if old not in [line.strip() for line in lines] or not reason.strip():
            raise ValueError(f"{path}: {file} has no line {old!r}, or its reason is empty")
    return known


@functools.cache
def _places(text: str) -> tuple[tuple[str, int], ...]:
    """Every operator and occurrence that would change a text."""
    from cosmic_ray import plugins  # type: ignore[import-untyped]
    from cosmic_ray.ast import ast_nodes, get_ast  # type: ignore[import-untyped]

    nodes, places = list(ast_nodes(get_ast(text))), []
    for name in sorted(plugins.operator_names()):
        if not name.endswith(_LEFT_OUT):
            operator = plugins.get_operator(name)()
            count = sum(1 for node in nodes for _ in operator.mutation_positions(node))
            places += [(name, occurrence) for occurrence in range(count)]
    return tuple(places)


def _mutated(text: str, operator: str, occurrence: int) -> str | None:
    from cosmic_ray import plugins
    from cosmic_ray.mutating import mutate_code  # type: ignore[import-untyped]

    return mutate_code(text, plugins.get_operator(operator)(), occurrence)


def _mutant(file: str, before: str, after: str) -> Mutant:
    pairs = zip(before.splitlines(), after.splitlines(), strict=False)
    old, new = next(((a, b) for a, b in pairs if a != b), ("", "a line more or less"))
    return Mutant(file, old.strip(), new.strip(), after)


class _Bare(ast.NodeTransformer):
    """A module without what no program depends on."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        self.generic_visit(node)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(0)
        self.generic_visit(node)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else node


def _program(text: str) -> str | None:
    """What a text does, as a string; None if it is no Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    return ast.dump(_Bare().visit(tree))
