"""From the current to the target assignment: the assignment state, and the next step.

Theory of operation
-------------------
Three sets of (topic id, partition), KIP-848 "assignment reconciliation":

- *target*: what the coordinator last sent. Each change gets a new revision, so that A, B, A is
  seen as three assignments. ``None`` before the first one, which differs from empty.
- *current*: what was reconciled last, with the revision it was reconciled for. A new one is
  reported to the coordinator; the set reported as owned is larger (see ``CallbackWork.claimed``).
- *assigned*: what the application sees. It differs from current while a reconciliation runs, and
  after one whose callback failed. Partitions in it for which the assigned callback has not
  succeeded yet are *unprepared*: they are passed to it again, and not fetched before.

Reconciliation is driven by the target and idempotent: a target may be skipped when a newer one
comes, and repeated when a callback failed. Names are only for the application; a topic without a
known name is left out of this round and taken in a later one, with an acknowledgement of each part.
A newly seen topic id gets one round of name look-up before a part is taken without it, unless
partitions must be released, which never waits for names.

The difference is computed by id, so a recreated topic is revoked and assigned like any two topics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kip848_client.core.member._model import AssignedPartition
from kip848_client.core.types import TopicId, TopicIdPartition, TopicPartition

__all__ = ["Acknowledge", "AssignmentState", "Held", "Plan", "Step", "next_step"]


@dataclass(frozen=True, slots=True)
class Held:
    """A set of partitions and the revision of the target that it belongs to."""

    partitions: frozenset[TopicIdPartition]
    revision: int


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """No change of partitions: only report this set to the coordinator."""

    held: Held


@dataclass(frozen=True, slots=True)
class Plan:
    """Release ``revoked``, then take the part of ``target`` whose names are known by then."""

    target: Held
    revoked: frozenset[TopicIdPartition]


Step = Acknowledge | Plan
_DESCRIBED_MAX: Final = 8
"""Size of the cache of described sets: a driver requests the same few after every step."""


def next_step(
    target: Held,
    current: Held | None,
    assigned: frozenset[TopicIdPartition],
    names: Mapping[TopicId, str],
    nameless: frozenset[TopicId],
    *,
    callback_failed: bool,
) -> Step | None:
    """Return the next step from ``assigned`` towards ``target``; ``None`` if nothing can be done
    before names, a poll or a newer target arrive.

    ``nameless``: topics whose name was looked up and not found. After a failed callback even an
    equal set needs its callback again.
    """
    resolved = _named(target.partitions, names)
    revoked = assigned - target.partitions
    unasked = any(p[0] not in names and p[0] not in nameless for p in target.partitions)
    if unasked and not revoked:
        return None
    done = current is not None and resolved == current.partitions == assigned
    if done and current is not None and not callback_failed:
        newer = target.revision > current.revision
        return Acknowledge(Held(resolved, target.revision)) if newer else None
    return Plan(target, revoked)


def _named(
    partitions: frozenset[TopicIdPartition], names: Mapping[TopicId, str]
) -> frozenset[TopicIdPartition]:
    return frozenset(p for p in partitions if p[0] in names)


class AssignmentState:
    """The three sets and the names, for one member. No decisions, only consistent changes."""

    def __init__(self) -> None:
        self.target: Held | None = None
        self.current: Held | None = None
        self.assigned: frozenset[TopicIdPartition] = frozenset()
        self.fetchable: frozenset[TopicIdPartition] = frozenset()
        self.releasing: frozenset[TopicIdPartition] = frozenset()
        """Partitions in an unanswered ReleasePartitions: their last callback is in progress."""
        self.names: dict[TopicId, str] = {}
        self.nameless: frozenset[TopicId] = frozenset()
        self.unprepared: frozenset[TopicIdPartition] = frozenset()
        """Assigned, and the assigned callback for them has not succeeded yet."""
        self.callback_failed = False
        """The newest callback of a reconciliation raised: it has to be called again."""
        self._revision = -1
        self._unresolved: tuple[TopicId, ...] | None = ()
        self._described: dict[frozenset[TopicIdPartition], tuple[AssignedPartition, ...]] = {}

    def retarget(self, partitions: frozenset[TopicIdPartition]) -> bool:
        """Adopt the coordinator's target; returns whether it is new."""
        if self.target is not None and self.target.partitions == partitions:
            return False
        self._revision += 1
        self.target = Held(partitions, self._revision)
        self._unresolved = None
        return True

    @property
    def is_met(self) -> bool:
        """Whether the current set is exactly the target."""
        return self.target == self.current and self.target is not None

    def next_step(self) -> Step | None:
        """See the function of the same name."""
        if self.target is None or self.is_met:
            return None
        return next_step(
            self.target,
            self.current,
            self.assigned,
            self.names,
            self.nameless,
            callback_failed=self.callback_failed,
        )

    def unresolved(self) -> tuple[TopicId, ...]:
        """Topics of the target without a name, sorted. Cached, since each deadline needs it."""
        if self._unresolved is None:
            wanted = frozenset() if self.target is None else self.target.partitions
            self._unresolved = tuple(sorted({p[0] for p in wanted} - self.names.keys()))
        return self._unresolved

    def name(self, asked: tuple[TopicId, ...], found: Mapping[TopicId, str]) -> None:
        """Process the answer to a look-up of ``asked``; other names are ignored."""
        wanted = self.unresolved()
        self.names.update({topic: found[topic] for topic in wanted if topic in found})
        self._unresolved = None
        self.nameless = frozenset(self.unresolved()) & (self.nameless | frozenset(asked))

    # -- the course of a plan ----------------------------------------------------------------

    def hold_back(self, partitions: frozenset[TopicIdPartition]) -> None:
        """Stop the delivery of records of these."""
        self.fetchable -= partitions

    def release(self, partitions: frozenset[TopicIdPartition]) -> None:
        """Begin to release these."""
        self.hold_back(partitions)
        self.releasing |= partitions

    def released(self, *, failed: bool) -> None:
        """Handle the end of the release callback; if it failed the application still has them."""
        if not failed:
            self.assigned -= self.releasing
            self.unprepared -= self.releasing
        self.releasing = frozenset()
        self.callback_failed = self.callback_failed or failed

    def start(self, target: Held) -> tuple[Held, frozenset[TopicIdPartition]]:
        """Show the new assignment to the application; its new partitions are not fetched yet.
        Returns the set held from now on, and the part to pass to the assigned callback: the new
        partitions, and those of an earlier failed call."""
        held = Held(_named(target.partitions, self.names), target.revision)
        self.unprepared = held.partitions - (self.assigned - self.unprepared)
        self.assigned = held.partitions
        return held, self.unprepared

    def started(self, held: Held, *, failed: bool) -> None:
        """Handle the end of the assigned callback; if it failed, its partitions stay unprepared."""
        self.callback_failed = failed
        if not failed:
            self.unprepared = frozenset()
            self.fetchable = held.partitions
            self.acknowledge(held)
            self._drop_names()

    def acknowledge(self, held: Held) -> None:
        """Set the owned partitions."""
        self.current = held

    def _drop_names(self) -> None:
        in_use = {p[0] for p in self.assigned}
        if self.target is not None:
            in_use |= {p[0] for p in self.target.partitions}
        unused = [t for t in self.names if t not in in_use]
        for topic in unused:
            del self.names[topic]
        self._unresolved = None
        if unused:
            self._described.clear()

    # -- out of the group --------------------------------------------------------------------

    def leave_group(self) -> None:
        """Leave the group: no target, nothing owned, nothing fetched. What the application sees
        stays until its callback is done."""
        self.target = None
        self.current = None
        self.fetchable = frozenset()
        self._unresolved = None

    def clear(self) -> None:
        """Drop everything: the application has no partitions any more (an empty state may be
        cleared again)."""
        self.leave_group()
        self.assigned = frozenset()
        self.releasing = frozenset()
        self.names.clear()
        self._described.clear()
        self.nameless = frozenset()
        self.unprepared = frozenset()
        self.callback_failed = False
        self._revision = -1

    # -- views -------------------------------------------------------------------------------

    def describe(self, partitions: frozenset[TopicIdPartition]) -> tuple[AssignedPartition, ...]:
        """Return partitions with their names, in the order that users expect: by name and
        number."""
        known = self._described.get(partitions)
        if known is None:
            names = self.names
            known = tuple(
                AssignedPartition(topic_id, TopicPartition(name, number))
                for name, topic_id, number in sorted([(names[t], t, p) for t, p in partitions])
            )
            if len(self._described) >= _DESCRIBED_MAX:
                self._described.clear()
            self._described[partitions] = known
        return known
