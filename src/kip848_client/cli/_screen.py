"""Shows a demo: a table redrawn in place on a terminal, plain lines anywhere else.

The plain form prints what changed and nothing else, so that a log of it reads as a story.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TextIO, TypeVar

__all__ = ["Screen", "ShownRow"]


class ShownRow(Protocol):
    """What is shown in one line."""

    @property
    def name(self) -> str:
        """Whose line it is."""
        ...

    def plain(self) -> str:
        """The line where nothing is redrawn."""
        ...


R = TypeVar("R", bound=ShownRow)
Table = Callable[[Sequence[R], str, Sequence[str]], list[str]]


class Screen(Generic[R]):
    """Where the demo is shown: ``news`` is what happened, ``draw`` the state of affairs. ``table``
    makes lines of rows, a footer and what happened."""

    def __init__(self, out: TextIO, table: Table[R], *, live: bool) -> None:
        self._out = out
        self._table = table
        self._live = live
        self._height = 0
        self._news: list[str] = []
        self._shown: dict[str, str] = {}

    def news(self, at_s: float, text: str) -> None:
        """Something happened at this second of the demo."""
        line = f"{at_s:5.1f} s  {text}"
        self._news = [*self._news[-5:], line]
        if not self._live:
            self._out.write(line + "\n")
            self._out.flush()

    def draw(self, at_s: float, rows: Sequence[R], footer: str) -> None:
        """Show the rows: in place on a terminal, else only what changed since the last time."""
        if self._live:
            lines = self._table(rows, footer, self._news)
            up = f"\x1b[{self._height}F" if self._height else ""
            body = "".join(f"\x1b[2K{line}\n" for line in lines)
            self._out.write(f"{up}{body}\x1b[J")
            self._height = len(lines)
        else:
            for row in rows:
                text = row.plain()
                if self._shown.get(row.name) != text:
                    self._shown[row.name] = text
                    self._out.write(f"{at_s:5.1f} s    {text}\n")
        self._out.flush()

    def close(self, text: str) -> None:
        """Print the closing lines below everything."""
        self._out.write(f"\n{text}\n")
        self._out.flush()
