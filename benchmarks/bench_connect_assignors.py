"""Connect's assignors: how long the worker that computes thinks, beside Kafka's class on the JVM.

Three situations for every size: ``full``, nobody runs anything yet; ``join``, one worker more;
``leave``, one worker less, at the end of its delay. ``incremental`` and ``spread`` answer with one
computation; ``rounds`` is the Java form, which needs a round and for ``join`` the one that follows,
as Kafka's class does, beside it. Figures of Kafka's are the least of many repeats, when the JVM has
compiled it; the first one takes many times as long. The bar: 100 workers x 10,000 tasks below
250 ms.

With ``--sequence``: 50 workers join within 2 virtual seconds, 500 tasks: what is moved, and when
everything runs (two minutes).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from benchmarks.connect_sequence import joining
from benchmarks.timing import machine, say, table
from kip848_client.core.connect import (
    Computed,
    ConnectAssignor,
    EagerAssignor,
    GroupWorker,
    IncrementalCooperativeAssignor,
    Items,
    Round,
    RoundMemory,
    SpreadAssignor,
    WorkerGroup,
    checked_target,
    incremental_round,
)
from tests.support.connect.oracle import ConnectOracle, round_words
from tests.support.kafka_jars import KafkaUnavailableError

__all__ = ["CASES", "Case", "main", "run"]

T = TypeVar("T")

BAR_MS: Final = 250.0
_DELAY_MS: Final = 300_000
_WARM: Final = 60


@dataclass(frozen=True)
class Case:
    """One size: workers x connectors x tasks of each."""

    workers: int
    connectors: int
    tasks: int

    @property
    def is_the_bar(self) -> bool:
        """True for the case that the bar is about."""
        return self.workers * self.connectors * self.tasks >= 100 * 10_000

    @property
    def configured(self) -> dict[str, int]:
        """Connector -> its tasks."""
        return {f"connector-{number:03}": self.tasks for number in range(self.connectors)}

    @property
    def names(self) -> list[str]:
        """The workers."""
        return [f"connect-10.0.0.{number}:8083" for number in range(self.workers)]


CASES: Final = (Case(3, 5, 10), Case(10, 20, 10), Case(50, 50, 10), Case(100, 100, 100))

Times = dict[str, float]
"""Situation -> milliseconds, the least of the repeats."""


def run(case: Case, repeats: int) -> dict[str, Times]:
    """Assignor -> its times. Each result is checked."""
    found: dict[str, Times] = {}
    for assignor in (IncrementalCooperativeAssignor(), SpreadAssignor(), EagerAssignor()):
        found[assignor.name] = _declared(case, assignor, repeats)
    found["rounds"] = _rounds(case, repeats)
    return found


def _declared(case: Case, assignor: ConnectAssignor, repeats: int) -> Times:
    times: Times = {}
    workers = {name: GroupWorker(1, url=f"http://{name}") for name in case.names}

    def computed(situation: str, group: WorkerGroup, memory: object) -> Computed:
        done, times[situation] = _timed(lambda: assignor.assign(group, memory), repeats)
        return checked_target(group, done)

    full = computed("full", WorkerGroup(1, workers, case.configured), None)
    settled = {
        name: GroupWorker(2, items, url=f"http://{name}")
        for name, items in full.target.workers.items()
    }
    newcomer = {"newcomer": GroupWorker(0, url="http://newcomer")}
    computed("join", WorkerGroup(2, settled | newcomer, case.configured), full.memory)
    fewer = dict(list(settled.items())[1:])
    left = computed("-", WorkerGroup(2, fewer, case.configured), full.memory)
    later = WorkerGroup(3, fewer, case.configured, _DELAY_MS, left.target.deferred)
    computed("leave", later, left.memory)
    return times


def _rounds(case: Case, repeats: int) -> Times:
    def round_of(runs: Mapping[str, Items], memory: RoundMemory, number: int, now: int) -> Round:
        return incremental_round(
            case.configured, runs, memory, now_ms=now, completed=number - 1, generation=number
        )

    empty = dict.fromkeys(case.names, Items())
    full, full_ms = _timed(lambda: round_of(empty, RoundMemory(), 1, 0), repeats)
    runs = {name: row.runs for name, row in full.workers.items()}

    def join() -> None:
        first = round_of(runs | {"newcomer": Items()}, full.memory, 2, 0)
        now = {name: row.runs for name, row in first.workers.items()}
        round_of(now, first.memory, 3, 0)

    _, join_ms = _timed(join, repeats)
    fewer = dict(list(runs.items())[1:])
    left = round_of(fewer, full.memory, 2, 0)
    _, leave_ms = _timed(lambda: round_of(fewer, left.memory, 3, _DELAY_MS), repeats)
    return {"full": full_ms, "join": join_ms, "leave": leave_ms}


def _timed(action: Callable[[], T], repeats: int) -> tuple[T, float]:
    started = time.perf_counter()
    result = action()
    best = time.perf_counter() - started
    for _ in range(repeats - 1):
        started = time.perf_counter()
        result = action()
        best = min(best, time.perf_counter() - started)
    return result, best * 1000


def _kafkas(cases: tuple[Case, ...]) -> list[Times] | None:
    """Those of Kafka's class; ``None`` where it cannot be run."""
    lines = [
        " ".join(
            [
                "time",
                str(_WARM),
                *("-", "-"),
                *round_words(case.configured, dict.fromkeys(case.names, Items())),
            ]
        )
        for case in cases
    ]
    try:
        with tempfile.TemporaryDirectory() as folder:
            answers = ConnectOracle(Path(folder)).ask(lines)
    except KafkaUnavailableError as err:
        say(f"without Kafka's class: {err}\n")
        return None
    found: list[Times] = []
    for answer in answers:
        full, join = answer.split()
        found.append({"full": float(full), "join": float(join)})
    return found


