"""Errors on their way to the application, which meets them in its next call for records."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from kip848_client.errors import Kip848Error

__all__ = ["ErrorBox"]

_WAITING_MAX: Final = 16
"""An application that does not ask for records shall not pile errors up."""


class ErrorBox:
    """What ``check`` will raise. ``wake`` is called when something was put in."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._once: deque[Kip848Error] = deque(maxlen=_WAITING_MAX)
        self._fatal: Kip848Error | None = None

    def __bool__(self) -> bool:
        return self._fatal is not None or bool(self._once)

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

    def check_fatal(self) -> None:
        """Raise what ended the consumer, if something did."""
        if self._fatal is not None:
            raise self._fatal.with_traceback(None)

    def check(self) -> None:
        """Raise what is due: the oldest of the once-errors first, then what stays."""
        if self._once:
            raise self._once.popleft()
        self.check_fatal()
