"""What must hold of the core itself, looked at after every step.

- ``Adjoin``: what is buffered follows the position without a gap, and the next fetch follows what
  is buffered.
- ``Budget``: what is buffered and asked for fits the budget, except for one batch per broker.
- ``InStep``: what the core believes it has sent to a broker is what that broker's session has.
- ``Inert``: an answer to what is not asked any more changes nothing, asks for nothing, and is
  counted. That holds for its part of each partition that has begun another generation since.
- ``Awaited``: who has no position, or one in doubt, waits for an answer or a time, or for the user
  to read what is buffered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from kip848_client.core.cluster import LeadersNotLearnt
from kip848_client.core.fetch import (
    BufferRead,
    CloseRequested,
    Command,
    CommittedFound,
    Event,
    FetchAnswer,
    FetchAnswered,
    FetchCore,
    FetchLost,
    FetchSettings,
    ListedOffset,
    OffsetsListed,
    OffsetsNotListed,
    OffsetsWithdrawn,
    SeekEnded,
    SendFetch,
    Sought,
    StoredOffset,
    TimerFired,
)
from kip848_client.core.fetch._partition import Phase
from kip848_client.core.fetch._snapshot import FetchSnapshot, PartitionSnapshot
from kip848_client.core.types import TopicId, TopicIdPartition, TopicPartition
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import LocalProtocolError
from mock_coordinator.core.fetching.sessions import FetchSession
from mock_coordinator.sim.invariants import Violation

__all__ = ["Adjoin", "Awaited", "Budget", "InStep", "Inert", "StateChecks"]


class Adjoin:
    """No gap between position, buffer and the next fetch."""


class Budget:
    """Bytes."""


class InStep:
    """Both sides of a session know the same."""


class Inert:
    """What is stale does nothing."""


class Awaited:
    """Every wait has an open request."""


_Tenures = dict[TopicPartition, int]


class StateChecks:
    """Looks at one core. ``session_of`` finds the session that a broker has, ``longest_batch`` says
    how large a batch has ever been."""

    def __init__(
        self,
        core: FetchCore,
        settings: FetchSettings,
        session_of: Callable[[int, int], FetchSession | None],
        longest_batch: Callable[[], int],
    ) -> None:
        self._core = core
        self._settings = settings
        self._session_of = session_of
        self._longest_batch = longest_batch
        self.compared = 0
        """How many sessions were compared with the broker's."""
        self.stale = 0
        """How many parts of answers were for a former generation."""
        self._is_closed = False
        self._before: FetchSnapshot | None = None
        """After the last step; ``None`` when an answer was not taken in whole by it."""
        self._asked: dict[int, _Tenures] = {}
        """The generations of all partitions when a fetch was sent, by its number."""

    def look(self, event: Event, commands: Sequence[Command]) -> None:
        """A step is over. Raises ``Violation``."""
        snapshot = self._core.snapshot()
        self._look_at_partitions(snapshot)
        self._look_at_bytes(snapshot)
        if isinstance(event, FetchAnswered):
            self._look_at_sessions(snapshot)
            self._look_at_stale(self._asked.pop(event.fetch, None), event, snapshot)
        elif isinstance(event, CloseRequested):
            self._is_closed = True
        elif isinstance(event, FetchLost):
            self._asked.pop(event.fetch, None)
        if isinstance(event, FetchAnswered | BufferRead | TimerFired):
            self._look_at_waiting(snapshot)
        generations = {tp: each.generation for tp, each in snapshot.partitions.items()}
        for command in commands:
            if isinstance(command, SendFetch):
                self._asked[command.fetch] = generations
        self._before = None if self._core.is_taking_in else snapshot

    def _look_at_stale(
        self, asked: _Tenures | None, event: FetchAnswered, snapshot: FetchSnapshot
    ) -> None:
        before = self._before
        if asked is None or before is None or self._core.is_taking_in:
            return
        told = {each.key for each in event.answer.partitions}
        for tp, was in before.partitions.items():
            now = snapshot.partitions.get(tp)
            if (was.topic_id, tp.partition) not in told or now is None:
                continue
            if was.generation != asked.get(tp):
                self.stale += 1
                if _state(now) != _state(was):
                    raise Violation(
                        Inert, f"{_shown(tp)} is moved by an answer of a past generation"
                    )

    def _look_at_waiting(self, snapshot: FetchSnapshot) -> None:
        if self._core.is_taking_in:
            return
        for tp, each in snapshot.partitions.items():
            idle = not each.is_sought and each.error is None
            seeks = each.phase is Phase.SEEKING_START
            checks = each.phase is Phase.CHECKING and not each.slices
            if idle and (seeks or checks):
                raise Violation(
                    Awaited, f"{_shown(tp)} is {each.phase.value}, and no request is open"
                )

    def _look_at_partitions(self, snapshot: FetchSnapshot) -> None:
        for tp, each in snapshot.partitions.items():
            where = _shown(tp)
            if each.consumed is None:
                if each.slices or each.fetch_offset >= 0:
                    raise Violation(Adjoin, f"{where} has a buffer and no position")
                continue
            at = each.consumed
            for number, (first, after) in enumerate(each.slices):
                fits = first <= at <= after if number == 0 else first == at
                if not fits:
                    raise Violation(Adjoin, f"{where}: {each.slices} at {each.consumed}")
                at = after
            if at != each.fetch_offset:
                raise Violation(Adjoin, f"{where} is fetched at {each.fetch_offset}, not at {at}")

    def _look_at_bytes(self, snapshot: FetchSnapshot) -> None:
        in_partitions = sum(each.buffered_bytes for each in snapshot.partitions.values())
        if in_partitions != snapshot.buffered_bytes:
            raise Violation(Budget, f"{snapshot.buffered_bytes} bytes are {in_partitions}")
        in_use = snapshot.buffered_bytes + snapshot.reserved_bytes
        brokers = max(1, len(snapshot.nodes))
        most = self._settings.buffer_bytes + brokers * max(1, self._longest_batch())
        if in_use > most:
            raise Violation(Budget, f"{in_use} bytes are in use, more than {most}")

    def _look_at_sessions(self, snapshot: FetchSnapshot) -> None:
        for number, node in snapshot.nodes.items():
            known = node.session.known
            session = self._session_of(number, node.session.session_id)
            if known is None or session is None or session.epoch != node.session.epoch:
                continue  # a request may be on its way, or have been lost, or have come twice
            self.compared += 1
            has: dict[TopicIdPartition, tuple[int, int, int, int]] = {
                (TopicId(key.topic_id), key.partition): (
                    wanted.fetch_offset,
                    wanted.leader_epoch,
                    wanted.last_fetched_epoch,
                    wanted.max_bytes,
                )
                for key, wanted in session.wanted.items()
            }
            believed = {
                key: (want.offset, want.leader_epoch, want.last_epoch, want.max_bytes)
                for key, want in known.items()
            }
            if has != believed:
                raise Violation(InStep, f"node {number} has {has}, not {believed}")

    # -- what is stale -----------------------------------------------------------------------

    def prod(self, now_ms: int) -> None:
        """Give the core answers to requests that are not open, and one event that is not legal.
        Raises ``Violation`` when something comes of it."""
        before = self._without_count()
        for event in _stale(tuple(self._core.assigned)):
            count = self._core.snapshot().stale_answers
            commands = self._core.step(now_ms, event)
            if commands or self._without_count() != before:
                raise Violation(Inert, f"{event} leads to {commands}")
            counts = not (self._is_closed or isinstance(event, OffsetsWithdrawn | SeekEnded))
            if self._core.snapshot().stale_answers != count + counts:
                raise Violation(Inert, f"{event} is not counted")
        for tp in self._core.assigned:
            try:
                self._core.step(now_ms, Sought(tp, -1))
            except LocalProtocolError:
                pass
            else:
                raise Violation(Inert, "a seek to -1 is taken")
            if self._without_count() != before:
                raise Violation(Inert, "a seek to -1 changes something")

    def _without_count(self) -> FetchSnapshot:
        return replace(self._core.snapshot(), stale_answers=0)


def _state(partition: PartitionSnapshot) -> tuple[object, ...]:
    """What no answer of a former generation may change."""
    checks = partition.phase is Phase.CHECKING
    return (partition.generation, partition.fetch_offset, partition.failures, checks)


def _shown(tp: TopicPartition) -> str:
    return f"{tp.topic}-{tp.partition}"


_NEVER = 2_000_000_000
"""A number that no command has had."""


def _stale(assigned: tuple[TopicPartition, ...]) -> Iterator[Event]:
    yield FetchAnswered(_NEVER, FetchAnswer())
    yield FetchAnswered(_NEVER, FetchAnswer(ErrorCode.UNKNOWN_SERVER_ERROR))
    yield FetchLost(_NEVER, "late")
    yield OffsetsListed(_NEVER, {tp: ListedOffset(offset=1) for tp in assigned})
    yield OffsetsNotListed(_NEVER, "late")
    yield OffsetsWithdrawn(_NEVER)
    yield CommittedFound(_NEVER, {tp: StoredOffset(1) for tp in assigned})
    yield LeadersNotLearnt(_NEVER, "late")
    yield SeekEnded(_NEVER, {tp: StoredOffset(1) for tp in assigned})
