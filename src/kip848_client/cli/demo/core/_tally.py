"""The books of the demo: what was produced, what was consumed, and what the two say together.

Pure: times come in as arguments. A record is known by its partition and offset. ``lost`` counts
what a broker acknowledged and no member ever handed out; ``duplicated`` counts second deliveries.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Tally", "Verdict"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome. ``pause_ms`` is the longest time between two deliveries, per partition."""

    produced: int
    consumed: int
    lost: int
    duplicated: int
    pause_ms: dict[int, int]

    @property
    def good(self) -> bool:
        """Whether nothing was lost."""
        return self.lost == 0


@dataclass(slots=True)
class _Partition:
    produced: set[int] = field(default_factory=set[int])
    consumed: set[int] = field(default_factory=set[int])
    deliveries: int = 0
    last_ms: int | None = None
    pause_ms: int = 0


class Tally:
    """Produced and consumed offsets per partition."""

    def __init__(self, partitions: int) -> None:
        self._partitions = {number: _Partition() for number in range(partitions)}

    def produced(self, partition: int, offset: int) -> None:
        """A broker acknowledged this record."""
        self._partitions[partition].produced.add(offset)

    def consumed(self, partition: int, offset: int, now_ms: int) -> None:
        """A member handed this record to its application."""
        books = self._partitions[partition]
        books.consumed.add(offset)
        books.deliveries += 1
        if books.last_ms is not None:
            books.pause_ms = max(books.pause_ms, now_ms - books.last_ms)
        books.last_ms = now_ms

    def pause_ms(self, partition: int) -> int:
        """The longest time between two deliveries so far."""
        return self._partitions[partition].pause_ms

    @property
    def outstanding(self) -> int:
        """How many acknowledged records no member has seen yet."""
        return sum(len(books.produced - books.consumed) for books in self._partitions.values())

    @property
    def deliveries(self) -> int:
        """Records handed out, second deliveries included."""
        return sum(books.deliveries for books in self._partitions.values())

    @property
    def acknowledged(self) -> int:
        """Records that a broker acknowledged."""
        return sum(len(books.produced) for books in self._partitions.values())

    def verdict(self) -> Verdict:
        """The books, closed."""
        unique = sum(len(books.consumed) for books in self._partitions.values())
        return Verdict(
            produced=self.acknowledged,
            consumed=unique,
            lost=self.outstanding,
            duplicated=self.deliveries - unique,
            pause_ms={number: books.pause_ms for number, books in self._partitions.items()},
        )
