"""Tables in the form of Kafka's own tools, and fitted to a terminal.

A table has columns and rows; ``plain`` and ``fitted`` render them as lines. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from kip848_client.cli.core._cells import folded, padded, shortened, told_apart, width_of
from kip848_client.core.visible import visible

__all__ = ["NOTHING", "Column", "Fit", "Form", "Table"]

NOTHING: Final = "-"
"""The text for a missing value."""

_GROWS_FROM: Final = 15
_GAP: Final = 2


class Fit(Enum):
    """How to shorten the values of a column on a narrow terminal."""

    WHOLE = auto()
    """Not at all: part of a number is another number."""
    SHORTENED = auto()
    """Cut out the middle: for ids, whose ends identify them."""
    FOLDED = auto()
    """Wrap within the column."""


class Form(Enum):
    """Where a column is shown."""

    BOTH = auto()
    PLAIN = auto()
    """Not on a terminal."""
    FITTED = auto()
    """Only on a terminal: Kafka's tools do not have it."""


_LEAST: Final = {Fit.SHORTENED: 11, Fit.FOLDED: 16}
"""The least width of such a column."""
_GIVES: Final = {Fit.WHOLE: 0, Fit.SHORTENED: 12, Fit.FOLDED: 0}
"""Extra width counted when columns are shrunk."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading, its minimum width, and whether a longer value widens it.

    The rest is for terminals: a shorter heading, how to shorten values, whether the column may be
    dropped if space is short, whether a value that all rows share moves to a line above the table,
    and a width that keeps the table stable when values change.
    """

    head: str
    width: int = _GROWS_FROM
    grows: bool = False
    short: str = ""
    fit: Fit = Fit.WHOLE
    may_go: bool = False
    is_title: bool = False
    form: Form = Form.BOTH
    calm: int = 0


class Table:
    """Columns and rows. ``end`` stands at the end of each line of the plain form."""

    def __init__(
        self, columns: Sequence[Column], rows: Sequence[Sequence[object]], end: str = ""
    ) -> None:
        self._columns = tuple(columns)
        self._rows = [tuple(map(_text, row)) for row in rows]
        self._end = end

    def plain(self) -> list[str]:
        """Lines in the form of Kafka's tools: left-aligned columns with one space in between. A
        column of width 0 is not padded."""
        places = self._places(Form.PLAIN)
        columns = [self._columns[at] for at in places]
        lines = [[column.head for column in columns]]
        lines += [[row[at] for at in places] for row in self._rows]
        widths = [
            max(column.width, *(len(line[at]) for line in lines)) if column.grows else column.width
            for at, column in enumerate(columns)
        ]
        return [" ".join(map(str.ljust, line, widths)) + self._end for line in lines]

    def fitted(self, width: int, *, is_titled: bool = True) -> list[str]:
        """Lines of at most this many cells. Values are shortened or wrapped where possible; if that
        is not enough, each row becomes a block of lines. Values that all rows share are printed
        above, unless ``is_titled`` is false."""
        titles = self._titles()
        above = [
            line
            for row in self._rows[:1]
            for at in titles
            for line in folded(f"{self._columns[at].head} {row[at]}", width)
        ]
        kept = [at for at in self._places(Form.FITTED) if at not in titles]
        return [*(above if is_titled else ()), *self._fitted(kept, width)]

    def _places(self, form: Form) -> list[int]:
        return [at for at, column in enumerate(self._columns) if column.form in (Form.BOTH, form)]

    def _titles(self) -> list[int]:
        return [
            at
            for at, column in enumerate(self._columns)
            if column.is_title and len({row[at] for row in self._rows}) <= 1
        ]

    def _fitted(self, kept: Sequence[int], width: int) -> list[str]:
        needed = [at for at in kept if not self._columns[at].may_go]
        ways = ((kept, _head, False), (kept, _short, True), (needed, _short, True))
        for places, head, may_cut in ways:
            widths = self._widths(places, head, width, may_cut=may_cut)
            if widths is not None:
                return self._lines(places, head, widths)
        return self._blocks(kept, width)

    def _widths(
        self, places: Sequence[int], head: Callable[[Column], str], width: int, *, may_cut: bool
    ) -> list[int] | None:
        """The width of each column; ``None`` if they cannot fit. The widest column shrinks first,
        and ids before lists."""
        columns = [self._columns[at] for at in places]
        heads = [max(width_of(head(column)), column.calm) for column in columns]
        widths = [
            max([least, *(width_of(row[at]) for row in self._rows)])
            for at, least in zip(places, heads, strict=True)
        ]
        gives = [
            (at, max(least, _LEAST[column.fit]))
            for at, (column, least) in enumerate(zip(columns, heads, strict=True))
            if may_cut and column.fit is not Fit.WHOLE
        ]
        over = sum(widths) + _GAP * (len(widths) - 1) - width
        while over > 0:
            wide = [at for at, least in gives if widths[at] > least]
            if not wide:
                return None
            widths[max(wide, key=lambda at: widths[at] + _GIVES[columns[at].fit])] -= 1
            over -= 1
        return widths

    def _lines(
        self, places: Sequence[int], head: Callable[[Column], str], widths: Sequence[int]
    ) -> list[str]:
        lines = [_joined([head(self._columns[at]) for at in places], widths)]
        short = [
            told_apart([row[at] for row in self._rows], width)
            for at, width in zip(places, widths, strict=True)
        ]
        for row in self._rows:
            cells = [
                folded(row[at], width)
                if self._columns[at].fit is Fit.FOLDED
                else [short[number][row[at]]]
                for number, (at, width) in enumerate(zip(places, widths, strict=True))
            ]
            for number in range(max(map(len, cells))):
                parts = [cell[number] if number < len(cell) else "" for cell in cells]
                lines.append(_joined(parts, widths))
        return lines

    def _blocks(self, places: Sequence[int], width: int) -> list[str]:
        heads = [_short(self._columns[at]) for at in places]
        indent = min(max(map(width_of, heads)) + _GAP, max(width // 2, 1))
        lines: list[str] = []
        for row in self._rows:
            lines += [""] if lines else []
            for at, head in zip(places, heads, strict=True):
                first, *more = folded(row[at], max(width - indent, 1))
                lines.append(padded(shortened(head, indent - 1), indent) + first)
                lines += [" " * indent + each for each in more]
        return lines


def _head(column: Column) -> str:
    return column.head


def _short(column: Column) -> str:
    return column.short or column.head


def _joined(parts: Sequence[str], widths: Sequence[int]) -> str:
    return (" " * _GAP).join(map(padded, parts, widths)).rstrip()


def _text(value: object) -> str:
    return NOTHING if value is None else visible(str(value))
