"""Drives a pure broker: gives it inputs and the time, and takes its outputs to the connections.

One driver serves any number of connections of any kind (sockets, in-process); each registers a
``Sink``. Everything happens in one thread and ``submit`` does not wait for anything, so a sink may
have its reply before ``submit`` returns. Timers need the task ``run_timers``, or a
``VirtualClock``.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Protocol

import anyio
import anyio.lowlevel

from kip848_client.core.wire import APIS
from kip848_client.core.wire._fields import Message
from kip848_client.core.wire.messages.produce import ProduceRequest
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
from mock_coordinator.storage import Storage

__all__ = ["CoreDriver", "LoggedRequest", "Sink"]

_log: Final = logging.getLogger("mock_coordinator")
_ANSWERS: Final = (Reply, NoReply)
_MAY_FAIL: Final = (RequestReceived, CoordinatorMoved)
_LOG_BYTES: Final = 16_000_000
"""How many bytes of frames ``requests`` remembers; in memory they are up to twenty times that."""
_IDLE_FLUSH_S: Final = 1
"""How often a storage that writes to the disk once a second is asked to."""


class Sink(Protocol):
    """One connection, as far as the driver is concerned."""

    def replied(self, reply: Reply | NoReply) -> None:
        """A request of this connection was served."""

    def torn(self, torn: TornReply) -> None:
        """Write the beginning of a reply, then close: a fault wants it."""

    def closed(self, why: str) -> None:
        """The broker wants this connection closed."""


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request that the broker took, for tests that look at what a client does.

    The records of a produce request are left out: they are in the log of their partition, and ten
    thousand requests of a megabyte each would be too much to keep.
    """

    at_ms: int
    connection: int
    correlation: int
    client_id: str | None
    api: str
    version: int
    request: Message


