"""Puts the toy house on the path; its pair can be spoilt by the tests."""

import sys
from pathlib import Path

import pytest

_HOUSES = str(Path(__file__).parent / "houses")


@pytest.fixture(scope="session", autouse=True)
def houses():
    sys.path.insert(0, _HOUSES)
    import toy_jax  # noqa: F401 (registers its id)

    yield Path(_HOUSES)
    sys.path.remove(_HOUSES)


@pytest.fixture
def duel_pair(houses):
    from toy_jax.pair import DuelPair

    return DuelPair
