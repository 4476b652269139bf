"""``incremental-cooperative``: balances the load with few moves, and keeps the items of a departed
worker for its return.

One computation replaces two rounds of Kafka's assignor, one that stops items and one that assigns
them (``_rounds``), because the coordinator makes workers stop before others start. Other deliberate
differences from the Java class:

* Deleted items are also detected in the workers' assignments. A new leader of Kafka's lets items
  that are not configured any more run for another round.
* A returning worker is recognized by its instance id or else its url, and gets its own items back
  at once. ``ReturningWorker.WAIT`` behaves like Java: the worker gets nothing before the delay is
  over, and then all workers that were empty meanwhile get everything.
* The pause after moves in quick succession begins while workers have not reached the target of the
  last move yet; in Java it depends on whether the last round moved something. Another computation
  during the pause does not cancel it, and a worker that leaves without items does not start one.

Nothing is stored here between calls; an ``IncrementalMemory`` holds what must be remembered.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

from kip848_client.core.assignors import string_map_order
from kip848_client.core.client_assignors import AssignorMetadata
from kip848_client.core.connect._draft import NOT_WAITING, Draft, Waiting, backoff_ms
from kip848_client.core.connect._item_sets import NOTHING, ItemSet, all_of, as_set, repeated
from kip848_client.core.connect._items import Items, items_of
from kip848_client.core.connect._model import (
    Computed,
    NewWorkerAssignment,
    TargetAssignment,
    WorkerGroup,
)
from kip848_client.core.connect._protocols import ConnectProtocol
from kip848_client.core.empty import EMPTY

__all__ = ["IncrementalCooperativeAssignor", "IncrementalMemory", "ReturningWorker"]

Identity = tuple[str, str]

_LONGEST_REST_MS: Final = 5_000
"""The default heartbeat interval: by then most workers have reached their target, and another
computation is cheap. Java's pauses grow up to five minutes."""


class ReturningWorker(enum.StrEnum):
    """When a returning worker gets its items back."""

    IMMEDIATE = "immediate"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class IncrementalMemory:
    """The assignor's memory of its last computation."""

    targets: Mapping[str, ItemSet] = EMPTY
    identities: Mapping[str, Identity] = EMPTY
    departed: Mapping[Identity, ItemSet] = EMPTY
    """The items kept for each departed worker."""
    waiting: Waiting = NOT_WAITING
    moved_epoch: int = -1
    """The epoch of the last target that moved items away from workers."""
    moved_workers: frozenset[str] = frozenset()
    """The workers involved in that move."""
    rests: int = 0
    """How many computations in a row had to leave items where they are."""
    resting_until_ms: int = 0


_FORGOTTEN: Final = IncrementalMemory()


@dataclass(slots=True)
class _Computation:
    """One call of ``assign``."""

    group: WorkerGroup
    memory: IncrementalMemory
    draft: Draft
    configured: ItemSet
    created: ItemSet
    twice: ItemSet
    lost: ItemSet
    departed: dict[Identity, ItemSet]
    left: bool
    moves: dict[str, Items] = field(default_factory=dict[str, Items])
    rests: int = 0
    resting_until_ms: int = 0
    waiting: Waiting = NOT_WAITING

    def settle(self, max_delay_ms: int, returning: ReturningWorker) -> None:
        """Assign the items that have no worker, and find the items to move."""
        missing, reassigned = self.lost, NOTHING
        if returning is ReturningWorker.IMMEDIATE:
            missing = missing - self._give_back()
        if missing:
            self.waiting, reassigned, _ = self.draft.settle(
                missing,
                self.waiting,
                now_ms=self.group.now_ms,
                max_delay_ms=max_delay_ms,
                left=self.left,
            )
        else:
            self.waiting = NOT_WAITING
        if not self.waiting.delay_ms:
            self._balance(max_delay_ms)
        self.draft.take(self.moves)
        self.draft.fill(self.created.in_order() + reassigned.in_order())
        again = (all_of(self.moves.values()) | self.twice) & self.configured
        late = again & self.lost
        self.draft.fill((again - late).in_order() + late.in_order())

    def _give_back(self) -> ItemSet:
        """Give items back to returning workers that have none."""
        given = NOTHING
        for worker in self.draft.order:
            identity = _identity(self.group, worker)
            own = self.departed.get(identity, NOTHING)
            if own and self.draft.is_empty(worker):
                self.draft.add(worker, own.in_order())
                del self.departed[identity]
                given |= own
        return given

    def _balance(self, max_delay_ms: int) -> None:
        moves = self.draft.moves(self.configured)
        if not moves or not max_delay_ms or not self._is_moving():
            self.moves = moves
            return
        now_ms, until_ms = self.group.now_ms, self.memory.resting_until_ms
        self.rests = self.memory.rests
        if now_ms >= until_ms:
            self.rests += 1
            until_ms = now_ms + backoff_ms(self.rests, min(max_delay_ms, _LONGEST_REST_MS))
        self.resting_until_ms = until_ms

    def _is_moving(self) -> bool:
        """Whether a worker has not reached the last target that moved items."""
        workers = self.group.workers
        return any(
            0 <= workers[each].member_epoch < self.memory.moved_epoch
            for each in self.memory.moved_workers
            if each in workers
        )

    def computed(self) -> Computed:
        """The target, and the memory for the next computation."""
        group, memory = self.group, self.memory
        targets = {each: self.draft.items(each).in_order() for each in self.draft.order}
        held = {each: as_set(items) for each, items in targets.items()}
        epoch, involved = memory.moved_epoch, memory.moved_workers
        if self.moves:
            moved = all_of(self.moves.values())
            takers = {each for each, items in held.items() if items & moved}
            epoch, involved = group.group_epoch, frozenset(takers).union(self.moves)
        rest_ms = max(0, self.resting_until_ms - group.now_ms)
        target = TargetAssignment(
            targets,
            (self.configured - self.draft.everything()).in_order(),
            self.waiting.delay_ms or rest_ms,
        )
        after = IncrementalMemory(
            targets=held,
            identities={each: _identity(group, each) for each in group.workers},
            departed=self.departed if self.waiting.deadline_ms else EMPTY,
            waiting=self.waiting,
            moved_epoch=epoch,
            moved_workers=involved,
            rests=self.rests,
            resting_until_ms=self.resting_until_ms,
        )
        return Computed(target, after)


