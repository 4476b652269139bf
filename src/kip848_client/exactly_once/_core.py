"""One processor: records in, outputs and offsets out, in transactions one after the other."""

from __future__ import annotations

from kip848_client._backoff import Jitter
from kip848_client.exactly_once._commands import Command
from kip848_client.exactly_once._events import Event
from kip848_client.exactly_once._model import ProcessorSettings, State

__all__ = ["ProcessorCore"]


class ProcessorCore:
    """``jitter`` varies pauses."""

    def __init__(self, settings: ProcessorSettings, jitter: Jitter) -> None:
        self._settings = settings
        self._jitter = jitter
        self._state = State.IDLE

    @property
    def state(self) -> State:
        """Where the transaction is."""
        return self._state

    @property
    def deadline_ms(self) -> int | None:
        """When to deliver ``TimerFired`` if nothing happens before; ``None`` for never."""
        return None

    def step(self, now_ms: int, event: Event) -> tuple[Command, ...]:
        """Take one event; returns what to do, in order."""
        raise NotImplementedError
