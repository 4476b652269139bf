"""Checks that no two members of a group use the same partition, connector or task.

Theory of operation
===================

What a member may be using follows from requests and responses. From the response that gives it a
partition, it may use it. It may also use what it has to give up, until its own heartbeat reports
that gone (KIP-848, reconciliation) or it joins again. ``OwnershipChecker`` observes the
conversation and reports these violations:

* two members of a group may be using the same partition: a wrong coordinator, or in a classic group
  a wrong assignor of its leader;
* a member reports a partition that it was never given, or has given up: a wrong client;
* in a Connect group, a worker gets a task while another one may be using a task of another
  generation of the same connector;
* a member commits an offset of a partition that another one may be using: a zombie, or a client
  that commits after it has given the partition up. Kafka accepts that, and the offset of the new
  owner is lost.

A member that has left the group may still be at work. That cannot be observed, so it is dropped
when another member is given what it had, and whenever the number of known members has doubled,
because most that died are never heard of again. Violations have the conversation that led to them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from kip848_client.core.connect import (
    ITSELF,
    connector_of,
    item_name,
    parts_of,
)
from kip848_client.core.types import TopicId
from kip848_client.core.wire.messages.classic_group import (
    JoinGroupRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from kip848_client.core.wire.messages.connect_group import (
    ConnectGroupHeartbeatRequest,
    ConnectGroupHeartbeatResponse,
    ConnectGroupItems,
)
from kip848_client.core.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kip848_client.core.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kip848_client.error_codes import ErrorCode, error_name
from kip848_client.errors import WireError
from mock_coordinator.core.groups.records.consumer_protocol import (
    TopicPartitions,
    read_assignment,
    read_subscription,
)
from mock_coordinator.core.groups.service.snapshot import GroupSnapshot
from mock_coordinator.core.inputs import ConnectionLost, Input, RequestReceived
from mock_coordinator.core.outputs import Output, Reply
from mock_coordinator.core.topics.catalog import Catalog

__all__ = ["OwnershipChecker", "OwnershipViolation"]

_TIMELINE: Final = 1000
_LONG: Final = 100
"""A heartbeat that names more than this is not kept, and its line in the timeline is cut short."""
_FEW_MEMBERS: Final = 1000
"""How many members are kept before the dead ones are looked for."""
_VIOLATIONS: Final = 100
"""How many are described in full: one may be a thousand lines, and a wrong client makes many."""

_WATCHED: Final = (
    ConsumerGroupHeartbeatRequest,
    ConnectGroupHeartbeatRequest,
    OffsetCommitRequest,
    JoinGroupRequest,
    SyncGroupRequest,
)
_Partition = tuple[TopicId, int]
_Said = tuple[int, Any, Any]
"""(when, request, response)"""


class OwnershipViolation(AssertionError):
    """Two members of a group may have used the same partition, or one used a partition that was not
    assigned to it."""


@dataclass(slots=True)
class _Group:
    """What the members of one group may be using."""

    using: dict[str, set[_Partition]] = field(default_factory=dict)
    users: dict[_Partition, set[str]] = field(default_factory=dict)
    of_workers: bool = False
    """Whether it is a Connect group, whose partitions are items."""

    def put(self, member_id: str, partitions: set[_Partition]) -> None:
        """The member may be using exactly these."""
        for gone in sorted(self.using.get(member_id, set()) - partitions):
            users = self.users[gone]
            users.discard(member_id)
            if not users:
                del self.users[gone]
        for each in sorted(partitions):
            self.users.setdefault(each, set()).add(member_id)
        if partitions:
            self.using[member_id] = partitions
        else:
            self.using.pop(member_id, None)


class OwnershipChecker:
    """Reads along with the requests and replies of a broker.

    ``snapshot`` gives a group as its coordinator has it; it is asked only when something looks
    wrong. ``violations`` are the texts of what was found first; ``check`` counts
    the others, too.
    """

    def __init__(
        self, catalog: Callable[[], Catalog], snapshot: Callable[[str], GroupSnapshot | None]
    ) -> None:
        self._catalog: Final = catalog
        self._snapshot: Final = snapshot
        self._groups: Final[dict[str, _Group]] = {}
        self._asked: Final[dict[int, dict[int, Any]]] = {}
        self._members = 0
        self._sweep_at = _FEW_MEMBERS
        self._timeline: Final = deque[tuple[str, str | _Said]](maxlen=_TIMELINE)
        self.violations: Final[list[str]] = []
        self._untold = 0

    def check(self) -> None:
        """Raise ``OwnershipViolation`` with the first violation and the number of others."""
        if self.violations:
            more = len(self.violations) - 1 + self._untold
            rest = f"\n({more} more)" if more else ""
            raise OwnershipViolation(self.violations[0] + rest)

    def using(self, group_id: str) -> dict[str, set[tuple[str, int]]]:
        """Member -> the topics and partitions that it may be using, or the connectors and tasks
        (-1 is the connector itself)."""
        group = self._groups.get(group_id, _Group())
        name = _connector if group.of_workers else self._topic
        return {
            member_id: {(name(topic_id), partition) for topic_id, partition in partitions}
            for member_id, partitions in group.using.items()
        }

    def observe(self, now_ms: int, event: Input, outputs: Iterable[Output]) -> None:
        """One step of the core: its input, and what came out."""
        if isinstance(event, RequestReceived) and isinstance(event.request, _WATCHED):
            self._asked.setdefault(event.connection, {})[event.correlation] = event.request
            if isinstance(event.request, JoinGroupRequest):
                self._classic_join(event.request)
        if isinstance(event, ConnectionLost):
            self._asked.pop(event.connection, None)
        if not self._asked:
            return
        for output in outputs:
            if isinstance(output, Reply) and output.connection in self._asked:
                waiting = self._asked[output.connection]
                request = waiting.pop(output.correlation, None)
                if not waiting:
                    del self._asked[output.connection]
                if request is not None:
                    self._answered(now_ms, request, output.response)

    def restarted(self) -> None:
        """All connections are gone with the brokers. What members use is not: they come back."""
        self._asked.clear()

    def _answered(self, now_ms: int, request: Any, response: Any) -> None:
        group = self._groups.setdefault(request.group_id, _Group())
        before = len(group.using)
        said = (now_ms, request, response)
        self._timeline.append((request.group_id, said if _may_stay(request) else self._line(*said)))
        if isinstance(response, ConsumerGroupHeartbeatResponse):
            self._heartbeat(group, request, response)
        elif isinstance(response, ConnectGroupHeartbeatResponse):
            self._connect_heartbeat(group, request, response)
        elif isinstance(response, SyncGroupResponse):
            self._classic_sync(group, request, response)
        elif isinstance(response, OffsetCommitResponse):
            self._commit(group, request, response)
        if not group.using:
            self._groups.pop(request.group_id, None)
        self._members += len(group.using) - before
        if self._members > self._sweep_at:
            self._sweep()

    def _sweep(self) -> None:
        """Forget members that died without a word, and groups that have no others. A group whose
        coordinator is loading counts as dead: what its members report next brings them back."""
        for group_id, group in list(self._groups.items()):
            living = self._living(group_id)
            for gone in [each for each in group.using if each not in living]:
                group.put(gone, set())
            if not group.using:
                del self._groups[group_id]
        self._members = sum(len(group.using) for group in self._groups.values())
        self._sweep_at = max(_FEW_MEMBERS, 2 * self._members)

    def _living(self, group_id: str) -> set[str]:
        """The members that the coordinator knows, of either protocol."""
        snapshot = self._snapshot(group_id)
        if snapshot is None:
            return set()
        classic = () if snapshot.classic is None else snapshot.classic.members
        return {*snapshot.members, *classic}

    # --- The consumer protocol --------------------------------------------------------------------

    def _heartbeat(
        self,
        group: _Group,
        request: ConsumerGroupHeartbeatRequest,
        response: ConsumerGroupHeartbeatResponse,
    ) -> None:
        owned, told = request.topic_partitions, response.assignment
        reported = None if owned is None else self._existing(request, owned)
        given = set[_Partition]() if told is None else _rows(told.topic_partitions)
        self._beat(group, request, response, reported, given)

    def _existing(
        self, request: ConsumerGroupHeartbeatRequest, rows: Iterable[Any]
    ) -> set[_Partition]:
        """What a member reports of what there is: a million made-up numbers are one mistake."""
        catalog = self._catalog()
        found: set[_Partition] = set()
        for row in rows:
            topic = catalog.topic_by_id(TopicId(row.topic_id))
            if topic is None:
                continue
            known = {
                (topic.topic_id, each) for each in row.partitions if 0 <= each < topic.partitions
            }
            found |= known
            if len(known) < len(row.partitions):
                more = f"partitions of {topic.name} that do not exist"
                self._object(request.group_id, f"{request.member_id} reports {more}")
        return found

    def _connect_heartbeat(
        self,
        group: _Group,
        request: ConnectGroupHeartbeatRequest,
        response: ConnectGroupHeartbeatResponse,
    ) -> None:
        group.of_workers = True
        owned, told = request.owned, response.assignment
        reported = None if owned is None else parts_of(owned)
        given = set[_Partition]() if told is None else parts_of(told.items)
        self._beat(group, request, response, reported, given)

    def _beat(
        self,
        group: _Group,
        request: ConsumerGroupHeartbeatRequest | ConnectGroupHeartbeatRequest,
        response: ConsumerGroupHeartbeatResponse | ConnectGroupHeartbeatResponse,
        reported: set[_Partition] | None,
        given: set[_Partition],
    ) -> None:
        """What a heartbeat reported as owned, if anything, and what its answer assigned."""
        member_id = response.member_id or request.member_id
        if response.error_code or request.member_epoch < 0:
            if response.error_code in _GIVES_UP or not response.error_code:
                group.put(member_id, set())
            return
        if reported is None and not given:
            return  # nothing new
        using = group.using.get(member_id, set())
        if reported is not None:
            self._report(group, request.group_id, member_id, reported - using)
            using = reported
        self._give(group, request.group_id, member_id, given - using)
        group.put(member_id, using | given)

    def _report(
        self, group: _Group, group_id: str, member_id: str, strange: set[_Partition]
    ) -> None:
        """The member reports partitions that it was not known to have."""
        if not strange:
            return
        snapshot = self._snapshot(group_id)
        member = None if snapshot is None else snapshot.members.get(member_id)
        for topic_id, partition in sorted(strange):
            held = member is not None and (
                partition in member.owned.get(topic_id, {})
                or partition in member.pending_revocation.get(topic_id, {})
            )
            exists = group.of_workers or self._catalog().topic_by_id(topic_id) is not None
            if not held and exists:
                what = f"{member_id} reports that it owns {self._name(group, topic_id, partition)}"
                self._object(group_id, what + ", which it was not assigned or has revoked")

    def _give(self, group: _Group, group_id: str, member_id: str, new: set[_Partition]) -> None:
        """The member may use these from now on."""
        for each in sorted(new):
            name = self._name(group, *each)
            for other in self._other_users(group, group_id, member_id, each):
                what = f"{name} is assigned to {member_id} while {other} may be using it"
                self._object(group_id, what)
            for other_task in _in_the_way(group, each) if group.of_workers else ():
                for other in self._other_users(group, group_id, member_id, other_task):
                    what = f"{name} is assigned to {member_id} while {other} may be using "
                    self._object(group_id, what + self._name(group, *other_task))

    def _other_users(
        self, group: _Group, group_id: str, member_id: str, partition: _Partition
    ) -> list[str]:
        """The other members that may be using it; those that have left the group are
        dropped."""
        others = sorted(group.users.get(partition, set()) - {member_id})
        if not others:
            return []
        living = self._living(group_id)
        for gone in [other for other in others if other not in living]:
            group.put(gone, set())
        return [other for other in others if other in living]

    # --- The classic protocol ---------------------------------------------------------------------

    def _classic_join(self, request: JoinGroupRequest) -> None:
        """A joining member uses the partitions that it reports: none, unless it is cooperative."""
        group = self._groups.get(request.group_id)
        if group is None or not request.member_id or not request.protocols:
            return
        try:
            _, subscription = read_subscription(bytes(request.protocols[0].metadata))
        except WireError:
            return
        kept = self._partitions(subscription.owned_partitions)
        before = len(group.using)
        group.put(request.member_id, kept & group.using.get(request.member_id, set()))
        self._members += len(group.using) - before

    def _classic_sync(
        self, group: _Group, request: SyncGroupRequest, response: SyncGroupResponse
    ) -> None:
        if response.error_code or request.protocol_type not in (None, "consumer"):
            return
        try:
            _, assignment = read_assignment(bytes(response.assignment))
        except WireError:
            return
        given = self._partitions(assignment.assigned_partitions)
        using = group.using.get(request.member_id, set())
        self._give(group, request.group_id, request.member_id, given - using)
        group.put(request.member_id, using | given)

    def _partitions(self, rows: Iterable[TopicPartitions]) -> set[_Partition]:
        catalog = self._catalog()
        return {
            (topic.topic_id, partition)
            for row in rows
            if (topic := catalog.topic(row.topic)) is not None
            for partition in row.partitions
        }

    # --- Commits ----------------------------------------------------------------------------------

    def _commit(
        self, group: _Group, request: OffsetCommitRequest, response: OffsetCommitResponse
    ) -> None:
        if not request.member_id:
            return
        mine = group.using.get(request.member_id, set())
        for topic in response.topics:
            topic_id = self._topic_id(topic)
            if topic_id is None:
                continue
            for row in topic.partitions:
                each = (topic_id, row.partition_index)
                if row.error_code or each in mine:
                    continue
                for other in self._other_users(group, request.group_id, request.member_id, each):
                    where = self._name(group, *each)
                    what = f"{request.member_id} commits {where} while {other} may be using it"
                    self._object(request.group_id, what)

    def _topic_id(self, topic: Any) -> TopicId | None:
        if topic.name:
            known = self._catalog().topic(topic.name)
            return None if known is None else known.topic_id
        return TopicId(topic.topic_id)

    # --- Words ------------------------------------------------------------------------------------

    def _object(self, group_id: str, what: str) -> None:
        if len(self.violations) >= _VIOLATIONS:
            self._untold += 1
            return
        said = [each for group, each in self._timeline if group == group_id]
        lines = [each if isinstance(each, str) else self._line(*each) for each in said]
        self.violations.append(
            "\n".join([f"group {group_id}: {what}; the requests so far:", *lines])
        )

    def _line(self, at_ms: int, request: Any, response: Any) -> str:
        kind = type(request).__name__.removesuffix("Request")
        said = [f"{at_ms} {request.member_id or '(no id)'} {kind}"]
        epoch = getattr(request, "member_epoch", getattr(request, "generation_id", None))
        if epoch is not None:
            said.append(f"epoch {epoch}")
        owned = getattr(request, "topic_partitions", getattr(request, "owned", None))
        if owned is not None:
            said.append(f"owns {self._names(owned)}")
        if getattr(response, "error_code", 0):
            said.append(f"-> {error_name(response.error_code)}")
        elif isinstance(response, ConsumerGroupHeartbeatResponse):
            said.append(f"-> epoch {response.member_epoch}")
            if response.assignment is not None:
                said.append(f"assigned {self._names(response.assignment.topic_partitions)}")
        elif isinstance(response, ConnectGroupHeartbeatResponse):
            said.append(f"-> epoch {response.member_epoch}")
            if response.assignment is not None:
                said.append(f"assigned {self._names(response.assignment.items)}")
        return "  " + " ".join(said)

    def _names(self, rows: Iterable[Any]) -> str:
        parts = [
            _row_of_items(row)
            if isinstance(row, ConnectGroupItems)
            else f"{self._topic(TopicId(row.topic_id))}{_cut(row.partitions)}"
            for row in islice(rows, _LONG)
        ]
        return " ".join(parts) or "nothing"

    def _name(self, group: _Group, topic_id: TopicId, partition: int) -> str:
        if not group.of_workers:
            return f"{self._topic(topic_id)}-{partition}"
        connector, generation = connector_of(topic_id)
        name = item_name(connector, partition)
        return name if generation == ITSELF else f"{name} of generation {generation}"

    def _topic(self, topic_id: TopicId | None) -> str:
        topic = None if topic_id is None else self._catalog().topic_by_id(topic_id)
        return "(deleted)" if topic is None else topic.name


def _rows(rows: Iterable[Any]) -> set[_Partition]:
    return {
        (TopicId(topic.topic_id), partition) for topic in rows for partition in topic.partitions
    }


def _may_stay(request: Any) -> bool:
    """Whether a request is kept as it is, which is quicker than to write a line about it."""
    if isinstance(request, ConsumerGroupHeartbeatRequest):
        named = len(request.subscribed_topic_names or ())
        named += sum(1 + len(row.partitions) for row in request.topic_partitions or ())
    elif isinstance(request, ConnectGroupHeartbeatRequest):
        named = sum(1 + len(row.tasks) for row in request.owned or ())
    else:
        return False
    return named <= _LONG


def _cut(numbers: Sequence[int]) -> str:
    more = f" and {len(numbers) - _LONG} more" if len(numbers) > _LONG else ""
    return f"{list(numbers[:_LONG])}{more}"


def _connector(resource: TopicId) -> str:
    return connector_of(resource)[0]


def _row_of_items(row: ConnectGroupItems) -> str:
    parts = [*([ITSELF] if row.runs_connector else []), *row.tasks[:_LONG]]
    return f"{row.connector}{parts} of generation {row.generation}"


def _in_the_way(group: _Group, given: _Partition) -> list[_Partition]:
    """Tasks in use that must have ended before this one may start: those of other generations of
    its connector."""
    connector, generation = connector_of(given[0])
    if generation == ITSELF:
        return []
    return [
        each
        for each, (name, other) in ((each, connector_of(each[0])) for each in group.users)
        if name == connector and other not in (ITSELF, generation)
    ]


_GIVES_UP: Final = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.UNRELEASED_INSTANCE_ID,
    }
)
"""A member that gets one of these uses nothing any more."""
