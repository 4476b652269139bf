"""The longest time in which nothing came of a partition, or of any: pure."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from tests.chaos.judge import Committed
from tests.torture.chronicle import Chronicle, Event
from tests.torture.names import PARTITIONS

__all__ = ["Progress", "Silence", "copied", "longest_silence", "told_silences"]

_SHOWN: Final = 6


@dataclass(frozen=True, slots=True)
class Silence:
    """Times are seconds of one clock."""

    began: float
    ended: float

    @property
    def ms(self) -> int:
        return round((self.ended - self.began) * 1000)

    def told(self, start: float, events: Sequence[Event]) -> str:
        """How long it was, and what happened during it, the longest first; times are told from
        ``start`` on."""
        happened = [
            f"{each.what} ({each.began - start:.1f} to {min(each.ended, self.ended) - start:.1f} s)"
            for each in sorted(events, key=self._share, reverse=True)
        ]
        more = f", and {len(happened) - _SHOWN} more" if len(happened) > _SHOWN else ""
        what = ", ".join(happened[:_SHOWN]) + more or "nothing was done"
        return f"{self.ms:,} ms, {self.began - start:.1f} to {self.ended - start:.1f} s: {what}"

    def _share(self, event: Event) -> float:
        return min(event.ended, self.ended) - max(event.began, self.began)


def longest_silence(times: Iterable[float], began: float, ended: float) -> Silence:
    """Between two of these times, or one of them and the beginning or the end."""
    inside = sorted(each for each in times if began < each < ended)
    spans = itertools.pairwise([began, *inside, ended])
    return max((Silence(*span) for span in spans), key=lambda each: each.ended - each.began)


@dataclass(frozen=True, slots=True)
class Progress:
    """So many records of a partition were done."""

    at: float
    partition: int
    records: int


def copied(looks: Iterable[Committed]) -> list[Progress]:
    """When more of a partition was committed than ever before."""
    found: list[Progress] = []
    best: Counter[int] = Counter()
    for look in looks:
        for partition, offset in look.offsets.items():
            more = offset - best[partition]
            if more > 0:
                best[partition] = offset
                found.append(Progress(look.at, partition, more))
    return found


def told_silences(
    what: str, done: Sequence[Progress], chronicle: Chronicle, began: float, ended: float
) -> list[str]:
    """A line for each partition, with how much of the others was done meanwhile, and one for the
    time in which nothing came of any. Times are told from ``began`` on; what was before the first
    record does not count."""
    first = min((each.at for each in done), default=began)
    lines: list[str] = []
    for partition in range(PARTITIONS):
        times = [each.at for each in done if each.partition == partition]
        silence = longest_silence(times, first, ended)
        others = sum(each.records for each in done if silence.began < each.at < silence.ended)
        told = silence.told(began, chronicle.between(silence.began, silence.ended))
        lines.append(f"in-{partition} {what}: {told}; meanwhile {others:,} records of others")
    silence = longest_silence((each.at for each in done), first, ended)
    told = silence.told(began, chronicle.between(silence.began, silence.ended))
    return [*lines, f"all {what}: {told}"]
