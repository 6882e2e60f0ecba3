"""The shape of the repository: houses and their rooms, links, sizes, versions."""

import ast
import json
import re
import subprocess
import tomllib
from pathlib import Path

import jax
import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

ROOMS = (
    "__init__.py",
    "params.py",
    "state.py",
    "observation.py",
    "reward.py",
    "env.py",
    "reference",
    "pair.py",
    "render.py",
    "presets.py",
    "README.md",
    "py.typed",
)
NOT_PACKAGES = {"benchmarks", "docs", "examples", "python", "rust", "target", "tests"}
PACKAGES = sorted(
    path.parent.name for path in ROOT.glob("*/__init__.py") if path.parent.name not in NOT_PACKAGES
)
HOUSES = [name for name in PACKAGES if (ROOT / name / "env.py").is_file()]

MAX_PYTHON_LINES = 500
MAX_RUST_LINES = 700
MAX_FUNCTION_LINES = 70


def _tracked(*suffixes: str) -> list[Path]:
    """Files that git tracks and that exist, by suffix; links are left out."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("this is no git checkout")
    paths = [ROOT / name for name in listed.stdout.split("\0") if name.endswith(suffixes)]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def _is_generated(path: Path) -> bool:
    return "data" in path.relative_to(ROOT).parts


def test_there_is_a_house():
    assert HOUSES


@pytest.mark.parametrize("house", HOUSES)
def test_a_house_has_all_its_rooms(house):
    folder = ROOT / house
    missing = [room for room in ROOMS if not (folder / room).exists()]
    assert not missing, f"{house} has no {', '.join(missing)}"
    assert (folder / "rules").is_dir() or (folder / "dynamics").is_dir()
    empty = [room for room in ("reference", "rules", "dynamics") if _is_empty(folder / room)]
    assert not empty, f"nothing is in {', '.join(empty)} of {house}"


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not any(folder.glob("*.py"))


@pytest.mark.parametrize("house", HOUSES)
def test_data_of_a_house_says_where_it_comes_from(house):
    data = ROOT / house / "data"
    if not data.is_dir():
        return
    manifest = json.loads((data / "MANIFEST.json").read_text())
    assert {"source", "version", "sha256"} <= manifest.keys()


@pytest.mark.parametrize("house", HOUSES)
def test_rules_never_see_a_random_key(house):
    for room in ("rules", "dynamics"):
        for path in (ROOT / house / room).rglob("*.py"):
            tree = ast.parse(path.read_text())
            names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
            for node in ast.walk(tree):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    names |= set(".".join(alias.name for alias in node.names).split("."))
                    names |= set((getattr(node, "module", None) or "").split("."))
            assert "random" not in names, path


def test_every_package_is_linked_and_every_link_leads_to_a_package():
    links = {path.name: path for path in (ROOT / "python").iterdir() if path.is_symlink()}
    assert sorted(links) == PACKAGES
    for name, link in links.items():
        assert link.readlink() == Path("..") / name
        assert link.resolve() == ROOT / name


def test_every_package_is_checked_and_typed():
    shared = [path.parent.name for path in (ROOT / "python").glob("*/__init__.py")]
    own = sorted({*shared, *PACKAGES})
    tools = PROJECT["tool"]
    paths = {"python/" + name if name not in PACKAGES else name for name in own}
    assert set(tools["mypy"]["files"]) >= paths
    assert sorted(tools["ruff"]["lint"]["isort"]["known-first-party"]) == own
    assert [name for name in own if not (ROOT / "python" / name / "py.typed").is_file()] == []


def test_files_are_short():
    limits = {".py": MAX_PYTHON_LINES, ".rs": MAX_RUST_LINES}
    lengths = {path: len(path.read_text().splitlines()) for path in _tracked(".py", ".rs")}
    long = {
        str(path.relative_to(ROOT)): length
        for path, length in lengths.items()
        if length > limits[path.suffix] and not _is_generated(path)
    }
    assert not long


def test_functions_are_short():
    long = {
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}": length
        for path in _tracked(".py")
        if not _is_generated(path)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := _code_lines(node)) > MAX_FUNCTION_LINES
    }
    assert not long


def _code_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines that hold code: no docstring, no blank line, no comment."""
    body = function.body
    if ast.get_docstring(function) is not None:
        body = body[1:]
    lines = {node.lineno for node in ast.walk(function.args) if hasattr(node, "lineno")}
    lines.add(function.lineno)
    for statement in body:
        for node in ast.walk(statement):
            if hasattr(node, "lineno"):
                lines |= {node.lineno, node.end_lineno or node.lineno}
    return len(lines)


def test_nothing_names_the_machine_it_was_written_on():
    folders = "|".join(["ro" + "ot", "wo" + "rk", "home/[a-z]+", "opt/[a-z]+"])
    hosts = "|".join([r"pypi\.or" + "g", r"crates\.i" + "o", r"registry\.npmjs\.or" + "g"])
    pattern = re.compile(rf"(?<![\w.}}])/(?:{folders})/|{hosts}")
    texts = (".py", ".pyi", ".rs", ".toml", ".md", ".yml", ".yaml", ".cff", ".txt", "run", ".json")
    found = [
        f"{path.relative_to(ROOT)}:{number} {line.strip()[:100]}"
        for path in _tracked(*texts)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if pattern.search(line)
    ]
    assert not found


def test_all_versions_are_one():
    import twinenv

    version = PROJECT["project"]["version"]
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text())
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cargo["workspace"]["package"]["version"] == version
    assert citation["version"] == version
    assert twinenv.__version__ == version


def test_constraints_pin_every_dependency_and_name_no_place():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert [pin for pin in pins if not re.fullmatch(r"[\w.-]+==[\w.+!-]+", pin)] == []
    pinned = {_normal(pin.split("==")[0]) for pin in pins}
    project = PROJECT["project"]
    wanted = list(project["dependencies"])
    for extra in ("reference", "test", "dev", "docs"):
        wanted += project["optional-dependencies"][extra]
    assert {_normal(re.split(r"[^\w.-]", name)[0]) for name in wanted} <= pinned


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_tests_run_with_strict_promotion():
    assert jax.config.jax_numpy_dtype_promotion == "strict"
    with pytest.raises(Exception, match="no available implicit dtype promotion path"):
        jax.numpy.zeros(1, jax.numpy.int32) + jax.numpy.zeros(1, jax.numpy.float32)
