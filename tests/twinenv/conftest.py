"""Makes the contract and the toy environments importable from the tests below this folder."""

import sys
from pathlib import Path

import pytest

_HERE = Path(__file__).resolve().parent

# At the end, so that `tests/twinenv` never stands in for the package itself.
for folder in (_HERE.parent, _HERE):
    if str(folder) not in sys.path:
        sys.path.append(str(folder))

pytest.register_assert_rewrite("contract", "contract_play")
