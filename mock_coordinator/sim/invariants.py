"""What must hold, whatever the network and the processes do: one class an invariant.

What the protocol guarantees, and what it does not
--------------------------------------------------
A coordinator cannot stop a process that it cannot reach. A member that is cut off for longer than
its session timeout is removed, its partitions go to others, and until it hears of that it believes
to own them: *lawfully*. The guarantee is about leases. A member has a *lease* while the coordinator
has it in the group with a positive epoch. Then:

- ``SoleHolder``: no partition is held (assigned, or still to be given up) by two members in the
  coordinator's records.
- ``Lease``: all that the application of a member with a lease has been given and has not yet
  given back is held for it by the coordinator. With the first: no partition is ever in the hands
  of two applications whose members have a lease.
- ``Deliveries``: a member hands out records only of such partitions, and never after it learnt that
  it is out of the group; no record is skipped.

The protocol leans on TCP for one more thing: heartbeats carry no number. When a request arrives
after a younger one of the same member (see ``network``), the coordinator may take an old
acknowledgement for a new one. Neither side can do anything about that, so a member for which such a
request was acted on is exempt until it gets its assignment again, or is out of the group.

Commits carry no number either. A connection may end with a commit on its way: its sender cannot
know whether that one will still be read, nor when, and goes on with the next one on another
connection. If the older one is read last, it is stored, and records are read once more. Java's
consumer does the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from kip848_client.core.member import MemberState
from kip848_client.core.offsets import CommittableOffset
from kip848_client.core.types import STATIC_LEAVE_EPOCH, GroupId, TopicIdPartition, TopicPartition
from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from mock_coordinator.core.groups.records.state_records import (
    CurrentMemberAssignment,
    GroupEpochMetadata,
    OffsetCommit,
    StateRecord,
    TargetAssignmentMetadata,
)
from mock_coordinator.sim.recorded_groups import RecordedGroups
from mock_coordinator.sim.trace import shown_partitions

__all__ = [
    "AssignmentEpochs",
    "Commits",
    "Deliveries",
    "EpochsRise",
    "Flushed",
    "Lease",
    "MemberView",
    "Rates",
    "Responses",
    "SoleHolder",
    "Violation",
]


class Violation(Exception):
    """An invariant does not hold. ``invariant`` is the name of its class."""

    def __init__(self, invariant: type, what: str) -> None:
        super().__init__(f"{invariant.__name__}: {what}")
        self.invariant = invariant.__name__


class MemberView(Protocol):
    """What the checkers see of a process that is a member."""

    @property
    def name(self) -> str:
        """For messages: which process, and its how-manieth life."""
        ...

    @property
    def group_id(self) -> GroupId:
        """The group it belongs to."""
        ...

    @property
    def member_id(self) -> str:
        """The id of this life."""
        ...

    @property
    def state(self) -> MemberState:
        """Where its core says it is."""
        ...

    @property
    def last_commit_ms(self) -> int:
        """When it had a commit under way last."""
        ...

    @property
    def held(self) -> frozenset[TopicIdPartition]:
        """What its application has been given and has not given back; nothing when it is dead."""
        ...


class SoleHolder:
    """No partition is held by two members of a group in the coordinator's records."""

    def __init__(self) -> None:
        self._holders: dict[tuple[str, TopicIdPartition], str] = {}
        self._held: dict[tuple[str, str], frozenset[TopicIdPartition]] = {}

    def note(self, groups: RecordedGroups, record: StateRecord) -> None:
        """Look at one record, after it was recorded."""
        if not isinstance(record, CurrentMemberAssignment):
            return
        group_id, member_id = record.group_id, record.member_id
        member = groups.member(group_id, member_id)
        now = frozenset[TopicIdPartition]() if member is None else member.held
        before = self._held.get((group_id, member_id), frozenset[TopicIdPartition]())
        for partition in sorted(before - now):
            del self._holders[group_id, partition]
        for partition in sorted(now - before):
            other = self._holders.setdefault((group_id, partition), member_id)
            if other != member_id:
                shown = shown_partitions([partition])
                raise Violation(SoleHolder, f"{shown} given to {member_id} while {other} has it")
        self._held[group_id, member_id] = now


class EpochsRise:
    """Group epoch and assignment epoch only rise and the second never passes the first; a member's
    epoch only rises, except to -2 (a static member that is away)."""

    def __init__(self) -> None:
        self._groups: dict[str, tuple[int, int]] = {}
        self._members: dict[tuple[str, str], int] = {}

    def note(self, groups: RecordedGroups, record: StateRecord) -> None:
        """Look at one record, after it was recorded."""
        group_id = record.group_id
        if isinstance(record, GroupEpochMetadata | TargetAssignmentMetadata):
            if record.value is None:
                self._groups.pop(group_id, None)
                return
            group = groups.group(group_id)
            epoch, assignment_epoch = self._groups.get(group_id, (0, 0))
            if group.epoch < epoch or group.assignment_epoch < assignment_epoch:
                raise Violation(
                    EpochsRise,
                    f"{group_id} went from {epoch}/{assignment_epoch} "
                    f"to {group.epoch}/{group.assignment_epoch}",
                )
            if group.assignment_epoch > group.epoch:
                raise Violation(
                    EpochsRise, f"{group_id}: target {group.assignment_epoch} of {group.epoch}"
                )
            self._groups[group_id] = (group.epoch, group.assignment_epoch)
        elif isinstance(record, CurrentMemberAssignment):
            self._note_member((group_id, record.member_id), record)

    def _note_member(self, key: tuple[str, str], record: CurrentMemberAssignment) -> None:
        if record.value is None:
            self._members.pop(key, None)
            return
        new, old = record.value.member_epoch, self._members.get(key, 0)
        if new < old and new != STATIC_LEAVE_EPOCH:
            raise Violation(EpochsRise, f"{key[1]} went from {old} to {new}")
        self._members[key] = max(new, 0)


