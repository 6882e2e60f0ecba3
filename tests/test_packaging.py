"""What is built from this tree, and that every way of installing it works.

Everything is built in a copy of the tree, without network access and without build isolation; the
environments that it is installed into borrow the dependencies of the running one.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import build
import pytest

ROOT = Path(__file__).resolve().parent.parent
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
PACKAGES = sorted(path.name for path in (ROOT / "python").iterdir() if path.is_dir())
DIST_INFO = f"twinenv-{VERSION}.dist-info"
EXTENSION = "emurust/_core.abi3.so"

# Not source: what tools leave behind in a working tree.
LEFT_BEHIND = shutil.ignore_patterns(
    *("__pycache__", "*.py[cod]", "*.so", "*.pyd", "*.dylib", "*.egg-info"),
    *(".git", ".*_cache", ".venv", "venv", ".hypothesis", "target", "dist", "build", "runs"),
)

pytestmark = [
    pytest.mark.rust,
    pytest.mark.skipif(
        not (shutil.which("cargo") and (ROOT / "python").is_dir()),
        reason="building needs cargo: install a Rust toolchain",
    ),
]

# Run in another folder by the installed interpreter: everything that a wheel must bring along.
CHECK = """
import importlib, importlib.metadata, importlib.resources, pathlib, sys

version, home, *packages = sys.argv[1:]
for name in packages:
    module = importlib.import_module(name)
    assert pathlib.Path(module.__file__).resolve().is_relative_to(home), module.__file__
    assert importlib.resources.files(name).joinpath("py.typed").is_file(), name
assert importlib.metadata.version("twinenv") == version
import emurust
assert importlib.resources.files("emurust").joinpath("_core.pyi").is_file()
assert emurust.CartridgeHeader.from_bytes(bytes(0x8000)).mapper == "ROM only"
"""


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree, as a fresh clone has it."""
    copy = tmp_path_factory.mktemp("tree") / "twinenv"
    shutil.copytree(ROOT, copy, symlinks=True, ignore=LEFT_BEHIND)
    return copy


