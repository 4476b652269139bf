"""Text of others on a terminal, on one line: what is not seen, or moves the cursor, is escaped."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

__all__ = ["visible"]

_UNSEEN: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164"
    "\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Printable, as Python has it, and yet nothing is to be seen: fillers, joiners, selectors."""


def visible(text: str, *, keep: str = "") -> str:
    """The text with each character escaped as in Python's literals (``\\n``, ``\\x1b``,
    ``\\u202e``) that is not seen or does more than to be seen: control characters, line and
    paragraph separators, marks of direction, characters of no width, blanks but the plain one, lone
    surrogates. Names of groups, clients and members are chosen by those who join, and no broker
    checks them.

    What ``keep`` has stays. A backslash stays too, so that a text that is visible is not changed.
    """
    if text.isascii() and text.isprintable():
        return text
    before = " "
    shown: list[str] = []
    for each in text:
        shown.append(each if each in keep or _is_seen(each, before) else _escaped(each))
        before = each
    return "".join(shown)


def _is_seen(each: str, before: str) -> bool:
    if not each.isprintable() or _UNSEEN.match(each):
        return False
    # a mark (an accent, a vowel sign) needs a letter: it would sit on what is ours otherwise
    return not _is_mark(each) or before.isalpha() or _is_mark(before)


def _is_mark(each: str) -> bool:
    return unicodedata.category(each) in ("Mn", "Me")


def _escaped(each: str) -> str:
    return each.encode("unicode_escape").decode("ascii")
