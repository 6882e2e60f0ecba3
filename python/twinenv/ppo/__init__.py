"""The PPO trainer: one for all environments, JAX or host."""

from twinenv.ppo.checkpoint import CheckpointError
from twinenv.ppo.config import Config, Outcome, Preset, Target
from twinenv.ppo.engine import train
from twinenv.ppo.evaluation import Estimate, Evaluation, evaluate
from twinenv.ppo.networks import Actions, MLPPolicy, Output
from twinenv.ppo.policy import Policy, load_policy
from twinenv.ppo.trainer import Progress, Result, Task

__all__ = [
    "Actions",
    "CheckpointError",
    "Config",
    "Estimate",
    "Evaluation",
    "MLPPolicy",
    "Outcome",
    "Output",
    "Policy",
    "Preset",
    "Progress",
    "Result",
    "Target",
    "Task",
    "evaluate",
    "load_policy",
    "train",
]
