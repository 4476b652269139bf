"""Large answers are taken in by portions, so that no step takes long.

A consumer can have thousands of partitions at one broker, and an answer can tell of all of them.
Such an answer is an iterator that stops after so many rows. The core takes a portion whenever its
timer fires, which it asks for at once: so the driver has a turn for everything else in between.
What comes second waits for the first, as if it had arrived later.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

__all__ = ["Portions"]


class Portions:
    """What is left of answers."""

    def __init__(self) -> None:
        self._left: deque[Iterator[None]] = deque()

    @property
    def left(self) -> bool:
        """Whether there is more to take in."""
        return bool(self._left)

    def begin(self, answer: Iterator[None]) -> None:
        """Take in an answer, which stops between portions: the first one now, if nothing else is
        left."""
        self._left.append(answer)
        if len(self._left) == 1:
            self.go_on()

    def go_on(self) -> None:
        """Take the next portion."""
        if not self._left:
            return
        for _ in self._left[0]:
            return
        self._left.popleft()
