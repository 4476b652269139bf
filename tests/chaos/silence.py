"""The longest time in which nothing came of a partition: pure."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from tests.chaos.judge import Committed
from tests.torture.chronicle import Event

__all__ = ["Silence", "longest_silence", "progress"]

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


def progress(looks: Iterable[Committed], partition: int) -> list[float]:
    """The times at which more of a partition was committed than ever before."""
    found: list[float] = []
    best = 0
    for look in looks:
        offset = look.offsets.get(partition, 0)
        if offset > best:
            best = offset
            found.append(look.at)
    return found
