"""The client's end of a connection: requests out, each answered exactly once, by whatever.

As in Kafka's clients, one request that is not answered in time takes its connection with it, and
everything else that was waiting there counts as disconnected.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kip848_client.core.member import LossReason
from kip848_client.core.wire import decode, encode, request_api
from kip848_client.core.wire.registry import APIS
from mock_coordinator.sim.kernel import Kernel, Timer
from mock_coordinator.sim.network import Connection, Network, Packet

__all__ = ["Answer", "ClientConnection", "pack", "unpack_request", "unpack_response"]

Answer = Any
"""A response message, or a ``LossReason``."""


def pack(message: Any, version: int, *, codec: bool) -> Any:
    """A message as it travels: itself, or its bytes."""
    return encode(message, version) if codec else message


def unpack_request(packet: Packet) -> Any:
    """The request in a packet."""
    if not isinstance(packet.body, bytes):
        return packet.body
    return decode(APIS[packet.api_key].request, packet.version, packet.body)


def unpack_response(packet: Packet) -> Any:
    """The response in a packet."""
    if not isinstance(packet.body, bytes):
        return packet.body
    return decode(APIS[packet.api_key].response, packet.version, packet.body)


@dataclass(slots=True)
class _Waiting:
    done: Callable[[Answer], None]
    timer: Timer
    repeats: bool


class ClientConnection:
    """One connection of a client to the broker, opened when it is needed."""

    def __init__(
        self, kernel: Kernel, network: Network, client: str, server: str, *, codec: bool
    ) -> None:
        self._kernel = kernel
        self._network = network
        self._client = client
        self._server = server
        self._codec = codec
        self._connection: Connection | None = None
        self._correlation = 0
        self._waiting: dict[int, _Waiting] = {}
        self._answered: dict[int, Callable[[Answer], None]] = {}

    def call(
        self,
        request: Any,
        version: int,
        timeout_ms: int,
        done: Callable[[Answer], None],
        *,
        tag: object = None,
        repeats: bool = False,
    ) -> None:
        """Send ``request``; ``done`` gets the response or a ``LossReason``, later and once.

        ``repeats``: a response that the network repeats is handed on again, for receivers that
        claim to tell one from the other.
        """
        connection = self._connected()
        if connection is None:
            self._kernel.after(min(timeout_ms, 20), lambda: done(LossReason.NOT_SENT))
            return
        self._correlation += 1
        number = self._correlation
        timer = self._kernel.after(timeout_ms, lambda: self._time_out(number))
        self._waiting[number] = _Waiting(done, timer, repeats)
        body = pack(request, version, codec=self._codec)
        packet = Packet(number, request_api(request).key, version, body, tag)
        self._network.send(connection, packet, timeout_ms)

    def close(self) -> None:
        """Give the connection up without an answer to its callers."""
        for waiting in self._waiting.values():
            waiting.timer.cancel()
        self._waiting.clear()
        self._answered.clear()
        self._hang_up()

    def drop(self) -> None:
        """Give the connection up, and report that to its callers."""
        self._hang_up()
        for each in self._take_all():
            each.done(LossReason.DISCONNECTED)

    def _connected(self) -> Connection | None:
        if self._connection is None:
            self._connection = self._network.connect(
                self._client, self._server, self._on_packet, self._on_broken
            )
        return self._connection

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._network.close(self._connection)
            self._connection = None

    def _on_packet(self, packet: Packet) -> None:
        waiting = self._waiting.pop(packet.correlation, None)
        if waiting is not None:
            waiting.timer.cancel()
            if waiting.repeats:
                self._answered[packet.correlation] = waiting.done
            waiting.done(unpack_response(packet))
        elif packet.correlation in self._answered:
            self._answered[packet.correlation](unpack_response(packet))

    def _on_broken(self) -> None:
        self._connection = None
        for each in self._take_all():
            each.done(LossReason.DISCONNECTED)

    def _time_out(self, number: int) -> None:
        waiting = self._waiting.pop(number, None)
        if waiting is None:
            return
        self._hang_up()
        others = self._take_all()  # before the callers get the result: they may send again at once
        waiting.done(LossReason.TIMED_OUT)
        for each in others:
            each.done(LossReason.DISCONNECTED)

    def _take_all(self) -> list[_Waiting]:
        everyone, self._waiting = list(self._waiting.values()), {}
        self._answered.clear()
        for each in everyone:
            each.timer.cancel()
        return everyone
