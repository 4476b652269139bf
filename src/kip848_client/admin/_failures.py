"""One error for the failed parts of a request with many targets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from kip848_client.errors import AdminFailed, Kip848Error

__all__ = ["all_of", "named"]

T = TypeVar("T")
R = TypeVar("R")

_NAMED_MAX: Final = 3


def all_of(what: str, done: Mapping[T, R], failed: Mapping[T, Kip848Error]) -> dict[T, R]:
    """Return ``done`` if nothing failed. Raises ``AdminFailed`` otherwise."""
    if not failed:
        return dict(done)
    told = [_told(each, error) for each, error in list(failed.items())[:_NAMED_MAX]]
    more = len(failed) - len(told)
    rest = f"; and {more} more" if more else ""
    raise AdminFailed(
        f"{what} failed for {len(failed)} of {len(failed) + len(done)}: {'; '.join(told)}{rest}",
        errors=failed,
        done=done,
    )


def _told(target: Any, error: Kip848Error) -> str:
    name, text = named(target), str(error)
    return text if text.startswith(name) else f"{name}: {text}"


def named(target: Any) -> str:
    """Format a partition, group, topic or broker for a message."""
    if isinstance(target, int):
        return f"broker {target}"
    return f"{target[0]}-{target[1]}" if isinstance(target, tuple) else repr(target)
