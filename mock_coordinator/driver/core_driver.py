"""Drives the pure broker: passes inputs and the time to it, and its outputs to connections.

One driver serves any number of connections of any kind (sockets, in-process); each registers a
``Sink``. Everything happens in one thread and ``submit`` does not wait, so a sink may have its
reply before ``submit`` returns. Timers need the task ``timer.run``, or a ``VirtualClock``.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Final, Protocol

import anyio

from mock_coordinator.core.cluster import ClusterCore
from mock_coordinator.core.faults import FaultInjector
from mock_coordinator.core.groups.service.snapshot import GroupSnapshot
from mock_coordinator.core.inputs import (
    ConnectionLost,
    CoordinatorMoved,
    Input,
    RequestReceived,
    TimerFired,
)
from mock_coordinator.core.outputs import (
    CloseConnection,
    NoReply,
    Output,
    Reply,
    TornReply,
    Unanswered,
)
from mock_coordinator.core.ownership import OwnershipChecker
from mock_coordinator.driver.clock import Clock, VirtualClock
from mock_coordinator.driver.connection_limits import ConnectionLimits
from mock_coordinator.driver.deadline_timer import DeadlineTimer
from mock_coordinator.driver.request_log import LoggedRequest, RequestLog
from mock_coordinator.driver.storage_gate import StorageGate
from mock_coordinator.storage import Storage

__all__ = ["CoreDriver", "Sink"]

_log: Final = logging.getLogger("mock_coordinator")
_ANSWERS: Final = (Reply, NoReply)
_MAY_FAIL: Final = (RequestReceived, CoordinatorMoved)


class Sink(Protocol):
    """A connection, as the driver sees it."""

    def replied(self, reply: Reply | NoReply) -> None:
        """A request of this connection was served."""

    def torn(self, torn: TornReply) -> None:
        """Write the beginning of a reply, then close the connection: a fault requires it."""

    def closed(self, why: str) -> None:
        """Close the connection."""


class CoreDriver:
    """Runs one broker or cluster. ``log_size`` is how many requests ``requests`` keeps (fewer if
    they are long)."""

    def __init__(
        self,
        core: ClusterCore,
        clock: Clock,
        *,
        log_size: int = 10_000,
        storage: Storage | None = None,
    ) -> None:
        self._core = core
        self.clock: Final = clock
        self._sinks: dict[int, Sink] = {}
        self._nodes: Final[dict[int, int]] = {}
        self._own: Final[set[int]] = set()
        self._connections = 0
        self._limits: Final[dict[int, ConnectionLimits]] = {}
        self._watchers: Final[dict[int, Callable[[], None]]] = {}
        self.faults: Final = FaultInjector(self._topic_names)
        self.ownership: Final = OwnershipChecker(lambda: self._core.broker.catalog, self._group)
        self.gate: Final = StorageGate(storage, self._perform)
        self.timer: Final = DeadlineTimer(clock, lambda: self.deadline_ms, self.fire_timers)
        self._log: Final = RequestLog(log_size)

    @property
    def core(self) -> ClusterCore:
        """The broker."""
        return self._core

    @property
    def requests(self) -> deque[LoggedRequest]:
        """The newest requests, the oldest of them first. A test may clear it."""
        return self._log.requests

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._sinks)

    @property
    def deadline_ms(self) -> int | None:
        """When something is due, in the broker or in a fault that delays something."""
        first, held_back = self._core.deadline_ms, self.faults.deadline_ms
        if first is None or held_back is None:
            return held_back if first is None else first
        return min(first, held_back)

    def limits_of(self, node_id: int | None) -> ConnectionLimits:
        """One broker's connection limits, shared by its listeners. ``None``: those of the only
        broker."""
        node = self._core.broker.node_id if node_id is None else node_id
        if node not in self._limits:
            self._limits[node] = ConnectionLimits(lambda: self._core.broker.disk.configs[node])
        return self._limits[node]

    def now_ms(self) -> int:
        """The time. It never goes backwards, even if the clock does."""
        return self.timer.now_ms()

    def connect(self, sink: Sink, node_id: int | None = None, *, is_own: bool = False) -> int:
        """Register a connection to a node and return its number. ``node_id`` ``None`` means no node
        in particular.

        ``is_own`` is for the broker's own Python interface: faults do not hit its requests, and
        ``requests`` does not log them.
        """
        self._connections += 1
        if is_own:
            self._own.add(self._connections)
        self._sinks[self._connections] = sink
        if node_id is not None:
            self._nodes[self._connections] = node_id
        return self._connections

    def disconnect(self, connection: int) -> None:
        """A connection has ended. Calling it twice is harmless."""
        self._nodes.pop(connection, None)
        self._own.discard(connection)
        if self._sinks.pop(connection, None) is not None:
            self.submit(ConnectionLost(connection))

    def close_node(self, node_id: int, why: str) -> None:
        """Close all connections to a node."""
        for connection in [c for c, node in self._nodes.items() if node == node_id]:
            sink = self._sinks.get(connection)
            self.disconnect(connection)
            if sink is not None:
                sink.closed(why)

    def close_all(self, why: str) -> None:
        """Close all connections. The core is not notified."""
        for sink in tuple(self._sinks.values()):
            sink.closed(why)
        self._sinks.clear()
        self._nodes.clear()
        self._own.clear()

    def submit(self, event: Input) -> None:
        """Run one step. A request that raises in the broker closes its own connection only."""
        now_ms = self.now_ms()
        own = isinstance(event, RequestReceived) and event.connection in self._own
        if isinstance(event, RequestReceived) and not own:
            if event.connection in self._nodes:
                event = replace(event, node_id=self._nodes[event.connection])
            self._log.add(now_ms, event)
        self.gate.send(self.faults.step(now_ms, event, self._step, spared=own))
        self.timer.look_again()
        if self._watchers:
            self._tell_watchers()

    def _tell_watchers(self) -> None:
        for watcher in tuple(self._watchers.values()):
            watcher()

    def _step(self, now_ms: int, event: Input) -> tuple[Output, ...]:
        """One step of the core, whenever a fault lets it happen. A failing request, or a move that
        a fault asks for and that is impossible, must not affect other connections."""
        if not isinstance(event, _MAY_FAIL):
            return self._plain_step(now_ms, event)
        try:
            return self._plain_step(now_ms, event)
        except Exception:  # noqa: BLE001  # one request must not end the broker
            _log.exception("the broker failed on %r", event)
        if isinstance(event, CoordinatorMoved):
            return ()
        return (CloseConnection(event.connection, "the broker failed on a request"),)

    def _plain_step(self, now_ms: int, event: Input) -> tuple[Output, ...]:
        outputs = self._core.step(now_ms, event)
        self.ownership.observe(now_ms, event, outputs)
        self.gate.take(self._core.broker.disk, event, outputs)
        return outputs

    def fire_timers(self) -> None:
        """Let the broker do what is due."""
        self.submit(TimerFired())

    def restart(self) -> None:
        """Crash the broker and restart it from its disk and its groups' records.

        All connections are closed; clients must reconnect, as after a real crash.
        """
        self.gate.flush()
        self._core = self._core.restarted(self.now_ms())
        self.close_all("the broker restarts")
        self.faults.restarted()
        self.ownership.restarted()
        self.timer.reset()
        self._tell_watchers()

    async def wait_for(self, predicate: Callable[[], bool], timeout_s: float) -> None:
        """Wait until a predicate holds, checking after every step. Raises ``TimeoutError``."""
        with anyio.move_on_after(timeout_s):
            while not predicate():
                stepped = anyio.Event()
                self._watchers[id(stepped)] = stepped.set
                try:
                    await stepped.wait()
                finally:
                    del self._watchers[id(stepped)]
            return
        is_virtual = isinstance(self.clock, VirtualClock)
        hint = "; a virtual clock moves only when advance() is called" if is_virtual else ""
        raise TimeoutError(f"the condition did not hold within {timeout_s:g} s{hint}")

    def _group(self, group_id: str) -> GroupSnapshot | None:
        return self._core.groups.snapshot(group_id)

    def _topic_names(self) -> dict[bytes, str]:
        topics = self._core.broker.catalog.topics
        return {bytes(topic.topic_id): name for name, topic in topics.items()}

    def _perform(self, output: Output) -> None:
        if isinstance(output, _ANSWERS):
            sink = self._sinks.get(output.connection)
            if sink is not None:
                sink.replied(output)
        elif isinstance(output, TornReply):
            sink = self._sinks.get(output.reply.connection)
            if sink is not None:
                sink.torn(output)
        elif isinstance(output, Unanswered):
            _log.warning("%s", output.why)
        elif isinstance(output, CloseConnection):
            sink = self._sinks.get(output.connection)
            if sink is not None:
                sink.closed(output.why)
