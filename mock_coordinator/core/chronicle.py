"""Events of group coordinators, for histories (``kip848_client.history.core``).

``Chronicle`` observes and decides nothing. It derives events from requests and responses (joins,
leaves, heartbeats, commits, partitions that responses assign and that heartbeats stop reporting),
from records (new group epochs and targets), and from timers (fenced members). Without a listener
for events it costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from kip848_client.core.connect import ITSELF
from kip848_client.core.outside import from_outside
from kip848_client.core.types import JOIN_EPOCH, STATIC_LEAVE_EPOCH, TopicId, TopicPartition
from kip848_client.core.wire.messages.connect_group import (
    ConnectGroupHeartbeatRequest,
    ConnectGroupItems,
)
from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kip848_client.core.wire.messages.offset_commit import OffsetCommitRequest
from kip848_client.core.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from kip848_client.error_codes import ErrorCode, error_name
from kip848_client.history.core import COORDINATOR, HistoryEvent
from mock_coordinator.core.groups.records.state_records import (
    GroupEpochMetadata,
    StateRecord,
    TargetAssignmentMember,
    TargetAssignmentMetadata,
)
from mock_coordinator.core.inputs import Input, RequestReceived
from mock_coordinator.core.outputs import Output, Reply

__all__ = ["Chronicle"]

_Member = tuple[str, str]
"""Group and member id."""
_PUTS_OUT: Final = frozenset(
    {
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNRELEASED_INSTANCE_ID,
    }
)
"""A member that gets one of these uses nothing any more."""
_OF_SENDER: Final = frozenset(
    {
        *_PUTS_OUT,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)
"""Errors of a commit that concern its sender."""


class Chronicle:
    """``tell`` gets each event, in order; ``topic_name`` gives the name of a topic, ``None`` for
    one that is gone."""

    def __init__(
        self, tell: Callable[[HistoryEvent], None], topic_name: Callable[[TopicId], str | None]
    ) -> None:
        self._to: Final = from_outside(tell)
        self._topic_name: Final = from_outside(topic_name)
        self._using: Final[dict[_Member, set[TopicPartition]]] = {}
        """What members may be working on, as far as was said."""

    # -- requests ----------------------------------------------------------------------------

    def observe(self, now_ms: int, event: Input, outputs: Iterable[Output]) -> None:
        """One step of the brokers: its input, and what came out."""
        if not isinstance(event, RequestReceived):
            return
        request: Any = event.request
        look = _OF_REQUESTS.get(type(request))
        if look is None or not request.group_id:
            return
        for output in outputs:
            if (
                isinstance(output, Reply)
                and output.connection == event.connection
                and output.correlation == event.correlation
            ):
                look(self, now_ms, event, output.response)

    def heartbeat(self, now_ms: int, event: RequestReceived, response: Any) -> None:
        """A heartbeat was answered."""
        request: Any = event.request
        member = (request.group_id, response.member_id or request.member_id)
        said: dict[str, Any] = {
            "instance_id": request.instance_id,
            "client_id": event.client.client_id,
            "member_epoch": response.member_epoch,
        }
        if response.error_code:
            cause = error_name(response.error_code)
            said["member_epoch"] = request.member_epoch
            self._tell(now_ms, member, "heartbeat_refused", cause=cause, **said)
            if response.error_code in _PUTS_OUT:
                self._take(now_ms, member, "lost", cause=cause)
        elif request.member_epoch < 0:
            is_static = request.member_epoch == STATIC_LEAVE_EPOCH
            self._tell(now_ms, member, "left", cause="for a while" if is_static else None, **said)
            self._take(now_ms, member, "revoked")
        else:
            if request.member_epoch == JOIN_EPOCH:
                self._tell(now_ms, member, "joined", **said)
            self._tell(now_ms, member, "heartbeat", **said)
            self._move(now_ms, member, request, response)

    def _move(self, now_ms: int, member: _Member, request: Any, response: Any) -> None:
        """What the member has given up, and what it is given."""
        is_worker = isinstance(request, ConnectGroupHeartbeatRequest)
        reported: Any = request.owned if is_worker else request.topic_partitions
        given = response.assignment
        if reported is None and given is None:
            return
        epoch, using = response.member_epoch, self._using.get(member, set())
        if reported is not None:
            kept = self._named(reported)
            self._tell_of(now_ms, member, "revoked", using - kept, member_epoch=epoch)
            using = using & kept
        if given is not None:
            new = self._named(given.items if is_worker else given.topic_partitions)
            self._tell_of(now_ms, member, "assigned", new - using, member_epoch=epoch)
            using = using | new
        if using:
            self._using[member] = using
        else:
            self._using.pop(member, None)

    def commit(self, now_ms: int, event: RequestReceived, response: Any) -> None:
        """A commit was answered."""
        request: Any = event.request
        if not request.member_id:
            return
        found: dict[int, set[TopicPartition]] = {}
        for topic in response.topics:
            name: str | None = topic.name or self._topic_name(TopicId(topic.topic_id))
            if not name:
                continue  # it was deleted meanwhile
            for row in topic.partitions:
                tp = TopicPartition(name, row.partition_index)
                found.setdefault(row.error_code, set()).add(tp)
        is_pending = isinstance(request, TxnOffsetCommitRequest)
        member = (request.group_id, request.member_id)
        said = {
            "member_epoch": request.generation_id_or_member_epoch,
            "client_id": event.client.client_id,
        }
        for code in sorted(found):
            if code in _OF_SENDER:
                cause = error_name(code)
                self._tell_of(now_ms, member, "commit_refused", found[code], cause=cause, **said)
            elif not code and not is_pending:
                self._tell_of(now_ms, member, "committed", found[code], **said)

    def _named(self, rows: Iterable[Any]) -> set[TopicPartition]:
        found: set[TopicPartition] = set()
        for row in rows:
            if isinstance(row, ConnectGroupItems):
                tasks = [ITSELF, *row.tasks] if row.runs_connector else row.tasks
                found |= {TopicPartition(row.connector, task) for task in tasks}
            else:
                name = self._topic_name(TopicId(row.topic_id))
                if name is not None:
                    found |= {TopicPartition(name, each) for each in row.partitions}
        return found

    # -- without requests --------------------------------------------------------------------

    def wrote(self, now_ms: int, records: Sequence[StateRecord]) -> None:
        """A coordinator has written these."""
        targets = sum(isinstance(record, TargetAssignmentMember) for record in records)
        for record in records:
            if isinstance(record, GroupEpochMetadata) and record.value is not None:
                group = (record.group_id, None)
                self._tell(now_ms, group, "group_epoch", group_epoch=record.value.epoch)
            elif isinstance(record, TargetAssignmentMetadata) and record.value is not None:
                group, epoch = (record.group_id, None), record.value.assignment_epoch
                self._tell(now_ms, group, "target", group_epoch=epoch, count=targets)

    def expired(self, now_ms: int, group_id: str, member_id: str, why: str) -> None:
        """A coordinator has put a member out, because a time was over."""
        self._tell(now_ms, (group_id, member_id), "fenced", cause=why)
        self._take(now_ms, (group_id, member_id), "lost", cause=why)

    # -- telling -----------------------------------------------------------------------------

    def _take(self, now_ms: int, member: _Member, kind: str, cause: str | None = None) -> None:
        self._tell_of(now_ms, member, kind, self._using.pop(member, set()), cause=cause)

    def _tell_of(
        self, now_ms: int, member: _Member, kind: str, which: set[TopicPartition], **said: Any
    ) -> None:
        if which:
            self._tell(now_ms, member, kind, partitions=tuple(sorted(which)), **said)

    def _tell(self, now_ms: int, who: tuple[str, str | None], kind: str, **said: Any) -> None:
        group_id, member_id = who
        self._to(
            HistoryEvent(
                role=COORDINATOR,
                time_ms=now_ms,
                kind=kind,
                group_id=group_id,
                member_id=member_id,
                **said,
            )
        )


_Look = Callable[[Chronicle, int, RequestReceived, Any], None]
_OF_REQUESTS: Final[dict[type, _Look]] = {
    ConnectGroupHeartbeatRequest: Chronicle.heartbeat,
    ConsumerGroupHeartbeatRequest: Chronicle.heartbeat,
    OffsetCommitRequest: Chronicle.commit,
    TxnOffsetCommitRequest: Chronicle.commit,
}
