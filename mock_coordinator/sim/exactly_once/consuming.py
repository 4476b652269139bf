"""The consumer of a processor: the real ``GroupCore`` and ``FetchCore``, and between them and the
processor what a driver does: polls, the listener, seeks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from kip848_client.core.fetch import Sought
from kip848_client.core.group import (
    AssignPartitions,
    CallListener,
    ListenerMethod,
    ListenerReturned,
)
from kip848_client.core.member import Polled, PollEnded
from kip848_client.core.offsets import OffsetTracker
from kip848_client.core.produce import Group, OffsetToCommit
from kip848_client.core.types import TopicIdPartition, TopicPartition
from kip848_client.errors import CallbackError, CommitFailed, Kip848Error, NotAssigned
from kip848_client.processor.core import Portion
from mock_coordinator.sim.exactly_once.context import ProcessContext
from mock_coordinator.sim.group_requests import Sender
from mock_coordinator.sim.held_partitions import HeldPartitions
from mock_coordinator.sim.kernel import Timer
from mock_coordinator.sim.node_requests import Wires

__all__ = ["Consuming", "Listener"]

_LOOK_EVERY_MS = 20

Handed = Callable[["tuple[Portion, ...] | Kip848Error"], None]


class Listener(Protocol):
    """Who hears of rebalances."""

    def assigned(self, partitions: Collection[TopicPartition]) -> None:
        """These are new."""
        ...

    def revoked(self, ticket: int, partitions: Collection[TopicPartition]) -> None:
        """These are asked back; ``Consuming.release`` gives them up."""
        ...

    def wait_ended(self, ticket: int) -> None:
        """The answer is no longer needed."""
        ...

    def lost(self, partitions: Collection[TopicPartition]) -> None:
        """These are gone."""
        ...


class _Host(Sender, Protocol):
    @property
    def context(self) -> ProcessContext: ...

    @property
    def epoch(self) -> int | None:
        """For commits; ``None`` out of the group."""
        ...

    @property
    def instance_id(self) -> str | None: ...

    @property
    def failure(self) -> Kip848Error | None:
        """What has ended the membership."""
        ...


class Consuming(HeldPartitions):
    """Of one process, the ``host``."""

    def __init__(
        self, host: _Host, wires: Wires, tracker: OffsetTracker, listener: Listener
    ) -> None:
        super().__init__(host, wires, tracker, read_committed=True)
        self._host = host
        self._listener = listener
        self._hand: dict[TopicPartition, dict[int, bytes]] = {}
        self._fresh: dict[TopicPartition, list[int]] = {}
        self._calls: dict[int, tuple[tuple[TopicPartition, ...], Timer]] = {}
        """Open calls of the listener because of a revocation."""
        self._raise_once: Kip848Error | None = None

    def assigned(self, command: AssignPartitions) -> None:
        """The user sees this assignment from now on."""
        self._listener.assigned([each.tp for each in command.new])
        super().assigned(command)

    # -- polls -------------------------------------------------------------------------------

    def poll(self, max_records: int, wait_ms: int, handed: Handed) -> None:
        """Hand out what there is, or wait for it."""
        error, self._raise_once = self._raise_once, None
        error = self._host.failure or error
        if error is not None:
            handed(error)
            return
        self.came_back()
        self._host.feed(Polled(waiting=True))
        until_ms = self._host.context.kernel.now_ms + wait_ms
        self._look(max_records, until_ms, handed)

    def _look(self, max_records: int, until_ms: int, handed: Handed) -> None:
        now_ms = self._host.context.kernel.now_ms
        self._fresh = {}
        self.records.poll(max_records)
        if not self._fresh and now_ms < until_ms and self._host.failure is None:
            pause_ms = min(_LOOK_EVERY_MS, until_ms - now_ms)
            self._host.after(pause_ms, lambda: self._look(max_records, until_ms, handed))
            return
        handed(
            tuple(
                Portion(tp, offsets[0], offsets[-1] + 1, len(offsets))
                for tp, offsets in self._fresh.items()
            )
        )
        self._host.feed(PollEnded())

    def deliver(
        self, partition: TopicIdPartition, tp: TopicPartition, offset: int, value: bytes
    ) -> None:
        """A record is handed out."""
        super().deliver(partition, tp, offset, value)
        self._hand.setdefault(tp, {})[offset] = value
        self._fresh.setdefault(tp, []).append(offset)

    def in_hand(self, tp: TopicPartition, first: int, until: int) -> list[tuple[int, bytes]]:
        """These records; what was before them is done."""
        hand = self._hand.get(tp, {})
        for offset in [each for each in hand if each < first]:
            del hand[offset]
        return [(offset, hand[offset]) for offset in sorted(hand) if offset < until]

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        """Forget what is in hand of these."""
        for tp in partitions:
            self._hand.pop(tp, None)

    def rewind(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Read from there again."""
        self.drop(offsets)
        for tp, offset in offsets.items():
            if self.tracker.owns(tp):
                self.records.feed(Sought(tp, offset))

    # -- offsets for a transaction -----------------------------------------------------------

    def offer(
        self, offsets: Mapping[TopicPartition, int], name: str
    ) -> tuple[Group, dict[TopicPartition, OffsetToCommit]]:
        """In whose name they are committed. Raises ``CommitFailed`` for what is not ours."""
        host, epoch = self._host, self._host.epoch
        taken = [tp for tp in offsets if epoch is None or not self.tracker.owns(tp)]
        if epoch is None or taken:
            tp = taken[0]
            why = NotAssigned(f"{tp.topic}-{tp.partition} is not ours any more")
            raise CommitFailed(f"not committed: {why}", offsets=dict(offsets), cause=why)
        group = Group(host.group_id, epoch, host.member_id, host.instance_id)
        ids = self.records.core.topic_id
        return group, {
            tp: OffsetToCommit(offset, -1, name, ids(tp)) for tp, offset in offsets.items()
        }

    # -- the listener ------------------------------------------------------------------------

    def call_listener(self, command: CallListener) -> None:
        """As a task of its own."""
        self._host.after(0, lambda: self._call(command))

    def _call(self, command: CallListener) -> None:
        partitions = tuple(each.tp for each in command.partitions)
        names = " ".join(f"{tp.topic}-{tp.partition}" for tp in partitions)
        self._host.context.tell(self._host.name, command.method.name.lower(), names or "-")
        match command.method:
            case ListenerMethod.REVOKED:
                timer = self._host.context.kernel.after(
                    self._host.context.options.listener_timeout_ms,
                    lambda: self._host.enter(lambda: self._give_up(command.number)),
                )
                self._calls[command.number] = partitions, timer
                self._listener.revoked(command.number, partitions)
            case ListenerMethod.LOST:
                self._listener.lost(partitions)
                self._host.feed(ListenerReturned(command.number))
            case ListenerMethod.ASSIGNED:
                self._host.feed(ListenerReturned(command.number))

    def release(self, ticket: int) -> tuple[TopicPartition, ...]:
        """The listener returns; what may be given up by that."""
        partitions, timer = self._calls.pop(ticket, ((), None))
        if timer is not None:
            timer.cancel()
            self._host.after(0, lambda: self._host.feed(ListenerReturned(ticket)))
        return partitions

    def _give_up(self, ticket: int) -> None:
        if self._calls.pop(ticket, None) is not None:
            self._host.context.probes.reached("revocation given up")
            self._raise_once = CallbackError("the listener did not return in time")
            self._listener.wait_ended(ticket)
            self._host.feed(ListenerReturned(ticket, failed=True))

    @property
    def is_releasing(self) -> bool:
        """Whether a call because of a revocation is open."""
        return bool(self._calls)
