"""In which order tests are handed to workers, so that what is dear to start is started once.

pytest-xdist (``--dist worksteal``) gives each worker one piece of the list of tests, all of the
same length, and who has nothing left takes from the end of the longest rest. So each piece begins
with what takes long, and ends with short tests, which fill the gaps. Tests with the same *home*
(a release of Kafka, a Spark session) are in one piece: its worker starts the home once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ["deal"]

Item = TypeVar("Item")


def deal(
    items: Sequence[Item],
    workers: int,
    home: Callable[[Item], str | None],
    is_slow: Callable[[Item], bool],
) -> list[Item]:
    """All items, one worker's piece after the other's.

    A home goes to the worker that has the fewest slow items so far, the largest home first; then
    come the slow items without a home, one by one, and then the quick ones. Equal arguments give
    an equal order: each worker collects and deals by itself.
    """
    at_home: dict[str, list[Item]] = {}
    slow: list[Item] = []
    quick: list[Item] = []
    for item in items:
        if not is_slow(item):
            quick.append(item)
        elif (name := home(item)) is not None:
            at_home.setdefault(name, []).append(item)
        else:
            slow.append(item)
    pieces: list[list[Item]] = [[] for _ in range(workers)]
    for group in sorted(at_home.values(), key=len, reverse=True):
        min(pieces, key=len).extend(group)
    for item in slow:
        min(pieces, key=len).append(item)
    return _filled(pieces, quick)


def _filled(pieces: list[list[Item]], quick: list[Item]) -> list[Item]:
    """The pieces, as long as pytest-xdist makes them, one after the other."""
    rest = len(quick) + sum(len(piece) for piece in pieces)
    dealt: list[Item] = []
    used = 0
    for number, piece in enumerate(pieces):
        length = rest // (len(pieces) - number)
        wanted = max(0, length - len(piece))
        dealt += piece + quick[used : used + wanted]
        used += wanted
        rest -= length
    return dealt + quick[used:]
