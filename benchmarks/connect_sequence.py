"""Many workers that join a group of Connect at nearly the same time, in virtual time: what is
stopped and moved for it, and when everything runs.

Two models of how a group hears of changes, with Kafka's intervals. *Classic*: members learn at
their next heartbeat (3 s) that they have to join again, and a round is computed when all have; an
empty group waits for more while somebody joins (``group.initial.rebalance.delay.ms``). *Connect*:
the worker that computes learns of it with a heartbeat (5 s), the others take up and give up items
with theirs. Stopping takes 100 ms, computing and installing 50 ms, all else nothing.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from benchmarks.timing import table
from kip848_client.connect import (
    ITSELF,
    ConnectAssignor,
    EagerAssignor,
    GroupWorker,
    IncrementalCooperativeAssignor,
    Items,
    RoundMemory,
    SpreadAssignor,
    WorkerGroup,
    computed_target,
    eager_round,
    incremental_round,
    items_of,
)

__all__ = ["Classic", "Connect", "Ledger", "joining"]

CONNECTORS: Final = {f"connector-{number:02}": 10 for number in range(50)}
STOP_MS: Final = 100
COMPUTE_MS: Final = 50
CLASSIC_HEARTBEAT_MS: Final = 3_000
CONNECT_HEARTBEAT_MS: Final = 5_000
INITIAL_DELAY_MS: Final = 3_000
NEVER: Final = 2**62

Item = tuple[str, int]


def _flat(items: Items) -> frozenset[Item]:
    return frozenset([*((name, ITSELF) for name in items.connectors), *items.tasks])


@dataclass
class Ledger:
    """Who runs what, and what that has cost so far. An item that two run at once is an error."""

    runs: dict[Item, str] = field(default_factory=dict[Item, str])
    last: dict[Item, str] = field(default_factory=dict[Item, str])
    stopped_at: dict[Item, int] = field(default_factory=dict[Item, int])
    computations: int = 0
    stopped: int = 0
    moved: int = 0
    idle_ms: int = 0
    stable_ms: int = 0

    def start(self, worker: str, items: frozenset[Item], now_ms: int) -> None:
        """The worker runs these now."""
        for item in sorted(items):
            if item in self.runs:
                raise AssertionError(f"{item} runs at {self.runs[item]} and at {worker}")
            self.runs[item] = worker
            self.moved += self.last.get(item, worker) != worker
            self.last[item] = worker
            self.idle_ms += now_ms - self.stopped_at.pop(item, now_ms)
            self.stable_ms = now_ms

    def stop(self, items: frozenset[Item], now_ms: int) -> None:
        """Nobody runs these now."""
        for item in sorted(items):
            del self.runs[item]
            self.stopped_at[item] = now_ms
            self.stopped += 1

    def of(self, worker: str) -> frozenset[Item]:
        """What the worker runs."""
        return frozenset(item for item, who in self.runs.items() if who == worker)

    def require_everything(self) -> None:
        """Every item runs."""
        if frozenset(self.runs) != _flat(items_of(CONNECTORS)):
            raise AssertionError(f"{len(self.runs)} items run")


class Classic:
    """Rounds, as JoinGroup and SyncGroup have them, with Java's incremental assignor or the eager
    one. ``joins``: worker -> when."""

    def __init__(self, joins: Mapping[str, int], *, eager: bool) -> None:
        self.ledger = Ledger()
        self._joins = sorted((at, worker) for worker, at in joins.items())
        self._eager = eager
        self._workers: list[str] = []
        self._lists: dict[str, Items] = {}
        self._memory = RoundMemory()
        self._synced_ms = 0

    def run(self) -> Ledger:
        """To the end."""
        wanted: int | None = self._joins[0][0]
        due: int | None = None
        while wanted is not None or due is not None:
            at = self._completed(wanted) if wanted is not None else NEVER
            at = at if due is None else min(at, due)  # of a delay all know by themselves
            while self._joins and self._joins[0][0] <= at:
                self._workers.append(self._joins.pop(0)[1])
            wanted, due = self._round(at)
            if self._joins:
                first = self._joins[0][0]
                wanted = first if wanted is None else min(wanted, first)
        self.ledger.require_everything()
        return self.ledger

    def _completed(self, wanted_ms: int) -> int:
        """When all have joined again, of a round that somebody wants since then."""
        if self._workers:
            beats = -(-(wanted_ms - self._synced_ms) // CLASSIC_HEARTBEAT_MS)
            return self._synced_ms + max(1, beats) * CLASSIC_HEARTBEAT_MS
        end = wanted_ms + INITIAL_DELAY_MS
        while any(end - INITIAL_DELAY_MS < at <= end for at, _ in self._joins):
            end += INITIAL_DELAY_MS
        return end

    def _round(self, now_ms: int) -> tuple[int | None, int | None]:
        """One round; since when somebody wants the next one, and when all do."""
        ledger, self._synced_ms = self.ledger, now_ms
        ledger.computations += 1
        if self._eager:  # everything was stopped before joining again
            ledger.stop(frozenset(ledger.runs), now_ms - STOP_MS)
            for worker, items in eager_round(CONNECTORS, self._workers).items():
                ledger.start(worker, _flat(items), now_ms)
            return None, None
        done = incremental_round(
            CONNECTORS,
            {each: self._lists.get(each, Items()) for each in self._workers},
            self._memory,
            now_ms=now_ms,
            completed=self._memory.generation,
            generation=self._memory.generation + 1,
        )
        self._memory = done.memory
        has_stopped = False
        for worker, told in done.workers.items():
            ledger.stop(_flat(told.stop), now_ms)
            ledger.start(worker, _flat(told.start), now_ms)
            self._lists[worker] = told.runs
            has_stopped |= bool(told.stop)
        return (
            now_ms + STOP_MS if has_stopped else None,
            now_ms + done.delay_ms if done.delay_ms else None,
        )


class Connect:
    """The new protocol, with one of our assignors. The worker that computes waits for ``wait_ms``
    before it asks who is there."""

    def __init__(
        self, joins: Mapping[str, int], assignor: ConnectAssignor, *, wait_ms: int = 0
    ) -> None:
        self.ledger = Ledger()
        self._wait_ms = wait_ms
        self._assignor = assignor
        self._events: list[tuple[int, int, str, Callable[[str, int], None]]] = []
        self._numbers = 0
        self._epochs: dict[str, int] = {}
        self._targets: dict[str, Items] = {}
        self._beats: dict[str, int] = {}
        self._epoch = self._assigned = 1
        self._computing = False
        self._expected = len(joins)
        """Joins and delays that are to come."""
        self._memory: object = None
        self._runner = min(joins, key=lambda each: (joins[each], each))
        for worker, at in joins.items():
            self._at(at, worker, self._join)

    def _at(self, when: int, worker: str, what: Callable[[str, int], None]) -> None:
        self._numbers += 1
        heapq.heappush(self._events, (when, self._numbers, worker, what))

    def run(self) -> Ledger:
        """Until nothing but heartbeats without news would follow."""
        while self._expected or not self._is_quiet():
            when, _, worker, what = heapq.heappop(self._events)
            what(worker, when)
        self.ledger.require_everything()
        return self.ledger

    def _join(self, worker: str, now_ms: int) -> None:
        self._epoch += 1
        self._expected -= 1
        self._epochs[worker] = 0
        self._targets[worker] = Items()
        self._beat(worker, now_ms)

    def _beat_next(self, worker: str, when: int) -> None:
        """Its next heartbeat; one that was planned before is not sent."""
        self._numbers += 1
        mine = self._beats[worker] = self._numbers

        def beat(worker: str, now_ms: int) -> None:
            if self._beats[worker] == mine:
                self._beat(worker, now_ms)

        self._at(when, worker, beat)

    def _beat(self, worker: str, now_ms: int) -> None:
        target = _flat(self._targets[worker])
        has = self.ledger.of(worker)
        if has - target:
            self.ledger.stop(has - target, now_ms)
            self._beat_next(worker, now_ms + STOP_MS)
            return
        self._epochs[worker] = self._assigned
        free = frozenset(item for item in target - has if self._is_free(item, now_ms))
        self.ledger.start(worker, free, now_ms)
        if worker == self._runner and self._epoch > self._assigned and not self._computing:
            self._computing = True
            self._at(now_ms + self._wait_ms + COMPUTE_MS, worker, self._install)
        self._beat_next(worker, now_ms + CONNECT_HEARTBEAT_MS)

    def _is_free(self, item: Item, now_ms: int) -> bool:
        return item not in self.ledger.runs and (
            now_ms - self.ledger.stopped_at.get(item, -STOP_MS) >= STOP_MS
        )

    def _is_quiet(self) -> bool:
        return self._epoch == self._assigned and all(
            self.ledger.of(worker) == _flat(items) for worker, items in self._targets.items()
        )

    def _install(self, worker: str, now_ms: int) -> None:
        self.ledger.computations += 1
        group = WorkerGroup(
            self._epoch,
            {
                each: GroupWorker(epoch, self._targets[each], url=f"http://{each}")
                for each, epoch in self._epochs.items()
            },
            CONNECTORS,
            now_ms,
        )
        target, self._memory = computed_target(self._assignor, group, self._memory)
        self._targets = dict(target.workers)
        self._assigned, self._computing = group.group_epoch, False
        if target.delay_ms:
            self._expected += 1
            self._at(now_ms + target.delay_ms, worker, self._due)
        self._beat(worker, now_ms)

    def _due(self, worker: str, now_ms: int) -> None:
        self._expected -= 1
        self._epoch += 1
        self._beat(worker, now_ms)


def _row(name: str, ledgers: Sequence[Ledger]) -> Sequence[str]:
    def mean(values: Iterable[float]) -> float:
        return sum(values) / len(ledgers)

    return (
        name,
        f"{mean(each.computations for each in ledgers):.1f}",
        f"{mean(each.stopped for each in ledgers):.0f}",
        f"{mean(each.moved for each in ledgers):.0f}",
        f"{mean(each.idle_ms for each in ledgers) / 1000:.0f}",
        f"{mean(each.stable_ms for each in ledgers) / 1000:.1f}",
    )


def _table(title: str, beginnings: Sequence[int]) -> str:
    """``beginnings``: when the second worker joins, 40 ms before the third and so on; the first one
    is there at 0."""
    runs: dict[str, list[Ledger]] = {}
    for begin in beginnings:
        joins = {f"worker-{n:02}": begin + (n - 1) * 40 if n else 0 for n in range(50)}
        done = {
            "classic, Java's incremental": Classic(joins, eager=False).run(),
            "classic, eager": Classic(joins, eager=True).run(),
        }
        for make in (SpreadAssignor, EagerAssignor, IncrementalCooperativeAssignor):
            assignor = make()
            done[f"connect, {assignor.name}"] = Connect(joins, assignor).run()
        patient = Connect(joins, IncrementalCooperativeAssignor(), wait_ms=INITIAL_DELAY_MS)
        done["the same, computed 3 s later"] = patient.run()
        for name, ledger in done.items():
            ledger.stable_ms -= begin
            runs.setdefault(name, []).append(ledger)
    headings = ["", "computations", "stopped", "moved", "item-seconds idle", "stable after s"]
    rows = [list(_row(name, ledgers)) for name, ledgers in runs.items()]
    return f"{title}; 50 connectors, 500 tasks\n\n{table(headings, rows)}\n"


def joining() -> str:
    """The tables: 50 workers within 2 seconds, into an empty group, and beside one that runs
    everything, on the average over when they begin between two heartbeats."""
    ideal = len(_flat(items_of(CONNECTORS))) * 49 // 50
    return "\n".join(
        [
            _table("50 workers join an empty group within 2 s", [40]),
            _table(
                "49 workers join one that runs everything, within 2 s",
                range(20_000, 25_000, 100),
            ),
            f"At least {ideal} have to move when one worker runs everything at first.\n",
        ]
    )
