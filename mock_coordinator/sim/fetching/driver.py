"""Drives one ``FetchCore`` over the simulated network: what it asks for is performed, nothing is
decided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from kip848_client.core.cluster import LearnLeaders
from kip848_client.core.fetch import (
    CloseSession,
    Command,
    Event,
    FetchCore,
    FetchSettings,
    ListOffsets,
    LookUpCommitted,
    SendFetch,
    TimerFired,
)
from mock_coordinator.sim.fetching.requests import FetchRequests
from mock_coordinator.sim.node_requests import Wires
from mock_coordinator.sim.stepping import Stepping

__all__ = ["FetchDriver"]


def _unwatched(_event: Event, _commands: Sequence[Command]) -> None:
    """Ignores the steps."""


class FetchDriver:
    """``look_up`` asks for committed offsets, ``heard`` gets what is for the user, ``enter`` lets
    something happen as soon as the process runs, and ``watch`` sees each step before its commands
    are performed."""

    def __init__(
        self,
        settings: FetchSettings,
        wires: Wires,
        rng: Random,
        *,
        look_up: Callable[[LookUpCommitted], None],
        heard: Callable[[Command], None],
        enter: Callable[[Callable[[], None]], None],
        watch: Callable[[Event, Sequence[Command]], None] = _unwatched,
    ) -> None:
        self._kernel = wires.kernel
        self._rng = rng
        self._look_up = look_up
        self._heard = heard
        self._watch = watch
        self.core: Final = FetchCore(settings, self._jitter)
        self._requests = FetchRequests(wires, self.feed, enter)
        self._stepping: Stepping[Event] = Stepping(
            wires.kernel, self._step, lambda: self.core.deadline_ms, self._fire, enter
        )

    def _jitter(self, pause_ms: int) -> int:
        return self._rng.randint(pause_ms * 4 // 5, max(pause_ms * 6 // 5, 1))

    def feed(self, event: Event) -> None:
        """Give the core an event, and perform what it asks for."""
        self._stepping.post(event)

    def drop(self) -> None:
        """Break all connections off: whatever is under way is lost."""
        self._requests.drop()

    def close(self) -> None:
        """The process is gone."""
        self._requests.close()
        self._stepping.stop()

    def _fire(self) -> None:
        self.feed(TimerFired())

    def _step(self, event: Event) -> None:
        commands = self.core.step(self._kernel.now_ms, event)
        self._watch(event, commands)
        for command in commands:
            self._perform(command)

    def _perform(self, command: Command) -> None:
        match command:
            case SendFetch():
                self._requests.fetch(command)
            case CloseSession():
                self._requests.close_session(command)
            case ListOffsets():
                self._requests.list_offsets(command)
            case LearnLeaders():
                self._requests.learn_leaders(command)
            case LookUpCommitted():
                self._look_up(command)
            case _:
                self._heard(command)
