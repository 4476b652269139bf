"""Errors waiting to be raised by the application's next call for records."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from kip848_client.errors import Kip848Error

__all__ = ["ErrorBox"]

_WAITING_MAX: Final = 16
"""Bounds the queue for an application that does not ask for records."""


class ErrorBox:
    """The errors that ``check`` will raise. ``wake`` is called when one was added."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._once: deque[Kip848Error] = deque(maxlen=_WAITING_MAX)
        self._fatal: Kip848Error | None = None

    def __bool__(self) -> bool:
        return self._fatal is not None or bool(self._once)

    @property
    def fatal(self) -> Kip848Error | None:
        """The error that ended the consumer, if any."""
        return self._fatal

    def raise_once(self, error: Kip848Error) -> None:
        """Raise the error from one call."""
        self._once.append(error)
        self._wake()

    def raise_always(self, error: Kip848Error) -> None:
        """Raise the error from every call until the consumer is closed; the first such error
        stays."""
        if self._fatal is None:
            self._fatal = error
        self._wake()

    def check_fatal(self) -> None:
        """Raise the error that ended the consumer, if any."""
        if self._fatal is not None:
            raise self._fatal.with_traceback(None)

    def check(self) -> None:
        """Raise the oldest pending one-time error, else the fatal error, if any."""
        if self._once:
            raise self._once.popleft()
        self.check_fatal()
