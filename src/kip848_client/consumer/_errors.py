"""Errors on their way to the application, which meets them in its next call for records."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from typing import Final

from kip848_client._types import TopicPartition
from kip848_client.errors import Kip848Error

__all__ = ["ErrorBox"]

_WAITING_MAX: Final = 16
"""An application that does not ask for records shall not pile errors up."""


class ErrorBox:
    """What ``check`` will raise. ``wake`` is called when something was put in."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._once: deque[Kip848Error] = deque(maxlen=_WAITING_MAX)
        self._blocked: dict[TopicPartition, Kip848Error] = {}
        self._fatal: Kip848Error | None = None

    def __bool__(self) -> bool:
        return self._fatal is not None or bool(self._once) or bool(self._blocked)

    @property
    def fatal(self) -> Kip848Error | None:
        """What ended the consumer, if something did."""
        return self._fatal

    def raise_once(self, error: Kip848Error) -> None:
        """Raise it from one call."""
        self._once.append(error)
        self._wake()

    def raise_always(self, error: Kip848Error) -> None:
        """Raise it from every call until the consumer is closed; the first such error stays."""
        if self._fatal is None:
            self._fatal = error
        self._wake()

    def block(self, tp: TopicPartition, error: Kip848Error) -> None:
        """Raise it from every call until the partition is unblocked."""
        self._blocked[tp] = error
        self._wake()

    def unblock(self, tp: TopicPartition) -> None:
        """The partition has a position, or is gone."""
        self._blocked.pop(tp, None)

    def blocked(self, tp: TopicPartition) -> Kip848Error | None:
        """Why the partition cannot have a position, if that is so."""
        return self._blocked.get(tp)

    def check_fatal(self) -> None:
        """Raise what ended the consumer, if something did."""
        if self._fatal is not None:
            raise self._fatal.with_traceback(None)

    def check(self, only: Collection[tuple[str, int]] = ()) -> None:
        """Raise what is due: the oldest of the once-errors first, then what stays; of blocked
        partitions only those in ``only``, if given."""
        if self._once:
            raise self._once.popleft()
        self.check_fatal()
        for tp, error in self._blocked.items():
            if not only or tp in only:
                raise error.with_traceback(None)
