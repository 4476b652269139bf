"""What one group goes through, in a process of its own, and what was seen of it.

``python -m benchmarks.rebalance.story JSON`` prints one line of JSON: for each change the seconds
to a balanced group, and what became of the records.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from benchmarks.rebalance.fleets import Fleet
from benchmarks.rebalance.group_watch import Flow, GroupWatch

__all__ = ["CHANGES", "GROWTH", "INTERVAL_S", "Seen", "Story"]

GROWTH: Final = "+900 partitions"
CHANGES: Final = ("from nothing", "+1 member", "-1 member", GROWTH)
_MORE_PARTITIONS: Final = 900
_LIMIT_S: Final = 60.0
INTERVAL_S: Final = 5.0
"""Kafka's default for heartbeats of consumer groups."""
_NEXT_PHASE: Final = 0.382
"""From change to change; the golden section repeats nothing."""
_STEP_S: Final = 1.0
_AFTER_S: Final = 4.0
"""How long after a change the records are watched, so that a late one is seen."""


@dataclass(frozen=True, slots=True)
class Story:
    """What to do."""

    client: str
    bootstrap: str
    topic: str
    group: str
    members: int
    partitions: int
    rest_s: float
    """How long nothing happens before each change."""
    phase: float
    """From 0 to 1: where in an interval of heartbeats the changes begin."""
    per_second: float
    """Records to each partition; 0 for none."""
    grow: bool
    """Whether partitions are added in the end."""
    trace: bool = False
    """Whether each callback is printed to stderr."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Of one change."""

    seconds: float
    moved: int = 0
    pause_ms: float | None = None
    dip: float | None = None


@contextlib.contextmanager
def _source(story: Story) -> Generator[None]:
    if not story.per_second:
        yield
        return
    arguments = (story.bootstrap, story.topic, story.partitions, story.per_second)
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.rebalance.source", *map(str, arguments)]
    )
    try:
        yield
    finally:
        process.kill()
        process.wait()


async def _nothing() -> None:
    """The change was made before."""


class _Teller:
    def __init__(self, story: Story) -> None:
        self._story = story
        self._watch = GroupWatch()
        self._fleet = Fleet(story.client, story.bootstrap, story.topic, story.group, self._watch)
        self._partitions = story.partitions
        self._phase = story.phase

    async def tell(self) -> dict[str, Seen]:
        """The whole story."""
        seen = {"from nothing": await self._change(lambda: self._fleet.add(self._story.members))}
        with _source(self._story):
            seen["+1 member"] = await self._change_at_rest(lambda: self._fleet.add(1))
            seen["-1 member"] = await self._change_at_rest(self._remove_first)
            if self._story.grow:
                seen[GROWTH] = await self._growth()
        await self._fleet.close()
        return seen

    async def _change_at_rest(self, act: Callable[[], Awaitable[object]]) -> Seen:
        await self._rest()
        return await self._change(act)

    async def _growth(self) -> Seen:
        """Counted from the broker's answer: how fast it creates partitions is its own affair."""
        await self._rest()
        await self._grow()
        return await self._change(_nothing)

    async def _rest(self) -> None:
        self._phase = (self._phase + _NEXT_PHASE) % 1
        await asyncio.sleep(self._story.rest_s + self._phase * INTERVAL_S)

    async def _change(self, act: Callable[[], Awaitable[object]]) -> Seen:
        watch, before = self._watch, self._watch.owners()
        first, since_s = len(watch.events), time.monotonic()
        acting = asyncio.ensure_future(act())
        await asyncio.sleep(0)  # who comes or goes is known from here on
        try:
            seconds = await watch.balanced(self._fleet.members, self._partitions, since_s, _LIMIT_S)
        finally:
            if self._story.trace:
                for when_s, member, what, count in watch.events[first:]:
                    sys.stderr.write(f"{when_s - since_s:8.3f} {member} {what} {count}\n")
        await acting
        if not before or not self._story.per_second:
            return Seen(seconds)
        await asyncio.sleep(_AFTER_S)
        step_s = max(_STEP_S, 2 / self._story.per_second)
        flow: Flow = watch.flow(before, since_s, since_s + seconds + _AFTER_S, step_s)
        return Seen(seconds, **dataclasses.asdict(flow))

    async def _remove_first(self) -> None:
        await self._fleet.remove(next(iter(self._fleet.members)))

    async def _grow(self) -> None:
        self._partitions += _MORE_PARTITIONS
        admin = AdminClient({"bootstrap.servers": self._story.bootstrap})
        asked: dict[str, Any] = admin.create_partitions(
            [NewPartitions(self._story.topic, self._partitions)]
        )
        await asyncio.to_thread(asked[self._story.topic].result)


def main(text: str) -> None:
    """Tell the story that ``text`` describes."""
    seen = asyncio.run(_Teller(Story(**json.loads(text))).tell())
    sys.stdout.write(
        json.dumps({change: dataclasses.asdict(each) for change, each in seen.items()}) + "\n"
    )


if __name__ == "__main__":
    main(sys.argv[1])
