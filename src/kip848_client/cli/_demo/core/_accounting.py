"""Accounts for records: which were produced, and how often each was delivered. Pure.

A record is identified by its partition and offset. A record is lost if a broker acknowledged it and
it was never delivered; each delivery after the first is a duplicate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

__all__ = ["Place", "RecordAccounting"]

Place = tuple[int, int]
"""Partition and offset."""


class RecordAccounting:
    """Counts the records that were produced and delivered so far."""

    def __init__(
        self, produced: Mapping[Place, int] | None = None, delivered: Iterable[Place] = ()
    ) -> None:
        self.produced: dict[Place, int] = dict(produced or {})
        """The number in each record that a broker acknowledged."""
        self.delivered: Counter[Place] = Counter(delivered)

    @property
    def missing(self) -> int:
        """How many acknowledged records were not delivered (yet)."""
        return len(self.produced.keys() - self.delivered.keys())

    @property
    def duplicated(self) -> int:
        """How many deliveries were not the first one of their record."""
        return self.delivered.total() - len(self.delivered)
