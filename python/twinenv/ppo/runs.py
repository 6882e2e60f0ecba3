"""The folder of a run: what it was made with, and where its files are."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from twinenv.ppo.config import Config, replaced
from twinenv.ppo.networks import Actions

__all__ = ["Run", "Spec", "default_folder", "identity", "leaf_shapes", "write_json"]

_FORMAT = "twinenv-run-1"
_LONG = 400


@dataclasses.dataclass(frozen=True)
class Spec:
    """What a policy needs to know of the environment it was trained on.

    Attributes:
        obs: shape and dtype of each leaf of one observation, in their order and by their path; ""
            if it is one array.
        actions: what the actions are.
        masked: whether the policy sees a mask of legal actions.
    """

    obs: Mapping[str, jax.ShapeDtypeStruct]
    actions: Actions
    masked: bool

    @property
    def example(self) -> Any:
        """One observation as far as its leaves' shapes and paths go: dictionaries and tuples."""
        return _nested({tuple(name.split(".")): leaf for name, leaf in self.obs.items()})

    def to_json(self) -> dict[str, Any]:
        """Plain data that `from_json` understands."""
        obs = {name: [list(s.shape), np.dtype(s.dtype).name] for name, s in self.obs.items()}
        return {"obs": obs, "actions": dataclasses.asdict(self.actions), "masked": self.masked}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Spec:
        """The inverse of `to_json`."""
        obs = {
            name: jax.ShapeDtypeStruct(tuple(shape), dtype)
            for name, (shape, dtype) in data["obs"].items()
        }
        actions = data["actions"] | {"shape": tuple(data["actions"]["shape"])}
        return cls(obs, Actions(**actions), data["masked"])


def _nested(leaves: Mapping[tuple[str, ...], Any]) -> Any:
    if leaves.keys() <= {(), ("",)}:
        return next(iter(leaves.values()))
    parts: dict[str, dict[tuple[str, ...], Any]] = {}
    for (first, *rest), leaf in leaves.items():
        parts.setdefault(first, {})[tuple(rest)] = leaf
    inner = {name: _nested(part) for name, part in parts.items()}
    return tuple(inner.values()) if all(map(str.isdecimal, inner)) else inner


def leaf_shapes(obs: Any) -> dict[str, jax.ShapeDtypeStruct]:
    """Shape and dtype of the leaves of an observation, by their path."""
    leaves = jax.tree_util.tree_flatten_with_path(obs)[0]
    return {
        jax.tree_util.keystr(path, simple=True, separator="."): jax.ShapeDtypeStruct(
            leaf.shape, leaf.dtype
        )
        for path, leaf in leaves
    }


@dataclasses.dataclass(frozen=True)
class Run:
    """A run's folder.

    Attributes:
        path: the folder.
        config: hyperparameters.
        spec: the environment as the policy sees it.
        labels: `env`, `env_options`, `preset`, and whatever else the run was started with.
        environment: see `identity`.
    """

    path: Path
    config: Config
    spec: Spec
    labels: Mapping[str, Any]
    environment: Mapping[str, str]

    @property
    def metrics(self) -> Path:
        """The CSV file."""
        return self.path / "metrics.csv"

    @property
    def checkpoints(self) -> Path:
        """The folder of checkpoints."""
        return self.path / "checkpoints"

    @property
    def curve(self) -> Path:
        """The PNG file."""
        return self.path / "learning_curve.png"

    @property
    def summary(self) -> Path:
        """The JSON file that is written at the end."""
        return self.path / "summary.json"

    def create(self) -> None:
        """Make the folder.

        Raises:
            FileExistsError: there is something already.
        """
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise FileExistsError(
                f"{self.path} exists already and is not overwritten; choose another folder, or "
                f"continue that run with --resume {self.path}"
            )
        self.path.mkdir(parents=True, exist_ok=True)
        parts = {
            "config": dataclasses.asdict(self.config),
            "spec": self.spec.to_json(),
            "environment": self.environment,
        }
        write_json(self.path / "config.json", {"format": _FORMAT, **self.labels, **parts})

    @classmethod
    def open(cls, path: str | Path) -> Run:
        """The run in a folder.

        Raises:
            ValueError: there is none, or its `config.json` is damaged.
        """
        path = Path(path)
        try:
            data = json.loads((path / "config.json").read_text(encoding="utf-8"))
            if data.pop("format") != _FORMAT:
                raise ValueError(f"its config.json is not of format {_FORMAT}")
            config, spec = replaced(Config(), data.pop("config")), Spec.from_json(data.pop("spec"))
            environment = data.pop("environment", {})
        except FileNotFoundError as error:
            raise ValueError(
                f"{path} holds no run (no config.json); give a folder that `twinenv train` made"
            ) from error
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path} holds no readable run: {error}") from error
        return cls(path, config, spec, data, environment)


def identity(env: Any, params: Any) -> dict[str, str]:
    """What of an environment must be the same when its run goes on, as texts by name.

    That is its `repr` and the leaves of its parameters; a long text is represented by its digest.
    """
    params = getattr(env, "default_params", None) if params is None else params
    # A function or an object without a `repr` of its own shows where it lies in memory.
    texts = {"environment": re.sub(r" at 0x[0-9a-f]+", "", repr(env))}
    for path, leaf in jax.tree_util.tree_flatten_with_path(params)[0]:
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        texts[f"params.{name}"] = str(leaf.tolist() if hasattr(leaf, "tolist") else leaf)
    return {name: text if len(text) <= _LONG else _digest(text) for name, text in texts.items()}


def _digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def default_folder(env: str, preset: str, seed: int) -> Path:
    """The first free `runs/ENV-PRESET-sSEED-NUMBER` below the current folder."""
    number = 1
    while (path := Path("runs") / f"{env}-{preset}-s{seed}-{number}").exists():
        number += 1
    return path


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write JSON so that a failure leaves the old file."""
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    temporary.replace(path)
