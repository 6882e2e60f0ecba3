"""The commands `twinenv train`, `twinenv eval` and `twinenv play`."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import json
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from twinenv import registry
from twinenv.ppo.checkpoint import CheckpointError
from twinenv.ppo.config import Config, Preset, Target, demand_integers, from_file, replaced
from twinenv.references import MissingReferenceError

if TYPE_CHECKING:
    from twinenv.ppo.policy import Policy
    from twinenv.ppo.progress import Console
    from twinenv.ppo.runs import Run
    from twinenv.ppo.trainer import Task

__all__ = ["eval_main", "play_main", "presets_of", "train_main"]


class _WrongInputError(Exception):
    """What the user gave or has is wrong; the message is one sentence."""


# Anything else is our fault and shows its trace.
_USER_ERRORS = (_WrongInputError, OSError, CheckpointError, MissingReferenceError)


@contextmanager
def _input() -> Iterator[None]:
    """For what parses, makes and checks what the user gave, but runs nothing yet."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise _WrongInputError(str(error)) from error


@dataclasses.dataclass(frozen=True)
class TrainArguments:
    """Train a policy with PPO."""

    env: tyro.conf.Positional[str]
    """Environment id, such as PongJAX-v0; `twinenv list` shows all."""
    options: Annotated[Config, tyro.conf.arg(name="")]
    """Hyperparameters; the defaults are those of the preset."""
    preset: str = "default"
    """Baseline to start from."""
    config: Path | None = None
    """TOML file of options (and a table `env`), or a run's config.json; the command line wins."""
    env_option: tuple[str, ...] = ()
    """Options of the environment, such as frameskip=4; values are JSON or plain text."""
    run: Path | None = None
    """Folder to make for the run; the default is a new one in `runs`."""
    resume: Path | None = None
    """Go on with the run in this folder, with the options it was started with."""
    until: float | None = None
    """Stop as soon as the preset's target metric reaches this value."""
    quiet: bool = False
    """Show no progress."""


@dataclasses.dataclass(frozen=True)
class EvalArguments:
    """Evaluate the policy of a run over complete episodes."""

    env: tyro.conf.Positional[str]
    """Environment id."""
    run: Path
    """Folder of the run."""
    backend: str = "fast"
    """fast (the twin) or reference (the original)."""
    episodes: int = 256
    """Complete episodes to play."""
    num_envs: int = 128
    """Environments that play side by side."""
    max_steps: int = 100_000
    """Most steps of an episode; one that is longer is cut there, and counts with what it had."""
    greedy: bool = False
    """Likeliest actions instead of samples."""
    which: str = "last"
    """last or best checkpoint."""
    policy_seed: int = 0
    """Which of the seeds that were trained side by side, counted from 0."""
    seed: int = 0
    """Seed of environments and samples."""
    env_option: tuple[str, ...] = ()
    """Options of the environment that differ from the run's, such as frameskip=4."""
    json: Path | None = None
    """Also write the results to this file."""


@dataclasses.dataclass(frozen=True)
class PlayArguments:
    """Write a video of a trained policy."""

    env: tyro.conf.Positional[str]
    """Environment id."""
    run: Path
    """Folder of the run."""
    out: Path
    """File to write, .gif or .mp4."""
    steps: int = 300
    """Steps to play."""
    fps: float = 15.0
    """Pictures per second; there is one for each step."""
    sampled: bool = False
    """Samples from the policy instead of its likeliest actions."""
    which: str = "last"
    """last or best checkpoint."""
    policy_seed: int = 0
    """Which of the seeds that were trained side by side, counted from 0."""
    seed: int = 0
    """Seed of the environment and of the samples."""


def train_main(argv: Sequence[str]) -> int:
    """`twinenv train`: 0 done, 2 wrong arguments or files, 130 interrupted."""
    return _guarded("train", lambda: _train(list(argv)))


def eval_main(argv: Sequence[str]) -> int:
    """`twinenv eval`: 0 done, 2 wrong arguments or files."""
    return _guarded("eval", lambda: _eval(list(argv)))


def play_main(argv: Sequence[str]) -> int:
    """`twinenv play`: 0 done, 2 wrong arguments or files."""
    return _guarded("play", lambda: _play(list(argv)))


def presets_of(env_id: str) -> Mapping[str, Preset]:
    """The presets of an environment's house; a plain one if it has none."""
    name = f"{registry.house_of(env_id).__name__}.presets"
    if importlib.util.find_spec(name) is None:
        return {"default": Preset()}
    return importlib.import_module(name).PRESETS