class CoreDriver:
    """One broker at work. ``log_size`` is how many requests ``requests`` keeps; fewer where they
    are long."""

    def __init__(
        self,
        core: ClusterCore,
        clock: Clock,
        *,
        log_size: int = 10_000,
        storage: Storage | None = None,
    ) -> None:
        self._core = core
        self._clock: Final = clock
        self._sinks: dict[int, Sink] = {}
        self._nodes: Final[dict[int, int]] = {}
        self._own: Final[set[int]] = set()
        self._connections = 0
        self._limits: Final[dict[int, ConnectionLimits]] = {}
        self._last_ms = clock()
        self._wake = anyio.Event()
        self._waiting_until: int | None = None
        self._watchers: Final[dict[int, Callable[[], None]]] = {}
        self._storage: Final = storage
        self._held: list[Output] = []
        self._dirty: anyio.Event | None = None
        self.faults: Final = FaultInjector(self._topic_names)
        self.ownership: Final = OwnershipChecker(lambda: self._core.broker.catalog, self._group)
        self.requests: Final[deque[LoggedRequest]] = deque(maxlen=log_size)
        self._logged_bytes: Final[deque[int]] = deque(maxlen=log_size)
        self._logged_total = 0
        self.join_clock()

    @property
    def core(self) -> ClusterCore:
        """The broker."""
        return self._core

    @property
    def clock(self) -> Clock:
        """Where the time comes from; ``now_ms`` gives it."""
        return self._clock

    @property
    def connections(self) -> int:
        """How many connections there are."""
        return len(self._sinks)

    @property
    def deadline_ms(self) -> int | None:
        """When something is due, in the broker or in a fault that holds something back."""
        first, held_back = self._core.deadline_ms, self.faults.deadline_ms
        if first is None or held_back is None:
            return held_back if first is None else first
        return min(first, held_back)

    def limits_of(self, node_id: int | None) -> ConnectionLimits:
        """What one broker's listeners share (``None``: of the only one)."""
        node = self._core.broker.node_id if node_id is None else node_id
        if node not in self._limits:
            self._limits[node] = ConnectionLimits(lambda: self._core.broker.disk.configs[node])
        return self._limits[node]

    def _when_due(self) -> int | None:
        return self.deadline_ms

    def now_ms(self) -> int:
        """The time. It never goes backwards, even if the clock does."""
        self._last_ms = max(self._last_ms, self._clock())
        return self._last_ms

    def connect(self, sink: Sink, node_id: int | None = None, *, is_own: bool = False) -> int:
        """Register a connection to a node (``None``: to none in particular); returns its number.

        ``is_own`` is for the broker's own user interface: no fault hits its requests, and
        ``requests`` does not have them.
        """
        self._connections += 1
        if is_own:
            self._own.add(self._connections)
        self._sinks[self._connections] = sink
        if node_id is not None:
            self._nodes[self._connections] = node_id
        return self._connections

    def disconnect(self, connection: int) -> None:
        """A connection is gone. Calling it twice is harmless."""
        self._nodes.pop(connection, None)
        self._own.discard(connection)
        if self._sinks.pop(connection, None) is not None:
            self.submit(ConnectionLost(connection))

    def close_node(self, node_id: int, why: str) -> None:
        """End all connections to a node."""
        for connection in [c for c, node in self._nodes.items() if node == node_id]:
            sink = self._sinks.get(connection)
            self.disconnect(connection)
            if sink is not None:
                sink.closed(why)

    def close_all(self, why: str) -> None:
        """End all connections. The core does not hear of it."""
        for sink in tuple(self._sinks.values()):
            sink.closed(why)
        self._sinks.clear()
        self._nodes.clear()
        self._own.clear()

    def submit(self, event: Input) -> None:
        """One step. A request that the broker cannot cope with closes its connection, no more."""
        now_ms = self.now_ms()
        own = isinstance(event, RequestReceived) and event.connection in self._own
        if isinstance(event, RequestReceived) and not own:
            if event.connection in self._nodes:
                event = replace(event, node_id=self._nodes[event.connection])
            if self.requests.maxlen:
                self._note(now_ms, event)
        self._tell(self.faults.step(now_ms, event, self._step, spared=own))
        deadline = self.deadline_ms
        if deadline is not None and (self._waiting_until is None or deadline < self._waiting_until):
            self._wake.set()
        if self._watchers:
            self._tell_watchers()

    def _tell_watchers(self) -> None:
        for watcher in tuple(self._watchers.values()):
            watcher()

    def _step(self, now_ms: int, event: Input) -> tuple[Output, ...]:
        """One step of the core, wherever a fault lets it happen: a request that fails, or a move
        that a fault wants and that cannot be, must not cost other connections anything."""
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
        if self._storage is not None:
            self._storage.take(self._core.broker.disk, event, outputs)
        return outputs

    def _tell(self, outputs: tuple[Output, ...]) -> None:
        """Perform outputs, or hold them back until what was written before them is safe."""
        if self._storage is None or not (self._storage.is_dirty or self._held):
            for output in outputs:
                self._perform(output)
            return
        self._held += outputs
        if self._dirty is None:
            self.flush()
        else:
            self._dirty.set()

    def flush(self) -> None:
        """Make safe what was written, and send the answers that wait for it.

        Raises ``OSError`` when the disk refuses: then no answer goes out, and the broker must stop.
        """
        if self._storage is None:
            return
        self._storage.flush()
        held, self._held = self._held, []
        for output in held:
            self._perform(output)

    async def run_storage(self) -> None:
        """Flush once in each turn of the event loop in which anything was written, for ever. All
        requests of the turn share one write to the disk. Without a storage there is nothing to do.

        Raises ``OSError`` when the disk refuses.
        """
        if self._storage is None:
            return
        try:
            while True:
                self._dirty = anyio.Event()
                if not self._held:
                    with anyio.move_on_after(_IDLE_FLUSH_S):
                        await self._dirty.wait()
                await anyio.lowlevel.checkpoint()  # let the others of this turn write, too
                self.flush()
        finally:
            self._dirty = None

    def fire_timers(self) -> None:
        """Let the broker do what is due."""
        self.submit(TimerFired())

    def join_clock(self) -> None:
        """Be moved by the clock, if it is a virtual one. Calling it twice is harmless."""
        self.leave_clock()
        if isinstance(self._clock, VirtualClock):
            self._clock.attach(self._when_due, self.fire_timers)

    def leave_clock(self) -> None:
        """Be moved by a virtual clock no more. Calling it twice is harmless."""
        if isinstance(self._clock, VirtualClock):
            self._clock.detach(self.fire_timers)

    def restart(self) -> None:
        """Crash the broker and start it again from its disk and its groups' records.

        All connections are closed; clients have to come back, as after a real crash.
        """
        self.flush()
        self._core = self._core.restarted(self.now_ms())
        self.close_all("the broker restarts")
        self.faults.restarted()
        self.ownership.restarted()
        self._wake.set()
        self._tell_watchers()

    async def run_timers(self) -> None:
        """Call the broker at its deadlines, for ever. With a virtual clock there is nothing to
        do."""
        while True:
            self._wake = anyio.Event()
            deadline = None if isinstance(self._clock, VirtualClock) else self.deadline_ms
            self._waiting_until = deadline
            if deadline is None:
                await self._wake.wait()
                continue
            with anyio.move_on_after(max(deadline - self.now_ms(), 0) / 1000):
                await self._wake.wait()
            if self.now_ms() >= deadline:
                self.fire_timers()
                await anyio.lowlevel.checkpoint()

    async def wait_for(self, predicate: Callable[[], bool], timeout_s: float) -> None:
        """Wait until a predicate holds, looking after every step. Raises ``TimeoutError``."""
        with anyio.move_on_after(timeout_s):
            while not predicate():
                stepped = anyio.Event()
                self._watchers[id(stepped)] = stepped.set
                try:
                    await stepped.wait()
                finally:
                    del self._watchers[id(stepped)]
            return
        is_virtual = isinstance(self._clock, VirtualClock)
        hint = "; its time stands still until advance" if is_virtual else ""
        raise TimeoutError(f"the broker did not get there within {timeout_s:g} s{hint}")

    def _group(self, group_id: str) -> GroupSnapshot | None:
        return self._core.groups.snapshot(group_id)

    def _topic_names(self) -> dict[bytes, str]:
        topics = self._core.broker.catalog.topics
        return {bytes(topic.topic_id): name for name, topic in topics.items()}

    def _note(self, now_ms: int, event: RequestReceived) -> None:
        api = APIS[type(event.request).API_KEY].name
        self._make_room_in_log(event)
        self.requests.append(
            LoggedRequest(
                now_ms,
                event.connection,
                event.correlation,
                event.client.client_id,
                api,
                event.version,
                _without_records(event.request),
            )
        )

    def _make_room_in_log(self, event: RequestReceived) -> None:
        """Forget the oldest requests: their number is limited, and so are their bytes."""
        sizes = self._logged_bytes
        size = 0 if isinstance(event.request, ProduceRequest) else event.size_bytes
        if not self.requests:  # a test has cleared it
            sizes.clear()
            self._logged_total = 0
        self._logged_total += size
        while sizes and (len(sizes) == sizes.maxlen or self._logged_total > _LOG_BYTES):
            self._logged_total -= sizes.popleft()
            self.requests.popleft()
        sizes.append(size)

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


def _without_records(request: Message) -> Message:
    if not isinstance(request, ProduceRequest):
        return request
    topics = tuple(
        replace(topic, partition_data=tuple(replace(p, records=None) for p in topic.partition_data))
        for topic in request.topic_data
    )
    return replace(request, topic_data=topics)
