"""All checkers together, and the one place that the actors report to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kip848_client.core.offsets import CommittableOffset
from kip848_client.core.types import TopicIdPartition, TopicPartition
from kip848_client.core.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from mock_coordinator.core.groups.records.state_records import (
    CurrentMemberAssignment,
    MemberMetadata,
    OffsetCommit,
    StateRecord,
)
from mock_coordinator.sim.blind_targets import BlindTargets
from mock_coordinator.sim.early_heartbeats import EarlyHeartbeats
from mock_coordinator.sim.invariants import (
    AssignmentEpochs,
    Commits,
    Deliveries,
    EpochsRise,
    Flushed,
    Lease,
    MemberView,
    Rates,
    Responses,
    SoleHolder,
    Violation,
)
from mock_coordinator.sim.probes import Probes
from mock_coordinator.sim.recorded_groups import RecordedGroups
from mock_coordinator.sim.swarm import SESSION_MS_MIN
from mock_coordinator.sim.trace import shown_partitions

__all__ = ["Checkers", "Tag"]


@dataclass(frozen=True, slots=True)
class Tag:
    """What a request is about, for the checkers: who sent it, as its how-manieth of that kind."""

    member: MemberView
    number: int
    epoch: int
    subscription: tuple[tuple[str, ...], str] | None = None
    """What the request says about it; ``None`` for nothing."""
    commit: int = 0
    """Of a commit: its sender's how-manieth. ``number`` is that of the heartbeat before it."""


