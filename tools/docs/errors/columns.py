"""A column of the page: a request, and the reaction to each error code."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from kip848_client.error_codes import ErrorCode

__all__ = ["Column", "Sees", "Told"]


class Sees(NamedTuple):
    """The rest of a reaction whose own text describes the action."""

    sees: str
    """What the user sees."""
    bounds: str
    """For how long, and how often."""


class Told(NamedTuple):
    """A reaction, described for users."""

    what: str
    """What is done."""
    sees: str
    """What the user sees."""
    bounds: str
    """For how long, and how often."""


class Column(NamedTuple):
    """A request."""

    name: str
    intro: str
    word_of: Callable[[int], str]
    """The reaction to a code, in a word or two, from the tables of the client."""
    words: dict[str, Told]
    """Each of these, explained."""
    named: Iterable[int]
    """The codes that its table names."""
    notes: str = ""

    def used(self) -> dict[str, list[ErrorCode]]:
        """Its words, each with the codes that lead to it."""
        found: dict[str, list[ErrorCode]] = {}
        for code in ErrorCode:
            if code is not ErrorCode.NONE:
                for word in self.word_of(code).split("; "):
                    found.setdefault(word.rsplit(": ", 1)[-1], []).append(code)
        return found
