"""The spaces are gymnax's own, imported late."""

import gymnax.environments.spaces as gymnax_spaces
import pytest

from twinenv import spaces


@pytest.mark.parametrize("name", ["Box", "Dict", "Discrete", "Space", "Tuple"])
def test_classes_are_those_of_gymnax(name):
    assert getattr(spaces, name) is getattr(gymnax_spaces, name)
    assert name in dir(spaces)


def test_other_names_are_unknown():
    with pytest.raises(AttributeError, match=r"'MultiDiscrete'.*Box"):
        _ = spaces.MultiDiscrete