class Checkers:
    """Keeps the groups, and calls each checker with what concerns it."""

    def __init__(self, probes: Probes, first_epoch: int, *, extra_heartbeats: bool) -> None:
        self._probes = probes
        self._first_epoch = first_epoch
        self.groups = RecordedGroups(first_epoch)
        self.blind_targets = BlindTargets()
        self.lease = Lease()
        self.deliveries = Deliveries()
        self.rates = Rates()
        self.early_heartbeats = EarlyHeartbeats(probes, extra=extra_heartbeats)
        self._sole = SoleHolder()
        self._epochs = EpochsRise()
        self._assignment_epochs = AssignmentEpochs()
        self._commits = Commits()
        self._responses = Responses()
        self._flushed = Flushed()
        self._members: dict[str, list[MemberView]] = {}
        self._heard_ms: dict[str, int] = {}
        self._served: dict[MemberView, int] = {}
        self._served_commits: dict[MemberView, int] = {}
        self._answers: dict[tuple[MemberView, int], tuple[int, int]] = {}
        self.overwritten: set[MemberView] = set()
        """Members whose newest subscription was overwritten by a request out of order."""
        self.renamed: set[str] = set()
        """Topics that were deleted and made again, where commits name topics (before 4.2), or that
        were deleted while the coordinator loaded: the offsets of the old one may still be there."""

    # -- processes ---------------------------------------------------------------------------

    def enter(self, member: MemberView) -> None:
        """A process was started."""
        self._members.setdefault(member.group_id, []).append(member)

    def leave(self, member: MemberView) -> None:
        """A process is gone."""
        self._members[member.group_id].remove(member)

    def holding_changed(self, member: MemberView) -> None:
        """Its application was given something, or gave it back."""
        self._check_lease(member.group_id)

    def informed(self, tag: Tag) -> None:
        """It took in an answer with an assignment, or one that puts it out of the group."""
        self.lease.informed(tag.member, tag.number)

    def delivered(
        self,
        member: MemberView,
        partition: TopicIdPartition,
        topic: str,
        first: int,
        after_last: int,
    ) -> None:
        """Its application is handed records."""
        renamed = topic in self.renamed
        self.deliveries.delivered(member, partition, first, after_last, renamed=renamed)
        covered = self.lease.covers(self.groups, member, partition)
        if not covered and not self.lease.is_suspect(member):
            raise Violation(Deliveries, f"{member.name} delivers what is not held for it")

    def commit_sent(
        self, member: MemberView, offsets: Mapping[TopicPartition, CommittableOffset]
    ) -> None:
        """It sends a commit."""
        self._flushed.commit_sent(member, offsets)

    def revoking(
        self,
        now_ms: int,
        member: MemberView,
        not_committed: Mapping[TopicPartition, CommittableOffset],
    ) -> None:
        """Its revoked callback is called, and what it is done with is not stored."""
        self._flushed.revoking(now_ms, member, not_committed)

    def not_paused(
        self, member: MemberView, partition: TopicIdPartition, paused: Collection[TopicIdPartition]
    ) -> None:
        """Its application is handed records of a partition, and has paused these."""
        if partition in paused:
            shown = shown_partitions([partition])
            raise Violation(Deliveries, f"{member.name} is handed records of {shown}: it is paused")

    def _check_lease(self, group_id: str) -> None:
        zombies = self.lease.zombies
        self.lease.check(self.groups, self._members.get(group_id, []))
        if self.lease.zombies > zombies:
            self._probes.reached("zombie")

    # -- the coordinator ---------------------------------------------------------------------

    def is_late(self, tag: Tag, *, again: bool, given_up: bool) -> bool:
        """Whether a request comes after a younger one of the same member, by which its sender had
        given it up. Asked once for each."""
        newest = self._served.get(tag.member, 0)
        self._served[tag.member] = max(newest, tag.number)
        if tag.number < newest and not again:
            self._probes.reached("late request")
        newest_commit = self._served_commits.get(tag.member, 0)
        self._served_commits[tag.member] = max(newest_commit, tag.commit)
        is_overtaken = given_up and 0 < tag.commit < newest_commit
        return again or tag.number < newest or is_overtaken

    def written(
        self,
        now_ms: int,
        records: Sequence[StateRecord],
        tag: Tag | None = None,
        *,
        late: bool = False,
    ) -> None:
        """The coordinator wrote records in one step, on behalf of a request or on its own."""
        groups: dict[str, None] = {}
        if tag is None:
            self._probe_expiries(now_ms, records)
        if late and tag is not None:
            self.lease.suspect(tag.member, self._served[tag.member])
        harmed = tag is not None and self.lease.is_suspect(tag.member)
        self.blind_targets.written(self.groups, records)
        for record in records:
            doubtful = late or harmed
            if isinstance(record, OffsetCommit):
                doubtful = doubtful or record.topic in self.renamed
            self._commits.note(self.groups, record, doubtful=doubtful)
            self.groups.note(record)
            self._sole.note(self.groups, record)
            self._epochs.note(self.groups, record)
            self._assignment_epochs.note(self.groups, record)
            if isinstance(record, CurrentMemberAssignment | MemberMetadata):
                groups[record.group_id] = None
        for group_id in groups:
            self._check_lease(group_id)

    def _probe_expiries(self, now_ms: int, records: Sequence[StateRecord]) -> None:
        """Members that the coordinator removes on its own have been silent, or hold on to what
        they were to give up, and then they may have been heard of a moment ago."""
        for record in records:
            if not isinstance(record, MemberMetadata) or record.value is not None:
                continue
            silent_ms = now_ms - self._heard_ms.get(record.member_id, 0)
            held_on = silent_ms < SESSION_MS_MIN
            self._probes.reached("rebalance timeout expiry" if held_on else "session expiry")

    def heartbeat_served(
        self, now_ms: int, tag: Tag, response: ConsumerGroupHeartbeatResponse, *, late: bool
    ) -> None:
        """The coordinator answered a heartbeat; its records were reported before."""
        if response.error_code == 0:
            self._heard_ms[tag.member.member_id] = now_ms
        self._responses.check(self.groups, tag.member, response)
        self._answers[tag.member, tag.number] = (response.error_code, response.member_epoch)
        if response.error_code == 0 and 0 < tag.epoch < response.member_epoch:
            self._probe_previous(tag)
        if late and tag.subscription is not None and response.error_code == 0:
            self.overwritten.add(tag.member)
        elif not late and tag.subscription is not None:
            self.overwritten.discard(tag.member)

    def _probe_previous(self, tag: Tag) -> None:
        before = self._answers.get((tag.member, tag.number - 1))
        if before is not None and before[1] > tag.epoch:
            self._probes.reached("previous epoch accepted")

    def answer_of(self, tag: Tag) -> tuple[int, int] | None:
        """The error code and epoch that the coordinator answered, ``None`` when it did not."""
        return self._answers.get((tag.member, tag.number))

    def rewound(self, records: Iterable[StateRecord]) -> None:
        """The coordinator crashed and knows only these records any more."""
        self.groups = RecordedGroups(self._first_epoch)
        self._sole = SoleHolder()
        self._epochs = EpochsRise()
        for record in records:
            self.groups.note(record)
            self._sole.note(self.groups, record)
            self._epochs.note(self.groups, record)
        for group_id in self._members:
            self._check_lease(group_id)


def subscription_of(
    request: ConsumerGroupHeartbeatRequest,
) -> tuple[tuple[str, ...], str] | None:
    """What a heartbeat says about the subscription, ``None`` for nothing."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    return None if names is None and regex is None else (tuple(names or ()), regex or "")