@pytest.fixture(scope="session")
def wheel(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel built from the tree."""
    return _build(tree, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def sdist(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution built from the tree."""
    return _build(tree, "sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="session")
def wheel_from_sdist(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel built from the source distribution alone."""
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    return _build(folder / f"twinenv-{VERSION}", "wheel", tmp_path_factory.mktemp("rebuilt"))


def test_the_wheel_holds_the_tree_and_nothing_else(tree, wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    content = {name for name in names if not name.startswith(DIST_INFO)}
    assert content == _package_files(tree) | {EXTENSION}
    for package in PACKAGES:
        assert f"{package}/py.typed" in content
    assert "emurust/_core.pyi" in content


def test_no_cache_and_no_hidden_file_is_in_a_package(tree):
    parts = {part for name in _package_files(tree) for part in Path(name).parts}
    assert not {part for part in parts if part.startswith(".") or part.endswith("cache__")}


def test_the_wheel_describes_itself(wheel):
    archive = zipfile.ZipFile(wheel)
    assert wheel.name.startswith(f"twinenv-{VERSION}-cp311-abi3-")
    metadata = HeaderParser().parsestr(archive.read(f"{DIST_INFO}/METADATA").decode())
    assert metadata["Name"] == "twinenv"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "MIT"
    assert set(metadata.get_all("License-File")) >= {"LICENSE", "THIRD_PARTY.md"}
    assert {"cuda", "dev", "reference", "test"} <= set(metadata.get_all("Provides-Extra"))
    assert metadata.get_payload().strip() == (ROOT / "README.md").read_text().strip()
    scripts = archive.read(f"{DIST_INFO}/entry_points.txt").decode()
    assert "twinenv=twinenv.cli:main" in scripts.replace(" ", "")


def test_the_sdist_is_plain_and_complete(tree, sdist):
    with tarfile.open(sdist) as archive:
        members = archive.getmembers()
    assert all(member.isfile() or member.isdir() for member in members)
    names = {member.name.removeprefix(f"twinenv-{VERSION}/") for member in members}
    sources = {str(path.relative_to(tree)) for path in (tree / "rust").rglob("src/**/*.rs")}
    expected = {f"python/{name}" for name in _package_files(tree)} | sources
    assert names >= expected | {"Cargo.toml", "Cargo.lock", "LICENSE", "THIRD_PARTY.md"}
    assert not {name for name in names if name.startswith(("target/", ".git/", "tests/"))}


def test_the_sdist_gives_the_same_wheel(wheel, wheel_from_sdist):
    def content(path: Path) -> dict[str, int]:
        infos = zipfile.ZipFile(path).infolist()
        # The extension and its bill of materials depend on the folder they were compiled in.
        return {
            info.filename: 0 if info.filename.endswith((".so", ".json", "RECORD")) else info.CRC
            for info in infos
        }

    assert content(wheel) == content(wheel_from_sdist)


def test_a_wheel_from_the_sdist_installs_and_works(wheel_from_sdist, tmp_path):
    python = _environment(tmp_path / "env")
    _pip_install(python, str(wheel_from_sdist))
    _check(python, tmp_path / "env")


def test_pip_installs_from_the_folder(tree, tmp_path):
    python = _environment(tmp_path / "env")
    _pip_install(python, str(tree))
    _check(python, tmp_path / "env")


def test_an_editable_install_follows_the_sources(tree, tmp_path):
    python = _environment(tmp_path / "env")
    _pip_install(python, "--editable", str(tree))
    _check(python, tree)


def test_maturin_develop_works(tree, tmp_path):
    python = _environment(tmp_path / "env")
    environ = {**_environ(), "VIRTUAL_ENV": str(tmp_path / "env")}
    _run(["maturin", "develop", "--release", "--locked"], cwd=tree, env=environ)
    _check(python, tree)


def _package_files(tree: Path) -> set[str]:
    """All files of all packages, as paths in a wheel."""
    found = set()
    for package in PACKAGES:
        folder = (tree / "python" / package).resolve()
        for path in folder.rglob("*"):
            if path.is_file() and path.suffix not in {".so", ".pyc"}:
                found.add(f"{package}/{path.relative_to(folder)}")
    return found


def _build(tree: Path, kind: str, target: Path) -> Path:
    builder = build.ProjectBuilder(tree, runner=_quiet_runner)
    return Path(builder.build(kind, target))


def _quiet_runner(command, cwd=None, extra_environ=None):
    _run(command, cwd=cwd, env={**_environ(), **(extra_environ or {})})


def _environ() -> dict[str, str]:
    """One folder for all that cargo compiles, and no import path but the interpreter's own."""
    bin_folder = str(Path(sys.executable).parent)
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {
        **inherited,
        "CARGO_TARGET_DIR": str(ROOT / "target"),
        "PATH": os.pathsep.join([bin_folder, os.environ["PATH"]]),
    }


def _environment(folder: Path) -> Path:
    """A fresh virtual environment that finds the dependencies of this one; returns its Python."""
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    paths = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})
    borrowed = "\n".join(dict.fromkeys(sysconfig.get_path(key) for key in ("purelib", "platlib")))
    # Paths are added in the order of these files' names: what is installed here comes first.
    Path(paths["purelib"], "zz_borrowed.pth").write_text(borrowed)
    return python


def _pip_install(python: Path, *what: str) -> None:
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--ignore-installed"]
    _run([str(python), "-m", "pip", "install", "--quiet", *options, *what], env=_environ())


def _check(python: Path, home: Path) -> None:
    """Imports and uses what was installed, in a folder that has nothing to do with the sources."""
    elsewhere = home.parent / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    arguments = [VERSION, str(home.resolve()), *PACKAGES]
    _run([str(python), "-c", CHECK, *arguments], cwd=elsewhere, env=_environ())
    listing = _run([str(python.parent / "twinenv"), "list"], cwd=elsewhere, env=_environ())
    assert "PongJAX-v0" in listing


def _run(command, cwd=None, env=None) -> str:
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout
