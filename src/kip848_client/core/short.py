"""Short texts of values and errors for messages, which never raise."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Final, TypeVar

__all__ = ["error_text", "repr_at_any_time", "short"]

T = TypeVar("T")

_LENGTH_MAX: Final = 80


def short(value: object) -> str:
    """Return ``repr(value)``, shortened, even if the value's own ``__repr__`` raises."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a message must not fail for what it is about
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _LENGTH_MAX else f"{text[:_LENGTH_MAX]}... ({len(text)} long)"


def error_text(error: BaseException) -> str:
    """Return type and text of an error of a user's code, even if its ``__str__`` raises."""
    name = type(error).__name__
    try:
        return f"{name}: {error}"
    except Exception:  # noqa: BLE001 - a message must not fail for what it is about
        return name


def repr_at_any_time(method: Callable[[T], str]) -> Callable[[T], str]:
    """Decorate a ``__repr__`` so that it works before ``__init__`` has ended. Tracebacks with local
    variables call it when settings are refused, and its error would hide the original one.
    """

    @wraps(method)
    def safe(self: T) -> str:
        try:
            return method(self)
        except AttributeError:
            return f"<{type(self).__name__}, not made yet>"

    return safe
