"""How fast a group settles on real Kafka: ours, confluent-kafka, aiokafka, in turns.

Four changes, with the broker's defaults (heartbeats every 5 s, assignments computed at most once a
second from Kafka 4.3 on): a group starts *from nothing*; a member joins; a member leaves; the topic
of a small group gets 900 partitions more. Before each but the first nothing happens for 20 s and a
part of an interval, another part in each run, because members hear of a change by their next
heartbeat.

Measured from the outset of a change (the start of the consumers, the call that closes one, the
broker's answer that the partitions are there) until each partition has an owner and all owners have
equally many, as the callbacks
of the applications tell it. Records flow meanwhile. *Pause*: the longest time without a record from
a partition that moved; it holds the time between two records. *Dip*: the fewest records in a
second (or between two rounds of the producer) from the partitions that stayed where they were, as a
part of the average before.

All consumers of a client are in one process, the records come from another. aiokafka speaks the
classic protocol, which stops all partitions; it learns of new partitions after minutes
(``metadata_max_age_ms``), so that row has no figure for it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import uuid
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Final

from benchmarks.rebalance.fleets import FLEETS
from benchmarks.rebalance.story import CHANGES, GROWTH, INTERVAL_S, Seen, Story
from benchmarks.timing import machine, say, table
from tests.support.real_kafka import RealKafka

__all__ = ["bars_of", "main"]

_OURS: Final = "kip848"
_RIVAL: Final = "confluent-kafka"
_PARTITIONS_EACH: Final = 10
_PER_PARTITION_MAX: Final = 10.0
_GROWS_UP_TO: Final = 10
"""Members; more of them share the new partitions in the same way."""
_BROKER: Final = {
    # Kafka's default; the tests' broker has 0. It delays the first rebalance of a classic group.
    "group.initial.rebalance.delay.ms": "3000",
    # The first entry of a partition's index maps a new page of a file: on a slow disk that takes
    # 45 ms, and a thousand partitions get there at about the same time, in the middle of a story.
    "log.index.interval.bytes": "1000000000",
}
_TIME_BARS: Final = {"from nothing": 0.5, "+1 member": 1.0, "-1 member": 1.0}
"""How long ours may take, over confluent-kafka's time."""
_DIP_BAR: Final = 0.8
_SECONDS_BARS: Final = {10: 5.0, 100: 15.0}
"""Up to so many consumers -> within how many seconds each change has to be over. Members hear of
new partitions by their next heartbeat, so growth has one interval more."""

Results = dict[tuple[str, int, str], list[Seen]]
"""Change, members and client -> what was seen in each run."""
Figure = Callable[[Seen], float | None]


def _tell(story: Story) -> dict[str, Seen]:
    command = [sys.executable, "-m", "benchmarks.rebalance.story", json.dumps(asdict(story))]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return {change: Seen(**seen) for change, seen in json.loads(done.stdout).items()}


def _run(
    kafka: RealKafka, client: str, members: int, phase: float, options: argparse.Namespace
) -> dict[str, Seen]:
    name = f"bench-{uuid.uuid4().hex[:12]}"
    partitions = members * _PARTITIONS_EACH
    kafka.create_topic(name, partitions)
    story = Story(
        client=client,
        bootstrap=kafka.bootstrap,
        topic=name,
        group=name,
        members=members,
        partitions=partitions,
        rest_s=options.rest,
        phase=phase,
        per_second=min(_PER_PARTITION_MAX, options.records / partitions),
        grow=members <= _GROWS_UP_TO and client != "aiokafka",
        trace=options.trace,
    )
    seen = _tell(story)
    kafka.delete_topic(name)
    return seen


def _measure(options: argparse.Namespace) -> Results:
    results: Results = {}
    counts: list[int] = options.consumers
    clients: list[str] = options.clients
    turns = itertools.product(range(options.runs), counts, clients)
    with RealKafka.start(options.kafka, configs=_BROKER) as kafka:
        for number, members, client in turns:
            phase = (number + 0.5) / options.runs
            for change, seen in _run(kafka, client, members, phase, options).items():
                results.setdefault((change, members, client), []).append(seen)
                say(f"run {number + 1}, {members} x {client}, {change}: {_shown(seen)}")
    return results


