"""Shape and dtype come before values, nothing broadcasts, and NaN is a value."""

import math

import numpy as np
import pytest

from twinenv.fields import Field
from twinenv.verify.compare import compare
from twinenv.verify.pair import Step
from twinenv.verify.schema import loosened
from twinenv.verify.sides import BlindError, assert_sees, step_differences

SCHEMA = {
    "hp": Field("exact", "int16", shape=(2,), labels=("me", "foe")),
    "speed": Field("close", "float32", atol=0.5, why="a test"),
    "energy": Field("exact", "float32"),
    "seed": Field("unsigned", "uint32"),
    "time": Field("ignored", "int32", ignored=True, why="a test"),
}


def rows(**changes):
    values = {
        "hp": np.array([[20, 20], [3, 7], [1, 9]], np.int16),
        "speed": np.array([0.0, 1.0, 2.0], np.float32),
        "energy": np.array([0.0, np.inf, np.nan], np.float32),
        "seed": np.array([0, 1, 2**32 - 1], np.uint32),
        "time": np.array([0, 1, 2], np.int32),
    }
    return values | changes


def only(expected, got):
    found = compare(SCHEMA, expected, got)
    assert len(found) == 1
    return found[0]


def test_equal_rows_have_no_differences():
    assert compare(SCHEMA, rows(), rows()) == []


def test_the_first_differing_element_is_told():
    got = rows()["hp"].copy()
    got[1:, 1] = 8
    found = only(rows(), rows(hp=got))
    assert (found.kind, found.field, found.index, found.label) == ("value", "hp", (1,), "foe")
    assert (found.expected, found.got, found.error) == (7, 8, 1.0)
    assert found.rows.tolist() == [False, True, True]


@pytest.mark.parametrize(
    "shape", [(3, 1), (1, 2), (2,), (3,), (3, 2, 1), ()], ids=lambda shape: f"shape{shape}"
)
def test_shapes_never_broadcast(shape):
    same = rows(hp=np.full((3, 2), 4, np.int16))
    found = only(same, rows(hp=np.full(shape, 4, np.int16)))
    assert (found.field, found.kind) == ("hp", "shape")
    assert found.rows.all()


def test_dtypes_are_compared_before_values():
    found = only(rows(), rows(hp=rows()["hp"].astype(np.int32)))
    assert (found.kind, found.expected, found.got) == ("dtype", "int16[2]", "int32[2]")


def test_tolerance_is_inclusive_and_only_where_declared():
    assert not compare(SCHEMA, rows(), rows(speed=rows()["speed"] + np.float32(0.5)))
    found = only(rows(), rows(speed=rows()["speed"] + np.float32(0.75)))
    assert (found.error, found.tolerance) == (0.75, 0.5)
    nudged = rows()["energy"].copy()
    nudged[0] = 1e-30
    assert only(rows(), rows(energy=nudged)).field == "energy"


def test_loosening_widens_tolerances_and_leaves_exact_fields_exact():
    off = rows(speed=np.array([0.0, 2.75, 2.0], np.float32))
    assert only(rows(), off).field == "speed"
    assert compare(loosened(SCHEMA, 4.0), rows(), off) == []
    exact = rows(energy=np.array([0.25, np.inf, np.nan], np.float32))
    assert compare(loosened(SCHEMA, 4.0), rows(), exact)


@pytest.mark.parametrize("place", [0, 1])
def test_nan_equals_only_nan(place):
    got = rows()["energy"].copy()
    got[place] = np.nan
    found = only(rows(), rows(energy=got))
    assert math.isnan(found.got)
    assert not compare(SCHEMA, rows(energy=got), rows(energy=got))


def test_a_nan_is_not_within_a_tolerance():
    got = rows()["speed"].copy()
    got[2] = np.nan
    assert only(rows(), rows(speed=got)).rows.tolist() == [False, False, True]
    assert only(rows(speed=got), rows()).rows.tolist() == [False, False, True]


def test_infinities_equal_themselves_only():
    infinite = np.array([np.inf, -np.inf, 0], np.float32)
    assert not compare(SCHEMA, rows(speed=infinite), rows(speed=infinite))
    assert only(rows(speed=infinite), rows(speed=-infinite)).field == "speed"


def test_unsigned_errors_do_not_wrap():
    found = only(rows(), rows(seed=np.array([2, 1, 2**32 - 1], np.uint32)))
    assert found.error == 2.0


def test_ignored_fields_may_differ_or_be_missing():
    assert not compare(SCHEMA, rows(), rows(time=np.zeros(3, np.int64)))
    got = rows()
    del got["time"]
    assert not compare(SCHEMA, rows(), got)


def test_missing_extra_and_undeclared_fields_differ():
    less = rows()
    del less["hp"]
    assert only(rows(), less).kind == "missing"
    assert only(less, rows()).kind == "extra"
    assert only(rows(), rows(mana=np.zeros(3))).kind == "undeclared"
    assert only(rows(mana=np.zeros(3)), rows(mana=np.zeros(3))).kind == "undeclared"


def test_differences_come_in_the_schema_s_order():
    got = rows(hp=rows()["hp"] + np.int16(1), seed=rows()["seed"] + np.uint32(1))
    assert [d.field for d in compare(SCHEMA, rows(), got | {"a": np.zeros(3)})] == [
        "hp",
        "seed",
        "a",
    ]


def test_states_are_compared_only_where_the_reference_dumps_them():
    output = {"energy": rows()["energy"]}
    got = Step({"hp": rows()["hp"]}, output)
    assert step_differences(SCHEMA, Step({}, output), got) == []
    assert step_differences(SCHEMA, Step({"hp": rows()["hp"] + np.int16(1)}, output), got)


def test_every_compared_field_is_seen():
    assert_sees(SCHEMA, Step(rows(), {}))


def test_a_tolerance_that_swallows_everything_is_blind():
    schema = SCHEMA | {"energy": Field("blind", "float32", atol=math.inf, why="a test")}
    with pytest.raises(BlindError, match="energy"):
        assert_sees(schema, Step(rows(energy=rows()["speed"]), {}))
