"""When a client requests its subscription, and when it pushes metrics (KIP-714). Pure.

One request is open at a time. The next one is timed from an answer, not from a request: a broker
refuses a push before its interval is over, counted from the last one received.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final

from kip848_client.core.outside import from_outside
from kip848_client.error_codes import ErrorCode, error_name
from kip848_client.observe.core.telemetry._error_rules import Reaction, reaction
from kip848_client.observe.core.telemetry._model import (
    NO_INSTANCE,
    Begun,
    CloseRequested,
    Command,
    Event,
    Lost,
    Push,
    PushAnswered,
    Subscribe,
    Subscription,
    SubscriptionAnswered,
    Timer,
    Unserved,
    Warn,
)

__all__ = ["State", "TelemetryCore"]

_INTERVAL_MS: Final = 300_000
"""Kafka's default, used if a broker's interval is invalid."""
_MAX_BYTES: Final = 1_048_576
_RETRY_MS: Final = 1_000
"""Pause after a first lost request; it doubles each time, up to an interval."""
_DOUBLINGS_MAX: Final = 20
_NO_COMPRESSION: Final = 0


class State(Enum):
    """The state of the conversation."""

    NOT_BEGUN = "not begun"
    ASKING = "a question is on its way"
    TO_ASK = "to ask when it is time"
    TO_PUSH = "to push when it is time"
    PUSHING = "a push is on its way"
    ENDING = "the last push is on its way"
    OVER = "over"


class TelemetryCore:
    """Decides about requests. ``spread`` multiplies a pause by a random number from 0.5 to 1.5;
    ``codecs`` are the available compressions, by Kafka's numbers."""

    def __init__(self, spread: Callable[[int], int], codecs: Sequence[int] = ()) -> None:
        self._spread: Final = from_outside(spread)
        self._codecs: Final = frozenset(codecs)
        self._refused: set[int] = set()
        """Compressions that a broker refused."""
        self.state = State.NOT_BEGUN
        self.due_ms: int | None = None
        """When to deliver ``Timer``, if nothing happens before."""
        self.instance_id: bytes | None = None
        """The instance id from a broker."""
        self.ended_by = ""
        """The reason why pushing has ended."""
        self._subscription: Subscription | None = None
        self._compression = _NO_COMPRESSION
        self._cap_bytes: int | None = None
        self._lost = 0
        """Consecutive unanswered requests."""
        self._is_closing = False

    def step(self, now_ms: int, event: Event) -> list[Command]:
        """Process an event; returns the commands."""
        if self.state is State.OVER:
            return []
        match event:
            case Begun():
                return self._ask() if self.state is State.NOT_BEGUN else []
            case Timer():
                return self._on_timer(now_ms)
            case SubscriptionAnswered():
                return self._on_subscription(now_ms, event)
            case PushAnswered():
                return self._on_push(now_ms, event)
            case Lost():
                return self._on_lost(now_ms)
            case Unserved(why):
                return self._end(why)
            case CloseRequested():
                return self._on_close()

    # -- questions and pushes ----------------------------------------------------------------

    def _on_timer(self, now_ms: int) -> list[Command]:
        if self.due_ms is None or now_ms < self.due_ms:
            return []
        return self._push(terminating=False) if self.state is State.TO_PUSH else self._ask()

    def _ask(self) -> list[Command]:
        self.state, self.due_ms = State.ASKING, None
        return [Subscribe(self.instance_id or NO_INSTANCE)]

    def _push(self, *, terminating: bool) -> list[Command]:
        subscription = self._subscription
        assert subscription is not None, "what is pushed was asked for"
        self.state, self.due_ms = State.ENDING if terminating else State.PUSHING, None
        self._compression = self._best(subscription)
        limit = subscription.max_bytes
        if self._cap_bytes is not None:
            limit = min(limit, self._cap_bytes)
        instance_id = self.instance_id or NO_INSTANCE
        return [Push(instance_id, subscription, self._compression, limit, terminating)]

    def _best(self, subscription: Subscription) -> int:
        usable = self._codecs - self._refused
        fits = (each for each in subscription.compression_types if each in usable)
        return next(fits, _NO_COMPRESSION)

    def _wait(self, state: State, until_ms: int) -> list[Command]:
        self.state, self.due_ms = state, until_ms
        return []

    @property
    def _interval_ms(self) -> int:
        return _INTERVAL_MS if self._subscription is None else self._subscription.push_interval_ms

    # -- answers -----------------------------------------------------------------------------

    def _on_subscription(self, now_ms: int, answer: SubscriptionAnswered) -> list[Command]:
        if self.state is not State.ASKING:
            return []
        self._lost = 0
        if answer.error_code:
            return self._refuse(now_ms, answer.error_code, "GetTelemetrySubscriptions")
        if answer.instance_id != NO_INSTANCE:
            self.instance_id = answer.instance_id
        new = _sound(answer.subscription)
        if self._subscription is not None and self._subscription.max_bytes != new.max_bytes:
            self._cap_bytes = None
        self._subscription = new
        if self._is_closing:
            return self._end("the client is closed")
        if not new.requested:
            return self._wait(State.TO_ASK, now_ms + new.push_interval_ms)
        return self._wait(State.TO_PUSH, now_ms + self._spread(new.push_interval_ms))

    def _on_push(self, now_ms: int, answer: PushAnswered) -> list[Command]:
        if self.state is State.ENDING:
            return self._end("the client is closed")
        if self.state is not State.PUSHING:
            return []
        if answer.error_code:
            if answer.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE:
                self._refused.add(self._compression)
            if reaction(answer.error_code) is Reaction.SMALLER:
                self._cap_bytes = answer.size_bytes // 2
            return self._refuse(now_ms, answer.error_code, "PushTelemetry")
        if self._is_closing:
            return self._push(terminating=True)
        return self._wait(State.TO_PUSH, now_ms + self._interval_ms)

    def _refuse(self, now_ms: int, error_code: int, api: str) -> list[Command]:
        if self._is_closing:
            return self._end("the client is closed")
        what = reaction(error_code)
        if what is Reaction.STOP:
            why = f"a broker answered {api} with {error_name(error_code)}"
            warning = f"{why}; no metrics are pushed to brokers any more"
            return [Warn(warning), *self._end(why)]
        if what is Reaction.ASK_AGAIN and self.state is State.PUSHING:
            return self._ask()
        return self._wait(State.TO_ASK, now_ms + self._interval_ms)

    def _on_lost(self, now_ms: int) -> list[Command]:
        if self._is_closing or self.state is State.ENDING:
            return self._end("the client is closed")
        if self.state is State.PUSHING:  # a broker that received it refuses another one so soon
            return self._wait(State.TO_PUSH, now_ms + self._interval_ms)
        if self.state is not State.ASKING:
            return []
        pause_ms = min(_RETRY_MS << min(self._lost, _DOUBLINGS_MAX), self._interval_ms)
        self._lost += 1
        return self._wait(State.TO_ASK, now_ms + self._spread(pause_ms))

    # -- the end -----------------------------------------------------------------------------

    def _on_close(self) -> list[Command]:
        self._is_closing = True
        match self.state:
            case State.PUSHING | State.ENDING:
                return []  # its answer comes first
            case State.TO_PUSH:
                return self._push(terminating=True)
            case _:
                return self._end("the client is closed")

    def _end(self, why: str) -> list[Command]:
        self.state, self.due_ms, self.ended_by = State.OVER, None, why
        return []


def _sound(given: Subscription) -> Subscription:
    """Replace invalid values by Kafka's defaults."""
    return Subscription(
        given.subscription_id,
        given.requested,
        given.push_interval_ms if given.push_interval_ms > 0 else _INTERVAL_MS,
        given.max_bytes if given.max_bytes > 0 else _MAX_BYTES,
        given.delta,
        given.compression_types,
    )