def _guarded(command: str, work: Callable[[], int]) -> int:
    try:
        return work()
    except _USER_ERRORS as error:
        print(f"twinenv {command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"twinenv {command}: stopped; what was saved before remains", file=sys.stderr)
        return 130
    except SystemExit as leave:
        # How tyro says that the arguments are wrong, or that it has shown its help.
        return leave.code if isinstance(leave.code, int) else 2


def _parsed(command: str, kind: Any, argv: Sequence[str], **more: Any) -> Any:
    return tyro.cli(kind, prog=f"twinenv {command}", args=list(argv), **more)


def _train(argv: list[str]) -> int:
    from twinenv.ppo.engine import prepared
    from twinenv.ppo.progress import Console
    from twinenv.ppo.trainer import run_training

    with _input():
        given = _train_arguments(argv)
        resume = given.resume is not None
        labels, config, folder = _resumed(given, argv) if resume else _new(given, argv)
    console = Console(labels["env"], quiet=given.quiet)
    try:
        with _input():
            task = _task(labels, console)
            env, params = registry.make(labels["env"], **labels["env_options"])
            engine, config, run = prepared(env, params, config, folder, resume, task)
        result = run_training(engine, config, task, run, resume=resume)
    finally:
        console.close()
    _print_summary(result.summary, folder)
    return 130 if result.interrupted else 0


def _new(given: TrainArguments, argv: list[str]) -> tuple[Mapping[str, Any], Config, Path]:
    """Labels, hyperparameters and folder of a new run."""
    from twinenv.ppo.runs import default_folder

    labels = {
        "env": given.env,
        "env_options": _env_options(given, _preset(given.env, given.preset)),
        "preset": given.preset,
        "until": given.until,
        "command": shlex.join(["twinenv", "train", *argv]),
    }
    folder = given.run or default_folder(given.env, given.preset, given.options.seed)
    return labels, given.options, folder


def _resumed(given: TrainArguments, argv: list[str]) -> tuple[Mapping[str, Any], Config, Path]:
    """Labels, hyperparameters and folder of the run to go on with."""
    from twinenv.ppo.runs import Run

    options = {text.partition("=")[0] for text in argv if text.startswith("--")}
    if others := sorted(options - {"--resume", "--quiet", "--no-quiet"}):
        raise ValueError(
            f"{', '.join(others)} cannot be given with --resume; a run goes on with the options it "
            "was started with"
        )
    run = Run.open(given.resume or "")
    return _labels(run, given.env), run.config, run.path


def _task(labels: Mapping[str, Any], console: Console) -> Task:
    from twinenv.ppo.trainer import Task

    preset = _preset(labels["env"], labels["preset"])
    target, until = preset.target, labels["until"]
    if until is not None:
        target = Target(target.metric if target else "return", until)
    return Task(
        outcomes=preset.outcomes,
        target=target,
        stop=until is not None,
        labels=labels,
        reporter=console,
    )


def _print_summary(summary: Mapping[str, Any], folder: Path) -> None:
    reached, target = summary["target_reached_at_step"], summary["target"]
    print(f"{folder}: {summary['steps']} steps, final return {summary['final_return']}")
    if target:
        when = f"after {reached} steps" if reached else "not reached"
        print(f"{target['metric']} {target['value']}: {when}")
    print(f"evaluate: twinenv eval {summary['env']} --run {folder}")


def _train_arguments(argv: list[str]) -> TrainArguments:
    """The arguments, with defaults from preset, file and environment."""
    import argparse

    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first.add_argument("--preset", default="default")
    first.add_argument("--config", default=None)
    early = first.parse_known_args(argv)[0]
    named = argv and not argv[0].startswith("-")
    if not named and argv and not {"-h", "--help"} & {*argv}:
        raise ValueError(
            f"the environment comes before the options: twinenv train ENV {argv[0]} ..."
        )
    config = _preset(argv[0], early.preset).config if named else Config()
    if early.config is not None:
        changes = from_file(early.config)
        changes.pop("env", None)
        config = replaced(config, changes)
    default = TrainArguments(env=tyro.MISSING, options=config)
    return _parsed("train", TrainArguments, argv, default=default)


def _preset(env_id: str, name: str) -> Preset:
    presets = presets_of(env_id)
    if name not in presets:
        raise ValueError(f"{env_id} has no preset {name!r}; it has {', '.join(presets)}")
    return presets[name]


def _env_options(given: TrainArguments, preset: Preset) -> dict[str, Any]:
    options = dict(preset.env)
    if given.config is not None:
        options |= from_file(given.config).get("env", {})
    return options | _pairs(given.env_option)


def _pairs(texts: Sequence[str]) -> dict[str, Any]:
    """`name=value` texts as a dictionary."""
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise ValueError(f"--env-option {text!r}; accepted is NAME=VALUE, such as frameskip=4")
        try:
            pairs[name] = json.loads(value)
        except ValueError:
            pairs[name] = value
    return pairs


def _eval(argv: list[str]) -> int:
    from twinenv.ppo.evaluation import Plan, played, stepper_of
    from twinenv.versions import versions

    with _input():
        given = _parsed("eval", EvalArguments, argv)
        sizes = {"num_envs": given.num_envs, "max_steps": given.max_steps}
        plan = Plan(given.episodes, given.greedy, given.seed, **sizes)
        labels, policy = _loaded(given)
        options = labels["env_options"] | _pairs(given.env_option)
        env, params = _environment(given, options, plan.side_by_side)
        stepper = stepper_of(policy, env, params, plan)
        outcomes = _preset(given.env, labels["preset"]).outcomes
    found = played(policy, stepper, outcomes, plan)
    estimates = {"return": found.mean_return, "length": found.mean_length, **found.outcomes}
    for name, e in estimates.items():
        print(f"{name:20} {e.mean:10.4f}   95 % [{e.low:.4f}, {e.high:.4f}]")
    if found.cut:
        print(f"{found.cut} of {plan.episodes} episodes were cut after {plan.max_steps} steps")
    if given.json is not None:
        record = {
            "env": given.env,
            "env_options": options,
            "run": str(given.run),
            "which": given.which,
            "policy_seed": given.policy_seed,
            "backend": given.backend,
            **dataclasses.asdict(plan),
            "cut": found.cut,
            **{name: dataclasses.asdict(estimate) for name, estimate in estimates.items()},
            "versions": versions(),
            "command": shlex.join(["twinenv", "eval", *argv]),
        }
        given.json.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return 0


def _environment(
    given: EvalArguments, options: Mapping[str, Any], num_envs: int
) -> tuple[Any, Any]:
    """The environment and its parameters, on the side that is asked for."""
    if given.backend == "reference":
        house = registry.house_of(given.env).__name__
        reference = importlib.import_module(f"{house}.reference")
        return reference.vector_env(num_envs, **options), None
    if given.backend != "fast":
        raise ValueError(f"backend is {given.backend!r}; accepted is fast or reference")
    return registry.make(given.env, **options)


def _play(argv: list[str]) -> int:
    from twinenv.ppo.play import check_video, frames, write_video

    with _input():
        given = _parsed("play", PlayArguments, argv)
        demand_integers(0, steps=given.steps, seed=given.seed)
        check_video(given.out, given.fps)
        labels, policy = _loaded(given)
        env, params = registry.make(given.env, **labels["env_options"])
    pictures = frames(
        env, params, policy, steps=given.steps, seed=given.seed, greedy=not given.sampled
    )
    count = write_video(given.out, pictures, given.fps)
    print(f"{given.out}: {count} pictures")
    return 0


def _loaded(given: EvalArguments | PlayArguments) -> tuple[Mapping[str, Any], Policy]:
    """The labels of a run and its policy."""
    from twinenv.ppo.policy import load_policy
    from twinenv.ppo.runs import Run

    labels = _labels(Run.open(given.run), given.env)
    policy = load_policy(given.run, which=given.which, seed=given.policy_seed, warn=_warn)
    return labels, policy


def _labels(run: Run, env_id: str) -> Mapping[str, Any]:
    """What the run says of itself, if it is one of this environment and was made by `train`."""
    if run.labels.get("env") != env_id:
        raise ValueError(f"{run.path} is a run of {run.labels.get('env')}, not of {env_id}")
    if missing := [name for name in ("env_options", "preset", "until") if name not in run.labels]:
        raise ValueError(
            f"{run.path} was made in Python and does not say its {', '.join(missing)}; use "
            "twinenv.ppo.evaluate(load_policy(...), env, params) there too, or give "
            "train(task=Task(labels=...)) what is missing"
        )
    return run.labels


def _warn(message: str) -> None:
    print(message, file=sys.stderr)
