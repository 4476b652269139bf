"""A value or an error in a message: short, and never the reason of another error."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Final, TypeVar

__all__ = ["repr_at_any_time", "shown", "told"]

T = TypeVar("T")

_SHOWN_MAX: Final = 80


def shown(value: object) -> str:
    """``repr``, cut where it is long, whatever the value's own does."""
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a message must not fail for what it is about
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}... ({len(text)} long)"


def told(error: BaseException) -> str:
    """What an error of a user's code says, whatever its own ``__str__`` does: its type and
    its text."""
    name = type(error).__name__
    try:
        return f"{name}: {error}"
    except Exception:  # noqa: BLE001 - a message must not fail for what it is about
        return name


def repr_at_any_time(method: Callable[[T], str]) -> Callable[[T], str]:
    """Let a ``__repr__`` work before ``__init__`` has ended: tracebacks that show local variables
    ask for it when settings are refused, and an error of it would hide that one."""

    @wraps(method)
    def safe(self: T) -> str:
        try:
            return method(self)
        except AttributeError:
            return f"<{type(self).__name__}, not made yet>"

    return safe