def _shown(seen: Seen) -> str:
    text = f"{seen.seconds:.2f} s"
    if seen.moved and seen.pause_ms is not None:
        text += f", {seen.moved} moved, pause {seen.pause_ms:.0f} ms"
    return text if seen.dip is None else f"{text}, dip {seen.dip:.0%}"


def _median(results: Results, key: tuple[str, int, str], figure: Figure) -> float | None:
    figures = [each for seen in results.get(key, []) if (each := figure(seen)) is not None]
    return statistics.median(figures) if figures else None


def _table(results: Results, options: argparse.Namespace, what: str, figure: Figure) -> str:
    headings = [what]
    for client in options.clients:
        headings += [client] if client == _OURS else [client, "ratio"]
    rows = []
    counts: list[int] = options.consumers
    for change, members in itertools.product(CHANGES, counts):
        ours = _median(results, (change, members, _OURS), figure)
        if ours is None:
            continue
        row = [f"{change}, {members} x {members * _PARTITIONS_EACH}"]
        for client in options.clients:
            each = _median(results, (change, members, client), figure)
            row.append("-" if each is None else f"{each:.2f}")
            if client != _OURS:
                row.append(f"{ours / each:.2f}x" if each else "-")
        rows.append(row)
    return table(headings, rows)


def bars_of(results: Results, consumers: Sequence[int]) -> dict[str, bool]:
    """What was promised -> whether it holds; medians."""
    bars: dict[str, bool] = {}
    for members, change in itertools.product(consumers, CHANGES):
        ours, theirs = ((change, members, client) for client in (_OURS, _RIVAL))
        what = f"{change}, {members} consumers"
        seconds, their_seconds = (_median(results, key, _seconds) for key in (ours, theirs))
        limit_s = next((bar for most, bar in _SECONDS_BARS.items() if members <= most), None)
        if limit_s and change == GROWTH:
            limit_s += INTERVAL_S
        if seconds and limit_s:
            bars[f"{what}: < {limit_s:g} s"] = seconds < limit_s
        if seconds and their_seconds and (bar := _TIME_BARS.get(change)):
            bars[f"{what}: <= {bar} x {_RIVAL}'s time"] = seconds <= bar * their_seconds
        pause, their_pause = (_median(results, key, _pause_ms) for key in (ours, theirs))
        if pause and their_pause:
            bars[f"{what}: longest pause <= {_RIVAL}'s"] = pause <= their_pause
        if (dip := _median(results, ours, _dip)) is not None:
            bars[f"{what}: no dip of what stays (>= {_DIP_BAR:.0%})"] = dip >= _DIP_BAR
    return bars


def _seconds(seen: Seen) -> float | None:
    return seen.seconds


def _pause_ms(seen: Seen) -> float | None:
    return seen.pause_ms


def _dip(seen: Seen) -> float | None:
    return seen.dip


_TABLES: Final[dict[str, Figure]] = {
    "seconds to a balanced group": _seconds,
    "longest pause of a partition that moves, ms": _pause_ms,
    "fewest records of those that stay, 1 = average": _dip,
}


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks rebalance")
    parser.add_argument("--kafka", default="4.3.1", help="release to measure on")
    parser.add_argument(
        "--consumers", type=int, nargs="+", default=[10], help="10, 50 and 100 are of interest"
    )
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--rest", type=float, default=20, help="seconds before each change")
    parser.add_argument("--clients", nargs="+", choices=FLEETS, default=list(FLEETS))
    parser.add_argument(
        "--records",
        type=float,
        default=1_000,
        help="a second, over all partitions; 0 for none, where many consumers are all that the "
        "machine can carry (%(default)s)",
    )
    parser.add_argument("--trace", action="store_true", help="print each callback")
    options = parser.parse_args(argv)
    if _OURS not in options.clients:
        options.clients.insert(0, _OURS)
    return options


def main(argv: list[str] | None = None) -> int:
    """Print the tables; exit code 1 when a bar is missed."""
    options = _options(argv)
    results = _measure(options)
    say(f"Kafka {options.kafka}, medians of {options.runs} run(s), {machine()}")
    for what, figure in _TABLES.items():
        say(_table(results, options, what, figure) + "\n")
    bars = bars_of(results, options.consumers)
    for bar, met in bars.items():
        say(f"bar: {bar}: {'met' if met else 'MISSED'}")
    return 0 if all(bars.values()) else 1
