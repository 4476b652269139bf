"""Server-side assignors: how long a coordinator thinks when a group changes.

Three situations for every size: ``full``, nobody has anything yet; ``join``, one member more than
in the previous target; ``steady``, nothing changed. ``order`` is what the coordinator pays on top
to walk the members in Java's order (``member_order``).

The sizes follow the grid of Kafka's own JMH benchmark (ServerSideAssignorBenchmark: members x
partitions for each member x topics). The figures in the last column are those published with
apache/kafka pull requests 17133 and 19677 for as many members and partitions, on the JVM and on
their machines: for scale, not measured here. CPython has a bar of its own: a full computation of
10,000 members x 100,000 partitions below one second.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from benchmarks.timing import machine, say, table
from kip848_client.core.assignors import (
    BUILTIN,
    NO_PARTITIONS,
    Assignment,
    GroupSpec,
    MemberSpec,
    SubscriptionType,
    TimelineOrder,
    TopicMetadata,
    member_order,
)
from kip848_client.core.types import MemberId, TopicId, format_topic_id

__all__ = ["CASES", "Case", "Row", "main", "run"]

T = TypeVar("T")

BAR_MS: Final = 1000.0
"""A full homogeneous uniform computation of the largest case must stay below this."""


@dataclass(frozen=True)
class Case:
    """One size: members x topics x partitions of each topic."""

    assignor: str
    kind: SubscriptionType
    members: int
    topics: int
    partitions: int
    published_ms: str = "-"

    @property
    def is_the_bar(self) -> bool:
        """True for the case that the bar of one second is about."""
        return (
            self.assignor == "uniform"
            and self.kind is SubscriptionType.HOMOGENEOUS
            and self.members * self.topics * self.partitions >= 10_000 * 100_000
        )


_HOMOGENEOUS: Final = SubscriptionType.HOMOGENEOUS
_HETEROGENEOUS: Final = SubscriptionType.HETEROGENEOUS

CASES: Final = (
    Case("uniform", _HOMOGENEOUS, 100, 10, 50, "0.020"),
    Case("uniform", _HOMOGENEOUS, 1_000, 100, 100),
    Case("uniform", _HOMOGENEOUS, 5_000, 1_000, 50, "1.7"),
    Case("uniform", _HOMOGENEOUS, 10_000, 100, 1_000),
    Case("uniform", _HOMOGENEOUS, 10_000, 1_000, 100, "4.3"),
    Case("uniform", _HETEROGENEOUS, 100, 10, 50),
    Case("uniform", _HETEROGENEOUS, 1_000, 100, 100),
    Case("uniform", _HETEROGENEOUS, 10_000, 100, 1_000),
    Case("range", _HOMOGENEOUS, 100, 10, 50),
    Case("range", _HOMOGENEOUS, 1_000, 100, 100),
    Case("range", _HOMOGENEOUS, 10_000, 100, 1_000),
    Case("range", _HETEROGENEOUS, 10_000, 100, 1_000),
)


@dataclass(frozen=True)
class Row:
    """The minimum of the repeats, in milliseconds."""

    case: Case
    full_ms: float
    join_ms: float
    steady_ms: float
    order_ms: float


def run(cases: tuple[Case, ...] = CASES, *, repeats: int = 3) -> list[Row]:
    """Measure every case; each computation is checked to give out every partition."""
    return [_measure(case, repeats) for case in cases]


def _measure(case: Case, repeats: int) -> Row:
    rng = random.Random(848)
    topics = {
        TopicId(rng.randbytes(16)): TopicMetadata(f"topic-{number}", case.partitions)
        for number in range(case.topics)
    }
    timeline = TimelineOrder()
    for _ in range(case.members):
        timeline.put(format_topic_id(rng.randbytes(16)))
    order, order_ms = _timed(lambda: member_order(map(MemberId, timeline)), repeats)
    assignor = BUILTIN[case.assignor]

    everything = tuple(topics)
    some = everything[: max(1, len(everything) // 2)]
    specs = {
        member_id: MemberSpec(some if case.kind is _HETEROGENEOUS and number % 2 else everything)
        for number, member_id in enumerate(order)
    }
    fresh = GroupSpec(specs, case.kind)
    full, full_ms = _timed(lambda: assignor.assign(fresh, topics), repeats)
    _check(full, topics)

    settled = {m: replace(spec, target=full.members[m]) for m, spec in specs.items()}
    steady = GroupSpec(settled, case.kind)
    kept, steady_ms = _timed(lambda: assignor.assign(steady, topics), repeats)
    _check(kept, topics)

    newcomer = MemberId(format_topic_id(rng.randbytes(16)))
    joined = GroupSpec(
        {
            m: settled[m] if m in settled else MemberSpec(everything, NO_PARTITIONS)
            for m in member_order(map(MemberId, timeline), joining=newcomer)
        },
        case.kind,
    )
    after, join_ms = _timed(lambda: assignor.assign(joined, topics), repeats)
    _check(after, topics)
    return Row(case, full_ms, join_ms, steady_ms, order_ms)


def _timed(action: Callable[[], T], repeats: int) -> tuple[T, float]:
    started = time.perf_counter()
    result = action()
    best = time.perf_counter() - started
    for _ in range(repeats - 1):
        started = time.perf_counter()
        result = action()
        best = min(best, time.perf_counter() - started)
    return result, best * 1000


def _check(result: Assignment, topics: Mapping[TopicId, TopicMetadata]) -> None:
    count = sum(len(p) for target in result.members.values() for p in target.values())
    expected = sum(topic.partition_count for topic in topics.values())
    if count != expected:
        msg = f"{count} of {expected} partitions were given out"
        raise AssertionError(msg)


def main(argv: list[str] | None = None) -> int:
    """Print the table; exit code 1 when the bar is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks assignors", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="only up to 1,000 members")
    options = parser.parse_args(argv)
    cases = tuple(case for case in CASES if not options.quick or case.members <= 1_000)
    rows = run(cases, repeats=max(1, options.repeats))
    say(f"server-side assignors, milliseconds, minimum of {options.repeats} ({machine()})\n")
    headings = ["assignor", "members", "topics x partitions", "order", "full", "join", "steady"]
    lines = [
        [
            f"{row.case.assignor} {row.case.kind.value.lower()}",
            f"{row.case.members:,}",
            f"{row.case.topics:,} x {row.case.partitions:,}",
            *(f"{ms:.2f}" for ms in (row.order_ms, row.full_ms, row.join_ms, row.steady_ms)),
            row.case.published_ms,
        ]
        for row in rows
    ]
    say(table([*headings, "Kafka JMH, published"], lines))
    barred = [row for row in rows if row.case.is_the_bar]
    for row in barred:
        verdict = "met" if row.full_ms < BAR_MS else "MISSED"
        say(
            f"\nbar: full, {row.case.members:,} members x "
            f"{row.case.topics * row.case.partitions:,} partitions in {row.full_ms:.0f} ms, "
            f"below {BAR_MS:.0f} ms: {verdict}"
        )
    return int(any(row.full_ms >= BAR_MS for row in barred))
