"""Reports waits of more than a second: for what, and why. Time is an argument.

While its client waits for anything, a driver calls ``look`` about once a second with all waits. A
wait is logged after a second, when its reason changes, and when it ends.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kip848_client.core.types import Wait

__all__ = ["ANNOUNCED_AFTER_MS", "Waits"]

ANNOUNCED_AFTER_MS: Final = 1_000
"""Shorter waits are not logged."""


@dataclass(slots=True)
class _Told:
    """A continuing wait, and the last reason that was logged."""

    wait: Wait
    announced: str | None = None


class Waits:
    """All waits of one client."""

    def __init__(self) -> None:
        self._waits: dict[str, _Told] = {}
        self._due_ms: int | None = None

    @property
    def due_ms(self) -> int | None:
        """When to call ``look`` again; ``None`` while nothing is waited for."""
        return self._due_ms

    def look(
        self, now_ms: int, waits: Mapping[str, Wait], *, again: bool
    ) -> tuple[tuple[int, str], ...]:
        """Return a level and a line to log per wait. ``waits`` has all current waits. A wait with
        another start is another wait: a producer that commits continuously waits for its
        coordinator at each look, but never for long. ``again``: call ``look`` again in a second,
        even if there is no wait now."""
        lines: list[tuple[int, str]] = []
        for what in [each for each in self._waits if not self._goes_on(each, waits)]:
            told = self._waits.pop(what)
            if told.announced is not None:
                lines.append((logging.INFO, told.wait.is_over(now_ms, what)))
        for what, wait in waits.items():
            told = self._waits.setdefault(what, _Told(wait))
            told.wait = wait
            is_due = now_ms - wait.since_ms >= ANNOUNCED_AFTER_MS
            if is_due and told.announced != wait.why:
                told.announced = wait.why
                lines.append((logging.WARNING, wait.goes_on(now_ms, what)))
        again = again or bool(self._waits)
        self._due_ms = now_ms + ANNOUNCED_AFTER_MS if again else None
        return tuple(lines)

    def _goes_on(self, what: str, waits: Mapping[str, Wait]) -> bool:
        return what in waits and waits[what].since_ms == self._waits[what].wait.since_ms

    def problems(self, now_ms: int) -> tuple[str, ...]:
        """The logged waits that have not ended, as sentences."""
        return tuple(
            told.wait.goes_on(now_ms, what)
            for what, told in self._waits.items()
            if told.announced is not None
        )

    def over(self) -> None:
        """Forget all waits when the client ends, without logging."""
        self._waits.clear()
        self._due_ms = None
