"""The rules of one connection, without a socket: see ``mock_coordinator.connection`` for its use.

Theory of operation
===================

One request at a time: its frame, its answer, then the next. Bytes that arrive meanwhile are kept,
and then nothing more is read until the connection has caught up: no client can fill the memory. A
request that is here already when an answer is done has its turn in the next round of the event
loop: a client that sends a thousand at once does not hold up the others. A client that has no more
to say still gets what it asked for.

A frame that cannot be read ends the connection, because there is no way to find the next one. Until
a client is authenticated its frames may not be longer than ``sasl.server.max.receive.size``. A
failed authentication is answered late, which slows down those who guess.

A connection on which nothing happens for ``connections.max.idle.ms`` ends, whatever it waits for: a
TLS handshake, a request, a client that does not read, an answer that never comes (its member joined
again over another connection, or was removed). It is the same with Kafka.
"""

from __future__ import annotations

import enum
from typing import Final

from kip848_client.core.wire import APIS, Framer, write_response
from kip848_client.errors import WireError
from mock_coordinator.connection.actions import Action, Close, Signal, Submit, Write
from mock_coordinator.connection.authenticator import ConnectionAuthenticator, FrameOutcome
from mock_coordinator.connection.settings import ConnectionSettings
from mock_coordinator.core.outputs import NoReply, Reply, TornReply

__all__ = ["ConnectionCore"]

_NOTHING: Final[tuple[Action, ...]] = ()
_PAUSE: Final = (Signal.PAUSE,)
_RESUME: Final = (Signal.RESUME,)
_NEXT_TURN: Final = (Signal.NEXT_TURN,)
_SET_TIMER: Final = (Signal.SET_TIMER,)


class _Phase(enum.Enum):
    HANDSHAKE = "TLS is not agreed yet"
    READING = "a request, or the rest of one, has to come"
    SERVING = "a request is at the broker"
    WRITING = "bytes are on their way to the client"
    TURN = "the next request may be here already, and waits for its turn"
    DELAY = "an authentication failed, and its outcome is held back"
    OVER = "nothing is served any more"


# A name of a module is found faster than a member of an enum, and each request asks six times.
_READING: Final = _Phase.READING
_SERVING: Final = _Phase.SERVING
_WRITING: Final = _Phase.WRITING
_TURN: Final = _Phase.TURN
_OVER: Final = _Phase.OVER


