"""The verifier: is a twin the same environment as its reference?"""

from twinenv.verify.ledger import Budget, LevelResult, exit_code
from twinenv.verify.levels import find_pair, run
from twinenv.verify.pair import Pair

__all__ = ["Budget", "LevelResult", "Pair", "exit_code", "find_pair", "run"]
