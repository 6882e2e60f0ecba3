"""A cache folder with the outside references, one pinned version each.

References live outside site-packages: several declare dependencies that would break a JAX
installation, so only their own files are fetched, and each is loaded by its house's adapter.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from twinenv.naming import unknown

__all__ = ["MissingReferenceError", "Status", "install", "locate", "names", "status"]


class MissingReferenceError(RuntimeError):
    """A reference is not installed; the message says which command installs it."""


class InstallError(RuntimeError):
    """A reference could not be installed; the message says why."""


@dataclasses.dataclass(frozen=True)
class _Wheel:
    """A package installed without its dependencies.

    Attributes:
        package: distribution name.
        version: pinned version.
        wheels: sha256 of its wheels, one per Python and platform that has any.
        files: sha256 by path, of files that must still be there as they were.
    """

    package: str
    version: str
    wheels: tuple[str, ...]
    files: Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Status:
    """Where a reference stands: `problem` is "" if it is ready to use."""

    name: str
    version: str
    path: Path
    problem: str


_WHEELS = {
    "pufferlib": _Wheel(
        "pufferlib",
        "2.0.2",
        (
            "18c5e74f9a7790aad4bffe223f4de79d363cb6a8b7e3e9988d5bf6a525e0e3a5",
            "6203dcecef7aedd8848370e703827d0ac7a1b33c874500e5c9844409cd4f792c",
            "3139720851f413d0a518da869bf39b7e782a790f0f16120bb3c64e3979b270ea",
        ),
        {
            "pufferlib/ocean/pong/pong.h": (
                "ec51ede734f9e2f29abeec228d1a53452dbc5730fcfbc3cd0b6a3eb9141ac8c3"
            )
        },
    )
}


def names() -> list[str]:
    """All references that can be installed."""
    return sorted(_WHEELS)


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
    wheel = _wheel(name)
    python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    path = _cache() / f"{wheel.package}-{wheel.version}-{python}"
    return Status(name, wheel.version, path, _problem(wheel, path))


def install(name: str) -> Path:
    """Fetch a reference into the cache folder, unless it is there; returns its folder.

    Raises:
        InstallError: the package could not be fetched or is not what the pins say.
    """
    found = status(name)
    if not found.problem:
        return found.path
    wheel = _wheel(name)
    found.path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=found.path.parent) as scratch:
        target = Path(scratch) / "files"
        _fetch(wheel, target)
        if problem := _problem(wheel, target):
            raise InstallError(f"{name} {wheel.version} was fetched, but {problem}")
        shutil.rmtree(found.path, ignore_errors=True)
        os.replace(target, found.path)
    return found.path


def _fetch(wheel: _Wheel, target: Path) -> None:
    if importlib.util.find_spec("pip"):
        command = [sys.executable, "-m", "pip", "install", "--quiet"]
        command += ["--disable-pip-version-check", "--no-input"]
    elif uv := shutil.which("uv"):
        command = [uv, "pip", "install", "--quiet", "--python", sys.executable]
    else:
        raise InstallError(f"neither pip nor uv is here to fetch {wheel.package}; install pip")
    hashes = [f"--hash=sha256:{digest}" for digest in wheel.wheels]
    pinned = target.with_name("requirements.txt")
    pinned.write_text(" ".join([f"{wheel.package}=={wheel.version}", *hashes]))
    command += ["--no-deps", "--only-binary", ":all:", "--target", str(target)]
    command += ["--require-hashes", "-r", str(pinned)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise InstallError(
            f"could not fetch {wheel.package} {wheel.version} for Python "
            f"{sys.version_info[0]}.{sys.version_info[1]}: {reason[0]}"
        )


def _problem(wheel: _Wheel, path: Path) -> str:
    if not path.is_dir():
        return "not installed"
    for file, digest in wheel.files.items():
        if not (path / file).is_file():
            return f"{file} is missing"
        if hashlib.sha256((path / file).read_bytes()).hexdigest() != digest:
            return f"{file} is not that of the pinned version"
    return ""


def _wheel(name: str) -> _Wheel:
    if name not in _WHEELS:
        raise ValueError(unknown("reference", name, _WHEELS))
    return _WHEELS[name]


def _cache() -> Path:
    root = os.environ.get("TWINENV_CACHE") or os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "twinenv" / "references"
