"""Tells of waits that take longer than a second: for what, and why. Pure: time is an argument.

A driver calls ``look`` with all that its client waits for, about once a second while there is
anything. What is still there a second later is announced once, again when its reason changes, and
once more when it is over.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["ANNOUNCED_AFTER_MS", "Wait", "Waits"]

ANNOUNCED_AFTER_MS: Final = 1_000
"""A wait that is shorter is not worth a line."""


@dataclass(slots=True)
class Wait:
    """One wait: since when, why, and the reason that was announced last."""

    since_ms: int
    why: str
    announced: str | None = None


class Waits:
    """All waits of one client."""

    def __init__(self) -> None:
        self._waits: dict[str, Wait] = {}
        self._due_ms: int | None = None

    @property
    def due_ms(self) -> int | None:
        """When to look again; ``None``: when there is something to wait for."""
        return self._due_ms

    def look(
        self, now_ms: int, waits: Mapping[str, str], *, again: bool
    ) -> tuple[tuple[int, str], ...]:
        """What to log, a level and a line per wait. ``waits`` has the reason of each by what it is
        for. ``again``: look once more in a second, though nothing may be waited for now."""
        lines: list[tuple[int, str]] = []
        for what in [each for each in self._waits if each not in waits]:
            wait = self._waits.pop(what)
            if wait.announced is not None:
                line = f"the wait for {what} is over after {_seconds(now_ms, wait)} s"
                lines.append((logging.INFO, line))
        for what, why in waits.items():
            wait = self._waits.setdefault(what, Wait(now_ms, why))
            wait.why = why
            if now_ms - wait.since_ms >= ANNOUNCED_AFTER_MS and wait.announced != why:
                wait.announced = why
                line = f"waiting for {what} for {_seconds(now_ms, wait)} s: {why}"
                lines.append((logging.WARNING, line))
        again = again or bool(self._waits)
        self._due_ms = now_ms + ANNOUNCED_AFTER_MS if again else None
        return tuple(lines)

    def problems(self, now_ms: int) -> tuple[str, ...]:
        """The waits that were announced and go on, in sentences."""
        return tuple(
            f"it has been waiting for {what} for {_seconds(now_ms, wait)} s: {wait.why}"
            for what, wait in self._waits.items()
            if wait.announced is not None
        )

    def over(self) -> None:
        """The client ends: nothing is waited for any more, and nothing is said of that."""
        self._waits.clear()
        self._due_ms = None


def _seconds(now_ms: int, wait: Wait) -> str:
    return f"{(now_ms - wait.since_ms) / 1000:.0f}"
