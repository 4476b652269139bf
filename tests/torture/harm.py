"""What is done to processors and brokers, one thing after the other, in an order that dice choose.
Each kind comes once before any comes again."""

from __future__ import annotations

import asyncio
import random
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from tests.torture.brokers import OFFSETS, TRANSACTIONS, Brokers
from tests.torture.names import FENCED_EXIT, FREEZE_S, IN, OUT, PARTITIONS
from tests.torture.processes import Process, Processes

__all__ = ["Moves", "Violence"]

_NODES: Final = 3
_REST_S: Final = (0.5, 2.0)
"""Between two harms of processes."""
_MOVE_REST_S: Final = (0.2, 2.5)
_GONE_S: Final = (0.0, 1.5)
"""How long one that was killed is away."""
_BOTH: Final = 0.3

Harm = Callable[[], Awaitable[None]]


def _in_turn(dice: random.Random, kinds: list[Harm]) -> Iterator[Harm]:
    while True:
        yield from dice.sample(kinds, len(kinds))


class Violence:
    """Against processors. ``done`` counts it, ``troubles`` says what they should not have done."""

    def __init__(self, processes: Processes, dice: random.Random) -> None:
        self.done: Counter[str] = Counter()
        self.troubles: list[str] = []
        self._processes = processes
        self._dice = dice

    async def go_on(self, is_over: Callable[[], bool]) -> None:
        """Harm them until it is over; then all of them run."""
        for harm in _in_turn(self._dice, [self._kill, self._freeze, self._succeed, self._restart]):
            await asyncio.sleep(self._dice.uniform(*_REST_S))
            if is_over():
                return
            await harm()

    async def end(self) -> None:
        """End them all, gently."""
        for name in self._processes.names:
            await self._end(name)

    def _victims(self) -> list[str]:
        count = 2 if self._dice.random() < _BOTH else 1
        return self._dice.sample(self._processes.names, count)

    async def _kill(self) -> None:
        victims = self._victims()
        for name in victims:
            await self._processes.living[name].kill()
            self.done["killed"] += 1
        await asyncio.sleep(self._dice.uniform(*_GONE_S))
        for name in victims:
            await self._processes.start(name)

    async def _freeze(self) -> None:
        victims = [self._processes.living[name] for name in self._victims()]
        for process in victims:
            process.was_frozen = True
            process.signal(signal.SIGSTOP)
            self.done["frozen"] += 1
        await asyncio.sleep(FREEZE_S)
        for process in victims:
            process.signal(signal.SIGCONT)

    async def _succeed(self) -> None:
        """Another one takes the transactional id over; the first one wakes up and must find out. If
        it gives up what it does at that moment and begins anew, it takes the id back."""
        name = self._dice.choice(self._processes.names)
        zombie = self._processes.living[name]
        await zombie.has_begun()  # or it would be the one that takes the id over
        zombie.signal(signal.SIGSTOP)
        successor = await self._processes.start(name)
        await asyncio.sleep(FREEZE_S)
        zombie.signal(signal.SIGCONT)
        fenced = await zombie.or_other(successor)
        self._expect(FENCED_EXIT, await fenced.ended(), f"one of two of {name}", fenced)
        if fenced is zombie:
            self.done["succeeded"] += 1
        else:
            self.done["taken back"] += 1
            self._processes.living[name] = zombie

    async def _restart(self) -> None:
        name = self._dice.choice(self._processes.names)
        await self._end(name)
        self.done["restarted"] += 1
        await self._processes.start(name)

    async def _end(self, name: str) -> None:
        process = self._processes.living[name]
        self._expect(0, await process.end(), name, process)

    def _expect(self, expected: int, code: int | None, who: str, process: Process) -> None:
        if code != expected and not process.is_fenced_by_itself:
            how = "did not end" if code is None else f"ended with {code}"
            self.troubles.append(f"{who} {how}, {expected} is expected:\n{process.said()}")


class Moves:
    """Of leaders and coordinators. ``done`` counts them."""

    def __init__(self, brokers: Brokers, dice: random.Random) -> None:
        self.done: Counter[str] = Counter()
        self._brokers = brokers
        self._dice = dice

    async def go_on(self, is_over: Callable[[], bool]) -> None:
        """Move them until it is over."""
        kinds: list[Harm] = [self._group, self._transactions, self._leaders, self._everything]
        for move in _in_turn(self._dice, kinds):
            await asyncio.sleep(self._dice.uniform(*_MOVE_REST_S))
            if is_over():
                return
            await move()

    async def _group(self) -> None:
        await self._move("group coordinator moved", OFFSETS, 0)

    async def _transactions(self) -> None:
        await self._move("transaction coordinator moved", TRANSACTIONS, 0)

    async def _leaders(self) -> None:
        for topic in (IN, OUT):
            await self._move("leader moved", topic, self._dice.randrange(PARTITIONS))

    async def _everything(self) -> None:
        """At the same moment."""
        await asyncio.gather(
            self._group(),
            self._transactions(),
            *(self._move("leader moved", OUT, number) for number in range(PARTITIONS)),
        )

    async def _move(self, what: str, topic: str, partition: int) -> None:
        by = self._dice.randrange(1, _NODES)
        why_not = await self._brokers.lead(topic, partition, lambda at: (at - 1 + by) % _NODES + 1)
        self.done[what if why_not is None else f"not {what}: {why_not}"] += 1
