"""How often each rule event, and each pair of events in one step, was met."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from twinenv.verify.pair import Pair, Rows

__all__ = ["Tally"]


class Tally:
    """Counts events and pairs of events over compared steps."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        size = len(pair.event_names)
        self.together = np.zeros((size, size), np.int64)
        """`[event, event]`: steps in which both occurred; the diagonal counts single events."""

    def add(self, events: Rows) -> None:
        """Count the events of some steps.

        Raises:
            ValueError: the names are not exactly the pair's `event_names`.
        """
        if set(events) != set(self._pair.event_names):
            odd = sorted(set(events) ^ set(self._pair.event_names))
            raise ValueError(f"events() and event_names of {self._pair.name} disagree on {odd}")
        # float64 counts exactly and multiplies fast.
        met = np.stack([events[name] for name in self._pair.event_names], 1).astype(np.float64)
        self.together += np.rint(met.T @ met).astype(np.int64)

    @property
    def complete(self) -> bool:
        """Whether every quota that is not excluded was met."""
        return not self.missed()

    def missed(self) -> list[str]:
        """Events and pairs below the quota, in words, the excluded ones left out."""
        quota = self._pair.quota
        return [
            f"{'+'.join(names)} met {count} of {quota} times"
            for names, count in self._counts()
            if count < quota and names not in self._excluded()
        ]

    def contradicted(self) -> list[str]:
        """Excluded pairs that did occur: their reason is wrong."""
        return [
            f"{'+'.join(names)} met {count} times, excluded because {self._excluded()[names]}"
            for names, count in self._counts()
            if count and names in self._excluded()
        ]

    def to_json(self) -> dict[str, Any]:
        """Counts, quota and exclusions for the report."""
        return {
            "events": list(self._pair.event_names),
            "together": self.together.tolist(),
            "quota": self._pair.quota,
            "excluded": {"+".join(names): why for names, why in self._excluded().items()},
        }

    def _excluded(self) -> dict[tuple[str, ...], str]:
        return {tuple(sorted(names)): why for names, why in self._pair.excluded_pairs.items()}

    def _counts(self) -> list[tuple[tuple[str, ...], int]]:
        names = self._pair.event_names
        single = [((name,), int(self.together[i, i])) for i, name in enumerate(names)]
        double = [
            (tuple(sorted((a, b))), int(self.together[i, j]))
            for (i, a), (j, b) in itertools.combinations(enumerate(names), 2)
        ]
        return single + double
