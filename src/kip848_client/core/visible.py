"""Makes untrusted text safe for one line of a terminal: escapes invisible and control
characters."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

__all__ = ["visible"]

_UNSEEN: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164"
    "\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Invisible characters that Python calls printable: fillers, joiners, selectors."""


def visible(text: str, *, keep: str = "") -> str:
    """Escape invisible and control characters as in Python's literals (``\\n``, ``\\x1b``,
    ``\\u202e``): control characters, line and paragraph separators, direction marks, zero-width
    characters, spaces other than the plain one, lone surrogates. Clients choose the names of
    groups, clients and members, and brokers do not check them.

    Args:
        text: Untrusted text.
        keep: Characters that are not escaped.

    Returns:
        The text on one line. Visible text, including backslashes, is not changed.
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
    # a combining mark needs a letter; without one it would combine with our own text
    return not _is_mark(each) or before.isalpha() or _is_mark(before)


def _is_mark(each: str) -> bool:
    return unicodedata.category(each) in ("Mn", "Me")


def _escaped(each: str) -> str:
    return each.encode("unicode_escape").decode("ascii")
