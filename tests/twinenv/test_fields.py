"""Field metadata: spaces, dumps, tables."""

import gymnax.environments.spaces as gymnax_spaces
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from contract_play import assert_equal, assert_inside
from flax import struct
from toys import Corridor, CorridorState, Duel, DuelState

from twinenv import fields
from twinenv.fields import field


@struct.dataclass
class Mixed:
    small: jax.Array = field("a byte", "int8", low=-3, high=3, unit="px", reference="small_t")
    word: jax.Array = field("a seed", "uint32", reference="seed")
    flags: jax.Array = field("flags", "bool", shape=(2, 3))
    own: jax.Array = field("a number", None, low=0.0)
    cache: jax.Array = field("a cache", "float32", ignored=True, why="recomputed every step")


def mixed(*batch: int) -> Mixed:
    return Mixed(
        small=jnp.ones(batch, jnp.int8),
        word=jnp.full(batch, 4294967295, jnp.uint32),
        flags=jnp.ones((*batch, 2, 3), jnp.bool_),
        own=jnp.ones(batch, jnp.float32),
        cache=jnp.ones(batch, jnp.float32),
    )


def test_metadata_can_be_read_from_class_and_instance():
    assert fields.fields_of(Mixed) == fields.fields_of(mixed())
    assert list(fields.fields_of(Mixed)) == ["small", "word", "flags", "own", "cache"]
    assert fields.fields_of(Mixed)["small"].unit == "px"


def test_fields_without_metadata_are_named():
    @struct.dataclass
    class Bare:
        value: jax.Array

    with pytest.raises(TypeError, match=r"Bare\.value has no metadata"):
        fields.fields_of(Bare)


def test_what_is_not_compared_exactly_says_why():
    for inexact in ({"atol": 1e-3}, {"ignored": True}):
        with pytest.raises(ValueError, match="why"):
            field("a number", "float32", **inexact)
    field("a number", "float32", atol=1e-3, why="another summation order")


def test_state_space_has_the_dtypes_and_limits():
    space = fields.state_space(Mixed)
    assert isinstance(space, gymnax_spaces.Dict)
    boxes = space.spaces
    assert (boxes["small"].low, boxes["small"].high) == (-3, 3)
    assert (boxes["word"].low, boxes["word"].high) == (0, 4294967295)
    assert boxes["own"].dtype == jnp.float32
    assert (boxes["own"].low, boxes["own"].high) == (0.0, np.inf)
    assert boxes["flags"].shape == (2, 3)
    assert_inside(space, mixed())
    assert_inside(space, mixed(7))
    assert bool(space.contains(mixed()))
    assert not bool(space.contains(mixed().replace(small=jnp.int8(4))))
    other = fields.state_space(Mixed, jnp.int16).spaces["own"]
    assert (other.dtype, other.high) == (jnp.int16, 32767)


def test_unsigned_spaces_can_be_sampled():
    word = fields.state_space(Mixed).spaces["word"]
    sample = word.sample(jax.random.key(0))
    assert sample.dtype == jnp.uint32


@pytest.mark.parametrize("batch", [(), (5,), (2, 3)])
def test_load_is_the_inverse_of_dump(batch):
    state = mixed(*batch)
    dumped = fields.dump(state)
    assert all(isinstance(value, np.ndarray) for value in dumped.values())
    assert "cache" not in dumped
    assert_equal(fields.load(Mixed, dumped), state.replace(cache=jnp.zeros(batch, jnp.float32)))


def test_bad_dumps_are_named():
    good = fields.dump(mixed(3))
    with pytest.raises(ValueError, match=r"missing \['small'\], unknown \['big'\]"):
        fields.load(Mixed, {**{k: v for k, v in good.items() if k != "small"}, "big": 1})
    with pytest.raises(ValueError, match=r"Mixed\.small is int64\[3\]; needs int8"):
        fields.load(Mixed, good | {"small": np.ones(3, np.int64)})
    with pytest.raises(ValueError, match=r"Mixed\.flags is bool\[3, 3\]"):
        fields.load(Mixed, good | {"flags": np.ones((3, 3), np.bool_)})
    with pytest.raises(ValueError, match="different batch axes"):
        fields.load(Mixed, good | {"word": np.ones(4, np.uint32)})
    with pytest.raises(ValueError, match=r"Mixed\.own is float32"):
        fields.load(Mixed, good, jnp.int16)


def test_scalar_loads_of_real_states():
    for env, cls in ((Corridor(), CorridorState), (Duel(), DuelState)):
        state = env.reset(jax.random.key(1))[1]
        assert_equal(fields.load(cls, fields.dump(state)), state)


def test_table_has_a_row_for_every_field():
    rows = fields.table(Mixed, "int16 or float32").splitlines()
    assert len(rows) == 2 + 5
    assert rows[2] == "| `small` | int8 | -3 to 3 | px | `small_t` | a byte |"
    assert rows[4].startswith("| `flags` | bool[2, 3] |")
    assert "int16 or float32" in rows[5]
    assert len({row.count("|") for row in rows}) == 1
