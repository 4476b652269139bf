"""What extra heartbeats cost the broker, and what they gain: thousands of real members on our
coordinator, in virtual time.

The cores of the members and the core of the bundled broker are stepped in this process, without
bytes and sockets, with Kafka's default intervals (heartbeats 5 s, assignments at most once a
second). All members start, evenly over 5 s, which spreads their heartbeats as if they had been
started independently; later one joins, and one in a hundred leaves. After each of these nothing
happens for 20 s. Counted are the heartbeats, and the processor time that the broker's core takes
for them, computing assignments included: in the busiest second, and over all. *Settled* is when the
last listener of any member was called.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from benchmarks.bench_coordinator import InProcessCore
from benchmarks.timing import machine, say, table
from kip848_client.core.group_wire.heartbeat import heartbeat_outcome, heartbeat_request
from kip848_client.core.member import (
    Command,
    CoordinatorFound,
    Event,
    FindCoordinator,
    HeartbeatAnswered,
    LeaveMode,
    LeaveRequested,
    MemberCore,
    MemberSettings,
    PartitionsReleased,
    PartitionsStarted,
    Polled,
    ReleasePartitions,
    Report,
    ResolveTopics,
    SendHeartbeat,
    StartPartitions,
    Subscribed,
    TimerFired,
    TopicsResolved,
)
from kip848_client.core.types import GroupId, MemberId

__all__ = ["main"]

_GROUP: Final = GroupId("bench")
_TOPICS: Final = 100
_START_MS: Final = 5_000
_QUIET_MS: Final = 20_000
_SECOND_MS: Final = 1_000


@dataclass(slots=True)
class _Watch:
    """What was seen since a change began."""

    since_ms: int
    settled_ms: int
    beats: Counter[int] = field(default_factory=Counter[int])
    """Second since the change -> heartbeats."""
    broker_s: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))
    """Second since the change -> processor time of the broker's core."""

    def row(self, until_ms: int) -> list[float]:
        """Seconds to settle, heartbeats and shares of a core."""
        seconds = (until_ms - self.since_ms) / 1000
        return [
            (self.settled_ms - self.since_ms) / 1000,
            max(self.beats.values()),
            max(self.broker_s.values()),
            sum(self.beats.values()) / seconds,
            sum(self.broker_s.values()) / seconds,
        ]


class _Group:
    """Members and their coordinator."""

    def __init__(self, partitions: int, *, extra: bool) -> None:
        names = [f"t{number:03d}" for number in range(_TOPICS)]
        self.broker = InProcessCore(**dict.fromkeys(names, partitions // _TOPICS))
        self._names = frozenset(names)
        self._settings = MemberSettings(auto_commit=False, extra_heartbeats=extra)
        self._cores: dict[str, MemberCore] = {}
        self._due: list[tuple[int, int, str]] = []
        self._ties = itertools.count()
        self.watch = _Watch(0, 0)

    def add(self, name: str) -> None:
        """One more member, which joins at once."""
        self._cores[name] = MemberCore(self._settings, MemberId(name), lambda ms: ms)
        self._step(name, Subscribed(self._names, None), Polled(waiting=True))

    def remove(self, name: str) -> None:
        """A member leaves."""
        until_ms = self.broker.now_ms + 1_000
        self._step(name, LeaveRequested(LeaveMode.DEFAULT, until_ms, flush=False, final=True))
        del self._cores[name]

    def run(self, duration_ms: int) -> None:
        """Let time pass."""
        end_ms = self.broker.now_ms + duration_ms
        while self._due and self._due[0][0] <= end_ms:
            due_ms, _, name = heapq.heappop(self._due)
            core = self._cores.get(name)
            if core is None or core.deadline_ms != due_ms:
                continue  # it has changed its mind since
            self.broker.now_ms = max(self.broker.now_ms, due_ms)
            self._step(name, TimerFired())
        self.broker.now_ms = end_ms

    def begin(self) -> _Watch:
        """Watch what follows."""
        self.watch = _Watch(self.broker.now_ms, self.broker.now_ms)
        return self.watch

    def _step(self, name: str, *events: Event) -> None:
        core, waiting = self._cores[name], deque(events)
        while waiting:
            for command in core.step(self.broker.now_ms, waiting.popleft()):
                answer = self._perform(command)
                if answer is not None:
                    waiting.append(answer)
        if core.deadline_ms is not None:
            heapq.heappush(self._due, (core.deadline_ms, next(self._ties), name))

    def _perform(self, command: Command) -> Event | None:
        match command:
            case SendHeartbeat():
                return HeartbeatAnswered(command.attempt, heartbeat_outcome(self._beat(command)))
            case FindCoordinator():
                return CoordinatorFound(command.lookup)
            case ResolveTopics():
                names = {each: self.broker.topics[each] for each in command.ids}
                return TopicsResolved(command.query, names)
            case ReleasePartitions():
                self.watch.settled_ms = self.broker.now_ms
                return PartitionsReleased(command.plan, failed=False)
            case StartPartitions():
                self.watch.settled_ms = self.broker.now_ms
                return PartitionsStarted(command.plan, failed=False)
            case Report(error):
                raise error
            case _:
                return None

    def _beat(self, command: SendHeartbeat) -> Any:
        second = (self.broker.now_ms - self.watch.since_ms) // _SECOND_MS
        request = heartbeat_request(_GROUP, command.intent)
        started = time.process_time()
        response = self.broker.ask(request)
        self.watch.broker_s[second] += time.process_time() - started
        self.watch.beats[second] += 1
        return response


def _story(members: int, *, extra: bool) -> dict[str, list[float]]:
    group = _Group(10 * members, extra=extra)
    seen: dict[str, list[float]] = {}

    def watch(what: str, *acts: Callable[[], None], during_ms: int = 0) -> None:
        seen_now, before = group.begin(), 0
        for number, act in enumerate(acts, 1):
            act()
            group.run(during_ms * number // members - before)
            before = during_ms * number // members
        group.run(_QUIET_MS)
        seen[what] = seen_now.row(group.broker.now_ms)

    names = [f"m{number:05d}" for number in range(members)]
    watch("all start", *(partial(group.add, name) for name in names), during_ms=_START_MS)
    watch("nothing happens")
    watch("one joins", partial(group.add, "newcomer"))
    watch("1 % leave", *(partial(group.remove, name) for name in names[::100]))
    return seen


def main(argv: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks settling")
    parser.add_argument("--members", type=int, default=10_000)
    members = parser.parse_args(argv).members
    rows = []
    results = {name: _story(members, extra=name == "with") for name in ("without", "with")}
    for change in results["with"]:
        for name, seen in results.items():
            settled, beats, share, mean_beats, mean_share = seen[change]
            rows.append(
                [
                    f"{change}, {name}",
                    f"{settled:.2f}",
                    f"{beats:,.0f}",
                    f"{share:.0%}",
                    f"{mean_beats:,.0f}",
                    f"{mean_share:.0%}",
                ]
            )
    say(f"{members:,} members, {10 * members:,} partitions, {machine()}")
    headings = ["extra heartbeats", "settled, s", "busiest second", "of a core"]
    say(table([*headings, "a second, over all", "of a core"], rows))
    return 0
