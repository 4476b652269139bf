"""A lossy network of connections.

Theory of operation
-------------------
The group protocol runs over TCP and leans on it: on one connection messages keep their order and
none is repeated. So the unit of failure is the connection, as it is in life:

- *delay*: each message takes its time; on one connection they keep their order, on two they do not
  (reordering).
- *loss*: a message does not arrive, and nothing after it on that connection in that direction. The
  sender finds out by a reset, or only by its own timeout. The loss of a request and that of a
  response are drawn apart: they differ in whether the other side has acted.
- *clog*: what is sent waits until the clog is gone, and then arrives.
- *partition*: what is sent is lost, in one direction (asymmetric) or both.
- *duplication*: TCP never does it, but a proxy that retries may. A request arrives again later, on
  its own; its answer goes nowhere. Answers are repeated to the client as they are.

A client that gives a connection up closes it. What it had sent may still arrive: a broker reads
what is in its socket before it learns of the end. That is how a heartbeat gets processed after a
younger one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from mock_coordinator.sim.invariants import Violation
from mock_coordinator.sim.kernel import Kernel
from mock_coordinator.sim.probes import Probes
from mock_coordinator.sim.trace import Trace

__all__ = ["Connection", "Network", "NetworkFaults", "Packet"]


class NetworkFaults(Protocol):
    """How bad a network is; see ``Options``."""

    @property
    def delay_ms_max(self) -> int:
        """Of one message."""
        ...

    @property
    def lose_request(self) -> float:
        """How probable it is."""
        ...

    @property
    def lose_response(self) -> float:
        """How probable it is."""
        ...

    @property
    def duplicate(self) -> float:
        """How probable it is, of requests and responses."""
        ...


@dataclass(frozen=True, slots=True)
class Packet:
    """A message on its way: which request it belongs to, in which version, and the message, as an
    object or as its bytes. ``tag`` says what it is about, for those who watch; nothing that acts
    reads it."""

    correlation: int
    api_key: int
    version: int
    body: Any
    tag: object = None
    again: bool = False
    """A copy that the network made."""


@dataclass(slots=True)
class _Direction:
    """One way of a connection. ``mute``: nothing sent from now on arrives."""

    source: str
    target: str
    free_ms: int = 0
    mute: bool = False


@dataclass(slots=True, eq=False)
class Connection:
    """One connection of a client to the broker, with what each end does with what it receives."""

    number: int
    client: str
    server: str
    on_packet: Callable[[Packet], None]
    on_broken: Callable[[], None]
    up: _Direction
    down: _Direction
    open: bool = True
    broken: bool = False
    unanswered: dict[int, int] = field(default_factory=dict[int, int])
    """Requests whose answer has not arrived, and until when their sender waits for it."""


Path = tuple[str, str]


class Network:
    """All connections, and the troubles of the moment."""

    def __init__(
        self, kernel: Kernel, options: NetworkFaults, trace: Trace, probes: Probes
    ) -> None:
        self._kernel = kernel
        self._options = options
        self._trace = trace
        self._probes = probes
        self._rng = kernel.rng("network")
        self._numbers = 0
        self._open: dict[int, Connection] = {}
        self._clogged_until: dict[Path, int] = {}
        self._cut_until: dict[Path, int] = {}
        self.servers: dict[str, Callable[[Connection, Packet], None]] = {}
        """Who listens: an entry is taken away while a server is down."""
        self.healed = False

    # -- connections -------------------------------------------------------------------------

    def connect(
        self,
        client: str,
        server: str,
        on_packet: Callable[[Packet], None],
        on_broken: Callable[[], None],
    ) -> Connection | None:
        """A new connection; ``None`` when no server listens or the way is cut."""
        if server not in self.servers or self._is_cut((client, server)):
            return None
        self._numbers += 1
        connection = Connection(
            self._numbers,
            client,
            server,
            on_packet,
            on_broken,
            _Direction(client, server),
            _Direction(server, client),
        )
        self._open[connection.number] = connection
        return connection

    def close(self, connection: Connection) -> None:
        """The client gives it up: it receives nothing more; what it sent may yet arrive."""
        connection.open = False
        self._open.pop(connection.number, None)

    def reset(self, connection: Connection, *, lose_sent: bool) -> None:
        """The connection breaks. Its client learns of it a little later; what was sent and has not
        arrived is lost when ``lose_sent``."""
        if connection.broken:
            return
        connection.broken = True
        connection.down.mute = True
        connection.up.mute = connection.up.mute or lose_sent
        self._kernel.after(self._delay_ms(), lambda: self._tell_broken(connection))

    def reset_all(self, server: str) -> None:
        """A server died: every connection to it breaks, and what was on its way is lost."""
        for connection in list(self._open.values()):
            if connection.server == server:
                self.reset(connection, lose_sent=True)

    def _tell_broken(self, connection: Connection) -> None:
        if connection.open:
            self.close(connection)
            connection.on_broken()

    # -- messages ----------------------------------------------------------------------------

    def send(self, connection: Connection, packet: Packet, timeout_ms: int) -> None:
        """The client sends a request, and will wait ``timeout_ms`` for the answer."""
        self._check_order(connection, packet)
        connection.unanswered[packet.correlation] = self._kernel.now_ms + timeout_ms
        if self._is_lost(connection, connection.up, self._options.lose_request, "request"):
            return
        arrival_ms = self._arrival_ms(connection.up)
        self._kernel.at(arrival_ms, lambda: self._arrive_up(connection, packet))
        if self._happens(self._options.duplicate):
            copy = replace(packet, again=True)
            later_ms = arrival_ms + self._rng.randint(0, 30_000)
            self._kernel.at(later_ms, lambda: self._arrive_up(connection, copy))

    def _check_order(self, connection: Connection, packet: Packet) -> None:
        """Answers come in order: a request on a connection with an overdue answer waits
        behind it, forever if the answer was lost."""
        overdue = [n for n, by in connection.unanswered.items() if by < self._kernel.now_ms]
        if overdue:
            raise Violation(
                Network,
                f"{connection.client} sends request {packet.correlation} on a connection where "
                f"the answer to {overdue[0]} is overdue",
            )

    def _arrive_up(self, connection: Connection, packet: Packet) -> None:
        serve = self.servers.get(connection.server)
        if serve is None or (connection.up.mute and not packet.again):
            return
        if packet.again:
            self._probes.reached("duplicate request")
        serve(connection, packet)

    def answer(self, connection: Connection, packet: Packet) -> None:
        """The server sends a response."""
        if self._is_lost(connection, connection.down, self._options.lose_response, "response"):
            return
        arrival_ms = self._arrival_ms(connection.down)
        self._kernel.at(arrival_ms, lambda: self._arrive_down(connection, packet))
        if self._happens(self._options.duplicate):
            later_ms = arrival_ms + self._rng.randint(0, 10_000)
            copy = replace(packet, again=True)
            self._kernel.at(later_ms, lambda: self._arrive_down(connection, copy))

    def _arrive_down(self, connection: Connection, packet: Packet) -> None:
        if connection.open and not connection.down.mute:
            connection.unanswered.pop(packet.correlation, None)
            connection.on_packet(packet)

    def _arrival_ms(self, way: _Direction) -> int:
        clogged_until = self._clogged_until.get((way.source, way.target), 0)
        sent_ms = max(self._kernel.now_ms, clogged_until)
        way.free_ms = max(way.free_ms, sent_ms + self._delay_ms())
        return way.free_ms

    def _delay_ms(self) -> int:
        longest = 2 if self.healed else self._options.delay_ms_max
        # mostly quick, now and then as slow as it gets
        return 1 + int(longest * self._rng.random() ** 4)

    def _is_lost(
        self, connection: Connection, way: _Direction, probability: float, what: str
    ) -> bool:
        if way.mute:
            return True
        cut = self._is_cut((way.source, way.target))
        if not cut and not self._happens(probability):
            return False
        way.mute = True
        by_reset = not cut and self._rng.random() < 0.5
        self._trace.add(
            self._kernel.now_ms,
            "network",
            "lost",
            f"{what} {way.source}>{way.target} #{connection.number}{' reset' if by_reset else ''}",
        )
        if by_reset:
            self.reset(connection, lose_sent=False)
        return True

    def _happens(self, probability: float) -> bool:
        return not self.healed and probability > 0 and self._rng.random() < probability

    def _is_cut(self, path: Path) -> bool:
        return self._cut_until.get(path, 0) > self._kernel.now_ms

    # -- trouble -----------------------------------------------------------------------------

    def clog(self, source: str, target: str, for_ms: int) -> None:
        """Hold back what is sent from ``source`` to ``target`` for a while."""
        self._clogged_until[source, target] = self._kernel.now_ms + for_ms
        self._trace.add(self._kernel.now_ms, "network", "clog", f"{source}>{target} {for_ms} ms")

    def cut(self, one: str, other: str, for_ms: int, *, both_ways: bool) -> None:
        """Lose what is sent from ``one`` to ``other`` for a while, or both ways."""
        until_ms = self._kernel.now_ms + for_ms
        self._cut_until[one, other] = until_ms
        if both_ways:
            self._cut_until[other, one] = until_ms
        arrow = "<>" if both_ways else ">"
        self._trace.add(self._kernel.now_ms, "network", "cut", f"{one}{arrow}{other} {for_ms} ms")

    def heal(self) -> None:
        """From now on everything arrives, soon and once. Connections that had lost something are
        reset, as TCP would sooner or later do."""
        self.healed = True
        self._clogged_until.clear()
        self._cut_until.clear()
        for connection in list(self._open.values()):
            if connection.up.mute or connection.down.mute:
                self.reset(connection, lose_sent=True)
