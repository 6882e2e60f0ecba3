"""What every test runs under: JAX on the CPU, strict dtype promotion, a hypothesis profile."""

import os
import sys

import pytest
from hypothesis import HealthCheck, settings

# Set in the environment, before JAX is imported, so that child processes obey them as well.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_NUMPY_DTYPE_PROMOTION", "strict")
# Figures are only ever written to files.
os.environ.setdefault("MPLBACKEND", "Agg")

# Deadlines and the slow-data check measure the machine, not the code.
_UNTIMED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("dev", max_examples=50, **_UNTIMED)
settings.register_profile("ci", max_examples=200, derandomize=True, **_UNTIMED)
settings.register_profile("nightly", max_examples=5000, **_UNTIMED)
_DEFAULT_PROFILE = "ci" if os.environ.get("CI") else "dev"
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", _DEFAULT_PROFILE))


def pytest_configure(config: pytest.Config) -> None:
    """Applies the strict promotion also where a plugin has already imported JAX."""
    if "jax" in sys.modules:
        sys.modules["jax"].config.update("jax_numpy_dtype_promotion", "strict")