class IncrementalCooperativeAssignor:
    """Moves few items, and keeps those of a departed worker for its return (KIP-415).

    Args:
        scheduled_rebalance_max_delay_ms: How long items wait for a departed worker, in
            milliseconds. 0: they are assigned at once. ``None``: the worker's setting, from
            ``WorkerGroup``.
        returning_worker: When a worker that returns in this time gets its items back.
        java_order: Iterate over workers in the order of Java's hash maps instead of sorted. The
            order decides which worker gives an item up; for comparisons with Kafka.
    """

    name: str = "incremental-cooperative"
    minimum_version: int = ConnectProtocol.COMPATIBLE
    maximum_version: int = ConnectProtocol.SESSIONED

    _draft: ClassVar[type[Draft]] = Draft

    def __init__(
        self,
        *,
        scheduled_rebalance_max_delay_ms: int | None = None,
        returning_worker: ReturningWorker = ReturningWorker.IMMEDIATE,
        java_order: bool = False,
    ) -> None:
        self._max_delay_ms = scheduled_rebalance_max_delay_ms
        self._returning = ReturningWorker(returning_worker)
        self._java_order = java_order

    @property
    def scheduled_rebalance_max_delay_ms(self) -> int | None:
        """How long items wait for a departed worker; ``None`` for the worker's setting."""
        return self._max_delay_ms

    def metadata(self) -> AssignorMetadata:
        """Return metadata without data. See ``ConnectAssignor.metadata``."""
        return AssignorMetadata(version=self.maximum_version)

    def assign(self, group: WorkerGroup, memory: object = None) -> Computed:
        """Ignore the memory of another assignor. See ``ConnectAssignor.assign``."""
        known = memory if isinstance(memory, IncrementalMemory) else None
        computation = self._begun(group, known)
        computation.settle(self._delay_of(group), self._returning)
        return computation.computed()

    def _delay_of(self, group: WorkerGroup) -> int:
        own_ms = self._max_delay_ms
        return group.scheduled_rebalance_max_delay_ms if own_ms is None else own_ms

    def _begun(self, group: WorkerGroup, known: IncrementalMemory | None) -> _Computation:
        memory = _FORGOTTEN if known is None else known
        order = string_map_order(group.workers) if self._java_order else sorted(group.workers)
        reported = {each: group.workers[each].target.in_order() for each in order}
        active = all_of(reported.values())
        vanished = _vanished(group, memory)
        departed = dict(memory.departed)
        for identity, items in vanished.items():
            departed[identity] = departed.get(identity, NOTHING) | items
        previous = active
        for items in vanished.values():
            previous |= items
        waiting = memory.waiting
        if known is None and group.remaining_delay_ms > 0 and group.deferred:
            # the computing worker is gone; the others know when its wait was to end
            delay = min(group.remaining_delay_ms, self._delay_of(group))
            waiting = Waiting((), group.now_ms + delay, delay)
        if known is not None or waiting.deadline_ms:
            previous |= as_set(group.deferred)
        configured = as_set(items_of(group.connectors))
        deleted, twice = previous - configured, repeated(reported, active)
        lost = previous - active - deleted
        draft = self._draft(order)
        for worker in order:
            draft.keep(worker, reported[worker], deleted | twice)
        return _Computation(
            group=group,
            memory=memory,
            draft=draft,
            configured=configured,
            created=configured - previous,
            twice=twice,
            lost=lost,
            departed={each: items & lost for each, items in departed.items() if items & lost},
            left=any(each not in group.workers for each in memory.targets),
            waiting=waiting,
        )

    def on_assignment(self, assignment: NewWorkerAssignment) -> None:
        """Do nothing. See ``ConnectAssignor.on_assignment``."""


def _identity(group: WorkerGroup, worker: str) -> Identity:
    return group.workers[worker].identity or ("member", worker)


def _vanished(group: WorkerGroup, memory: IncrementalMemory) -> dict[Identity, ItemSet]:
    """The former items of workers that have left, or that have returned without them."""
    found: dict[Identity, ItemSet] = {}
    for worker, items in memory.targets.items():
        present = group.workers.get(worker)
        if items and (present is None or not present.target):
            identity = memory.identities.get(worker, ("member", worker))
            found[identity] = found.get(identity, NOTHING) | items
    return found
