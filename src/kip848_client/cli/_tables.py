"""Tables as Kafka's own tools print them: left-aligned columns, one blank between, no lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["NOTHING", "Column", "table"]

NOTHING: Final = "-"
"""What stands for a value that there is not."""

_GROWS_FROM: Final = 15


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its head, its least width, and whether a longer value makes it wider."""

    head: str
    width: int = _GROWS_FROM
    grows: bool = False


def table(columns: Sequence[Column], rows: Iterable[Sequence[object]], end: str = "") -> str:
    """Head and rows, each line with its newline and ``end`` before that. The value of a column of
    width 0 is not filled up."""
    texts = [tuple(map(_text, row)) for row in rows]
    lines = [tuple(column.head for column in columns), *texts]
    widths = [
        max(column.width, *(len(line[at]) for line in lines)) if column.grows else column.width
        for at, column in enumerate(columns)
    ]
    return "".join(
        " ".join(value.ljust(width) for value, width in zip(line, widths, strict=True)) + end + "\n"
        for line in lines
    )


def _text(value: object) -> str:
    return NOTHING if value is None else str(value)
