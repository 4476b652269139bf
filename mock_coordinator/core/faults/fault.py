"""One fault: which requests it hits, and what happens to them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from kip848_client.core.wire import APIS
from kip848_client.errors import ConfigError
from mock_coordinator.core.faults.actions import Action
from mock_coordinator.core.faults.match import Match

__all__ = ["Fault"]

_API_NAMES = frozenset(api.name for api in APIS.values())


@dataclass(frozen=True, slots=True)
class Fault:
    """An action that happens to matching requests.

    Attributes:
        action: What happens, for example ``Drop()`` or ``Delay(by_ms=500)``.
        match: Which requests are counted. Default: all.
        nth: The first matching request that is hit, counted from 1.
        times: How many requests are hit, from ``nth`` on. ``None``: all of them.
        name: For ``FaultInjector.remove`` and for messages.

    Raises:
        ConfigError: For a fault that can never happen.
    """

    action: Action
    match: Match = field(default_factory=Match)
    nth: int = 1
    times: int | None = 1
    name: str = ""

    def __post_init__(self) -> None:
        """Raise ``ConfigError`` for an invalid combination."""
        action_given, match_given = cast("object", self.action), cast("object", self.match)
        if not isinstance(action_given, Action) or not isinstance(match_given, Match):
            raise ConfigError(
                f"fault {self.name!r}: expected an action and a Match, "
                f"not {action_given!r} and {match_given!r}"
            )
        if self.match.api is not None and self.match.api not in _API_NAMES:
            raise ConfigError(f"fault {self.name!r}: unknown API {self.match.api!r}")
        if self.nth < 1:
            raise ConfigError(f"fault {self.name!r}: nth = {self.nth}: expected 1 or more")
        if self.times is not None and self.times < 1:
            raise ConfigError(
                f"fault {self.name!r}: times = {self.times}: expected 1 or more, or None"
            )
        problem = self.action.problem(self.match)
        if problem is not None:
            raise ConfigError(f"fault {self.name!r}: {problem}")
