"""What is wrong with what consumers have processed and committed: pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Committed", "Processed", "ReadingVerdict", "judged_reading"]


@dataclass(frozen=True, slots=True)
class Processed:
    """Records of a partition that somebody has processed, and when."""

    at: float
    partition: int
    offsets: Sequence[int]


@dataclass(frozen=True, slots=True)
class Committed:
    """What a coordinator told, and when: the offset to go on with, by partition."""

    at: float
    offsets: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class ReadingVerdict:
    """Partitions and offsets, by what is wrong with them."""

    records: int
    lost: list[tuple[int, int]]
    """Never processed."""
    too_early: list[tuple[int, int]]
    """The first record that nobody had processed when an offset beyond it was committed."""
    strange: list[tuple[int, int]]
    """Processed, and not there."""
    again: int
    """How many were processed more than once, as they may be."""
    looks: int
    """How often it was asked what is committed."""

    @property
    def is_clean(self) -> bool:
        """Whether everything was processed, and nothing committed before."""
        return not (self.lost or self.too_early or self.strange)

    def __str__(self) -> str:
        found = {"lost": self.lost, "committed too early": self.too_early, "strange": self.strange}
        told = [f"{len(each)} {what} {each[:5] or ''}".strip() for what, each in found.items()]
        return (
            f"{self.records} records: {', '.join(told)}; {self.again} processed again, "
            f"{self.looks} looks at what is committed"
        )


def judged_reading(
    sizes: Mapping[int, int], processed: Iterable[Processed], committed: Iterable[Committed]
) -> ReadingVerdict:
    """``sizes`` are how many records the partitions have, by partition."""
    in_time = sorted(processed, key=lambda each: each.at)
    looks = sorted(committed, key=lambda each: each.at)
    times = Counter((each.partition, offset) for each in in_time for offset in each.offsets)
    expected = {(partition, offset) for partition, size in sizes.items() for offset in range(size)}
    return ReadingVerdict(
        records=len(expected),
        lost=sorted(expected - times.keys()),
        too_early=_too_early(in_time, looks),
        strange=sorted(times.keys() - expected),
        again=sum(count > 1 for count in times.values()),
        looks=len(looks),
    )


def _too_early(processed: Sequence[Processed], looks: Sequence[Committed]) -> list[tuple[int, int]]:
    wrong: dict[tuple[int, int], None] = {}
    done: set[tuple[int, int]] = set()
    first: Counter[int] = Counter()
    """The first offset that is not processed, by partition."""
    coming = iter(processed)
    record = next(coming, None)
    for look in looks:
        while record is not None and record.at <= look.at:
            done.update((record.partition, offset) for offset in record.offsets)
            record = next(coming, None)
        for partition, offset in look.offsets.items():
            while (partition, first[partition]) in done:
                first[partition] += 1
            if offset > first[partition]:
                wrong[partition, first[partition]] = None
    return list(wrong)
