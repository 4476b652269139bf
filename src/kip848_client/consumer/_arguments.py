"""Checks of arguments that only a consumer takes."""

from __future__ import annotations

from typing import Any

from kip848_client.core.member import LeaveMode
from kip848_client.core.short import short
from kip848_client.errors import ConfigError

__all__ = ["checked_deserializer", "checked_leave"]


def checked_leave(mode: object) -> LeaveMode:
    """Check a ``LeaveMode``. Raises ``ConfigError``."""
    if not isinstance(mode, LeaveMode):
        raise ConfigError(f"leave is a LeaveMode, not {short(mode)}")
    return mode


def checked_deserializer(function: object, name: str) -> Any:
    """Check a function of one argument, plain or async, or ``None``. Raises ``ConfigError``."""
    if function is not None and not callable(function):
        raise ConfigError(f"{name} is a function of the bytes, or None; not {short(function)}")
    return function
