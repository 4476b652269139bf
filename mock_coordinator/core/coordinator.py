"""One broker, pure: what happened and the time in, what to do and the next deadline out.

Theory of operation
===================

``step`` does the same thing for every input. First whatever was due before it (sessions that ended
while nothing came in must be over before the next request is looked at). Then the input itself: a
request goes by its API key to a handler, which answers at once, except for a fetch that has to wait
and is parked. Then the consequences: changed topics are told to the group coordinator, what became
due by the step itself is run, and parked fetches whose partitions changed, or whose time is up, are
answered.

The core never waits, reads no clock and draws no random numbers: ``new_uuid`` is handed in, and so
is the time. A crash is a new core made by ``restarted``: it keeps the disk and replays the groups'
records; connections, parked fetches and fetch sessions are gone, as they are for a broker process
that died.

Several brokers are one core, too: they share the disk, and a request says which of them it reached.
Each handler gets that broker, and refuses what another one leads. That leaders move, and that nodes
stop and start, are inputs like others (``ClusterControl``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from kip848_client._types import TopicIdPartition, format_topic_id
from kip848_client.wire import DRAFT_API_KEYS
from kip848_client.wire._fields import Message
from mock_coordinator.core.admin_handlers import ADMIN_HANDLERS
from mock_coordinator.core.api_versions import (
    API_VERSIONS_KEY,
    api_versions,
    api_versions_fallback,
)
from mock_coordinator.core.broker import Broker, Disk
from mock_coordinator.core.cluster import describe_cluster
from mock_coordinator.core.fetch import Fetches, FetchPlan
from mock_coordinator.core.find_coordinator import find_coordinator
from mock_coordinator.core.groups.shards import GroupShards
from mock_coordinator.core.groups.switched_off import NO_CONSUMER_GROUPS
from mock_coordinator.core.inputs import ConnectionLost, Input, RequestReceived
from mock_coordinator.core.list_offsets import list_offsets, offset_for_leader_epoch
from mock_coordinator.core.logs.producer_expiry import ProducerExpiry
from mock_coordinator.core.nodes import Node, Nodes
from mock_coordinator.core.nodes.control import ClusterControl
from mock_coordinator.core.outputs import (
    CloseConnection,
    NoReply,
    Output,
    Persist,
    Reply,
    Unanswered,
)
from mock_coordinator.core.parked import Parked, ParkedFetches
from mock_coordinator.core.produce import produce, produce_failed
from mock_coordinator.core.security.guard import Guard
from mock_coordinator.core.security.handlers import SECURITY_HANDLERS
from mock_coordinator.core.security.state import SecurityState
from mock_coordinator.core.settings.config import BrokerConfig
from mock_coordinator.core.topics.admin_topics import create_partitions, delete_topics
from mock_coordinator.core.topics.create_topics import create_topics
from mock_coordinator.core.topics.metadata import metadata
from mock_coordinator.core.transactions.service import TRANSACTION_KEYS, Transactions
from mock_coordinator.core.unanswered import never_answered

__all__ = ["CoordinatorCore"]

_PRODUCE: Final = 0
_FETCH: Final = 1

Handler = Callable[[Broker, int, int, Any], Message]
"""(broker, now_ms, version, request) -> response; ``Any`` is the request class of the API key."""

_HANDLERS: Final[dict[int, Handler]] = {
    2: lambda broker, _now, version, request: list_offsets(broker, version, request),
    3: metadata,
    10: find_coordinator,
    19: lambda broker, now, _version, request: create_topics(broker, now, request),
    20: lambda broker, _now, version, request: delete_topics(broker, version, request),
    23: lambda broker, _now, _version, request: offset_for_leader_epoch(broker, request),
    37: lambda broker, _now, _version, request: create_partitions(broker, request),
    60: lambda broker, _now, _version, request: describe_cluster(broker, request),
}

_GROUP_KEYS: Final = frozenset({8, 9, 11, 12, 13, 14, 15, 16, 42, 47, 68, 69, *DRAFT_API_KEYS})


class CoordinatorCore:
    """The brokers of one cluster, and the coordinators of their groups.

    ``disk`` is what they start from (with the records that group coordinators wrote before),
    ``now_ms`` when they start. ``new_uuid`` gives 16 fresh random bytes at each call. ``load_ms``
    is how long coordinators take to load their records, now and after moves. Raises
    ``ConfigError`` for a configuration that cannot be served.
    """

    def __init__(
        self, disk: Disk, new_uuid: Callable[[], bytes], now_ms: int, *, load_ms: int = 0
    ) -> None:
        self._broker: Final = Broker(disk, new_uuid)
        self._brokers: Final[dict[int | None, Broker]] = {
            None: self._broker,
            **{node.node_id: Broker(disk, new_uuid, node.node_id) for node in disk.nodes},
        }
        self._fetches: Final = {node: Fetches(broker) for node, broker in self._brokers.items()}
        self._parked: Final = ParkedFetches()
        self._guard: Final = Guard.of(self._broker)
        consumer_groups = "consumer" in disk.config.listing("group.coordinator.rebalance.protocols")
        self._served: Final = _served(self._broker, drafts=consumer_groups)
        self._refused: Final = {} if consumer_groups else NO_CONSUMER_GROUPS
        self._groups: Final = GroupShards(
            disk.config.profile,
            disk.config,
            disk.catalog,
            self._new_member_id,
            now_ms,
            leader_of=self._broker.coordinator_node,
            journal_of=disk.journal,
            load_ms=load_ms,
        )
        self._transactions: Final = Transactions(self._broker, self._groups, now_ms)
        self._producers: Final = ProducerExpiry(self._broker, now_ms)
        self._control: Final = ClusterControl(self._broker, self._groups, self._transactions)
        if self._guard is not None:
            self._groups.may_describe = self._guard.may_describe
        self._groups.load_all(now_ms)
        self._transactions.load_all(now_ms)

    @classmethod
    def create(
        cls,
        config: BrokerConfig,
        new_uuid: Callable[[], bytes],
        now_ms: int,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        brokers: int = 1,
        racks: Sequence[str | None] = (),
        security: SecurityState | None = None,
    ) -> CoordinatorCore:
        """A new cluster, with an empty disk.

        ``host`` and ``port`` are what clients are told to connect to; a server that picks its port
        corrects them (``advertise``). The ids of several ``brokers`` go up from ``node.id``;
        ``racks`` are theirs in turn, else all are in ``broker.rack``.
        """
        nodes = [
            Node(config.node_id + i, host, port, racks[i % len(racks)] if racks else config.rack)
            for i in range(brokers)
        ]
        disk = Disk.formatted(config, new_uuid, Nodes(nodes))
        disk.security = security or disk.security
        return cls(disk, new_uuid, now_ms)

    def restarted(self, now_ms: int) -> CoordinatorCore:
        """The brokers after a crash of all and a restart; this core must not be used any more."""
        load_ms = self._groups.load_ms
        return CoordinatorCore(self._broker.disk, self._broker.new_uuid, now_ms, load_ms=load_ms)

    # -- looking -----------------------------------------------------------------------------------

    @property
    def broker(self) -> Broker:
        """The state of the cluster: topics, logs, configuration. Look, do not touch."""
        return self._broker

    @property
    def groups(self) -> GroupShards:
        """The group coordinators. Look, do not touch."""
        return self._groups

    @property
    def api_versions(self) -> Mapping[int, tuple[int, int]]:
        """The API keys that are served, with the lowest and highest version."""
        return self._served

    @property
    def parked_requests(self) -> int:
        """How many fetches are waiting for records."""
        return len(self._parked)

    @property
    def deadline_ms(self) -> int | None:
        """When ``step`` wants a ``TimerFired``; ``None`` when nothing is waited for."""
        first = self._groups.deadline_ms
        for deadline in (
            self._transactions.deadline_ms,
            self._producers.deadline_ms,
            self._parked.deadline_ms,
            self._control.deadline_ms,
        ):
            if deadline is not None and (first is None or deadline < first):
                first = deadline
        return first

    def advertise(self, host: str, port: int, node_id: int | None = None) -> None:
        """Change where clients are told to connect for a node (the first one)."""
        node = self._brokers[node_id].node
        node.host, node.port = host, port

    # -- stepping ----------------------------------------------------------------------------------

    def step(self, now_ms: int, event: Input) -> tuple[Output, ...]:
        """Take one input; returns what to do, in order. Time must not go backwards."""
        outputs: list[Output] = []
        self._run_due(now_ms)
        if isinstance(event, RequestReceived):
            self._request(now_ms, event, outputs)
        elif isinstance(event, ConnectionLost):
            self._parked.drop_connection(event.connection)
            if self._guard is not None:
                self._guard.connection_lost(event.connection)
            self._groups.connection_lost(event.connection)
        else:
            self._control.take(now_ms, event)
        self._transactions.run_due(now_ms)
        changed = self._tell_changes(now_ms)
        self._run_due(now_ms)
        self._wake(now_ms, changed, outputs)
        outputs += (_reply(waited, response) for waited, response in self._groups.take_replies())
        told = tuple(outputs) if self._guard is None else self._guard.complete(outputs)
        unsaved = self._broker.logs.take_unsaved()
        return (Persist(unsaved), *told) if unsaved else told

    def _run_due(self, now_ms: int) -> None:
        deadline = self._groups.deadline_ms
        if deadline is not None and deadline <= now_ms:
            self._groups.run_due(now_ms)
        self._transactions.run_due(now_ms)
        self._producers.run_due(now_ms)
        self._control.run_due(now_ms)

    def _request(self, now_ms: int, event: RequestReceived, outputs: list[Output]) -> None:
        key = type(event.request).API_KEY
        low, high = self._served.get(key, (1, 0))
        if key == API_VERSIONS_KEY and not low <= event.version <= high:
            outputs.append(_reply(event, api_versions_fallback(self._served), version=0))
        elif not low <= event.version <= high:
            why = f"API key {key} version {event.version} is not served"
            outputs.append(CloseConnection(event.connection, why))
        elif key in self._refused:
            outputs.append(_reply(event, self._refused[key](event.request)))
        else:
            admitted = event if self._guard is None else self._guard.admit(event, outputs)
            if admitted is not None:
                self._serve(now_ms, key, admitted, outputs)

    def _serve(self, now_ms: int, key: int, event: RequestReceived, outputs: list[Output]) -> None:
        why = never_answered(self._broker, event.version, event.request)
        if why is not None:
            if key != _PRODUCE:
                self._answer(now_ms, key, event)
            name = type(event.request).__name__
            why = f"{name} v{event.version} will not be answered, as by Kafka: {why}"
            outputs.append(Unanswered(event.connection, event.correlation, why))
        elif key == _FETCH:
            self._fetch(now_ms, event, event.request, outputs)
        elif key == _PRODUCE:
            self._produce(now_ms, event, event.request, outputs)
        else:
            response = self._answer(now_ms, key, event)
            if response is not None:
                outputs.append(_reply(event, response))

    def _answer(self, now_ms: int, key: int, event: RequestReceived) -> Message | None:
        if key in _GROUP_KEYS:
            return self._groups.handle(now_ms, event)
        broker = self._brokers[event.node_id]
        if key in TRANSACTION_KEYS:
            return self._transactions.handle(now_ms, broker, event)
        if key == API_VERSIONS_KEY:
            request: Any = event.request
            return api_versions(broker, event.version, request, self._served)
        if key in ADMIN_HANDLERS:
            admin = ADMIN_HANDLERS[key]
            response = admin(broker, now_ms, event.version, event.client, event.request)
            self._control.perform_wanted(now_ms)
            return response
        if key in SECURITY_HANDLERS:
            return SECURITY_HANDLERS[key](broker, event.request)
        return _HANDLERS[key](broker, now_ms, event.version, event.request)

    def _produce(
        self, now_ms: int, event: RequestReceived, request: Any, outputs: list[Output]
    ) -> None:
        broker = self._brokers[event.node_id]
        response = produce(broker, self._transactions.coordinator, now_ms, event.version, request)
        if request.acks != 0:
            outputs.append(_reply(event, response))
        elif produce_failed(response):
            why = "a produce request with acks=0 failed, and this is how its producer is told"
            outputs.append(CloseConnection(event.connection, why))
        else:
            outputs.append(NoReply(event.connection, event.correlation))

    def _fetch(
        self, now_ms: int, event: RequestReceived, request: Any, outputs: list[Output]
    ) -> None:
        fetches = self._fetches[event.node_id]
        may_read = None if self._guard is None else self._guard.may_read(event.client, request)
        result = fetches.start(now_ms, event.version, request, may_read)
        if isinstance(result, FetchPlan):
            parked = Parked(
                event.connection, event.correlation, event.version, result, event.node_id
            )
            self._parked.park(parked, fetches.partitions_of(result))
        else:
            outputs.append(_reply(event, result))

    def _tell_changes(self, now_ms: int) -> tuple[TopicIdPartition, ...]:
        """Spread the word about changed topics; returns the partitions that parked fetches may care
        about."""
        changed = self._broker.logs.take_grown() + self._control.take_moved()
        topics = self._broker.catalog.take_changes()
        if topics is not None:
            self._groups.topics_changed(now_ms, topics.names, topics.deleted)
            for topic in topics.deleted:
                self._broker.logs.drop_topic(topic.topic_id, topic.partitions)
                self._broker.disk.leaders.forget(topic.topic_id)
                changed += tuple((topic.topic_id, index) for index in range(topic.partitions))
        return changed

    def _wake(
        self, now_ms: int, changed: tuple[TopicIdPartition, ...], outputs: list[Output]
    ) -> None:
        for parked in self._parked.touched(changed):
            if self._fetches[parked.node_id].ready(parked.plan):
                self._finish(now_ms, parked, outputs)
        for parked in self._parked.due(now_ms):
            self._finish(now_ms, parked, outputs)

    def _finish(self, now_ms: int, parked: Parked, outputs: list[Output]) -> None:
        self._parked.remove(parked)
        response = self._fetches[parked.node_id].finish(now_ms, parked.plan)
        outputs.append(
            Reply(parked.connection, parked.correlation, parked.version, response, _FETCH)
        )

    def _new_member_id(self) -> str:
        # Brokers make member ids as they make topic ids: base64 of a random UUID, no leading dash.
        return format_topic_id(self._broker.new_topic_id())


def _served(broker: Broker, *, drafts: bool) -> dict[int, tuple[int, int]]:
    """The profile's APIs; with the draft protocols (client-side assignors, Connect groups) unless
    they are switched off, or with consumer groups."""
    served = dict(broker.profile.api_versions)
    if drafts and broker.config.client_assignors:
        served.update(dict.fromkeys(DRAFT_API_KEYS, (0, 0)))
    return served


def _reply(event: RequestReceived, response: Message, *, version: int | None = None) -> Reply:
    return Reply(
        event.connection,
        event.correlation,
        event.version if version is None else version,
        response,
        type(event.request).API_KEY,
    )
