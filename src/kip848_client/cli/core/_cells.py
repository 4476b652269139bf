"""Measures and fits text in terminal cells. A character can take two cells, or none. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection
from functools import partial
from os.path import commonprefix
from typing import Final

__all__ = ["cropped", "folded", "hanging", "padded", "shortened", "told_apart", "width_of"]

_DOTS: Final = "\N{HORIZONTAL ELLIPSIS}"
_ENDS: Final = (re.compile(r"[,;\s](?=[^,;\s]*$)"), re.compile(r"[-._/:](?=[^-._/:]*$)"))
"""Characters after which a text should break: between topics, partitions and words, or between the
parts of a name."""


def width_of(text: str) -> int:
    """The width in cells."""
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(each: str) -> int:
    if unicodedata.category(each) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(each) in ("W", "F") else 1


def padded(text: str, width: int) -> str:
    """Pad with spaces to this width."""
    return text + " " * (width - width_of(text))


def cropped(text: str, width: int) -> str:
    """The start that fits, and dots for the rest."""
    if width_of(text) <= width:
        return text
    return _head(text, width - 1) + _DOTS if width > 0 else ""


def shortened(text: str, width: int) -> str:
    """Both ends, with dots in between, because names differ at either end."""
    if width_of(text) <= width:
        return text
    tail = max(width - 1, 0) // 2
    return _head(text, width - 1 - tail) + _DOTS + _head(text[::-1], tail)[::-1]


def told_apart(texts: Collection[str], width: int) -> dict[str, str]:
    """Fit each text into this width, keeping different texts distinct where possible: they are cut
    in the middle, or else lose their common prefix (usually addresses)."""
    different = set(texts)
    long = [each for each in different if width_of(each) > width]
    begin = commonprefix(long)  # noqa: RUF071 - of texts, not of paths
    host = begin.rfind("/") + 1
    ways: tuple[Callable[[str], str], ...] = (
        partial(shortened, width=width),
        partial(_without_begin, size=host, width=width),
        partial(_without_begin, size=len(begin), width=width),
    )
    for way in ways:
        found = {each: each if width_of(each) <= width else way(each) for each in different}
        if len(set(found.values())) == len(different):
            return found
    return {each: shortened(each, width) for each in different}


def _without_begin(text: str, size: int, width: int) -> str:
    return cropped(_DOTS + text[size:], width)


def folded(text: str, width: int) -> list[str]:
    """Lines that fit, broken after a comma, semicolon or space if possible."""
    lines: list[str] = []
    while width_of(text) > width:
        line = _head(text, width) or text[:1]
        found = [end.end() for end in (pattern.search(line) for pattern in _ENDS) if end]
        good = [end for end in found if end > len(line) // 2]
        line = line[: good[0]] if good else line
        lines.append(line.rstrip())
        text = text[len(line) :]
    return [*lines, text]


def hanging(text: str, width: int) -> list[str]:
    """A line that starts with a time, wrapped if too wide, with the other lines indented."""
    indent = len("  0.0 s  ")
    first = folded(text, width)[0]
    rest = text[len(first) :].lstrip()
    if not rest:
        return [first]
    return [first, *(" " * indent + line for line in folded(rest, max(width - indent, 1)))]


def _head(text: str, width: int) -> str:
    room = width
    for at, each in enumerate(text):
        room -= _width(each)
        if room < 0:
            return text[:at]
    return text