class AssignmentEpochs:
    """The epoch at which a partition was assigned to a member is not above the member's epoch
    (KIP-1251), which is not above the target's. A static member that is away (epoch -2) was
    assigned everything "from the beginning"."""

    def note(self, groups: RecordedGroups, record: StateRecord) -> None:
        """Look at one record, after it was recorded."""
        if not isinstance(record, CurrentMemberAssignment) or record.value is None:
            return
        value, name = record.value, record.member_id
        highest = 0 if value.member_epoch == STATIC_LEAVE_EPOCH else value.member_epoch
        for owned in (value.assigned, value.pending_revocation):
            for numbers in owned.values():
                for partition, epoch in sorted(numbers.items()):
                    if not 0 <= epoch <= highest:
                        raise Violation(
                            AssignmentEpochs,
                            f"{name} is at epoch {value.member_epoch} and has partition "
                            f"{partition} since {epoch}",
                        )
        target = groups.group(record.group_id).assignment_epoch
        if value.member_epoch > target:
            raise Violation(
                AssignmentEpochs, f"{name} is at epoch {value.member_epoch} of target {target}"
            )


@dataclass(slots=True)
class Lease:
    """Members with a lease: what their applications have is held for them, and by them alone."""

    zombies: int = 0
    """How often a partition was in the hands of a member without a lease beside its holder."""
    _suspects: dict[MemberView, int] = field(default_factory=dict[MemberView, int])
    """Members with a request that was handled out of order, with their newest heartbeat then."""
    _informed: set[MemberView] = field(default_factory=set[MemberView])
    """Those of them that got their assignment since, and may still be on the way to it."""

    def suspect(self, member: MemberView, newest: int) -> None:
        """A request out of order was acted on: this member may be out of step, now or as soon as it
        starts what it was assigned before."""
        self._suspects[member] = newest
        self._informed.discard(member)

    def informed(self, member: MemberView, number: int) -> None:
        """It learnt its assignment from the answer to this heartbeat."""
        if number > self._suspects.get(member, number):
            self._informed.add(member)

    def is_suspect(self, member: MemberView) -> bool:
        """Whether a request out of order may have put this member out of step."""
        return member in self._suspects

    def check(self, groups: RecordedGroups, members: Iterable[MemberView]) -> None:
        """Look at all processes of a group."""
        owners: dict[TopicIdPartition, MemberView] = {}
        unleased: list[MemberView] = []
        for member in members:
            if not member.held:
                continue
            recorded = groups.member(member.group_id, member.member_id)
            if recorded is None or recorded.epoch <= 0:
                unleased.append(member)
                continue
            beyond = member.held - recorded.held
            if not beyond and member in self._informed:
                self._informed.discard(member)
                del self._suspects[member]
            if beyond and member not in self._suspects:
                raise Violation(
                    Lease,
                    f"{member.name} ({member.state.value}) has {shown_partitions(beyond)}, which "
                    f"the coordinator, at {recorded.state.name} epoch {recorded.epoch}, took "
                    "from it",
                )
            for partition in sorted(member.held - beyond):
                other = owners.setdefault(partition, member)
                if other is not member:
                    shown = shown_partitions([partition])
                    raise Violation(Lease, f"{shown} is used by {other.name} and {member.name}")
        self.zombies += sum(bool(z.held & owners.keys()) for z in unleased)

    def covers(
        self, groups: RecordedGroups, member: MemberView, partition: TopicIdPartition
    ) -> bool:
        """Whether this member may use the partition: held for it, or it has no lease to break."""
        recorded = groups.member(member.group_id, member.member_id)
        return recorded is None or recorded.epoch <= 0 or partition in recorded.held


