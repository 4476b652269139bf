"""A broker or cluster as a pure state machine: inputs and the time in, outputs and a deadline out.

Theory of operation
===================

``step`` does the same for every input. First it runs what was due before (a session that ended in
silence must be over before the next request is handled). Then it handles the input: a request goes
by its API key to a handler, which answers at once, except for a fetch that has to wait and is
parked. Then the consequences: the group coordinator learns of changed topics, work that the step
itself made due is run, and parked fetches are answered if their partitions changed or their time is
up.

The core never waits, reads no clock and draws no random numbers: the time and ``new_uuid`` are
arguments. A crash is a new core made by ``restarted``: it keeps the disk and replays the groups'
records; connections, parked fetches and fetch sessions are gone, as in a broker process that died.

Several brokers are one core as well: they share the disk, and a request has the id of the broker
that it reached. Each handler gets that broker, and refuses what another broker leads. Moves of
leaders, and starts and stops of nodes, are inputs too (``ClusterControl``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from kip848_client.core.outside import from_outside
from kip848_client.core.types import TopicId, TopicIdPartition, format_topic_id
from kip848_client.core.wire.messages.api_versions import ApiVersionsRequest
from kip848_client.core.wire.messages.fetch import FetchRequest
from mock_coordinator.core.apis.call import ApiCall, BrokerServices
from mock_coordinator.core.apis.cluster.api_versions import api_versions_fallback
from mock_coordinator.core.apis.serving import answered, served_apis, served_versions
from mock_coordinator.core.authorization.request_authorizer import RequestAuthorizer
from mock_coordinator.core.chronicle import Chronicle
from mock_coordinator.core.control import ClusterControl
from mock_coordinator.core.fetching.fetches import Fetches
from mock_coordinator.core.fetching.parked import Parked, ParkedFetches
from mock_coordinator.core.groups.service.shards import GroupShards
from mock_coordinator.core.inputs import ConnectionLost, Input, NodeStopped, RequestReceived
from mock_coordinator.core.nodes import Node, Nodes
from mock_coordinator.core.outputs import CloseConnection, Output, Persist, Reply, reply_to
from mock_coordinator.core.security.state import SecurityState
from mock_coordinator.core.settings.broker_config import BrokerConfig
from mock_coordinator.core.state.broker import Broker, Disk
from mock_coordinator.core.state.producer_expiry import ProducerExpiry
from mock_coordinator.core.transactions.service import Transactions

__all__ = ["ClusterCore"]


class ClusterCore:
    """The brokers of one cluster, and the coordinators of their groups.

    ``disk`` is what they start from (with the records that group coordinators wrote before),
    ``now_ms`` when they start. ``new_uuid`` gives 16 fresh random bytes at each call. ``load_ms``
    is how long coordinators take to load their records, now and after moves. Raises
    ``ConfigError`` for a configuration that cannot be served.
    """

    def __init__(
        self, disk: Disk, new_uuid: Callable[[], bytes], now_ms: int, *, load_ms: int = 0
    ) -> None:
        new_uuid = from_outside(new_uuid)
        self._broker: Final = Broker(disk, new_uuid)
        self._brokers: Final[dict[int | None, Broker]] = {
            None: self._broker,
            **{node.node_id: Broker(disk, new_uuid, node.node_id) for node in disk.nodes},
        }
        self._parked: Final = ParkedFetches()
        self._authorizer: Final = RequestAuthorizer(self._broker)
        self._versions: Final = served_versions(disk.config)
        self._apis: Final = served_apis(disk.config)
        self._groups: Final = GroupShards(
            disk.config.profile,
            disk.config,
            disk.catalog,
            self._random_id,
            now_ms,
            leader_of=self._broker.coordinator_node,
            journal_of=disk.journal,
            may_describe=self._authorizer.may_describe,
            load_ms=load_ms,
        )
        self._transactions: Final = Transactions(self._broker, self._groups, now_ms)
        self._producers: Final = ProducerExpiry(self._broker, now_ms)
        self._control: Final = ClusterControl(self._broker, self._groups, self._transactions)
        self._services: Final = {
            node: BrokerServices(
                broker,
                Fetches(broker),
                self._parked,
                self._groups,
                self._transactions,
                self._authorizer,
                self._versions,
            )
            for node, broker in self._brokers.items()
        }
        self._chronicle: Chronicle | None = None
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
    ) -> ClusterCore:
        """A new cluster, with an empty disk.

        ``host`` and ``port`` are the address that clients get; a server that picks its port
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

    def restarted(self, now_ms: int) -> ClusterCore:
        """The brokers after a crash of all and a restart; this core must not be used any more."""
        load_ms = self._groups.load_ms
        core = ClusterCore(self._broker.disk, self._broker.new_uuid, now_ms, load_ms=load_ms)
        if self._chronicle is not None:
            core.chronicled_by(self._chronicle)
        return core

    def chronicled_by(self, chronicle: Chronicle) -> None:
        """``chronicle`` reads along from now on, through restarts."""
        self._chronicle = chronicle
        self._groups.watched_by(chronicle.wrote, chronicle.expired)

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
        return self._versions

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

    def fetches(self, node_id: int) -> Fetches:
        """The fetch sessions of a node. Look, do not touch."""
        return self._services[node_id].fetches

    def advertise(self, host: str, port: int, node_id: int | None = None) -> None:
        """Change the address that clients get for a node (the first one)."""
        node = self._brokers[node_id].node
        node.host, node.port = host, port

    # -- stepping ----------------------------------------------------------------------------------

    def step(self, now_ms: int, event: Input) -> tuple[Output, ...]:
        """Take one input; returns what to do, in order. Time must not go backwards."""
        outputs: list[Output] = []
        self._run_due(now_ms)
        if isinstance(event, RequestReceived):
            self._request(now_ms, event, outputs)
            self._control.perform_wanted(now_ms)
        elif isinstance(event, ConnectionLost):
            self._parked.drop_connection(event.connection)
            self._authorizer.connection_lost(event.connection)
            self._groups.connection_lost(event.connection)
        else:
            if isinstance(event, NodeStopped):
                self._parked.drop_node(event.node_id)
                self._services[event.node_id].fetches.forget_sessions()
            self._control.take(now_ms, event)
        self._transactions.run_due(now_ms)
        changed = self._tell_changes(now_ms)
        self._run_due(now_ms)
        self._wake(now_ms, changed, outputs)
        outputs += (reply_to(waited, response) for waited, response in self._groups.take_replies())
        told = self._authorizer.complete(outputs)
        if self._chronicle is not None:
            self._chronicle.observe(now_ms, event, told)
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
        api = self._apis.get(type(event.request))
        low, high = (1, 0) if api is None else self._versions[api.request.API_KEY]
        if api is None or not low <= event.version <= high:
            outputs.append(self._not_served(event))
            return
        admitted = self._authorizer.admit(event, api.rule, outputs, names_brokers=api.names_brokers)
        if admitted is not None:
            call = ApiCall(self._services[event.node_id], now_ms, admitted, admitted.request)
            outputs += answered(api, call)

    def _not_served(self, event: RequestReceived) -> Output:
        if isinstance(event.request, ApiVersionsRequest):
            return replace(reply_to(event, api_versions_fallback(self._versions)), version=0)
        key = type(event.request).API_KEY
        why = f"API key {key} version {event.version} is not served"
        return CloseConnection(event.connection, why)

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
            if self._services[parked.node_id].fetches.ready(parked.plan):
                self._finish(now_ms, parked, outputs)
        for parked in self._parked.due(now_ms):
            self._finish(now_ms, parked, outputs)

    def _finish(self, now_ms: int, parked: Parked, outputs: list[Output]) -> None:
        self._parked.remove(parked)
        response = self._services[parked.node_id].fetches.finish(now_ms, parked.plan)
        outputs.append(
            Reply(
                parked.connection,
                parked.correlation,
                parked.version,
                response,
                FetchRequest.API_KEY,
            )
        )

    def _random_id(self) -> str:
        return format_topic_id(TopicId(self._broker.new_uuid()))