def main(argv: list[str] | None = None) -> int:
    """Print the table; exit code 1 when the bar is missed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks connect_assignors", description=__doc__
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--sequence", action="store_true", help="the 50 workers that join")
    parser.add_argument("--phases", type=int, default=10, help="of it, between two heartbeats")
    options = parser.parse_args(argv)
    if options.sequence:
        say(joining(options.phases))
        return 0
    theirs = _kafkas(CASES)
    say(f"Connect's assignors, milliseconds, least of {options.repeats} ({machine()})\n")
    lines: list[list[str]] = []
    missed: list[str] = []
    for number, case in enumerate(CASES):
        kafkas = theirs[number] if theirs else {}
        for name, times in run(case, options.repeats).items():
            lines.append(_line(case, name, times, kafkas))
            missed += [
                f"{name}, {situation}: {ms:.0f} ms"
                for situation, ms in times.items()
                if case.is_the_bar and ms >= BAR_MS
            ]
    headings = ["assignor", "workers x tasks", "full", "join", "leave", "Kafka's full", "join"]
    say(table([*headings, "ratio full", "join"], lines))
    verdict = "MISSED by " + "; ".join(missed) if missed else "met"
    say(f"\nbar: 100 workers x 10,000 tasks below {BAR_MS:.0f} ms: {verdict}")
    return int(bool(missed))


def _line(case: Case, name: str, times: Times, kafkas: Times) -> list[str]:
    incremental = name != "eager"
    return [
        name,
        f"{case.workers} x {case.connectors * case.tasks:,}",
        *(f"{times[each]:.2f}" for each in ("full", "join", "leave")),
        *(f"{kafkas[each]:.2f}" if each in kafkas else "-" for each in ("full", "join")),
        *(
            f"{times[each] / kafkas[each]:.1f}" if incremental and each in kafkas else "-"
            for each in ("full", "join")
        ),
    ]