class Deliveries:
    """Records are handed out in order, by members that may, and none is skipped."""

    OUT_OF_GROUP: Final = frozenset(
        {
            MemberState.UNSUBSCRIBED,
            MemberState.FENCED,
            MemberState.PREPARE_LEAVING,
            MemberState.LEAVING,
            MemberState.STALE,
            MemberState.FATAL,
        }
    )
    """States in which a member knows that it has nothing to hand out (any more)."""

    def __init__(self) -> None:
        self._delivered: dict[tuple[str, TopicIdPartition], int] = {}

    def delivered(
        self,
        member: MemberView,
        partition: TopicIdPartition,
        first: int,
        after_last: int,
        *,
        renamed: bool,
    ) -> None:
        """Records from ``first`` up to ``after_last`` (exclusive) are handed to the application.

        ``renamed``: the topic had a forerunner of its name and commits name topics (before 4.2),
        so that a position in the one may have been stored for the other.
        """
        if member.state in self.OUT_OF_GROUP:
            raise Violation(Deliveries, f"{member.name} delivers while {member.state.value}")
        key = (member.group_id, partition)
        so_far = self._delivered.get(key, 0)
        if first > so_far and not renamed:
            shown = shown_partitions([partition])
            raise Violation(Deliveries, f"{member.name} skips {so_far} to {first} of {shown}")
        self._delivered[key] = max(so_far, after_last)

    def total(self) -> int:
        """How many records were delivered at least once."""
        return sum(self._delivered.values())


class Commits:
    """A committed offset never goes back while its topic lives (nothing in here ever seeks)."""

    def __init__(self) -> None:
        self._doubtful: set[tuple[str, str, int]] = set()

    def note(self, groups: RecordedGroups, record: StateRecord, *, doubtful: bool) -> None:
        """Look at one record, *before* it is recorded. ``doubtful``: it comes from a request out of
        order, or from a member that was harmed by one."""
        if not isinstance(record, OffsetCommit):
            return
        key = (record.group_id, record.topic, record.partition)
        if record.value is None:
            self._doubtful.discard(key)
            return
        before = groups.group(record.group_id).offsets.get((record.topic, record.partition), 0)
        if record.value.offset < before and not doubtful and key not in self._doubtful:
            raise Violation(Commits, f"{key} went back from {before} to {record.value.offset}")
        if doubtful:
            self._doubtful.add(key)
        else:
            self._doubtful.discard(key)


class Flushed:
    """With automatic commits, no member gives a partition up in order without having tried to
    commit what the application is done with.

    A commit that is under way, or ended a moment ago, may stand in the way of the one that is due;
    so only a member that has not sent any for a while is judged. Nor is one whose time to leave was
    over while its application held records: its listener is called, and nothing is committed.
    """

    QUIET_MS: Final = 3_000
    _OUT_OF_TIME: Final = (MemberState.LEAVING, MemberState.UNSUBSCRIBED)

    def __init__(self) -> None:
        self._tried: dict[tuple[MemberView, TopicPartition], int] = {}

    def commit_sent(
        self, member: MemberView, offsets: Mapping[TopicPartition, CommittableOffset]
    ) -> None:
        """It sends a commit."""
        for tp, each in offsets.items():
            self._tried[member, tp] = each.offset

    def revoking(
        self,
        now_ms: int,
        member: MemberView,
        not_committed: Mapping[TopicPartition, CommittableOffset],
    ) -> None:
        """Its revoked callback is called, and this is not stored."""
        has_just_tried = now_ms - member.last_commit_ms < self.QUIET_MS
        if has_just_tried or member.state in self._OUT_OF_TIME:
            return
        for tp, each in sorted(not_committed.items()):
            if self._tried.get((member, tp)) != each.offset:
                raise Violation(
                    Flushed,
                    f"{member.name} gives up {tp.topic}-{tp.partition}, is done up to "
                    f"{each.offset}, and has not tried to commit that",
                )


class Responses:
    """A heartbeat's answer is what the records say."""

    def check(
        self, groups: RecordedGroups, member: MemberView, response: ConsumerGroupHeartbeatResponse
    ) -> None:
        """Look at an answer, after the records of its step were recorded."""
        if response.error_code != 0:
            rest = (response.member_id, response.member_epoch, response.heartbeat_interval_ms)
            if rest != (None, 0, 0) or response.assignment is not None:
                raise Violation(Responses, f"{member.name}: an error and an answer: {response}")
            return
        if response.member_id != member.member_id:
            raise Violation(Responses, f"{member.name} is called {response.member_id}")
        if response.member_epoch <= 0:
            return
        recorded = groups.member(member.group_id, member.member_id)
        if recorded is None or recorded.epoch != response.member_epoch:
            raise Violation(Responses, f"{member.name} gets an epoch that was never written")
        if response.assignment is not None:
            told = frozenset(
                (topic.topic_id, partition)
                for topic in response.assignment.topic_partitions
                for partition in topic.partitions
            )
            if told != recorded.assigned:
                raise Violation(Responses, f"{member.name} gets {told}, not {recorded.assigned}")


class Rates:
    """No member asks more than so often a second, whatever happens to it. (Commits are counted and
    not limited: there are as many as the application wishes for.)"""

    PER_SECOND_MAX: Final = 15

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._second = -1
        self.requests: Counter[str] = Counter()

    def asked(self, now_ms: int, member: MemberView, what: str) -> None:
        """A member sent a request of this kind."""
        self.requests[what] += 1
        if now_ms // 1_000 != self._second:
            self._second = now_ms // 1_000
            self._counts.clear()
        key = (member.name, what)
        self._counts[key] += 1
        if what != "commits" and self._counts[key] > self.PER_SECOND_MAX:
            raise Violation(Rates, f"{member.name}: {self._counts[key]} times {what} in a second")
