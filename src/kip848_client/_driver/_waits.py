"""Reports waits of more than a second: for what, and why. Time is an argument.

While its client waits for anything, a driver calls ``look`` about once a second with all waits. A
wait is reported after a second, when its reason changes, and when it ends.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["ANNOUNCED_AFTER_MS", "Wait", "Waits", "numbered"]

ANNOUNCED_AFTER_MS: Final = 1_000
"""Shorter waits are not logged."""


@dataclass(slots=True)
class Wait:
    """One wait: its start, its number, its reason, and the last reason that was logged."""

    since_ms: int
    number: int
    why: str
    announced: str | None = None


class Waits:
    """All waits of one client."""

    def __init__(self) -> None:
        self._waits: dict[str, Wait] = {}
        self._due_ms: int | None = None

    @property
    def due_ms(self) -> int | None:
        """When to call ``look`` again; ``None`` while nothing is waited for."""
        return self._due_ms

    def look(
        self, now_ms: int, waits: Mapping[str, tuple[str, int]], *, again: bool
    ) -> tuple[tuple[int, str], ...]:
        """What to log: a level and a line per wait. ``waits`` maps what is waited for to the
        reason and a number. Another number is another wait: a producer that commits without a
        break waits for its coordinator at each look, but never for long. ``again``: call ``look``
        again in a second, even if nothing is waited for now."""
        lines: list[tuple[int, str]] = []
        for what in [each for each in self._waits if not self._goes_on(each, waits)]:
            wait = self._waits.pop(what)
            if wait.announced is not None:
                line = f"done waiting for {what} after {_seconds(now_ms, wait)} s"
                lines.append((logging.INFO, line))
        for what, (why, number) in waits.items():
            wait = self._waits.setdefault(what, Wait(now_ms, number, why))
            wait.why = why
            if now_ms - wait.since_ms >= ANNOUNCED_AFTER_MS and wait.announced != why:
                wait.announced = why
                line = f"waiting for {what} for {_seconds(now_ms, wait)} s: {why}"
                lines.append((logging.WARNING, line))
        again = again or bool(self._waits)
        self._due_ms = now_ms + ANNOUNCED_AFTER_MS if again else None
        return tuple(lines)

    def _goes_on(self, what: str, waits: Mapping[str, tuple[str, int]]) -> bool:
        return what in waits and waits[what][1] == self._waits[what].number

    def problems(self, now_ms: int) -> tuple[str, ...]:
        """The logged waits that have not ended, as sentences."""
        return tuple(
            f"waiting for {what} for {_seconds(now_ms, wait)} s: {wait.why}"
            for what, wait in self._waits.items()
            if wait.announced is not None
        )

    def over(self) -> None:
        """The client ends: forget all waits, and log nothing about them."""
        self._waits.clear()
        self._due_ms = None


def numbered(waits: Mapping[str, str]) -> dict[str, tuple[str, int]]:
    """Waits that end before others of the same name begin, for ``look``."""
    return {what: (why, 0) for what, why in waits.items()}


def _seconds(now_ms: int, wait: Wait) -> str:
    return f"{(now_ms - wait.since_ms) / 1000:.0f}"
