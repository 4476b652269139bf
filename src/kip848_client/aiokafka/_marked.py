"""Functions that return coroutines, taken for coroutine functions by those who look."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["marked_as_coroutine"]

F = TypeVar("F", bound=Callable[..., Any])


def marked_as_coroutine(function: F) -> F:
    """``function``, of which a stand-in (``unittest.mock.AsyncMock(spec=...)``) can be awaited."""
    mark: Any = getattr(inspect, "markcoroutinefunction", None)  # since Python 3.12
    if mark is not None:
        marked: F = mark(function)
        return marked
    was_marked: Any = getattr(asyncio.coroutines, "_is_coroutine")  # noqa: B009 - not in typeshed
    setattr(function, "_is_coroutine", was_marked)  # noqa: B010 - as before
    return function
