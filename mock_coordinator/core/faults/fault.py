"""One fault: which requests it hits, and what happens to them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from kip848_client.core.wire import APIS, api_named, write_response
from kip848_client.core.wire._fields import Message
from kip848_client.errors import ConfigError, WireError
from mock_coordinator.core.faults.actions import (
    Action,
    Answer,
    CorruptBatch,
    Delay,
    Disconnect,
    Moment,
    Refuse,
    Throttle,
)
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
        self._check_action()

    def _check_action(self) -> None:
        action = self.action
        amount = 0
        if isinstance(action, Refuse) and not -0x8000 <= action.code <= 0x7FFF:
            raise ConfigError(f"fault {self.name!r}: {action.code} is not an error code")
        if isinstance(action, CorruptBatch) and self.match.api not in (None, "Fetch"):
            raise ConfigError(f"fault {self.name!r}: only the batches of a Fetch can be damaged")
        if isinstance(action, Answer):
            self._check_answer(action.response)
        if isinstance(action, Delay):
            amount = action.by_ms
        elif isinstance(action, Throttle):
            amount = action.for_ms
        elif isinstance(action, Disconnect):
            amount = action.after_bytes or 0
            if action.moment is Moment.REQUEST and action.after_bytes is not None:
                raise ConfigError(f"fault {self.name!r}: after_bytes needs Moment.RESPONSE")
        if amount < 0:
            raise ConfigError(f"fault {self.name!r}: {amount} is negative")

    def _check_answer(self, response: Message) -> None:
        """Check that its values are valid, and that at least one version has a field for each of
        them."""
        if self.match.api is None:
            raise ConfigError(f"fault {self.name!r}: an answer needs match.api")
        api = api_named(self.match.api)
        if not isinstance(response, api.response):
            raise ConfigError(
                f"fault {self.name!r}: {type(response).__name__} is not a response of {api.name}"
            )
        low, high = api.versions
        if self.match.versions is not None:
            low, high = max(low, self.match.versions[0]), min(high, self.match.versions[1])
        problems: list[WireError] = []
        for version in range(high, low - 1, -1):
            try:
                write_response(response, api, version, 0)
            except WireError as err:
                problems.append(err)
        wrong = [err for err in problems if err.__cause__ is not None]  # wrong in every version
        if wrong or (problems and len(problems) == high - low + 1):
            raise ConfigError(f"fault {self.name!r}: {(wrong or problems)[0]}")
