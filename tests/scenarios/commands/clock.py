"""advance, settle: time and background work."""

from __future__ import annotations

from tests.scenarios.notation import Arguments, duration_ms
from tests.scenarios.stage import Stage

__all__ = ["advance", "settle"]


def advance(stage: Stage, arguments: Arguments) -> list[str]:
    """Let time pass; timers that are due fire on the way.

    advance 45s
    """
    stage.advance(duration_ms(arguments.word("a duration")))
    return []


def settle(stage: Stage, arguments: Arguments) -> list[str]:
    """Let the coordinator finish what it does in the background: resolving regexes.

    settle
    """
    stage.backend.settle()
    return []
