"""What must hold of what the user gets.

- ``Delivered``: the records handed out of a partition are those of its log, in order, each once,
  from a reported position on. What is left out are markers, records of aborted transactions under
  read_committed, and what was compacted. What was cut off the log is never followed by what came in
  its place, unless the position was reported again in between.
- ``Closed``: nothing is handed out from a partition that is paused, held, limited or taken away,
  nor of a topic that only has the name of the one that was assigned.
- ``Moved``: a position moves by reading, or for a reason: the user sought, the group had committed
  it, the *leader* said that the position is out of its range, or that its log differs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kip848_client.core.fetch import (
    AssignmentChanged,
    CommittedFound,
    Event,
    FetchAnswered,
    FetchCore,
    Notice,
    OffsetsListed,
    Positioned,
    SeekBegun,
    SeekEnded,
    Slice,
    Sought,
    TimerFired,
)
from kip848_client.core.types import (
    ZERO_TOPIC_ID,
    TopicId,
    TopicIdPartition,
    TopicPartition,
    format_topic_id,
)
from mock_coordinator.sim.invariants import Violation
from mock_coordinator.sim.log_truth import LogTruth, Reader, WrongRecord

__all__ = ["Closed", "Delivered", "DeliveryChecks", "Moved"]


class Delivered:
    """Exactly the log, in order."""


class Closed:
    """Nothing of what is not to be read."""


class Moved:
    """No position moves without a reason."""


@dataclass(slots=True)
class _Place:
    """Where the user is in a partition, since its position was reported last."""

    offset: int
    leader_epoch: int
    reader: Reader | None = None
    """``None`` until it is known which topic has the name."""


@dataclass(slots=True)
class DeliveryChecks:
    """Follows one core. ``shut`` says why nothing may be handed out of a partition now."""

    truth: LogTruth
    read_committed: bool
    may_reset: bool
    shut: dict[TopicPartition, set[str]] = field(default_factory=dict[TopicPartition, set[str]])
    records: int = 0
    resets: int = 0
    truncations: int = 0
    successors: int = 0
    """How often a partition that was assigned by hand went on with another topic of its name."""
    _assigned: dict[TopicPartition, TopicId | None] = field(
        default_factory=dict[TopicPartition, TopicId | None]
    )
    _ids: dict[TopicPartition, TopicId] = field(default_factory=dict[TopicPartition, TopicId])
    """Which topic the core reads what is assigned by hand from."""
    _seeking: dict[TopicPartition, int] = field(default_factory=dict[TopicPartition, int])
    _by_hand: list[TopicPartition] = field(default_factory=list[TopicPartition])
    _places: dict[TopicPartition, _Place] = field(default_factory=dict[TopicPartition, _Place])
    _out_of_range: dict[TopicIdPartition, set[int]] = field(
        default_factory=dict[TopicIdPartition, set[int]]
    )
    _diverged: dict[TopicIdPartition, set[int]] = field(
        default_factory=dict[TopicIdPartition, set[int]]
    )

    _answers: list[Event] = field(default_factory=list[Event])
    """Those that the core is not done with."""

    # -- what brokers say --------------------------------------------------------------------

    def out_of_range(self, key: TopicIdPartition, offset: int) -> None:
        """The leader has answered OFFSET_OUT_OF_RANGE to a fetch at this offset."""
        self._out_of_range.setdefault(key, set()).add(offset)

    def diverged(self, key: TopicIdPartition, end: int) -> None:
        """A broker has answered that its log differs from here on."""
        self._diverged.setdefault(key, set()).add(end)

    # -- what the core says ------------------------------------------------------------------

    def stepped(
        self,
        core: FetchCore,
        event: Event,
        positioned: Iterable[Positioned],
        told: Iterable[Notice],
    ) -> None:
        """A step is over. ``told`` is what the user may read in the log."""
        if isinstance(event, AssignmentChanged):
            self._assign(event)
        self._begin_anew(core, " ".join(each.text for each in told))
        positioned = tuple(positioned)
        self._follow_seeks(event, {each.partition for each in positioned})
        if isinstance(event, CommittedFound | OffsetsListed | FetchAnswered):
            self._answers.append(event)
        for each in positioned:
            self._position(core, event, each)
        if not core.is_taking_in:
            self._answers.clear()
        self.look(core)

    def _assign(self, event: AssignmentChanged) -> None:
        kept = event.assignment.keys() - event.fresh
        self._seeking = {tp: ticket for tp, ticket in self._seeking.items() if tp in kept}
        self._places = {tp: place for tp, place in self._places.items() if tp in kept}
        self._ids = {tp: topic_id for tp, topic_id in self._ids.items() if tp in kept}
        known = self._assigned
        self._assigned = {
            tp: topic_id if topic_id is not None else (known.get(tp) if tp in kept else None)
            for tp, topic_id in event.assignment.items()
        }
        self._by_hand = [tp for tp, topic_id in event.assignment.items() if topic_id is None]

    def _follow_seeks(self, event: Event, moved: set[TopicPartition]) -> None:
        """The youngest seek of a partition wins, and an older one changes nothing any more."""
        if isinstance(event, SeekBegun):
            for tp in event.partitions:
                if tp in self._assigned:
                    self._seeking[tp] = event.ticket
        elif isinstance(event, Sought):
            self._seeking.pop(event.partition, None)
        elif isinstance(event, SeekEnded):
            ended = {tp for tp, ticket in self._seeking.items() if ticket == event.ticket}
            if moved != ended & event.offsets.keys():
                raise Violation(Moved, f"seek {event.ticket} moves {moved}, not {ended}")
            for tp in ended:
                del self._seeking[tp]

    def _begin_anew(self, core: FetchCore, told: str) -> None:
        """An assigned name stands for the topic that has it now: the client restarts there and
        reports that."""
        for tp in self._by_hand:
            known, topic_id = self._ids.get(tp), core.topic_id(tp)
            if topic_id is None:
                continue
            self._ids[tp] = topic_id
            if known in (None, topic_id):
                continue
            if format_topic_id(topic_id) not in told:
                raise Violation(Closed, f"{_shown(tp)} changes its topic without a report")
            self._seeking.pop(tp, None)  # that was a seek in the topic that is gone
            self._assigned[tp] = topic_id
            self._places.pop(tp, None)
            self.successors += 1

    def _position(self, core: FetchCore, event: Event, said: Positioned) -> None:
        tp = said.partition
        if tp not in self._assigned:
            raise Violation(Moved, f"{_shown(tp)} is not assigned and has a position")
        reason = self._reason(core, event, said)
        if reason is not None:
            raise Violation(Moved, f"{_shown(tp)} to {said.offset} by {type(event)}: {reason}")
        self._places[tp] = _Place(said.offset, said.leader_epoch)
        self._learn_id(core, tp)

    def _reason(self, core: FetchCore, event: Event, said: Positioned) -> str | None:
        """Why this position is not in order; ``None`` when it is."""
        tp, offset = said.partition, said.offset
        match event:
            case Sought():
                return None if (event.partition, event.offset) == (tp, offset) else "not sought"
            case SeekEnded():
                sought = event.offsets.get(tp)
                return None if sought and sought.offset == offset else "not sought"
            case CommittedFound():
                stored = None if tp in self._places else event.offsets.get(tp)
                return None if stored and stored.offset == offset else "not committed"
            case OffsetsListed():
                return self._reset_reason(core, event, tp, offset)
            case FetchAnswered():
                return self._cut_reason(core, tp, offset)
            case TimerFired() if self._answers:
                reasons = [self._reason(core, each, said) for each in self._answers]
                return None if None in reasons else f"it is in none of the answers: {reasons}"
            case _:
                return "no event that moves positions"

    def _reset_reason(
        self, core: FetchCore, event: OffsetsListed, tp: TopicPartition, offset: int
    ) -> str | None:
        row = event.rows.get(tp)
        if row is None or row.error_code or row.offset != offset:
            return "the leader has not listed it"
        place = self._places.get(tp)
        if place is None:
            return None  # it had none
        key = (core.topic_id(tp) or ZERO_TOPIC_ID, tp.partition)
        if not self.may_reset:
            return "there is no reset policy"
        # what is fetched may be ahead of the position by what is buffered
        if all(said < place.offset for said in self._out_of_range.get(key, ())):
            return f"no leader has said that {place.offset} or more is out of range"
        self.resets += 1
        return None

    def _cut_reason(self, core: FetchCore, tp: TopicPartition, offset: int) -> str | None:
        key = (core.topic_id(tp) or ZERO_TOPIC_ID, tp.partition)
        place = self._places.get(tp)
        if place is None or offset > place.offset:
            return "forward, or from nowhere"
        if key not in self._diverged or offset not in self._diverged[key]:
            return f"no broker has said that its log differs from {offset} on"
        self.truncations += 1
        return None

    def _learn_id(self, core: FetchCore, tp: TopicPartition) -> None:
        """Which topic a partition is of is known from some time on, and never changes."""
        place, topic_id = self._places.get(tp), core.topic_id(tp)
        if topic_id is None:
            return
        known = self._assigned[tp]
        if known not in (None, topic_id):
            raise Violation(Closed, f"{_shown(tp)} changes its topic under way")
        self._assigned[tp] = topic_id
        if place is not None and place.reader is None:
            history = self.truth.of(topic_id, tp.partition)
            blank = place.leader_epoch < 0
            place.reader = Reader(history, self.read_committed, place.offset, blank=blank)

    # -- what the user gets ------------------------------------------------------------------

    def record(self, core: FetchCore, taken: Slice, offset: int, value: bytes) -> None:
        """A record is handed out."""
        reader = self._reader(core, taken)
        try:
            reader.read(offset, value)
        except WrongRecord as err:
            raise Violation(Delivered, f"{_shown(taken.tp)}: {err}") from err
        self._places[taken.tp].offset = reader.next_offset
        self.records += 1

    def finished(self, core: FetchCore, taken: Slice) -> None:
        """All of a slice was read, what it hides included."""
        reader = self._reader(core, taken)
        try:
            reader.skip_to(taken.next_offset)
        except WrongRecord as err:
            raise Violation(Delivered, f"{_shown(taken.tp)}: {err}") from err
        self._places[taken.tp].offset = reader.next_offset

    def _reader(self, core: FetchCore, taken: Slice) -> Reader:
        tp = taken.tp
        why = self.shut.get(tp)
        if why:
            raise Violation(Closed, f"{_shown(tp)} is {' and '.join(sorted(why))}, and handed out")
        if tp not in self._assigned:
            raise Violation(Closed, f"{_shown(tp)} is not assigned, and handed out")
        self._learn_id(core, tp)
        if taken.cursor.topic_id != self._assigned[tp]:
            raise Violation(Closed, f"{_shown(tp)} is handed out of another topic")
        if taken.cursor.generation != core.generation(tp):
            raise Violation(Closed, f"{_shown(tp)} is handed out of an old generation")
        place = self._places.get(tp)
        if place is None or place.reader is None:
            raise Violation(Delivered, f"{_shown(tp)} is handed out without a position")
        return place.reader

    def look(self, core: FetchCore) -> None:
        """The core's positions are those that were reported, and where reading led to."""
        for tp, place in self._places.items():
            self._learn_id(core, tp)
            position = core.position(tp)
            if position is not None and position != place.offset:
                raise Violation(Moved, f"{_shown(tp)} is at {place.offset}, not at {position}")
        if core.assigned != self._assigned.keys():
            raise Violation(Closed, f"{core.assigned} is assigned, not {self._assigned.keys()}")


def _shown(tp: TopicPartition) -> str:
    return f"{tp.topic}-{tp.partition}"
