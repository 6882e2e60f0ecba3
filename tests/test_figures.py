"""Every ratio in the texts is that of a record."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
RECORDS = [
    record
    for path in sorted((ROOT / "benchmarks" / "results").glob("*.json"))
    for record in json.loads(path.read_text())
    if "ratio_median" in record  # the others are records of other kinds
]
RATIO = re.compile(r"\d[\d.,]*x \(\d[\d.,]* to \d[\d.,]*\)")


def shown(record):
    numbers = (record[name] for name in ("ratio_median", "ratio_min", "ratio_max"))
    return "{:.1f}x ({:.1f} to {:.1f})".format(*numbers)


@pytest.mark.parametrize("text", ["README.md", "docs/benchmarks.md"])
def test_ratios_are_those_of_records(text):
    found = RATIO.findall((ROOT / text).read_text())
    assert found
    assert set(found) <= {shown(record) for record in RECORDS}


def test_records_say_how_they_were_made():
    for record in RECORDS:
        assert record["rounds"] >= 3 and record["command"] and record["hardware"]["processor"]
        assert record["ratio_min"] <= record["ratio_median"] <= record["ratio_max"]
