"""All group coordinators of a cluster: one per partition of ``__consumer_offsets``.

Theory of operation
===================

A group belongs to a partition of ``__consumer_offsets``, by the hash of its id, and the leader of
that partition coordinates it. ``GroupShards`` has the interface of one ``GroupCoordinator`` and
passes each request to the coordinator of its group; requests that name several groups are split and
their responses merged (``splitting``). A coordinator is created when its partition is first used.

A request has the id of the node that it reached. At a node that does not lead the group's partition
it is refused with NOT_COORDINATOR. When the leader of a partition changes, its coordinator is
unloaded: waiting requests get NOT_COORDINATOR, timers end, and only the journal stays. The new
leader loads for ``load_ms``, during which it refuses with COORDINATOR_LOAD_IN_PROGRESS, and then
replays the journal: every session starts over. A request whose ``node_id`` is ``None`` comes from
the broker's own Python interface and reaches the coordinator on any node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kip848_client.core.assignors._java_order import string_set_order
from kip848_client.core.wire.messages.groups import (
    DeleteGroupsRequest,
    ListGroupsRequest,
    ListGroupsResponse,
)
from kip848_client.core.wire.messages.offset_fetch import OffsetFetchRequest
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.records.journal import Journal, MemoryJournal
from mock_coordinator.core.groups.records.state_records import StateRecord, TransactionEnd
from mock_coordinator.core.groups.service.coordinator import GroupCoordinator
from mock_coordinator.core.groups.service.meter import CoordinatorMeter, CoordinatorMetric
from mock_coordinator.core.groups.service.refusals import refusal
from mock_coordinator.core.groups.service.snapshot import GroupSnapshot
from mock_coordinator.core.groups.service.splitting import SPLITS, coordinator_order, partition_for
from mock_coordinator.core.inputs import ClientInfo, RequestReceived
from mock_coordinator.core.profile import Profile
from mock_coordinator.core.settings.broker_config import BrokerConfig
from mock_coordinator.core.topics.catalog import Catalog, Topic

if TYPE_CHECKING:
    from kip848_client.core.wire._fields import Message

__all__ = ["GroupShards"]

_BATCHED_FETCH_SINCE: Final = 8


Wrote: TypeAlias = Callable[[int, Sequence[StateRecord]], None]
Expired: TypeAlias = Callable[[int, str, str, str], None]


@dataclass(slots=True)
class _Shard:
    """One partition: its journal, and while it is loaded its coordinator."""

    journal: Journal
    coordinator: GroupCoordinator | None = None
    loaded_at_ms: int | None = None
    """When the load that goes on will be over; ``None`` when none goes on."""
    load_began_ms: int = 0
    """When the last load began."""
    waiting: dict[tuple[int, int], RequestReceived] = field(default_factory=dict)
    """Requests without an answer yet, by connection and correlation."""


class GroupShards:
    """The coordinators of all groups.

    ``leader_of`` says which node leads a partition of ``__consumer_offsets`` (``None``: none does);
    call ``leader_changed`` when that changes. ``journal_of`` gives the journal of a partition, the
    same one at each call; without it journals are kept in memory. ``may_describe`` says whether a
    client may know of a topic; without it every client may. ``now_ms`` is when the cluster starts.
    Raises ``ConfigError`` as ``GroupCoordinator`` does.
    """

    def __init__(
        self,
        profile: Profile,
        config: BrokerConfig,
        catalog: Catalog,
        random_id: Callable[[], str],
        now_ms: int,
        *,
        leader_of: Callable[[int], int | None],
        journal_of: Callable[[int], Journal] | None = None,
        may_describe: Callable[[ClientInfo, str], bool] | None = None,
        load_ms: int = 0,
    ) -> None:
        self.load_ms = load_ms
        """How long the load of a partition takes from now on."""
        self._may_describe: Final = may_describe
        self.partitions: Final = config.integer("offsets.topic.num.partitions")
        self._profile: Final = profile
        self._config: Final = config
        self._catalog: Final = catalog
        self._random_id: Final = random_id
        self._started_ms: Final = now_ms
        self._leader_of: Final = leader_of
        self._journal_of: Final = journal_of or (lambda _partition: MemoryJournal())
        self._shards: Final[dict[int, _Shard]] = {}
        self._deadlines: Final[dict[int, int]] = {}
        self._first_ms: int | None = None
        """The first of the deadlines; recomputed when one of them changes."""
        self._replies: list[tuple[RequestReceived, Message]] = []
        self._meter: Final = CoordinatorMeter(now_ms)
        self._watch: tuple[Wrote, Expired] | None = None
        self._empty_coordinator()  # raises now for a configuration that cannot be served

    # --- Requests ---------------------------------------------------------------------------------

    def partition_of(self, group_id: str) -> int:
        """The partition of ``__consumer_offsets`` that a group belongs to."""
        return partition_for(group_id, self.partitions)

    def handle(self, now_ms: int, received: RequestReceived) -> Message | None:
        """As ``GroupCoordinator.handle``, for the node that the request reached."""
        asked = received.request
        if isinstance(asked, ListGroupsRequest):
            return self._list(now_ms, received)
        if isinstance(asked, DeleteGroupsRequest) and self._profile.deleted_groups_hashed:
            ids = string_set_order(asked.groups_names)
            received = _with(received, DeleteGroupsRequest(groups_names=tuple(ids)))
        request: Any = received.request
        split = SPLITS.get(type(request))
        one_group = (
            isinstance(request, OffsetFetchRequest) and received.version < _BATCHED_FETCH_SINCE
        )
        if split is None or one_group:
            return self._handle(now_ms, self.partition_of(request.group_id or ""), received)
        parts = split.parts(request, self.partition_of)
        if len(parts) == 1:
            return self._handle(now_ms, parts[0][0], received)
        answers = [self._handle(now_ms, p, _with(received, part)) for p, part in parts]
        if not answers:
            return self._empty_coordinator().handle(now_ms, received)
        return split.merge(answers)

    def _handle(self, now_ms: int, partition: int, received: RequestReceived) -> Message | None:
        code = self._problem(partition, received.node_id)
        if code is not None:
            # a coordinator without groups decides first: some errors precede the search for the
            # right coordinator, and the client gets those
            without_groups = self._empty_coordinator().handle(now_ms, received)
            return refusal(self._profile, received, code, without_groups)
        shard = self._shard(partition)
        coordinator = self._loaded(now_ms, partition, shard)
        answer = coordinator.handle(now_ms, received)
        if answer is None:
            shard.waiting[received.connection, received.correlation] = received
        self._settle(partition, shard)
        return answer

    def _problem(self, partition: int, node_id: int | None) -> ErrorCode | None:
        """Why a node cannot serve the groups of a partition."""
        leader = self._leader_of(partition)
        if leader is None or node_id not in (None, leader):
            return ErrorCode.NOT_COORDINATOR
        shard = self._shards.get(partition)
        if shard is not None and shard.loaded_at_ms is not None:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return None

    def _list(self, now_ms: int, received: RequestReceived) -> Message | None:
        """All groups that the node coordinates; while any of them are loaded, none at all."""
        led = [
            p
            for p in range(self.partitions)
            if self._problem(p, received.node_id) is not ErrorCode.NOT_COORDINATOR
        ]
        groups: list[Any] = []
        for partition in coordinator_order(led):
            if self._problem(partition, received.node_id) is not None:
                return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            shard = self._shards.get(partition)
            if shard is not None and shard.coordinator is not None:
                answer: Any = shard.coordinator.handle(now_ms, received)
                if answer.error_code:
                    refused: Message = answer
                    return refused
                groups += answer.groups
        return ListGroupsResponse(groups=tuple(groups))

    def serves(self, group_id: str, node_id: int | None) -> bool:
        """Whether a node coordinates a group, and has loaded it."""
        return self._problem(self.partition_of(group_id), node_id) is None

    def has_open_transaction(self, group_id: str, producer_id: int, producer_epoch: int) -> bool:
        """Whether the producer has offsets pending in the partition of a group."""
        shard = self._shards.get(self.partition_of(group_id))
        if shard is None or shard.coordinator is None:
            return False
        return shard.coordinator.has_open_transaction(producer_id, producer_epoch)

    def complete_transaction(self, now_ms: int, partition: int, end: TransactionEnd) -> None:
        """A marker has come for a partition; a later load will find it."""
        shard = self._shard(partition)
        if shard.coordinator is None:
            shard.journal.append(now_ms, [end])
            return
        shard.coordinator.complete_transaction(now_ms, end)
        self._settle(partition, shard)

    def take_replies(self) -> tuple[tuple[RequestReceived, Message], ...]:
        """As ``GroupCoordinator.take_replies``."""
        if not self._replies:
            return ()
        replies, self._replies = tuple(self._replies), []
        return replies

    def connection_lost(self, connection: int) -> None:
        """A client is gone; nothing that it waits for here can be answered. Its members stay, as
        with a real coordinator, which does not look at connections: a parked JoinGroup goes on."""
        for shard in self._shards.values():
            for key in [key for key in shard.waiting if key[0] == connection]:
                del shard.waiting[key]

    # --- Loading and unloading --------------------------------------------------------------------

    def leader_changed(self, now_ms: int, partition: int) -> None:
        """A partition of ``__consumer_offsets`` has another leader, or none any more."""
        shard = self._shard(partition)
        for received in shard.waiting.values():
            answer = refusal(self._profile, received, ErrorCode.NOT_COORDINATOR, None)
            self._replies.append((received, answer))
        shard.waiting.clear()
        shard.coordinator = None
        led = self._leader_of(partition) is not None
        shard.load_began_ms = now_ms
        shard.loaded_at_ms = now_ms + self.load_ms if led else None
        self._put_deadline(partition, shard.loaded_at_ms)
        if led and not self.load_ms:
            self._end_load(now_ms, partition, shard)

    def load_all(self, now_ms: int) -> None:
        """Take over every partition that has a leader: the cluster starts. What was never written
        to is not looked at, unless a load takes its time."""
        for partition in range(self.partitions):
            if self._leader_of(partition) is None:
                continue
            if self.load_ms > 0:
                shard = self._shard(partition)
                shard.load_began_ms = now_ms
                shard.loaded_at_ms = now_ms + self.load_ms
                self._put_deadline(partition, shard.loaded_at_ms)
            elif self._journal_of(partition).records:
                self._load(now_ms, partition, self._shard(partition))

    def _end_load(self, now_ms: int, partition: int, shard: _Shard) -> None:
        self._meter.loaded(now_ms, now_ms - shard.load_began_ms)
        self._load(now_ms, partition, shard)

    def _load(self, now_ms: int, partition: int, shard: _Shard) -> GroupCoordinator:
        shard.loaded_at_ms = None
        shard.coordinator = GroupCoordinator.replay(
            self._profile,
            self._config,
            self._catalog,
            self._random_id,
            shard.journal.records,
            now_ms,
            shard.journal,
        )
        shard.coordinator.may_describe = self._may_describe
        self._let_watch(shard.coordinator)
        self._settle(partition, shard)
        return shard.coordinator

    def watched_by(self, wrote: Wrote, expired: Expired) -> None:
        """Call ``wrote`` with the records that a coordinator has written, and ``expired`` for a
        member that it has fenced because of a timeout (time, group, member, why), from now on."""
        self._watch = (wrote, expired)
        for shard in self._shards.values():
            if shard.coordinator is not None:
                self._let_watch(shard.coordinator)

    def _let_watch(self, coordinator: GroupCoordinator) -> None:
        coordinator.wrote = self._wrote
        if self._watch is not None:
            _, coordinator.expired = self._watch

    def _wrote(self, now_ms: int, records: Sequence[StateRecord]) -> None:
        self._meter.wrote(now_ms, records)
        if self._watch is not None:
            wrote, _ = self._watch
            wrote(now_ms, records)

    def _loaded(self, now_ms: int, partition: int, shard: _Shard) -> GroupCoordinator:
        """The coordinator of a partition that is first asked for now. It was there all the time, so
        it cleans up when it would have done so."""
        if shard.coordinator is not None:
            return shard.coordinator
        interval_ms = self._config.integer("offsets.retention.check.interval.ms")
        since_cleanup_ms = (now_ms - self._started_ms) % interval_ms
        return self._load(now_ms - since_cleanup_ms, partition, shard)

    def _shard(self, partition: int) -> _Shard:
        shard = self._shards.get(partition)
        if shard is None:
            shard = self._shards[partition] = _Shard(self._journal_of(partition))
        return shard

    def _empty_coordinator(self) -> GroupCoordinator:
        """A coordinator of no groups, which will be forgotten."""
        return GroupCoordinator(self._profile, self._config, self._catalog, self._random_id)

    def _settle(self, partition: int, shard: _Shard) -> None:
        """Take in what a coordinator has to say after it did something."""
        coordinator = shard.coordinator
        if coordinator is None:
            return
        for received, answer in coordinator.take_replies():
            shard.waiting.pop((received.connection, received.correlation), None)
            self._replies.append((received, answer))
        self._put_deadline(partition, coordinator.deadline_ms)

    def _put_deadline(self, partition: int, deadline_ms: int | None) -> None:
        if deadline_ms == self._deadlines.get(partition):
            return
        if deadline_ms is None:
            del self._deadlines[partition]
        else:
            self._deadlines[partition] = deadline_ms
        self._first_ms = min(self._deadlines.values(), default=None)

    # --- Time and topics --------------------------------------------------------------------------

    @property
    def deadline_ms(self) -> int | None:
        """When ``run_due`` has something to do."""
        return self._first_ms

    def run_due(self, now_ms: int) -> None:
        """Do everything whose time has come: loads end, and coordinators do what is due."""
        while (deadline := self.deadline_ms) is not None and deadline <= now_ms:
            partition = next(p for p, due in self._deadlines.items() if due == deadline)
            shard = self._shards[partition]
            if shard.coordinator is None:
                self._end_load(now_ms, partition, shard)
            else:
                shard.coordinator.run_due(now_ms)
                self._settle(partition, shard)

    def topics_changed(
        self, now_ms: int, names: Iterable[str], deleted: Iterable[Topic | str] = ()
    ) -> None:
        """As ``GroupCoordinator.topics_changed``."""
        changed, gone = list(names), list(deleted)
        for partition, shard in self._shards.items():
            if shard.coordinator is not None:
                shard.coordinator.topics_changed(now_ms, changed, gone)
                self._settle(partition, shard)

    # --- Inspection -------------------------------------------------------------------------------

    @property
    def is_loading(self) -> bool:
        """Whether any partition is being loaded."""
        return any(shard.loaded_at_ms is not None for shard in self._shards.values())

    @property
    def records(self) -> Sequence[StateRecord]:
        """What the journals hold, partition after partition."""
        if self.partitions == 1:
            return self._shard(0).journal.records
        return [r for p in sorted(self._shards) for r in self._shards[p].journal.records]

    @property
    def group_ids(self) -> tuple[str, ...]:
        """The groups that are loaded, partition after partition, in order of creation."""
        return tuple(
            group_id
            for partition in sorted(self._shards)
            if (coordinator := self._shards[partition].coordinator) is not None
            for group_id in coordinator.group_ids
        )

    def metrics(self, now_ms: int) -> tuple[CoordinatorMetric, ...]:
        """What the coordinators measure, all together, as it is now."""
        groups = [
            group
            for partition in sorted(self._shards)
            if (coordinator := self._shards[partition].coordinator) is not None
            for group in coordinator.groups
        ]
        led = [p for p in range(self.partitions) if self._leader_of(p) is not None]
        loading = [p for p in led if p in self._shards and self._shards[p].loaded_at_ms is not None]
        partitions = {"loading": len(loading), "active": len(led) - len(loading), "failed": 0}
        return tuple(self._meter.read(now_ms, groups, partitions))

    def snapshot(self, group_id: str) -> GroupSnapshot | None:
        """A group as a value; ``None`` when there is none, or it is not loaded."""
        shard = self._shards.get(self.partition_of(group_id))
        if shard is None or shard.coordinator is None:
            return None
        return shard.coordinator.snapshot(group_id)


def _with(received: RequestReceived, request: Message) -> RequestReceived:
    """The same, with another request."""
    return RequestReceived(
        received.connection,
        received.correlation,
        received.version,
        received.client,
        request,
        received.node_id,
    )
