"""States as bytes."""

import io
import json

import numpy as np
import pytest

from twinenv import saving

STATE = (np.arange(3, dtype=np.int16), {"a": np.asarray(1.5, np.float32)})
BATCH = (np.zeros((4, 3), np.int16), {"a": np.ones(4, np.float32)})


def test_round_trip():
    for state in (STATE, BATCH):
        loaded = saving.from_bytes("A-v0", STATE, saving.to_bytes("A-v0", state))
        np.testing.assert_array_equal(loaded[0], state[0])
        np.testing.assert_array_equal(loaded[1]["a"], state[1]["a"])
        assert loaded[0].dtype == np.int16


def test_a_state_without_leaves():
    assert saving.from_bytes("A-v0", (), saving.to_bytes("A-v0", ())) == ()


def test_bytes_say_what_they_are():
    with np.load(io.BytesIO(saving.to_bytes("A-v0", STATE))) as archive:
        header = json.loads(str(archive["header"]))
    assert header == {"format": "twinenv-state-1", "environment": "A-v0"}


def test_other_environments_and_formats_are_refused():
    with pytest.raises(ValueError, match=r"A-v0.*B-v0 needs a state that its own save_state"):
        saving.from_bytes("B-v0", STATE, saving.to_bytes("A-v0", STATE))
    buffer = io.BytesIO()
    header = json.dumps({"format": "twinenv-state-9", "environment": "A-v0"})
    np.savez(buffer, header=np.array(header), leaf0=STATE[0], leaf1=STATE[1]["a"])
    with pytest.raises(ValueError, match=r"twinenv-state-9.*twinenv-state-1"):
        saving.from_bytes("A-v0", STATE, buffer.getvalue())


@pytest.mark.parametrize(
    "other",
    [
        (STATE[0],),
        (STATE[0].astype(np.int32), STATE[1]),
        (np.zeros(4, np.int16), STATE[1]),
        (np.zeros((5, 3), np.int16), {"a": np.ones(4, np.float32)}),
        (np.zeros((5, 3), np.int16), STATE[1]),
    ],
    ids=["leaf missing", "dtype", "shape", "batch axes differ", "one without a batch axis"],
)
def test_states_that_do_not_fit_are_refused(other):
    with pytest.raises(ValueError, match="does not fit this configuration of A-v0"):
        saving.from_bytes("A-v0", STATE, saving.to_bytes("A-v0", other))


def test_other_archives_and_kinds_are_refused():
    buffer = io.BytesIO()
    np.savez(buffer, header=np.array("{}"), secret=np.asarray([object()], object))
    plain = io.BytesIO()
    np.save(plain, np.zeros(3))
    for wrong in (buffer.getvalue(), plain.getvalue(), b"PK\x03\x04"):
        with pytest.raises(ValueError, match=r"no saved state or are damaged|these bytes hold"):
            saving.from_bytes("A-v0", STATE, wrong)
    for wrong in (None, "text", 3):
        with pytest.raises(TypeError, match="bytes"):
            saving.from_bytes("A-v0", STATE, wrong)
