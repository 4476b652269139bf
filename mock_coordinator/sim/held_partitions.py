"""What a process holds of its group: its partitions with their records, and look-ups of committed
offsets. What its application does with them is for subclasses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kip848_client.core.group import (
    ApplicationDone,
    AssignPartitions,
    AwaitApplication,
    CommittedAsked,
    CommittedFailed,
    CommittedFound,
    StartFetching,
)
from kip848_client.core.member import AssignedPartition
from kip848_client.core.offsets import OffsetTracker
from kip848_client.core.types import TopicIdPartition, TopicPartition
from mock_coordinator.sim.group_requests import Sender
from mock_coordinator.sim.member_records import MemberRecords
from mock_coordinator.sim.node_requests import Wires

__all__ = ["HeldPartitions"]

_LOOKUP_DEADLINE_MS: Final = 60_000


class HeldPartitions:
    """Of one process, the ``sender``. ``tracker`` is the one that commits read, ``wires`` lead from
    the process to the brokers."""

    def __init__(
        self, sender: Sender, wires: Wires, tracker: OffsetTracker, *, read_committed: bool = False
    ) -> None:
        self._sender = sender
        self.tracker: Final = tracker
        self._assignment: dict[TopicIdPartition, AssignedPartition] = {}
        self._waits: list[AwaitApplication] = []
        self.tickets = 0
        self._lookups: dict[int, int] = {}
        """Open look-ups of committed offsets: the fetch core's numbers for them."""
        self.fetchable: dict[TopicIdPartition, TopicPartition] = {}
        """Those whose records may be handed out."""
        self.records: Final = MemberRecords(
            sender.context,
            wires,
            sender.rng,
            tracker,
            enter=sender.enter,
            look_up=self._look_up,
            deliver=self.deliver,
            read_committed=read_committed,
        )

    def deliver(
        self, partition: TopicIdPartition, tp: TopicPartition, offset: int, value: bytes
    ) -> None:
        """A record is handed out."""
        del value
        assert partition in self.fetchable, f"{tp} is handed out and not fetchable"
        checkers = self._sender.context.checkers
        checkers.delivered(self._sender, partition, tp.topic, offset, offset + 1)

    # -- what it is given --------------------------------------------------------------------

    @property
    def held(self) -> frozenset[TopicIdPartition]:
        """What it was given and has not given back."""
        return frozenset(self._assignment)

    def assigned(self, command: AssignPartitions) -> None:
        """The user sees this assignment from now on."""
        new = [each.tp for each in command.new]
        self._assignment = {(p.topic_id, p.partition): p for p in command.assignment}
        self.tracker.forget(new)
        self.tracker.assign([each.tp for each in command.assignment])
        self.records.assigned(command.assignment, new)
        self._sender.context.checkers.holding_changed(self._sender)

    def started(self, command: StartFetching) -> None:
        """The listener is done with these."""
        self.records.started(command.assignment)

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """These are gone."""
        gone = set(partitions)
        self.tracker.forget(gone)
        self._assignment = {k: each for k, each in self._assignment.items() if each.tp not in gone}
        self.records.forget(gone)
        self._sender.context.checkers.holding_changed(self._sender)

    def fetch_only(self, fetchable: Iterable[AssignedPartition]) -> None:
        """What may be handed out from this moment on."""
        self.fetchable = {(p.topic_id, p.partition): p.tp for p in fetchable}
        self.records.fetch_only(self.fetchable.values())

    # -- coming back -------------------------------------------------------------------------

    def wait_for(self, command: AwaitApplication) -> None:
        """Say when it is done with its records of these partitions."""
        if set(command.partitions).isdisjoint(self.tracker.pending()):
            self._sender.feed(ApplicationDone(command.number))
        else:
            self._waits.append(command)

    def came_back(self) -> None:
        """It is done with the records that it has."""
        self.tracker.confirm()
        waits, self._waits = self._waits, []
        for each in waits:
            self._sender.feed(ApplicationDone(each.number))

    # -- positions ---------------------------------------------------------------------------

    def needs(self, tp: TopicPartition) -> bool:
        """Whether a partition is held and its position is not known."""
        return self.tracker.owns(tp) and self.tracker.position(tp) is None

    def _look_up(self, number: int, partitions: tuple[TopicPartition, ...]) -> None:
        """The fetch core wants to know what is committed."""
        self.tickets += 1
        self._lookups[self.tickets] = number
        deadline_ms = self._sender.context.kernel.now_ms + _LOOKUP_DEADLINE_MS
        self._sender.feed(CommittedAsked(self.tickets, partitions, deadline_ms))

    def found(self, command: CommittedFound | CommittedFailed) -> None:
        """A look-up ended."""
        number = self._lookups.pop(command.ticket)
        if isinstance(command, CommittedFound):
            self.records.found(number, command.found)
        else:
            self.records.not_found(number, command.error)
