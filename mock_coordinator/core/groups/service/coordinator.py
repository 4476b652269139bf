"""The group coordinator: requests and the time in, responses and records out.

Theory of operation
===================

``handle`` looks up the decision function for a request, which reads the state and returns records,
timers and a response. Only then are the records written to the journal and applied. They are enough
to rebuild the groups: a broker that takes over the group's partition of ``__consumer_offsets``
calls ``GroupCoordinator.replay``.

``run_due`` does what happens without a request: it ends sessions and rebalance timeouts, resolves
regexes (requested by a heartbeat, never done inside it), and removes expired offsets and dead
groups. The driver calls it at ``deadline_ms``.

Groups of the classic protocol are here, too (``classic``). The in-memory state of their waiting
members is set last, after the records.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kip848_client.core.types import JOIN_EPOCH
from kip848_client.core.wire.messages.classic_group import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from kip848_client.core.wire.messages.client_assignors import (
    ConsumerGroupInstallAssignmentRequest,
    ConsumerGroupInstallAssignmentResponse,
    ConsumerGroupPrepareAssignmentRequest,
    ConsumerGroupPrepareAssignmentResponse,
)
from kip848_client.core.wire.messages.connect_group import (
    ConnectGroupDescribeRequest,
    ConnectGroupHeartbeatRequest,
    ConnectGroupHeartbeatResponse,
    ConnectGroupInstallAssignmentRequest,
    ConnectGroupInstallAssignmentResponse,
    ConnectGroupPrepareAssignmentRequest,
    ConnectGroupPrepareAssignmentResponse,
)
from kip848_client.core.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kip848_client.core.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kip848_client.core.wire.messages.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from kip848_client.core.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kip848_client.core.wire.messages.offset_delete import OffsetDeleteRequest
from kip848_client.core.wire.messages.offset_fetch import OffsetFetchRequest
from kip848_client.core.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.assignment.resolution import decide_resolution
from mock_coordinator.core.groups.classic.expiry import (
    CLASSIC_TIMERS,
    decide_loaded,
    decide_timer,
)
from mock_coordinator.core.groups.client_assignors.computation import Computation
from mock_coordinator.core.groups.client_assignors.install import OF_PARTITIONS
from mock_coordinator.core.groups.client_assignors.rounds import Rounds
from mock_coordinator.core.groups.connect.computing import OF_ITEMS
from mock_coordinator.core.groups.connect.fencing import fence_workers
from mock_coordinator.core.groups.connect.heartbeat import (
    decide_connect_heartbeat,
    note_confirmation,
)
from mock_coordinator.core.groups.consumer.heartbeat import decide_heartbeat
from mock_coordinator.core.groups.consumer.leave import fence
from mock_coordinator.core.groups.migration.upgrade import UpgradeRefused
from mock_coordinator.core.groups.offsets.administration import (
    decide_cleanup,
    decide_delete_groups,
    decide_offset_delete,
    forget_topics,
)
from mock_coordinator.core.groups.offsets.commit import decide_commit, too_large
from mock_coordinator.core.groups.offsets.fetch import fetch_offsets
from mock_coordinator.core.groups.offsets.transactional import decide_txn_commit
from mock_coordinator.core.groups.records.journal import BatchTooLargeError, Journal, MemoryJournal
from mock_coordinator.core.groups.records.member_state import MemberState
from mock_coordinator.core.groups.records.state_records import (
    NOTHING_OWNED,
    StateRecord,
    TransactionEnd,
)
from mock_coordinator.core.groups.service import classic_requests
from mock_coordinator.core.groups.service.connect_description import describe_connect_groups
from mock_coordinator.core.groups.service.describe import (
    describe_classic_groups,
    describe_consumer_groups,
)
from mock_coordinator.core.groups.service.listing import list_groups
from mock_coordinator.core.groups.service.snapshot import GroupSnapshot, take_snapshot
from mock_coordinator.core.groups.state.connect_group import ConnectGroup
from mock_coordinator.core.groups.state.consumer_group import ConsumerGroup
from mock_coordinator.core.groups.state.environment import (
    Decision,
    Environment,
    Resolution,
    TimerChange,
    configured_assignors,
)
from mock_coordinator.core.groups.state.groups_state import Group, GroupsState
from mock_coordinator.core.groups.state.reconciled_group import ReconciledGroup
from mock_coordinator.core.groups.state.timers import Timer, TimerKind, Timers
from mock_coordinator.core.inputs import ClientInfo, RequestReceived
from mock_coordinator.core.profile import Profile
from mock_coordinator.core.refused import Refused
from mock_coordinator.core.settings.broker_config import BrokerConfig
from mock_coordinator.core.settings.topic_config import topic_integer
from mock_coordinator.core.topics.catalog import Catalog, Topic
from mock_coordinator.core.topics.topic_names import OFFSETS_TOPIC

if TYPE_CHECKING:
    from kip848_client.core.wire._fields import Message

__all__ = ["GroupCoordinator"]

R = TypeVar("R")
C = TypeVar("C", OffsetCommitResponse, TxnOffsetCommitResponse)

_Handler = Callable[[int, RequestReceived, Any], "Message"]
_Read = Callable[[Environment, RequestReceived, Any], "Message"]
_Decide = Callable[[Environment, int, RequestReceived, Any], Decision[Any]]

_READS: Final[Mapping[type, _Read]] = {
    ConnectGroupDescribeRequest: describe_connect_groups,
    ConsumerGroupDescribeRequest: describe_consumer_groups,
    DescribeGroupsRequest: describe_classic_groups,
    ListGroupsRequest: list_groups,
    OffsetFetchRequest: fetch_offsets,
}
"""Requests that change nothing."""

_DECISIONS: Final[Mapping[type, _Decide]] = {
    DeleteGroupsRequest: decide_delete_groups,
    HeartbeatRequest: classic_requests.heartbeat,
    JoinGroupRequest: classic_requests.join_group,
    LeaveGroupRequest: classic_requests.leave_group,
    OffsetDeleteRequest: decide_offset_delete,
    SyncGroupRequest: classic_requests.sync_group,
}
"""Requests whose decision is all there is to them."""

_CLEANUP: Final = Timer(TimerKind.CLEANUP)
_MEMBER_TIMERS: Final = (TimerKind.SESSION, TimerKind.MEMBER_JOIN, TimerKind.MEMBER_SYNC)
"""Timers of consumer groups' members that end the membership, at whatever epoch."""


