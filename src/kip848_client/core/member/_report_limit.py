"""A limit on how often the same error is reported to the user."""

from __future__ import annotations

from collections.abc import Callable

from kip848_client.core.member._commands import Command, Report
from kip848_client.core.member._limits import REPORT_EVERY_MS
from kip848_client.core.member._model import Severity
from kip848_client.errors import Kip848Error

__all__ = ["ErrorReports"]


class ErrorReports:
    """Reports errors that may recur with every answer."""

    def __init__(self, emit: Callable[[Command], None]) -> None:
        self._emit = emit
        self._reported_ms: dict[str, int] = {}

    def tell(self, now_ms: int, kind: str, error: Kip848Error, interval_ms: int) -> None:
        """Raise ``error`` once, unless one of its ``kind`` was raised a moment ago."""
        last = self._reported_ms.get(kind)
        if last is None or now_ms >= last + max(REPORT_EVERY_MS, interval_ms):
            self._reported_ms[kind] = now_ms
            self._emit(Report(error, Severity.RAISE))