class ConnectionCore:
    """One connection. ``number`` is the one that its requests carry.

    ``authenticator`` is ``None`` for a connection that begins with a TLS handshake, whose outcome
    decides who the client is.
    """

    __slots__ = (
        "_authenticator",
        "_framer",
        "_held_back",
        "_is_at_end",
        "_is_paused",
        "_last",
        "_number",
        "_phase",
        "_settings",
        "_since_ms",
    )

    def __init__(
        self,
        now_ms: int,
        number: int,
        settings: ConnectionSettings,
        authenticator: ConnectionAuthenticator | None,
    ) -> None:
        self._number: Final = number
        self._settings: Final = settings
        self._authenticator = authenticator
        self._phase = _Phase.HANDSHAKE if authenticator is None else _READING
        self._framer: Final = Framer(settings.max_frame_bytes)
        self._since_ms = now_ms
        """When something last happened on the connection."""
        self._is_paused = False
        """Whether the driver reads nothing more."""
        self._is_at_end = False
        """Whether the client has said everything."""
        self._last: Close | None = None
        """How the connection ends when what is being written is written."""
        self._held_back: tuple[int, FrameOutcome] | None = None
        """What the client hears of its failed authentication, and when."""

    # -- looking -----------------------------------------------------------------------------------

    @property
    def deadline_ms(self) -> int | None:
        """When ``tick`` has something to do, unless something happens before; ``None``: never."""
        if self._phase is _OVER:
            return None
        if self._held_back is not None:
            return self._held_back[0]
        idle_ms = self._settings.idle_ms
        return None if idle_ms is None else self._since_ms + idle_ms

    @property
    def is_reading(self) -> bool:
        """Whether the next thing that can happen is that the client says something. A driver that
        does one thing at a time reads then, and need not heed ``PAUSE`` and ``RESUME``."""
        return self._phase is _READING

    # -- the client --------------------------------------------------------------------------------

    def secured(self, now_ms: int, authenticator: ConnectionAuthenticator) -> tuple[Action, ...]:
        """The TLS handshake is over: requests may come."""
        if self._phase is _Phase.HANDSHAKE:
            self._since_ms = now_ms
            self._authenticator = authenticator
            self._phase = _READING
        return _NOTHING

    def broken(self, why: str) -> tuple[Action, ...]:
        """TLS has failed, in its handshake or later; ``why`` is what it says."""
        what = "the TLS handshake" if self._phase is _Phase.HANDSHAKE else "TLS"
        return self._close(f"{what} failed: {why}")

    def receive(self, now_ms: int, data: bytes | bytearray | memoryview) -> tuple[Action, ...]:
        """Bytes have come from the client."""
        if self._phase is _OVER:
            return _NOTHING
        self._since_ms = now_ms
        self._framer.put(data)
        if self._phase is _READING:
            return self._go_on(now_ms)
        if self._is_paused:
            return _NOTHING
        self._is_paused = True
        return _PAUSE

    def ended(self) -> tuple[Action, ...]:
        """The client will send nothing more; it may still read."""
        self._is_at_end = True
        if self._phase is _READING:
            return self._leave()
        return _NOTHING

    def taken(self, now_ms: int) -> tuple[Action, ...]:
        """The client has taken what was to be written."""
        if self._phase is not _WRITING:
            return _NOTHING
        return self._done(now_ms) if self._last is None else self._finish(self._last)

    def lost(self) -> None:
        """The connection does not exist any more."""
        self._phase = _OVER

    # -- the broker --------------------------------------------------------------------------------

    def answered(self, now_ms: int, reply: Reply | NoReply) -> tuple[Action, ...]:
        """The request in hand was served. Other answers are dropped."""
        if self._phase is not _SERVING:
            return _NOTHING
        if isinstance(reply, NoReply):
            return self._done(now_ms)
        return self._answer(now_ms, reply)

    def torn(self, now_ms: int, torn: TornReply) -> tuple[Action, ...]:
        """The beginning of an answer is to be written, and no more: a fault wants it."""
        if self._phase is not _SERVING:
            return _NOTHING
        self._last = Close(f"a fault, {torn.after_bytes} bytes into the response")
        return self._answer(now_ms, torn.reply, torn.after_bytes)

    def closed_by_broker(self, why: str) -> tuple[Action, ...]:
        """The broker wants the connection closed."""
        return self._close(why)

    # -- time --------------------------------------------------------------------------------------

    def proceed(self, now_ms: int) -> tuple[Action, ...]:
        """The next turn has come: serve the next request if it is here."""
        if self._phase is not _TURN:
            return _NOTHING
        self._phase = _READING
        return self._go_on(now_ms)

    def tick(self, now_ms: int) -> tuple[Action, ...]:
        """Time has passed. Does nothing before ``deadline_ms``."""
        deadline_ms = self.deadline_ms
        if deadline_ms is None or now_ms < deadline_ms:
            return _NOTHING
        if self._held_back is not None:
            _, outcome = self._held_back
            self._held_back = None
            return self._carry_out(now_ms, outcome)
        if self._phase is _TURN:  # what is here came in time, and its turn is near
            self._since_ms = now_ms
            return _NOTHING
        return self._idle()

    def _idle(self) -> tuple[Action, ...]:
        """Nothing has happened for too long."""
        idle = f"{(self._settings.idle_ms or 0) / 1000:g} s"
        if self._phase is _Phase.HANDSHAKE:
            return self._close(f"its TLS handshake was not over after {idle}")
        if self._phase is _SERVING:
            return self._close(f"its request has waited for {idle}")
        if self._phase is _WRITING:
            return self._close(f"did not read its reply for {idle}")
        return self._finish(Close(f"idle for {idle}", is_expected=True))

    # -- one request after the other ---------------------------------------------------------------

    def _go_on(self, now_ms: int) -> tuple[Action, ...]:
        """Serve the next request, when all of it is here."""
        authenticator = self._authenticator
        assert authenticator is not None, "there are no requests before the TLS handshake is over"
        is_authenticating = authenticator.is_authenticating
        settings, framer = self._settings, self._framer
        framer.max_bytes = (
            settings.max_sasl_frame_bytes if is_authenticating else settings.max_frame_bytes
        )
        try:
            payload = framer.take()
        except WireError as err:
            outcome = FrameOutcome(close=str(err), is_told_late=is_authenticating)
            return self._react(now_ms, outcome)
        if payload is None:
            return self._catch_up()
        try:
            taken = authenticator.take(now_ms, self._number, payload)
        except WireError as err:
            return self._close(str(err))
        if isinstance(taken, FrameOutcome):
            return self._react(now_ms, taken)
        self._phase = _SERVING
        return (Submit(taken),)

    def _catch_up(self) -> tuple[Action, ...]:
        """There is no whole request left."""
        if self._is_at_end:
            return self._leave()
        if self._is_paused:
            self._is_paused = False
            return _RESUME
        return _NOTHING

    def _react(self, now_ms: int, outcome: FrameOutcome) -> tuple[Action, ...]:
        """Do, at once or late, what a frame that is not for the broker comes to."""
        if not outcome.is_told_late:
            return self._carry_out(now_ms, outcome)
        self._phase = _Phase.DELAY
        self._held_back = now_ms + self._settings.failed_login_delay_ms, outcome
        return _SET_TIMER

    def _carry_out(self, now_ms: int, outcome: FrameOutcome) -> tuple[Action, ...]:
        if outcome.answer is None:
            return self._done(now_ms) if outcome.close is None else self._close(outcome.close)
        if outcome.close is not None:
            self._last = Close(outcome.close)
        self._since_ms = now_ms
        self._phase = _WRITING
        return (Write(outcome.answer),)

    def _answer(self, now_ms: int, reply: Reply, length: int | None = None) -> tuple[Action, ...]:
        api = APIS[reply.api_key]
        try:
            frame = write_response(reply.response, api, reply.version, reply.correlation)
        except WireError as err:
            return self._close(str(err))
        self._since_ms = now_ms
        self._phase = _WRITING
        return (Write(frame if length is None else frame[:length]),)

    def _done(self, now_ms: int) -> tuple[Action, ...]:
        """The last request is done. What may be here already is looked at in the next turn."""
        self._since_ms = now_ms
        if self._framer.buffered_bytes or self._is_paused or self._is_at_end:
            self._phase = _TURN
            return _NEXT_TURN
        self._phase = _READING
        return _NOTHING

    # -- the end -----------------------------------------------------------------------------------

    def _leave(self) -> tuple[Action, ...]:
        """The client has left. Half a frame is worth a line."""
        waiting = self._framer.buffered_bytes
        if not waiting:
            return self._finish(Close(is_expected=True))
        return self._finish(Close(f"the client left {waiting} bytes of a frame", is_expected=True))

    def _close(self, why: str) -> tuple[Action, ...]:
        return self._finish(Close(why))

    def _finish(self, close: Close) -> tuple[Action, ...]:
        if self._phase is _OVER:
            return _NOTHING
        self._phase = _OVER
        return (close,)
