"""advance, settle: time and background work."""

from __future__ import annotations

from tests.scenarios.notation import Arguments, duration_ms
from tests.scenarios.scenario_run import ScenarioRun

__all__ = ["advance", "settle"]


def advance(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """Let time pass; timers that are due fire on the way.

    advance 45s
    """
    scenario.advance(duration_ms(arguments.word("a duration")))
    return []


def settle(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """Let the coordinator finish what it does in the background: resolving regexes.

    settle
    """
    scenario.backend.settle()
    return []
