"""What is wrong with what a reader finds: pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Verdict", "judged"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Values of ``in`` and ``out``, by what is wrong with them."""

    records: int
    """Of ``in``."""
    fed_twice: list[bytes]
    """Twice in ``in``: sent once, by an idempotent producer."""
    not_fed: int
    """Not in ``in``, though they were acknowledged."""
    lost: list[bytes]
    duplicated: list[bytes]
    strange: list[bytes]
    """In ``out``, and made of nothing that is in ``in``."""
    out_of_order: list[bytes]
    """Copies that stand behind the copy of a later record."""

    @property
    def is_clean(self) -> bool:
        """Whether everything is there, once and in order."""
        return not (
            self.fed_twice
            or self.not_fed
            or self.lost
            or self.duplicated
            or self.strange
            or self.out_of_order
        )

    def __str__(self) -> str:
        found = {
            "fed twice": self.fed_twice,
            "lost": self.lost,
            "duplicated": self.duplicated,
            "strange": self.strange,
            "out of order": self.out_of_order,
        }
        told = [f"{len(each)} {what} {each[:5] or ''}".strip() for what, each in found.items()]
        return f"{self.records} records: {self.not_fed} not fed, {', '.join(told)}"


def judged(
    fed: int, source: Mapping[int, Sequence[bytes]], copies: Mapping[int, Sequence[bytes]]
) -> Verdict:
    """``source`` and ``copies`` are the values of the partitions of ``in`` and ``out``; the copy of
    a record says its partition and offset, and is in the partition of the same number. ``fed`` is
    how many records were acknowledged."""
    numbers = Counter(value for values in source.values() for value in values)
    expected = {
        b"%d:%d" % (partition, offset)
        for partition, values in source.items()
        for offset in range(len(values))
    }
    found = Counter(value for values in copies.values() for value in values)
    return Verdict(
        records=len(expected),
        fed_twice=[value for value, times in numbers.items() if times > 1],
        not_fed=fed - len(numbers),
        lost=sorted(expected - found.keys()),
        duplicated=sorted(value for value, times in found.items() if times > 1),
        strange=sorted(found.keys() - expected),
        out_of_order=[
            value for partition, values in copies.items() for value in _late(partition, values)
        ],
    )


def _late(partition: int, values: Sequence[bytes]) -> list[bytes]:
    late: list[bytes] = []
    last = -1
    for value in values:
        number, _, offset = value.partition(b":")
        if int(number) != partition or int(offset) < last:
            late.append(value)
        last = max(last, int(offset))
    return late