class GroupCoordinator:
    """All groups of one broker.

    ``catalog`` is read, never changed. ``random_id`` gives base64 of a random UUID, for the ids of
    members. ``now_ms`` is when the broker starts. ``journal`` is where records are written; without
    one they are kept in memory.
    Raises ``ConfigError`` for an assignor that is not bundled with Kafka.
    """

    def __init__(
        self,
        profile: Profile,
        config: BrokerConfig,
        catalog: Catalog,
        random_id: Callable[[], str],
        now_ms: int = 0,
        journal: Journal | None = None,
    ) -> None:
        self._journal: Final[Journal] = MemoryJournal() if journal is None else journal
        self._env: Final = Environment(
            profile=profile,
            config=config,
            catalog=catalog,
            state=GroupsState(profile),
            timers=Timers(),
            assignors=configured_assignors(config),
            random_id=random_id,
        )
        self.may_describe: Callable[[ClientInfo, str], bool] | None = None
        """Whether a client may know of a topic; ``None`` where everybody may. For regexes."""
        self.wrote: Callable[[int, Sequence[StateRecord]], None] | None = None
        """Hears of the records of each decision, after they were written."""
        self.expired: Callable[[int, str, str, str], None] | None = None
        """Called for each member that is fenced because of a timeout: time, group, member, why."""
        self._resolving: dict[str, Resolution] = {}
        self._rounds: Final = Rounds(self._env)
        self._replies: list[tuple[RequestReceived, Message]] = []
        self._handlers: Final[dict[type, _Handler]] = {
            ConsumerGroupHeartbeatRequest: self._heartbeat,
            OffsetCommitRequest: partial(self._commit, decide_commit),
            TxnOffsetCommitRequest: partial(self._commit, decide_txn_commit),
            ConsumerGroupPrepareAssignmentRequest: partial(
                self._prepare, OF_PARTITIONS, ConsumerGroupPrepareAssignmentResponse
            ),
            ConsumerGroupInstallAssignmentRequest: partial(
                self._install, OF_PARTITIONS, ConsumerGroupInstallAssignmentResponse
            ),
            ConnectGroupHeartbeatRequest: self._connect_heartbeat,
            ConnectGroupPrepareAssignmentRequest: partial(
                self._prepare, OF_ITEMS, ConnectGroupPrepareAssignmentResponse
            ),
            ConnectGroupInstallAssignmentRequest: partial(
                self._install, OF_ITEMS, ConnectGroupInstallAssignmentResponse
            ),
        }
        self._arm_cleanup(now_ms)

    @classmethod
    def replay(
        cls,
        profile: Profile,
        config: BrokerConfig,
        catalog: Catalog,
        random_id: Callable[[], str],
        records: Iterable[StateRecord],
        now_ms: int,
        journal: Journal | None = None,
    ) -> GroupCoordinator:
        """A coordinator after a fail-over: with the state of the records. Sessions start over, and
        members that are revoking partitions have their full rebalance timeout again.

        ``journal`` is where it goes on writing; it holds ``records`` already. Without one a new
        journal in memory begins with them.
        """
        kept = list(records)
        journal = MemoryJournal(kept) if journal is None else journal
        coordinator = cls(profile, config, catalog, random_id, now_ms, journal)
        coordinator._apply(kept)
        for group in coordinator._env.state.groups.values():
            if isinstance(group, ReconciledGroup):
                coordinator._restart_timers(group, now_ms)
            else:
                coordinator._perform(now_ms, decide_loaded(coordinator._env, now_ms, group))
        return coordinator

    # --- Requests ---------------------------------------------------------------------------------

    def handle(self, now_ms: int, received: RequestReceived) -> Message | None:
        """Answer one request; its records are applied when this returns.

        Refusals are answers, too. ``None`` means that the request waits (for the other members of
        its group, say): its answer comes out of ``take_replies`` after a later call of ``handle``
        or ``run_due``. Raises ``KeyError`` for a request that is not the coordinator's.
        """
        request: Any = received.request
        kind = type(received.request)
        if kind in _READS:
            return _READS[kind](self._env, received, request)
        if kind in _DECISIONS:
            decision = _DECISIONS[kind](self._env, now_ms, received, request)
            answer: Message | None = self._perform(now_ms, decision)
            return answer
        return self._handlers[kind](now_ms, received, request)

    def take_replies(self) -> tuple[tuple[RequestReceived, Message], ...]:
        """The answers of requests that have waited long enough, in order; each is given once."""
        if not self._replies:
            return ()
        replies, self._replies = tuple(self._replies), []
        return replies

    def _heartbeat(
        self, now_ms: int, received: RequestReceived, request: ConsumerGroupHeartbeatRequest
    ) -> ConsumerGroupHeartbeatResponse:
        try:
            decision = decide_heartbeat(
                self._env, now_ms, received.client, received.version, request
            )
        except Refused as err:
            if isinstance(err, UpgradeRefused):
                self._perform(now_ms, err.anyway)
            return ConsumerGroupHeartbeatResponse(error_code=err.code, error_message=err.message)
        try:
            limit = self._max_batch_bytes() if decision.records else None
            response = self._perform(now_ms, decision, limit)
        except BatchTooLargeError:
            return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
        if request.member_epoch == JOIN_EPOCH:
            self._rounds.rejoined(request.group_id, response.member_id or "")
        self._rounds.settle(now_ms, request.group_id)
        response.should_compute_assignment = self._rounds.flag(
            now_ms, request.group_id, request.member_id
        )
        return response

    def _connect_heartbeat(
        self, now_ms: int, received: RequestReceived, request: ConnectGroupHeartbeatRequest
    ) -> ConnectGroupHeartbeatResponse:
        group_id, member_id = request.group_id, request.member_id
        group = self._env.state.groups.get(group_id)
        known = group.members.get(member_id) if isinstance(group, ConnectGroup) else None
        try:
            decision = decide_connect_heartbeat(self._env, now_ms, received.client, request)
        except Refused as err:
            return ConnectGroupHeartbeatResponse(error_code=err.code, error_message=err.message)
        response = self._perform(now_ms, decision)
        group = self._env.state.groups.get(group_id)
        member = group.members.get(member_id) if isinstance(group, ConnectGroup) else None
        if isinstance(group, ConnectGroup) and member is not None:
            before = NOTHING_OWNED if known is None else known.assigned
            note_confirmation(group, request, before, member)
        if request.member_epoch == JOIN_EPOCH:
            self._rounds.rejoined(group_id, member_id)
        self._rounds.settle(now_ms, group_id)
        response.should_compute_assignment = self._rounds.flag(now_ms, group_id, member_id)
        return response

    def _prepare(
        self,
        how: Computation[Any, Any, Any, Any],
        refused: Callable[..., Message],
        _now_ms: int,
        _received: RequestReceived,
        request: Any,
    ) -> Message:
        """Give the chosen member of a group what it needs to compute the assignment."""
        try:
            answer: Message = self._rounds.prepare(how, request)
        except Refused as err:
            return refused(error_code=err.code, error_message=err.message)
        return answer

    def _install(
        self,
        how: Computation[Any, Any, Any, Any],
        answer: Callable[..., Message],
        now_ms: int,
        _received: RequestReceived,
        request: Any,
    ) -> Message:
        """Take what the chosen member computed."""
        try:
            records = self._rounds.install(now_ms, how, request)
        except Refused as err:
            response = answer(error_code=err.code, error_message=err.message)
        else:
            self._perform(now_ms, Decision(None, records))
            response = answer()
        self._rounds.settle(now_ms, request.group_id)
        return response

    def _commit(
        self,
        decide: Callable[[Environment, int, int, Any], Decision[C]],
        now_ms: int,
        received: RequestReceived,
        request: Any,
    ) -> Message:
        """Store all of the offsets, or none when their records do not fit into one batch."""
        decision = decide(self._env, now_ms, received.version, request)
        try:
            return self._perform(now_ms, decision, self._max_batch_bytes())
        except BatchTooLargeError:
            return too_large(decision.response)

    def _max_batch_bytes(self) -> int:
        topic = self._env.catalog.topic(OFFSETS_TOPIC)
        if topic is None:
            return self._env.config.integer("message.max.bytes")
        return topic_integer(self._env.config, topic, "max.message.bytes")

    # --- Transactions -----------------------------------------------------------------------------

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether the producer has offsets pending: its transaction needs no verification."""
        return self._env.state.pending.is_open(producer_id, producer_epoch)

    def complete_transaction(self, now_ms: int, end: TransactionEnd) -> None:
        """A marker has come: what is pending under the producer id is committed, or forgotten."""
        self._perform(now_ms, Decision(None, [end]))

    # --- Time and topics --------------------------------------------------------------------------

    @property
    def deadline_ms(self) -> int | None:
        """When ``run_due`` has something to do."""
        return self._env.timers.deadline_ms

    def run_due(self, now_ms: int) -> None:
        """Do everything whose time has come, in the order in which it became due."""
        while (due := self._env.timers.pop_due(now_ms)) is not None:
            timer, payload = due
            if timer.kind in _MEMBER_TIMERS:
                self._expire(now_ms, timer, None)
            elif timer.kind is TimerKind.REBALANCE:
                self._expire(now_ms, timer, payload)
            elif timer.kind is TimerKind.COMPUTATION:
                self._rounds.expired(now_ms, timer.group_id)
            elif timer.kind is TimerKind.COMPANY:
                self._rounds.gathered(now_ms, timer.group_id)
            elif timer.kind is TimerKind.REGEX:
                self._resolve(now_ms, timer.group_id)
            elif timer.kind in CLASSIC_TIMERS:
                self._perform(now_ms, decide_timer(self._env, now_ms, timer, payload))
            else:
                self._append(now_ms, decide_cleanup(self._env, now_ms))
                self._arm_cleanup(now_ms)

    def _resolve(self, now_ms: int, group_id: str) -> None:
        """Match a group's regexes with the topics that the member may see that asked for it."""
        asked = self._resolving.pop(group_id)
        may_describe = self.may_describe
        is_visible = None if may_describe is None else partial(may_describe, asked.client)
        found = decide_resolution(self._env, now_ms, group_id, asked.regexes, is_visible)
        self._perform(now_ms, found)

    def topics_changed(
        self, now_ms: int, names: Iterable[str], deleted: Iterable[Topic | str] = ()
    ) -> None:
        """Tell the coordinator that the catalog changed.

        Groups that subscribe to one of the topics look at them again at their next heartbeat; the
        offsets of deleted topics are removed now.
        """
        changed = list(names)
        for group in self._env.state.groups.values():
            if isinstance(group, ConsumerGroup) and any(map(group.is_subscribed_to, changed)):
                group.metadata_fresh = False
        gone = [topic if isinstance(topic, str) else topic.name for topic in deleted]
        if gone:
            self._append(now_ms, forget_topics(self._env, gone))

    def _expire(self, now_ms: int, timer: Timer, epoch: int | None) -> None:
        """Fence a member whose time is up, if it is still there (and at the epoch of its timer)."""
        group = self._env.state.groups.get(timer.group_id)
        if not isinstance(group, ReconciledGroup):
            return
        member = group.members.get(timer.member_id)
        if member is None or epoch not in (None, member.epoch):
            return
        if isinstance(group, ConnectGroup):
            self._perform(now_ms, fence_workers(self._env, now_ms, group, (member,)))
        else:
            # a downgrade that fails keeps the member where it is, as in Kafka
            with contextlib.suppress(Refused):
                self._perform(now_ms, fence(self._env, now_ms, group, (member,)))
        if self.expired is not None and timer.member_id not in group.members:
            self.expired(now_ms, timer.group_id, timer.member_id, f"{timer.kind.value} timeout")

    # --- Inspection -------------------------------------------------------------------------------

    @property
    def records(self) -> Sequence[StateRecord]:
        """What the journal holds: all that a coordinator which takes over would know."""
        return self._journal.records

    @property
    def group_ids(self) -> tuple[str, ...]:
        """The groups of all types, in order of creation."""
        return tuple(self._env.state.groups)

    @property
    def groups(self) -> Sequence[Group]:
        """The groups themselves. Look, do not touch."""
        return tuple(self._env.state.groups.values())

    def snapshot(self, group_id: str) -> GroupSnapshot | None:
        """A group as a value; ``None`` when there is none."""
        return take_snapshot(self._env, group_id)

    # --- Changes ----------------------------------------------------------------------------------

    def _perform(self, now_ms: int, decision: Decision[R], max_bytes: int | None = None) -> R:
        """Make a decision happen. Raises ``BatchTooLargeError`` when it is larger than that."""
        self._append(now_ms, decision.records, max_bytes)
        self._change_timers(decision.timers)
        if decision.metadata_checked is not None:
            group = self._env.state.groups.get(decision.metadata_checked)
            if isinstance(group, ConsumerGroup):
                group.metadata_fresh = True
        if decision.live is not None:
            self._env.state.set_live(*decision.live)
        self._replies += decision.replies
        if decision.forget is not None:
            self._env.state.forget(decision.forget)
        if decision.simple_group is not None:
            self._env.state.touch_simple_group(decision.simple_group)
        if decision.resolve is not None:
            group_id = decision.resolve.group_id
            self._resolving[group_id] = decision.resolve
            self._env.timers.arm(Timer(TimerKind.REGEX, group_id), now_ms)
        return decision.response

    def _append(
        self, now_ms: int, records: Sequence[StateRecord], max_bytes: int | None = None
    ) -> None:
        """Write the records of one decision as one batch, and make them true."""
        if records:
            self._journal.append(now_ms, records, max_bytes)
            self._env.state.forgotten.clear()
            self._apply(records)
            if self.wrote is not None:
                self.wrote(now_ms, records)
            for group_id in dict.fromkeys(record.group_id for record in records):
                self._rounds.settle(now_ms, group_id)

    def _apply(self, records: Iterable[StateRecord]) -> None:
        apply = self._env.state.apply
        for record in records:
            apply(record)

    def _change_timers(self, changes: Iterable[TimerChange]) -> None:
        timers = self._env.timers
        for change in changes:
            if change.deadline_ms is None:
                timers.cancel(change.timer)
            else:
                timers.arm(change.timer, change.deadline_ms, change.payload)

    def _restart_timers(self, group: ReconciledGroup, now_ms: int) -> None:
        timers, group_id = self._env.timers, group.group_id
        session_ms = self._env.config.consumer_session_timeout_ms(group_id)
        for member_id, member in group.members.items():
            timers.arm(Timer(TimerKind.SESSION, group_id, member_id), now_ms + session_ms)
            if member.state is MemberState.UNREVOKED_PARTITIONS:
                timers.arm(
                    Timer(TimerKind.REBALANCE, group_id, member_id),
                    now_ms + max(member.subscription.rebalance_timeout_ms, 0),
                    member.epoch,
                )

    def _arm_cleanup(self, now_ms: int) -> None:
        interval_ms = self._env.config.integer("offsets.retention.check.interval.ms")
        self._env.timers.arm(_CLEANUP, now_ms + interval_ms)
