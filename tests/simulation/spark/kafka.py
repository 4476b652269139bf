"""Kafka as a simulated query sees it: logs that are cut and deleted, and a group with members.

Each record has a number of its own, so that a checker can tell the records at one offset apart
after a log was truncated or a topic was created again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from kip848_client.core.types import TopicPartition
from kip848_client.spark.source.core._begin import GroupOffset
from kip848_client.spark.source.core._manifest import Manifest
from kip848_client.spark.source.core._ownership import GroupState
from kip848_client.spark.source.core._planning import Seen

__all__ = ["TOPIC", "Group", "Kafka", "Log", "Member", "Record"]

TOPIC = "a"


class Record(NamedTuple):
    """One record, wherever it is."""

    number: int
    epoch: int


@dataclass(slots=True)
class Log:
    """One partition. Records that retention has deleted stay in the list, for the checkers."""

    records: list[Record] = field(default_factory=list[Record])
    first: int = 0
    epoch: int = 0

    @property
    def end(self) -> int:
        """The offset of the next record."""
        return len(self.records)

    def epoch_end(self, epoch: int) -> int:
        """Where a leader epoch ends."""
        later = (at for at, each in enumerate(self.records) if each.epoch > epoch)
        return next(later, self.end)


@dataclass(slots=True)
class Kafka:
    """The topic."""

    logs: list[Log]
    topic_id: str = "id-1"
    regrown: set[int] = field(default_factory=set[int])
    """Records after a truncation: none is left out, but some are read again, because a group's
    offset does not say of which leader epoch it is."""
    _count: int = 0

    @property
    def partitions(self) -> list[TopicPartition]:
        """All that exist."""
        return [TopicPartition(TOPIC, number) for number in range(len(self.logs))]

    def log(self, tp: TopicPartition) -> Log:
        """The log of a partition."""
        return self.logs[tp.partition]

    def produce(self, tp: TopicPartition, count: int) -> None:
        """More records."""
        log = self.log(tp)
        for _ in range(count):
            self._count += 1
            log.records.append(Record(self._count, log.epoch))
            if log.epoch:
                self.regrown.add(self._count)

    def truncate(self, tp: TopicPartition, to: int) -> None:
        """A leader that had less was elected."""
        log = self.log(tp)
        log.epoch += 1
        del log.records[max(to, log.first) :]

    def create_again(self) -> None:
        """Delete the topic, and create one of the same name."""
        self.topic_id = f"id-{int(self.topic_id[3:]) + 1}"
        self.logs = [Log() for _ in self.logs]

    def seen(self, kept: Manifest | None, *, is_first: bool = False) -> Seen:
        """What the driver asks brokers for: ends of leader epochs where they may have changed."""
        tps = self.partitions
        seen = Seen(
            {tp: (self.log(tp).first, self.log(tp).end) for tp in tps},
            {TOPIC: self.topic_id},
            {tp: self.log(tp).epoch for tp in tps},
        )
        if kept is None:
            return seen
        ends = {
            tp: self.log(tp).epoch_end(epoch)
            for tp, epoch in kept.epochs.items()
            if tp in seen.bounds and (is_first or epoch != self.log(tp).epoch)
        }
        return replace(seen, epoch_ends=ends)


class Member(Protocol):
    """What the group asks of a member of ours."""

    def assigned(self, tps: list[TopicPartition]) -> None:
        """These are its partitions, too."""

    def revoked(self, tps: list[TopicPartition]) -> bool:
        """These go to another member: whether it has let them go."""
        ...

    def lost(self) -> None:
        """The session is over."""


@dataclass(slots=True)
class Group:
    """The coordinator. ``foreign`` is a plain consumer, which reads from the group's offsets."""

    kafka: Kafka
    offsets: dict[TopicPartition, GroupOffset] = field(
        default_factory=dict[TopicPartition, GroupOffset]
    )
    owners: dict[TopicPartition, Member] = field(default_factory=dict[TopicPartition, Member])
    foreign: dict[TopicPartition, int] = field(default_factory=dict[TopicPartition, int])
    """What the plain consumer owns, with its positions."""
    asked_back: set[TopicPartition] = field(default_factory=set[TopicPartition])
    """What a member has yet to let go."""
    members: list[Member] = field(default_factory=list[Member])

    def state(self) -> GroupState:
        """What an admin client reads."""
        return GroupState(bool(self.members or self.foreign), dict(self.offsets))

    def join(self, member: Member) -> None:
        """A member gets what is free, and half of what other members of ours have."""
        self.members.append(member)
        self.deal()

    def deal(self) -> None:
        """Assign what nobody owns, in turns."""
        free = [
            tp for tp in self.kafka.partitions if tp not in self.owners and tp not in self.foreign
        ]
        shares: dict[int, list[TopicPartition]] = {}
        for number, tp in enumerate(free):
            if self.members:
                shares.setdefault(number % len(self.members), []).append(tp)
        for number, tps in shares.items():
            self.owners.update(dict.fromkeys(tps, self.members[number]))
            self.members[number].assigned(tps)

    def leave(self, member: Member) -> None:
        """The member is gone, and its partitions are free."""
        self.owners = {tp: each for tp, each in self.owners.items() if each is not member}
        if member in self.members:
            self.members.remove(member)

    def take(self, tp: TopicPartition) -> bool:
        """The plain consumer gets a partition, once its owner lets it go."""
        owner = self.owners.get(tp)
        if owner is not None and not owner.revoked([tp]):
            self.asked_back.add(tp)
            return False
        self.asked_back.discard(tp)
        self.owners.pop(tp, None)
        self._begin(tp)
        return True

    def settle(self) -> None:
        """Move what members have let go by now."""
        for tp in sorted(self.asked_back):
            if tp in self.foreign or tp not in self.owners:
                self.asked_back.discard(tp)
            else:
                self.take(tp)

    def _begin(self, tp: TopicPartition) -> None:
        log, known = self.kafka.log(tp), self.offsets.get(tp)
        at = 0 if known is None else known.offset
        self.foreign[tp] = min(at, log.end)

    def end_session(self, member: Member, taken: list[TopicPartition]) -> None:
        """Its session is over without its knowledge: the plain consumer gets some partitions."""
        for tp in [tp for tp, each in self.owners.items() if each is member]:
            del self.owners[tp]
            if tp in taken:
                self._begin(tp)
        if member in self.members:
            self.members.remove(member)
