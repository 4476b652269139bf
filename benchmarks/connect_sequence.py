"""50 workers that join within 2 seconds, 500 tasks, in virtual time: what is stopped and moved for
it, and when everything runs.

The workers' own membership (``WorkerCore``, ``ClassicWorkerCore``), the bundled coordinator and the
real assignors; only time and what runs are made up. Intervals are Kafka's: heartbeats every 5 s on
the new protocol and every 3 s on the classic one. Stopping takes 300 ms, an answer 5 ms. What a
leader computes on the classic protocol is what Kafka's own class does, list orders included
(``tests/contract/test_connect_classes.py``): these rows are Java's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final, Self

from benchmarks.timing import table
from kip848_client.connect import AssignedItem
from kip848_client.connect.core import Configuration, ConnectorTasks, InstallTarget, SendSync
from kip848_client.core.connect import (
    ConnectAssignor,
    ConnectProtocol,
    EagerAssignor,
    IncrementalCooperativeAssignor,
    SpreadAssignor,
)
from tests.unit.connect._classic_workers import ClassicWorker, ClassicWorkers
from tests.unit.connect._workers import Worker, WorkerGroup

__all__ = ["FEWEST", "INITIAL_DELAY_MS", "Ledger", "classic", "connect", "joining", "joins"]

WORKERS: Final = 50
CONFIGURED: Final = Configuration(
    1, {f"connector-{number:02}": ConnectorTasks(10, 1) for number in range(50)}
)
ITEMS: Final = 50 + 500
FEWEST: Final = ITEMS * (WORKERS - 1) // WORKERS
"""Of moves, when one worker runs everything at first. From nothing it is none."""
INITIAL_DELAY_MS: Final = 3_000
_BETWEEN_MS: Final = 40
_SETTLED_MS: Final = 60_000

_Some = AbstractSet[AssignedItem]
Play = Callable[[Mapping[str, int]], "Ledger"]


@dataclass
class Ledger:
    """Who runs what, and what that has cost so far."""

    now_ms: Callable[[], int]
    runs: dict[AssignedItem, str] = field(default_factory=dict[AssignedItem, str])
    computations: int = 0
    stopped: int = 0
    moved: int = 0
    idle_ms: int = 0
    stable_ms: int = 0
    """When the last item was started, since the second worker joined."""
    _last: dict[AssignedItem, str] = field(default_factory=dict[AssignedItem, str])
    _stopped_at: dict[AssignedItem, int] = field(default_factory=dict[AssignedItem, int])

    def start(self, worker: str, items: Iterable[AssignedItem]) -> None:
        """The worker runs these now."""
        for item in items:
            if item in self.runs:
                raise AssertionError(f"{item} runs at {self.runs[item]} and at {worker}")
            self.runs[item] = worker
            self.moved += self._last.get(item, worker) != worker
            self._last[item] = worker
            self.stable_ms = self.now_ms()
            self.idle_ms += self.stable_ms - self._stopped_at.pop(item, self.stable_ms)

    def stop(self, items: Iterable[AssignedItem]) -> None:
        """Nobody runs these now."""
        for item in items:
            del self.runs[item]
            self._stopped_at[item] = self.now_ms()
            self.stopped += 1


class _Watched(set[AssignedItem]):
    """What a worker runs; the ledger hears of each change."""

    def __init__(self, ledger: Ledger, worker: str) -> None:
        super().__init__()
        self._ledger = ledger
        self._worker = worker

    def __ior__(self, value: _Some) -> Self:  # type: ignore[override,misc]  # as set's own
        self._ledger.start(self._worker, value - self)
        self.update(value)
        return self

    def __isub__(self, value: AbstractSet[object]) -> Self:
        self._ledger.stop(self & value)
        self.difference_update(value)
        return self


def joins(begin_ms: int) -> dict[str, int]:
    """When each worker joins: the first one at 0, the second at ``begin_ms``, the others 40 ms
    after each other."""
    first = {"worker-00": 0}
    later = {f"worker-{n:02}": begin_ms + (n - 1) * _BETWEEN_MS for n in range(1, WORKERS)}
    return {**first, **later}


def connect(assignor: ConnectAssignor, initial_delay_ms: int = INITIAL_DELAY_MS) -> Play:
    """On the new protocol."""

    def play(when: Mapping[str, int]) -> Ledger:
        group = WorkerGroup(assignor, initial_delay_ms=initial_delay_ms)
        group.configuration = CONFIGURED
        workers: list[Worker] = []

        def join(name: str, runs: _Watched) -> None:
            workers.append(group.worker(name))
            workers[-1].runs = runs

        ledger = _played(group, join, when)
        ledger.computations = sum(len(each.all(InstallTarget)) for each in workers)
        return ledger

    return play


def classic(protocol: ConnectProtocol) -> Play:
    """On the classic one."""

    def play(when: Mapping[str, int]) -> Ledger:
        group = ClassicWorkers(
            max_delay_ms=300_000, group_initial_rebalance_delay_ms=INITIAL_DELAY_MS
        )
        group.configuration = CONFIGURED
        workers: list[ClassicWorker] = []

        def join(name: str, runs: _Watched) -> None:
            workers.append(group.worker(name, protocol=protocol))
            workers[-1].runs = runs

        ledger = _played(group, join, when)
        ledger.computations = sum(
            bool(sync.assignments) for each in workers for sync in each.all(SendSync)
        )
        return ledger

    return play


def _played(
    group: WorkerGroup | ClassicWorkers,
    join: Callable[[str, _Watched], None],
    when: Mapping[str, int],
) -> Ledger:
    ledger = Ledger(lambda: group.now)
    begun_ms = group.now
    for name, at_ms in when.items():
        group.run(begun_ms + at_ms - group.now)
        join(name, _Watched(ledger, name))
    group.run(_SETTLED_MS)
    if len(ledger.runs) != ITEMS:
        raise AssertionError(f"{len(ledger.runs)} items run")
    ledger.stable_ms -= begun_ms + when["worker-01"]
    return ledger


PLAYS: Final[Mapping[str, Callable[[], Play]]] = {
    "classic, Java's incremental": lambda: classic(ConnectProtocol.SESSIONED),
    "classic, eager": lambda: classic(ConnectProtocol.EAGER),
    "connect, incremental-cooperative": lambda: connect(IncrementalCooperativeAssignor()),
    "the same, without initial delay": lambda: connect(IncrementalCooperativeAssignor(), 0),
    "connect, spread": lambda: connect(SpreadAssignor()),
    "connect, eager": lambda: connect(EagerAssignor()),
}


def _row(name: str, ledgers: Sequence[Ledger]) -> Sequence[str]:
    def mean(values: Iterable[float]) -> float:
        return sum(values) / len(ledgers)

    return (
        name,
        f"{mean(each.computations for each in ledgers):.1f}",
        f"{mean(each.stopped for each in ledgers):.0f}",
        f"{mean(each.moved for each in ledgers):.0f}",
        f"{max(each.moved for each in ledgers)}",
        f"{mean(each.idle_ms for each in ledgers) / 1000:.0f}",
        f"{mean(each.stable_ms for each in ledgers) / 1000:.1f}",
    )


def _table(title: str, beginnings: Sequence[int]) -> str:
    headings = ["", "computations", "stopped", "moved", "at most", "item-seconds idle", "stable s"]
    rows = [
        list(_row(name, [make()(joins(begin)) for begin in beginnings]))
        for name, make in PLAYS.items()
    ]
    return f"{title}; 50 connectors, 500 tasks\n\n{table(headings, rows)}\n"


def joining(phases: int = 10) -> str:
    """The tables: 50 workers within 2 seconds, into an empty group, and beside one that runs
    everything, on the average over when they begin between two heartbeats (``phases`` of them)."""
    step_ms = 5_000 // phases
    return "\n".join(
        [
            _table("50 workers join an empty group within 2 s", [_BETWEEN_MS]),
            _table(
                "49 workers join one that runs everything, within 2 s",
                range(20_000, 20_000 + phases * step_ms, step_ms),
            ),
            f"At least {FEWEST} have to move when one worker runs everything at first.\n",
        ]
    )
