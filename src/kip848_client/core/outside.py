"""Functions that a core gets from outside, so that a copy of the core shares them."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

__all__ = ["from_outside"]

P = ParamSpec("P")
R = TypeVar("R")


def from_outside(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a function that the driver gives to a core, for example its jitter.

    ``copy.deepcopy`` copies the object of a bound method, which here would be the driver, with its
    sockets and futures. It keeps a plain function as it is.

    Args:
        function: What the driver gave.

    Returns:
        A plain function that calls it.
    """

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        return function(*args, **kwargs)

    return call
