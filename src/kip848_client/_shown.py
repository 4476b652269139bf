"""A value or an error in a message: short, and never the reason of another error."""

from __future__ import annotations

from typing import Final

__all__ = ["shown", "told"]

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
