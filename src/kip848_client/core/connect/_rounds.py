"""One round of Kafka's ``IncrementalCooperativeAssignor``: the items that each worker is to stop
and to start, when all rejoin, and the leader's memory until then.

For groups of the classic protocol, which may include Java workers. It equals the Java class in
every respect: owners, the order of lists, delays, candidates. It never stops an item and starts it
elsewhere in the same round; a stopped item is assigned one round later. On the new protocol the
coordinator takes care of that, and one computation is enough (``_incremental``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kip848_client.core.assignors import string_map_order, string_set_order
from kip848_client.core.assignors._java_order import set_copy_capacity, string_hash, table_order
from kip848_client.core.connect._draft import NOT_WAITING, Draft, Waiting
from kip848_client.core.connect._item_sets import NOTHING, ItemSet, all_of, as_set, repeated
from kip848_client.core.connect._items import NO_ITEMS, ConnectorTaskId, Items, items_of

__all__ = ["Round", "RoundMemory", "WorkerRound", "incremental_round"]

_FACTOR: Final = 40


@dataclass(frozen=True, slots=True)
class RoundMemory:
    """A leader's memory from round to round; a new leader begins with an empty one."""

    assigned: ItemSet = NOTHING
    """The items that were assigned after the last round, and those lost in it."""
    revoked: ItemSet = NOTHING
    """The items that the last round revoked."""
    has_moved: bool = False
    """Whether they were revoked to balance the load."""
    moving_rounds: int = 0
    """How many rounds in a row wanted to move items to balance the load."""
    waiting: Waiting = NOT_WAITING
    generation: int = -1
    workers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class WorkerRound:
    """The items that one worker starts and stops, and those it runs afterwards."""

    start: Items = NO_ITEMS
    stop: Items = NO_ITEMS
    runs: Items = NO_ITEMS


@dataclass(frozen=True, slots=True)
class Round:
    """The result for all workers."""

    workers: Mapping[str, WorkerRound]
    delay_ms: int
    memory: RoundMemory
    """For the next round."""


@dataclass(frozen=True, slots=True)
class _Found:
    """How all items have changed since the last round."""

    configured: ItemSet
    deleted: ItemSet
    repeated: ItemSet
    lost: ItemSet
    created: ItemSet


def incremental_round(
    connectors: Mapping[str, int],
    reported: Mapping[str, Items],
    memory: RoundMemory,
    *,
    now_ms: int,
    completed: int,
    generation: int,
    max_delay_ms: int = 300_000,
    java_order: bool = True,
) -> Round:
    """Compute the round ``generation``.

    ``connectors``: the number of tasks of each connector. ``reported``: the items that each worker
    reports as running. ``completed``: the generation that workers last completed; if it is not the
    generation of the memory, the last result has not reached them. ``java_order``: iterate over
    workers in the order of Java's hash maps instead of by id; the order decides which worker gives
    up an item.
    """
    order = string_map_order(reported) if java_order else sorted(reported)
    found = _look(connectors, reported, memory, completed)
    draft, stopping = Draft(order), found.deleted | found.repeated
    for worker in order:
        draft.keep(worker, reported[worker], stopping)
    waiting, reassigned, has_moved = _settled(draft, found.lost, memory, now_ms, max_delay_ms)
    moves: dict[str, Items] = {}
    rounds = memory.moving_rounds
    if waiting.delay_ms:
        has_moved = False
    else:
        moves = draft.moves(found.configured)
        if moves and has_moved:
            rounds += 1
            delay = _java_backoff_ms(rounds, max_delay_ms)
            if delay:
                moves = {}
                waiting = Waiting(waiting.candidates, now_ms + delay, delay)
        elif moves:
            has_moved = True
        elif has_moved:
            has_moved, rounds = False, 0
    draft.take(moves)
    draft.fill(found.created.in_order() + reassigned.in_order())
    workers = {
        each: _told(reported[each], found, moves.get(each, NO_ITEMS), draft.items(each))
        for each in reported
    }
    revoked = all_of(each.stop for each in workers.values())
    left = (draft.everything() - revoked) | found.lost
    present = frozenset(reported)
    after = RoundMemory(left, revoked, has_moved, rounds, waiting, generation, present)
    return Round(workers, waiting.delay_ms, after)


def _look(
    connectors: Mapping[str, int],
    reported: Mapping[str, Items],
    memory: RoundMemory,
    completed: int,
) -> _Found:
    previous = memory.assigned if memory.generation == completed else NOTHING
    active = all_of(reported.values())
    if memory.revoked & active:  # the revocation has not reached the workers yet
        previous = active
    configured = as_set(items_of(connectors))
    deleted = previous - configured
    return _Found(
        configured=configured,
        deleted=deleted,
        repeated=repeated(reported, active),
        lost=previous - active - deleted,
        created=configured - previous - active,
    )


def _settled(
    draft: Draft, lost: ItemSet, memory: RoundMemory, now_ms: int, max_delay_ms: int
) -> tuple[Waiting, ItemSet, bool]:
    if not lost and not memory.has_moved:
        return NOT_WAITING, NOTHING, False
    left = not memory.workers <= frozenset(draft.order)
    waiting, reassigned, has_ended = draft.settle(
        lost, memory.waiting, now_ms=now_ms, max_delay_ms=max_delay_ms, left=left
    )
    return waiting, reassigned, memory.has_moved and not has_ended


def _told(reported: Items, found: _Found, moved: Items, has: Items) -> WorkerRound:
    stop = _stopped(reported, found, moved)
    before, stopped = as_set(reported) - found.deleted, as_set(stop)
    return WorkerRound(
        start=Items(
            tuple(each for each in has.connectors if each not in before.connectors),
            tuple(each for each in has.tasks if each not in before.tasks),
        ),
        stop=stop,
        runs=Items(
            tuple(each for each in has.connectors if each not in stopped.connectors),
            tuple(each for each in has.tasks if each not in stopped.tasks),
        ),
    )


def _stopped(reported: Items, found: _Found, moved: Items) -> Items:
    """The items to stop: deleted ones and duplicates, both in the order of a ``HashSet`` of the
    reported items, and moved ones."""
    if not found.deleted and not found.repeated:
        return moved
    connectors = string_set_order(reported.connectors)
    capacity = set_copy_capacity(len(reported.tasks))
    tasks = table_order(list(dict.fromkeys(reported.tasks)), _task_spread, capacity)
    stopped = Items()
    for gone in (found.deleted, found.repeated):
        stopped += Items(
            tuple(each for each in connectors if each in gone.connectors),
            tuple(each for each in tasks if each in gone.tasks),
        )
    stopped += moved
    return Items(tuple(dict.fromkeys(stopped.connectors)), tuple(dict.fromkeys(stopped.tasks)))


def _task_spread(task: ConnectorTaskId) -> int:
    """The spread hash of Java's ``ConnectorTaskId.hashCode()`` in a hash map."""
    code = (31 * string_hash(task.connector) + task.task) & 0xFFFF_FFFF
    return code ^ code >> 16


def _java_backoff_ms(rounds: int, max_delay_ms: int) -> int:
    """Includes the rounding error of the logarithms in Java's ``ExponentialBackoff``: 999 where
    1000 is meant."""
    if max_delay_ms <= 1:
        return max_delay_ms
    exponent = min(float(rounds), math.log(max_delay_ms) / math.log(_FACTOR))
    return min(int(_FACTOR**exponent), max_delay_ms)
