"""Accounts for the demo's records: lost, duplicated, and the longest pause per partition. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from kip848_client.cli._demo.core._accounting import RecordAccounting

__all__ = ["Accounting", "DeliveryVerdict"]


@dataclass(frozen=True, slots=True)
class DeliveryVerdict:
    """The outcome. ``pause_ms``: the longest time between two deliveries, by partition."""

    produced: int
    consumed: int
    lost: int
    duplicated: int
    pause_ms: dict[int, int]

    @property
    def good(self) -> bool:
        """Whether nothing was lost."""
        return self.lost == 0


class Accounting(RecordAccounting):
    """Produced and consumed records so far, and the times of deliveries in ms."""

    def __init__(self, partitions: int) -> None:
        super().__init__()
        self._last_ms: dict[int, int] = {}
        self._pause_ms = dict.fromkeys(range(partitions), 0)

    def consumed(self, partition: int, offset: int, now_ms: int) -> None:
        """A member delivered this record to its application."""
        self.delivered[partition, offset] += 1
        pause_ms = now_ms - self._last_ms.get(partition, now_ms)
        self._pause_ms[partition] = max(self._pause_ms[partition], pause_ms)
        self._last_ms[partition] = now_ms

    def verdict(self) -> DeliveryVerdict:
        """The outcome, when nothing more comes."""
        return DeliveryVerdict(
            produced=len(self.produced),
            consumed=len(self.delivered),
            lost=self.missing,
            duplicated=self.duplicated,
            pause_ms=self._pause_ms,
        )
