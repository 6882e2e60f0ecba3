"""A cache folder with the outside references, one pinned version each.

References live outside site-packages: several declare dependencies that would break a JAX
installation, so only their own files are fetched, and each is loaded by its house's adapter, or in
a process of its own that calls `use`. JAX and NumPy are always those of the environment.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from twinenv.naming import unknown
from twinenv.references.pins import REFERENCES, Reference, Wheel

__all__ = ["MissingReferenceError", "Status", "install", "locate", "names", "status", "use"]


class MissingReferenceError(RuntimeError):
    """A reference is not installed; the message says which command installs it."""


class InstallError(RuntimeError):
    """A reference could not be installed; the message says why."""


@dataclasses.dataclass(frozen=True)
class Status:
    """Where a reference stands: `problem` is "" if it is ready to use.

    Attributes:
        name: its name.
        version: pinned version.
        path: its folder.
        problem: what is wrong with it.
        purpose: "verification" or "benchmarks".
    """

    name: str
    version: str
    path: Path
    problem: str
    purpose: str


def names(purpose: str | None = None) -> list[str]:
    """All references that can be installed, or those of one purpose."""
    return sorted(n for n, r in REFERENCES.items() if purpose in (None, r.purpose))


def locate(name: str) -> Path:
    """Folder of an installed reference.

    Raises:
        MissingReferenceError: it isn't installed, or its files are not those of the pinned version.
    """
    found = status(name)
    if found.problem:
        raise MissingReferenceError(
            f"reference {name} {found.version}: {found.problem}; "
            f"run `twinenv references install {name}`"
        )
    return found.path


def status(name: str) -> Status:
    """Whether a reference is installed and is the pinned version."""
    reference = _reference(name)
    wheel = reference.wheel
    python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    path = _cache() / f"{wheel.package}-{wheel.version}-{python}"
    problem = _problem(reference, path)
    for needed in () if problem else reference.needs:
        if status(needed).problem:
            problem = f"needs {needed}, which is {status(needed).problem}"
    return Status(name, wheel.version, path, problem, reference.purpose)


def install(name: str) -> Path:
    """Fetch a reference and those it needs into the cache folder, unless there; returns its folder.

    Raises:
        InstallError: a package could not be fetched or is not what the pins say.
    """
    reference = _reference(name)
    for needed in reference.needs:
        install(needed)
    found = status(name)
    if not found.problem:
        return found.path
    found.path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=found.path.parent) as scratch:
        target = Path(scratch) / "files"
        _fetch((reference.wheel, *reference.companions), target)
        if problem := _problem(reference, target):
            raise InstallError(f"{name} {found.version} was fetched, but {problem}")
        shutil.rmtree(found.path, ignore_errors=True)
        os.replace(target, found.path)
    return found.path


def use(name: str) -> None:
    """Make a reference importable in this process, which should be one of its own.

    Raises:
        MissingReferenceError: it, one that it needs, or a package that it needs is not installed.
    """
    reference = _reference(name)
    for package, command in reference.environment.items():
        found = importlib.util.find_spec(package)
        if found is None or found.origin is None:  # a mere folder of that name has no origin
            raise MissingReferenceError(f"{name} needs the package {package}; run `{command}`")
    for needed in reference.needs:
        use(needed)
    path = locate(name)
    if str(path) not in sys.path:
        sys.path.insert(0, str(path))
        for package in reference.extends:
            importlib.import_module(package).__path__.insert(0, str(path / package))


def _fetch(wheels: Sequence[Wheel], target: Path) -> None:
    first = wheels[0]
    if importlib.util.find_spec("pip"):
        command = [sys.executable, "-m", "pip", "install", "--quiet"]
        command += ["--disable-pip-version-check", "--no-input"]
    elif uv := shutil.which("uv"):
        command = [uv, "pip", "install", "--quiet", "--python", sys.executable]
    else:
        raise InstallError(f"neither pip nor uv is here to fetch {first.package}; install pip")
    pinned = target.with_name("requirements.txt")
    pinned.write_text("\n".join(wheel.requirement for wheel in wheels))
    command += ["--no-deps", "--only-binary", ":all:", "--target", str(target)]
    command += ["--require-hashes", "-r", str(pinned)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise InstallError(
            f"could not fetch {first.package} {first.version} for Python "
            f"{sys.version_info[0]}.{sys.version_info[1]}: {reason[0]}"
        )


def _problem(reference: Reference, path: Path) -> str:
    if not path.is_dir():
        return "not installed"
    for file, digest in reference.files.items():
        if not (path / file).is_file():
            return f"{file} is missing"
        if hashlib.sha256((path / file).read_bytes()).hexdigest() != digest:
            return f"{file} is not that of the pinned version"
    return ""


def _reference(name: str) -> Reference:
    if name not in REFERENCES:
        raise ValueError(unknown("reference", name, REFERENCES))
    return REFERENCES[name]


def _cache() -> Path:
    root = os.environ.get("TWINENV_CACHE") or os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "twinenv" / "references"
