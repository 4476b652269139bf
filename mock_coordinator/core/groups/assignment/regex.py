"""Regex subscriptions: RE2 syntax, whole topic names, and RE2/J's messages for invalid patterns.

Kafka 4 compiles a member's regex with RE2/J (KIP-848). RE2 accepts nearly the same language (no
look-around, no back-references, linear time); where the two differ, this module refuses what RE2/J
refuses. The remaining differences: RE2 limits the *product* of nested repetitions to 1000, RE2/J
each count separately, so ``(a{1000}){2}`` is refused here and accepted by Kafka; and RE2/J 1.7
(Kafka 4.0) words some errors differently.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, Protocol

import re2

from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.refused import Refused

__all__ = ["matching_topics", "require_valid_regex"]

_DESCRIPTIONS: Final = (
    # what RE2 says first          what RE2/J says instead
    ("missing ]", "missing closing ]"),
    ("missing )", "missing closing )"),
    ("unexpected )", "regexp/syntax: internal error"),
    ("invalid repetition size", "invalid repeat count"),
    ("no argument for repetition operator", "missing argument to repetition operator"),
    ("bad repetition operator", "invalid nested repetition operator"),
    ("invalid named capture group", "invalid named capture"),
    ("invalid perl operator: (?<", "invalid named capture"),
    ("invalid perl operator", "invalid or unsupported Perl syntax"),
    ("invalid character class range", "invalid character class range"),
    ("invalid escape sequence", "invalid escape sequence"),
    ("trailing \\", "trailing backslash at end of expression"),
    ("invalid UTF-8", "invalid escape sequence"),
)
_GROUP_NAME: Final = re.compile(r"\\Q.*?(?:\\E|$)|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?P?<(\w+)>")
_HUGE_COUNT: Final = re.compile(r"(?<!\\)\{\d{5,}(?:,\d*)?\}|(?<!\\)\{\d+,\d{5,}\}")
_RE2_J_REFUSES: Final = re.compile(r"(?<!\\)(?:\\\\)*\\C")


class _Pattern(Protocol):
    def fullmatch(self, text: str) -> object | None: ...


def require_valid_regex(regex: str, *, named_groups: bool = True) -> None:
    """Raise ``Refused`` INVALID_REGULAR_EXPRESSION when a broker would refuse the regex.

    ``named_groups``: whether ``(?<name>...)`` is known (RE2/J 1.8, Kafka 4.1 and later).
    """
    problem = _problem(regex, named_groups)
    if problem is not None:
        raise Refused(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {problem}.",
        )


def matching_topics(regex: str, names: Iterable[str]) -> tuple[str, ...]:
    """The names that the regex matches as a whole, sorted. The regex must be a valid one."""
    pattern = _compiled(regex)
    return tuple(sorted(name for name in names if pattern.fullmatch(name) is not None))


@lru_cache(maxsize=256)
def _compiled(regex: str) -> _Pattern:
    options = re2.Options()
    options.log_errors = False
    pattern: _Pattern = re2.compile(regex, options)
    return pattern


def _problem(regex: str, named_groups: bool) -> str | None:
    try:
        _compiled(regex)
    except re2.error as err:
        return _described(err, named_groups)
    names = [name for name in _GROUP_NAME.findall(regex) if name]
    if not named_groups and re.search(r"(?<!\\)\(\?<\w", regex):
        return "invalid or unsupported Perl syntax"
    if any(not name.isascii() for name in names):
        return "invalid named capture"
    if len(set(names)) != len(names):
        return "duplicate capture group name"
    if _HUGE_COUNT.search(regex):
        return "invalid repeat count"
    if _RE2_J_REFUSES.search(regex):
        return "invalid escape sequence"
    return None


def _described(err: Exception, named_groups: bool) -> str:
    said = err.args[0] if err.args else b""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    for prefix, description in _DESCRIPTIONS:
        if text.startswith(prefix):
            if prefix.endswith("(?<") and not named_groups:
                continue
            return description
    return text
