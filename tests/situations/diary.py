"""What the members of a group do, in the order in which they do it; and what is wrong with that:
pure."""

from __future__ import annotations

import enum
import itertools
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

from kip848_client import TopicPartition

__all__ = ["Entry", "Verdict", "What", "judged"]

_SHOWN: Final = 5


class What(enum.Enum):
    """What happens to one partition at one member."""

    ASSIGNED = "assigned"
    READ = "read"
    REVOKING = "asked back"
    REVOKED = "given back"
    LOST = "lost"
    CRASHED = "crashed"
    """The member did; ``offset`` of the entry is what its group had committed then."""


_HARD: Final = (What.LOST, What.CRASHED)
"""Ends after which others read again what was not committed."""


@dataclass(frozen=True, slots=True)
class Entry:
    """``at`` is in seconds of any clock."""

    at: float
    who: str
    what: What
    tp: TopicPartition
    offset: int = -1
    value: bytes = b""


@dataclass(eq=False, slots=True)
class _Tenure:
    """A partition in a member's hands."""

    number: int
    who: str
    tp: TopicPartition
    offsets: list[int] = field(default_factory=list)
    ends: bool = False
    end: What | None = None
    committed: int = 0
    """What was, when the member crashed."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of it."""

    read: int
    """Records, each counted once."""
    lost: tuple[bytes, ...]
    twice: tuple[str, ...]
    """Read again although no member had lost the partition, or although they were committed."""
    again: int
    """Records read again as at-least-once allows: their reader had lost the partition, or crashed,
    before they were committed."""
    wrong: tuple[str, ...]
    """Callbacks and records that came out of order."""
    overlaps: tuple[str, ...]
    """Partitions that were assigned before who had them had given them back, or was put out."""
    losers: tuple[str, ...]
    """Who was told that partitions were lost."""
    silence_ms: int
    """The longest time in which nothing of a partition was read."""

    @property
    def is_clean(self) -> bool:
        """Whether nothing happened that the protocol rules out."""
        return not (self.lost or self.twice or self.wrong or self.overlaps)

    def __str__(self) -> str:
        told = f"{self.read} records, {self.again} again, silence {self.silence_ms:,} ms"
        for name in ("lost", "twice", "wrong", "overlaps"):
            found = getattr(self, name)
            if found:
                told += f", {len(found)} {name} {list(found[:_SHOWN])}"
        return told + (f", lost partitions: {', '.join(self.losers)}" if self.losers else "")


def judged(entries: Iterable[Entry], written: Collection[bytes]) -> Verdict:
    """The verdict on members that were to read what was ``written``, each value once."""
    judge = _Judge()
    for entry in entries:
        judge.take(entry)
    return judge.verdict(written)


class _Judge:
    def __init__(self) -> None:
        self._tenures: list[_Tenure] = []
        self._readings: dict[bytes, list[tuple[_Tenure, int]]] = {}
        self._overlaps: list[tuple[_Tenure, _Tenure]] = []
        self._wrong: list[str] = []
        self._times: dict[TopicPartition, list[float]] = {}

    def take(self, entry: Entry) -> None:
        open_ones = [each for each in self._tenures if each.tp == entry.tp and each.end is None]
        mine = next((each for each in open_ones if each.who == entry.who), None)
        match entry.what:
            case What.ASSIGNED:
                if mine is not None:
                    self._complain(entry, "that it has")
                new = _Tenure(len(self._tenures), entry.who, entry.tp)
                self._overlaps += [(each, new) for each in open_ones if each is not mine]
                self._tenures.append(new)
            case What.READ:
                self._read(entry, mine)
            case What.REVOKING:
                if mine is None or mine.ends:
                    self._complain(entry, "that it has not, or is giving up")
                else:
                    mine.ends = True
            case What.REVOKED | What.LOST | What.CRASHED:
                if mine is None:
                    self._complain(entry, "that it has not")
                else:
                    mine.end = entry.what
                    mine.committed = entry.offset

    def _read(self, entry: Entry, mine: _Tenure | None) -> None:
        if mine is None or mine.ends:
            self._complain(entry, "that it has not, or is giving up")
            return
        if mine.offsets and entry.offset != mine.offsets[-1] + 1:
            self._complain(entry, f"after {mine.offsets[-1]}")
        mine.offsets.append(entry.offset)
        self._readings.setdefault(entry.value, []).append((mine, entry.offset))
        self._times.setdefault(entry.tp, []).append(entry.at)

    def _complain(self, entry: Entry, why: str) -> None:
        at = f" at {entry.offset}" if entry.what is What.READ else ""
        tp = f"{entry.tp.topic}-{entry.tp.partition}"
        self._wrong.append(f"{entry.who}: {tp} {entry.what.value}{at}, {why}")

    def verdict(self, written: Collection[bytes]) -> Verdict:
        twice = [
            f"{value!r} by {', '.join(_reading(*each) for each in readings)}"
            for value, readings in self._readings.items()
            if any(not _may_be(*both) for both in itertools.combinations(readings, 2))
        ]
        overlaps = [
            f"{new.who} got {new.tp.topic}-{new.tp.partition} while {old.who} had it"
            for old, new in self._overlaps
            if old.end not in _HARD
        ]
        gaps = [
            later - sooner
            for times in self._times.values()
            for sooner, later in itertools.pairwise(times)
        ]
        counts = Counter({value: len(each) for value, each in self._readings.items()})
        return Verdict(
            read=len(counts),
            lost=tuple(sorted(set(written) - set(counts))),
            twice=tuple(twice),
            again=counts.total() - len(counts) - len(twice),
            wrong=tuple(self._wrong),
            overlaps=tuple(overlaps),
            losers=tuple(sorted({each.who for each in self._tenures if each.end is What.LOST})),
            silence_ms=round(max(gaps, default=0) * 1000),
        )


def _reading(tenure: _Tenure, offset: int) -> str:
    end = tenure.end.value if tenure.end else "kept"
    return f"{tenure.who} at {offset} of {tenure.tp.partition} ({end})"


def _may_be(sooner: tuple[_Tenure, int], later: tuple[_Tenure, int]) -> bool:
    """Whether two members may read the same: if the first one lost it, or crashed, before that was
    committed; or if the second one had it before, and did not know yet that it was put out."""
    first, offset = sooner
    second, _ = later
    if first.end is What.LOST or (first.end is What.CRASHED and offset >= first.committed):
        return True
    return second.end is What.LOST and second.number < first.number
