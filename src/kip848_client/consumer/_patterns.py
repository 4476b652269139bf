"""The pattern of a subscription: checking it, and translating it for the broker.

The broker matches with RE2/J. google-re2 implements the same language except for a few corner
cases, so patterns it refuses are refused here, at the call; the broker has the final decision.
"""

from __future__ import annotations

import re
from typing import Any, Final

from kip848_client.core.short import short
from kip848_client.errors import ConfigError

__all__ = ["checked_pattern"]

_STRING_BYTES_MAX: Final = 2**15 - 1
_RE2_FLAGS: Final = ((re.IGNORECASE, "i"), (re.MULTILINE, "m"), (re.DOTALL, "s"))
_WITHOUT_EFFECT: Final = re.ASCII | re.UNICODE | re.DEBUG
"""Flags without effect, because topic names are ASCII."""
_MEMORY_MAX_BYTES: Final = 2**28
"""RE2/J has no such limit; the default of 8 MB would refuse patterns that the broker accepts."""


def checked_pattern(pattern: object) -> str | None:
    """The RE2 expression for the broker; ``None`` for no pattern (``None`` or an empty one).

    The flags of a compiled pattern become RE2's. Raises ``ConfigError``.
    """
    if pattern is None:
        return None
    if isinstance(pattern, re.Pattern) and isinstance(pattern.pattern, str):
        text = _flags_of(pattern) + pattern.pattern if pattern.pattern else ""
    elif isinstance(pattern, str):
        text = pattern
    else:
        raise ConfigError(f"pattern is a str or a compiled pattern of str, not {short(pattern)}")
    if not text:
        return None
    _check_size(text)
    _check_syntax(text)
    return text


def _flags_of(pattern: re.Pattern[str]) -> str:
    flags = re.RegexFlag(pattern.flags) & ~_WITHOUT_EFFECT
    letters = "".join(letter for flag, letter in _RE2_FLAGS if flags & flag)
    for flag, _ in _RE2_FLAGS:
        flags &= ~flag
    if flags:
        names = " and ".join(str(each) for each in flags)
        raise ConfigError(
            f"the broker matches patterns with RE2, which has nothing like {names}; "
            "write the pattern without it"
        )
    return f"(?{letters})" if letters else ""


def _check_size(text: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError as err:
        raise ConfigError(f"pattern cannot be written as UTF-8: {err.reason}") from err
    if size > _STRING_BYTES_MAX:
        raise ConfigError(
            f"pattern has {size} bytes; Kafka's strings have {_STRING_BYTES_MAX} at most"
        )


def _check_syntax(text: str) -> None:
    import re2  # loaded only if a pattern is used

    options: Any = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY_MAX_BYTES
    try:
        re2.compile(text, options)
    except re2.error as err:
        raise ConfigError(
            f"pattern {short(text)} is not a regular expression of RE2, which the broker matches "
            f"with: {_said(err)}; see https://github.com/google/re2/wiki/Syntax"
        ) from err


def _said(error: Exception) -> str:
    said: object = error.args[0] if error.args else ""
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
