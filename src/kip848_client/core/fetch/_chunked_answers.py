"""Large answers are processed in chunks, so that no step takes long.

A consumer can have thousands of partitions at one broker, and an answer can have a row for each.
The core processes a limited number of rows per step and requests its timer at once, so the driver
can do everything else in between. A second answer waits for the first, as if it had arrived later.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

__all__ = ["ChunkedAnswer", "ChunkedAnswers"]

Row = TypeVar("Row")


def _nothing() -> None:
    pass


def _counts() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class ChunkedAnswer(Generic[Row]):
    """An answer with many rows. Its functions are bound methods, or partials of them, so that the
    core can be copied between two chunks."""

    begin: Callable[[], Sequence[Row]]
    """Processes what concerns the answer as a whole, and returns the rows."""
    take: Callable[[Row], None]
    """Processes one row."""
    resume: Callable[[], bool] = _counts
    """Called before each further chunk; returns whether the rest still counts."""
    end: Callable[[], None] = _nothing
    """Called after the last row."""


class ChunkedAnswers:
    """The answers still to be processed, and the progress within the first one.

    Args:
        rows_a_step: Maximum number of rows per chunk.
    """

    def __init__(self, rows_a_step: int) -> None:
        self._rows_a_step = rows_a_step
        self._left: deque[ChunkedAnswer[Any]] = deque()
        self._rows: Sequence[Any] | None = None
        """The rows of the first answer, once it was begun."""
        self._taken = 0

    @property
    def left(self) -> bool:
        """Whether there is more to process."""
        return bool(self._left)

    def begin(self, answer: ChunkedAnswer[Any]) -> None:
        """Queue an answer, and process its first chunk now if no other answer is queued."""
        self._left.append(answer)
        if len(self._left) == 1:
            self.go_on()

    def go_on(self) -> None:
        """Process the next chunk."""
        if not self._left:
            return
        answer, rows = self._left[0], self._rows
        if rows is None:
            rows, self._taken = answer.begin(), 0
        elif not answer.resume():
            self._drop()
            return
        end = self._taken + self._rows_a_step
        for row in rows[self._taken : end]:
            answer.take(row)
        if end < len(rows):
            self._rows, self._taken = rows, end
        else:
            answer.end()
            self._drop()

    def _drop(self) -> None:
        self._left.popleft()
        self._rows = None
