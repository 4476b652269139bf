"""An assignment for aiokafka's fetcher that changes in place.

Theory of operation
-------------------
aiokafka replaces its ``Assignment`` at each rebalance: every fetch is cancelled, everything
prefetched is dropped, every position looked up again. KIP-848 moves single partitions, so here one
assignment lives as long as the consumer, and partitions come and go in it while the others keep
their position, their buffer and their fetch in flight.

A partition passes through these steps: *assigned* (the user sees it), *ready* (the assigned
callback is done), *positioned* (its offset is known). Only then, and while it is neither *held*
(about to be revoked) nor *resting* (its fetch was refused) nor outside of the subscription's
topics, is it *live*: listed in ``tps``, which is what the fetcher fetches.

Whatever the fetcher still has in flight for a partition that is not live finds ``_Gone`` in its
place: a state whose position equals no offset, so the answer is thrown away when it comes. No
tombstone has to be kept for it, because ``state_value`` makes one up.

All changes are synchronous: between two awaits a partition is live or it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from aiokafka.consumer.subscription_state import Assignment, TopicPartitionState
from aiokafka.structs import TopicPartition as TheirTopicPartition

from kip848_client._types import TopicPartition

__all__ = ["LiveAssignment"]

_NO_OFFSET = -2


class _Gone(TopicPartitionState):  # type: ignore[misc]  # aiokafka has no types
    """Stands for a partition that is not live; nothing changes it and nothing matches it."""

    @property
    def has_valid_position(self) -> bool:
        return True

    @property
    def position(self) -> int:
        return _NO_OFFSET

    def consumed_to(self, position: int) -> None:
        """Ignored."""

    def reset_to(self, position: int) -> None:
        """Ignored."""

    def await_reset(self, strategy: int) -> None:
        """Ignored."""


class _Slot:
    """One assigned partition."""

    __slots__ = ("held", "ready", "resting", "state", "tp")

    def __init__(self, tp: TopicPartition, state: TopicPartitionState) -> None:
        self.tp = tp
        self.state = state
        self.ready = False
        self.held = False
        self.resting = False


class LiveAssignment(Assignment):  # type: ignore[misc]  # aiokafka has no types
    """The one assignment of a consumer.

    ``changed`` is called after every change of what is live, with the partitions that ceased to
    be (their buffers must go).
    """

    def __init__(self, changed: Callable[[Collection[tuple[str, int]]], None]) -> None:
        super().__init__([])
        self._tp_state: dict[tuple[str, int], TopicPartitionState] = {}
        self._slots: dict[TopicPartition, _Slot] = {}
        self._topics: frozenset[str] | None = None
        self._changed = changed
        self._gone = _Gone(self)

    # -- what aiokafka's fetcher calls ---------------------------------------------------------

    def state_value(self, tp: TheirTopicPartition) -> TopicPartitionState:
        return self._tp_state.get(tp, self._gone)

    # -- what we call --------------------------------------------------------------------------

    @property
    def assigned(self) -> frozenset[TopicPartition]:
        """What the user sees."""
        return frozenset(self._slots)

    def state_of(self, tp: TopicPartition) -> TopicPartitionState | None:
        """The state of an assigned partition, live or not."""
        slot = self._slots.get(tp)
        return None if slot is None else slot.state

    def is_live(self, tp: TopicPartition) -> bool:
        """Whether records of it may be handed out."""
        return tp in self._tp_state

    def assign(self, assignment: Iterable[TopicPartition], fresh: Iterable[TopicPartition]) -> None:
        """Make ``assignment`` what is assigned. ``fresh`` ones start anew, not ready and without
        a position, even if a partition of that name is there (a topic created again)."""
        kept = set(assignment)
        for tp in list(self._slots):
            if tp not in kept:
                del self._slots[tp]
        anew = set(fresh)
        for tp in sorted(kept):
            if tp in anew or tp not in self._slots:
                self._slots[tp] = _Slot(TopicPartition(*tp), TopicPartitionState(self))
        self._recount()

    def release(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget these partitions."""
        for tp in partitions:
            self._slots.pop(tp, None)
        self._recount()

    def make_ready(self, partitions: Iterable[TopicPartition]) -> None:
        """The assigned callback is done: fetch them as soon as they have a position."""
        for slot in self._some(partitions):
            slot.ready = True
        self._recount()

    def hold_all_but(
        self, partitions: Iterable[TopicPartition], fetchable: Collection[TopicPartition]
    ) -> None:
        """Of ``partitions``, neither fetch nor hand out those that are not ``fetchable``."""
        changed = False
        for slot in self._some(partitions):
            held = slot.tp not in fetchable
            if slot.held is not held:
                slot.held = held
                changed = True
        if changed:
            self._recount()

    def rest(self, tp: TopicPartition, *, resting: bool) -> None:
        """Leave a partition out of the next fetches, or put it back."""
        for slot in self._some((tp,)):
            slot.resting = resting
        self._recount()

    def limit_to(self, topics: frozenset[str] | None) -> None:
        """Fetch only partitions of these topics; ``None`` for no limit (a pattern)."""
        self._topics = topics
        self._recount()

    def set_position(self, tp: TopicPartition, offset: int) -> None:
        """Continue at ``offset``."""
        slot = self._slots.get(tp)
        if slot is not None:
            slot.state.seek(offset)
            self._recount()

    def clear_position(self, tp: TopicPartition) -> None:
        """The position is not known any more."""
        slot = self._slots.get(tp)
        if slot is not None:
            slot.state._position = None
            self._recount()

    def _some(self, partitions: Iterable[TopicPartition]) -> list[_Slot]:
        return [self._slots[tp] for tp in partitions if tp in self._slots]

    def _is_live(self, slot: _Slot) -> bool:
        return (
            slot.ready
            and not slot.held
            and not slot.resting
            and slot.state._position is not None
            and (self._topics is None or slot.tp.topic in self._topics)
        )

    def _recount(self) -> None:
        before = self._tp_state
        self._tp_state = {tp: slot.state for tp, slot in self._slots.items() if self._is_live(slot)}
        self._topic_partitions = frozenset(self._tp_state)
        now = self._tp_state
        self._changed([tp for tp, state in before.items() if now.get(tp) is not state])
