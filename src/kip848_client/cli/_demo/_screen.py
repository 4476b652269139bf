"""Shows a demo: a table redrawn in place on a terminal, plain lines anywhere else.

The plain form prints only what changed, so that its log can be read from top to bottom.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Generic, Protocol, TextIO, TypeVar

from kip848_client.cli._live import Live, can_be_live, cut
from kip848_client.cli._output import flush, put
from kip848_client.cli.core._cells import folded, hanging
from kip848_client.cli.core._tables import Table

__all__ = ["Screen", "ShownRow"]


class ShownRow(Protocol):
    """One line of the screen."""

    @property
    def name(self) -> str:
        """The name of the process."""
        ...

    def plain(self) -> str:
        """The line for output without redrawing."""
        ...


R = TypeVar("R", bound=ShownRow)


class Screen(Generic[R]):
    """The output of a demo, used as ``with``. ``news`` prints an event, ``draw`` the current state.
    ``table`` builds a table from rows. Raises ``Unwritable``."""

    def __init__(self, out: TextIO, table: Callable[[Sequence[R]], Table]) -> None:
        self._table = table
        self._live = Live(out) if can_be_live(out) else None
        self._rows: tuple[R, ...] = ()
        self._footer = ""
        self._news: list[str] = []
        self._shown: dict[str, str] = {}

    def __enter__(self) -> Screen[R]:
        if self._live is not None:
            self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, trace)

    def news(self, at_s: float, text: str) -> None:
        """Print an event at this second of the demo."""
        line = f"{at_s:5.1f} s  {text}"
        self._news.append(line)
        if self._live is not None:
            self._live.show(self._picture)
        else:
            put(line)
            flush()

    def draw(self, at_s: float, rows: Sequence[R], footer: str) -> None:
        """Show the rows: in place on a terminal, otherwise only the changes since the last time."""
        if self._live is not None:
            self._rows, self._footer = tuple(rows), footer
            self._live.show(self._picture)
            return
        for row in rows:
            text = row.plain()
            if self._shown.get(row.name) != text:
                self._shown[row.name] = text
                put(f"{at_s:5.1f} s    {text}")
        flush()

    def _picture(self, width: int, height: int | None) -> list[str]:
        """The table, the current state, and as many events as fit. Without a limit of rows: all
        events and the outcome."""
        table = self._table(self._rows).fitted(width)
        news = [line for each in self._news for line in hanging(each, width)]
        if height is None:
            return [*news, "", *table]
        footer = ["", *folded(self._footer, width)] if self._footer else []
        table = cut(table, max(height - len(footer), 1))
        room = height - len(table) - len(footer) - 1
        return [*table, *footer, *(["", *news[-room:]] if room > 0 else ())]
