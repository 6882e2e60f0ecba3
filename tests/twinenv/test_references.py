"""The cache of outside references: pins, what is installed when, and what says what is missing."""

from __future__ import annotations

import hashlib
import importlib
import re
import sys

import pytest

from twinenv import references
from twinenv.cli import main
from twinenv.references import store
from twinenv.references.pins import REFERENCES, Reference, Wheel

TEXT = b"word = 'from the cache'\n"
DIGEST = hashlib.sha256(TEXT).hexdigest()


@pytest.fixture
def toys(monkeypatch, tmp_path):
    """Two references, the second needing the first, and an empty cache; `sys.path` is put back."""
    one = Reference(Wheel("toy-one", "1.0", ("0" * 64,)), {"toyone/extra.py": DIGEST})
    two = Reference(Wheel("toy-two", "2.0", ("0" * 64,)), {"toytwo.py": DIGEST}, needs=("one",))
    monkeypatch.setattr(store, "REFERENCES", {"one": one, "two": two})
    monkeypatch.setenv("TWINENV_CACHE", str(tmp_path))
    monkeypatch.setattr(sys, "path", [*sys.path])
    return store.REFERENCES


def put(name):
    """A reference's files, as if it had been fetched."""
    path = references.status(name).path
    for file in store.REFERENCES[name].files:
        (path / file).parent.mkdir(parents=True, exist_ok=True)
        (path / file).write_bytes(TEXT)


def test_every_package_is_pinned_with_hashes():
    for reference in REFERENCES.values():
        assert reference.files
        assert set(reference.needs) <= set(REFERENCES)
        assert reference.purpose in ("verification", "benchmarks")
        for wheel in (reference.wheel, *reference.companions):
            assert re.fullmatch(r"[\w-]+==[\d.]+( --hash=sha256:[0-9a-f]{64})+", wheel.requirement)
            # These must be the environment's own.
            assert wheel.package not in ("jax", "jaxlib", "numpy", "mujoco")


@pytest.mark.parametrize(
    ("given", "installed"),
    [([], ["pufferlib"]), (["mjx", "brax"], ["mjx", "brax"])],
)
def test_peers_of_benchmarks_are_installed_when_named(given, installed, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(references, "install", lambda name: asked.append(name) or "there")
    assert main(["references", "install", *given]) == 0
    assert asked == installed
    assert capsys.readouterr().out.splitlines() == [f"{name}: there" for name in installed]


def test_help_says_what_is_installed(capsys):
    with pytest.raises(SystemExit):
        main(["references", "install", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "Without a name, what `twinenv verify` needs: pufferlib." in said
    assert "installed when it is named: brax, mjx." in said


def test_status_names_purpose_and_problem(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("TWINENV_CACHE", str(tmp_path))
    assert main(["references", "status"]) == 0
    rows = [line.split(maxsplit=3) for line in capsys.readouterr().out.splitlines()]
    assert rows == [
        ["brax", "0.14.2", "benchmarks", "not installed"],
        ["mjx", "3.17.0", "benchmarks", "not installed"],
        ["pufferlib", "2.0.2", "verification", "not installed"],
    ]


def test_an_unknown_reference_is_one_sentence(capsys):
    assert main(["references", "install", "mxj"]) == 2
    said = capsys.readouterr().err
    assert "did you mean 'mjx'" in said and said.count("\n") == 1


def test_a_reference_waits_for_those_it_needs(toys):
    put("two")
    assert references.status("two").problem == "needs one, which is not installed"
    put("one")
    assert references.status("two").problem == ""


def test_what_is_needed_is_installed_first(toys, monkeypatch):
    fetched = []

    def fetch(wheels, target):
        fetched.append(wheels[0].package)
        name = "one" if wheels[0].package == "toy-one" else "two"
        for file in toys[name].files:
            (target / file).parent.mkdir(parents=True, exist_ok=True)
            (target / file).write_bytes(TEXT)

    monkeypatch.setattr(store, "_fetch", fetch)
    assert references.install("two") == references.status("two").path
    assert fetched == ["toy-one", "toy-two"]
    references.install("two")
    assert len(fetched) == 2


def test_a_used_reference_can_be_imported(toys, monkeypatch, tmp_path):
    """Also where it adds modules to a package that the environment has."""
    package = tmp_path / "site" / "toyone"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("word = 'from the environment'\n")
    sys.path.append(str(tmp_path / "site"))
    toys["one"] = Reference(
        toys["one"].wheel,
        toys["one"].files,
        extends=("toyone",),
        environment={"toyone": "pip install toyone"},
    )
    put("one")
    put("two")
    try:
        references.use("two")
        assert importlib.import_module("toytwo").word == "from the cache"
        assert importlib.import_module("toyone").word == "from the environment"
        assert importlib.import_module("toyone.extra").word == "from the cache"
        length = len(sys.path)
        references.use("two")
        assert len(sys.path) == length
    finally:
        for name in ("toytwo", "toyone", "toyone.extra"):
            sys.modules.pop(name, None)


def test_what_is_missing_names_its_command(toys, tmp_path):
    with pytest.raises(references.MissingReferenceError, match="`twinenv references install one`"):
        references.use("two")
    toys["one"] = Reference(
        toys["one"].wheel, toys["one"].files, environment={"toyone": "pip install toyone==1.0"}
    )
    put("one")  # its folder is no installed package, though Python would import it as one
    sys.path.append(str(references.locate("one")))
    with pytest.raises(references.MissingReferenceError, match=r"run `pip install toyone==1\.0`"):
        references.use("one")
