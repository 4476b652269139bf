"""The fetch core by itself: how long a step takes in which something happens to all partitions.

Nothing else of the process runs during a step, so its length is a stall of the event loop. The bar:
4,000 partitions that are assigned, refused or planned anew stay below 50 ms a step, and an answer
in which nothing has changed costs the same for ten partitions as for thousands.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from benchmarks.timing import best_us, machine, say, table
from kip848_client.core.cluster import (
    ClusterChanged,
    LeadersLearnt,
    LearnLeaders,
    PartitionLeader,
    TopicLeaders,
)
from kip848_client.core.fetch import (
    AllButHeld,
    AssignmentChanged,
    Command,
    Event,
    FetchAnswer,
    FetchAnswered,
    FetchCore,
    FetchSettings,
    ListedOffset,
    ListOffsets,
    OffsetsListed,
    PartitionAnswer,
    Paused,
    Resumed,
    SendFetch,
    Started,
    TimerFired,
    Wanted,
)
from kip848_client.core.types import TopicId, TopicIdPartition, TopicPartition
from kip848_client.error_codes import ErrorCode
from tests.support.fetch_session import take_in

__all__ = ["main"]

BAR_MS: Final = 50.0
_TOPIC: Final = TopicId(bytes(15) + b"\1")
_NODES: Final = (1, 2, 3)


@dataclass
class _Run:
    """A core, and a cluster of three brokers that has the same to say of all partitions."""

    partitions: int
    core: FetchCore = field(default_factory=lambda: FetchCore(FetchSettings(), lambda ms: ms))
    now_ms: int = 1_000
    open: dict[int, SendFetch] = field(default_factory=dict[int, SendFetch])
    wanted: dict[int, dict[TopicIdPartition, Wanted]] = field(
        default_factory=lambda: {n: {} for n in _NODES}
    )
    rows: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])

    @property
    def all(self) -> tuple[TopicPartition, ...]:
        """Every partition."""
        return tuple(TopicPartition("t", number) for number in range(self.partitions))

    def step(self, what: str, event: Event) -> tuple[Command, ...]:
        """Take an event, all portions of it, and note how long each step took."""
        commands: tuple[Command, ...] = ()
        while True:
            started = time.perf_counter()
            commands += self.core.step(self.now_ms, event)
            self.rows.append((what, (time.perf_counter() - started) * 1e3))
            if not self.core.is_taking_in:
                break
            event = TimerFired()
        for command in commands:
            if isinstance(command, SendFetch):
                self.open[command.node] = command
                take_in(self.wanted[command.node], command.intent)
        return commands

    def learn(self, what: str, commands: tuple[Command, ...]) -> tuple[Command, ...]:
        """Answer what was asked of metadata."""
        (question,) = [each for each in commands if isinstance(each, LearnLeaders)]
        leaders = {n: PartitionLeader(1 + n % 3, 5, _NODES) for n in range(self.partitions)}
        told = (TopicLeaders("t", _TOPIC, leaders),)
        event = LeadersLearnt(question.number, told, frozenset(), frozenset(_NODES))
        return self.step(what, event)

    def answer(self, what: str, node: int, of: Callable[[int], PartitionAnswer] | None) -> None:
        """Answer what a broker was asked: of each partition, or of none."""
        fetch = self.open.pop(node)
        rows = () if of is None else tuple(of(number) for _, number in self.wanted[node])
        self.now_ms += fetch.intent.max_wait_ms
        self.step(what, FetchAnswered(fetch.fetch, FetchAnswer(0, node, 0, rows)))


def _play(partitions: int) -> _Run:
    run = _Run(partitions)
    everything = run.all
    asked = run.step("assigned", AssignmentChanged(dict.fromkeys(everything, _TOPIC), frozenset()))
    run.step("started", Started(everything))
    asked = run.learn("leaders learnt", asked)
    for query in asked:
        if isinstance(query, ListOffsets):
            found = dict.fromkeys(query.wanted, ListedOffset(0, 0))
            run.step("positions found, of one broker", OffsetsListed(query.query, found))
    for node in _NODES:
        run.answer("first answer, of one broker", node, lambda n: PartitionAnswer(_TOPIC, n, 0, 9))
    refusal = ErrorCode.NOT_LEADER_OR_FOLLOWER
    run.answer(
        "all of a broker refused", 1, lambda n: PartitionAnswer(_TOPIC, n, error_code=refusal)
    )
    run.now_ms += 1_000
    run.step("all of them wake", TimerFired())
    run.step("all paused", Paused(everything))
    run.step("all resumed", Resumed(everything))
    run.step("all held", AllButHeld(frozenset(everything), frozenset()))
    run.step("none held", AllButHeld(frozenset(everything), frozenset(everything)))
    asked = run.step("the cluster changed", ClusterChanged())
    run.learn("leaders learnt again", asked)
    run.step("all taken away", AssignmentChanged({}, frozenset()))
    return run


def _idle_us(partitions: int) -> float:
    """Microseconds of a step that takes an answer in which nothing has changed."""
    run = _Run(partitions)
    asked = run.step("", AssignmentChanged(dict.fromkeys(run.all, _TOPIC), frozenset()))
    run.step("", Started(run.all))
    for query in run.learn("", asked):
        if isinstance(query, ListOffsets):
            found = dict.fromkeys(query.wanted, ListedOffset(0, 0))
            run.step("", OffsetsListed(query.query, found))
    for node in _NODES:
        run.answer("", node, lambda n: PartitionAnswer(_TOPIC, n, 0, 9))
    return best_us(lambda: run.answer("", 1, None))


def main(arguments: list[str]) -> int:
    """Print both tables; 1 when a bar was missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks fetch_core", description=__doc__)
    parser.add_argument("--partitions", type=int, default=4_000)
    partitions: int = parser.parse_args(arguments).partitions
    say(f"{machine()}; {partitions} partitions, three brokers\n")
    runs = [_play(partitions).rows for _ in range(5)]
    best: dict[str, float] = {}
    for i, (what, _) in enumerate(runs[0]):
        best[what] = max(best.get(what, 0.0), min(run[i][1] for run in runs))
    say(table(("a step", "ms"), [(what, f"{ms:.2f}") for what, ms in best.items()]))
    idle = [(count, _idle_us(count)) for count in (10, 1_000, partitions)]
    say("\n" + table(("idle partitions", "us"), [(str(n), f"{us:.1f}") for n, us in idle]))
    slowest = max(best.values())
    met = slowest < BAR_MS and idle[-1][1] < 3 * idle[0][1]
    say(f"\nslowest step {slowest:.1f} ms (bar {BAR_MS:.0f}): {'met' if met else 'MISSED'}")
    return 0 if met else 1
