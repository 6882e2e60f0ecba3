"""Outside code is written for JAX's ordinary dtype promotion, and has warnings of its own."""

from pathlib import Path

import jax
import pytest


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("default"))


@pytest.fixture(autouse=True)
def ordinary_promotion():
    with jax.numpy_dtype_promotion("standard"):
        yield
