"""What is done to processes, brokers and the network, in an order that dice choose."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

from tests.support.tcp_proxy import Cut
from tests.torture.feeding import feed
from tests.torture.harms import brokers, network, processes
from tests.torture.scene import Kind, Lane, Scene

__all__ = ["KINDS", "do_harm", "harmed_and_fed"]

KINDS: Final = (
    Kind(Lane.PROCESSES, processes.kill),
    Kind(Lane.PROCESSES, processes.freeze),
    Kind(Lane.PROCESSES, processes.succeed),
    Kind(Lane.PROCESSES, processes.restart),
    Kind(Lane.PROCESSES, processes.block, in_torture=False),
    Kind(Lane.PROCESSES, processes.dawdle, in_torture=False),
    Kind(Lane.BROKERS, brokers.move_group),
    Kind(Lane.BROKERS, brokers.move_transactions),
    Kind(Lane.BROKERS, brokers.move_leaders),
    Kind(Lane.BROKERS, brokers.move_everything),
    Kind(Lane.BROKERS, brokers.kill, in_torture=False),
    *(Kind(Lane.NETWORK, network.cutting(cut), in_torture=False) for cut in Cut),
)
"""All harm there is."""


async def harmed_and_fed(
    scene: Scene,
    kinds: Collection[Kind],
    rest_s: Mapping[Lane, tuple[float, float]],
    seed: int,
    is_over: Callable[[], bool],
) -> int:
    """Do these kinds of harm in all lanes until it is over, and each of them once at least, with so
    much rest before each. Returns how many records were acknowledged by then."""
    async with asyncio.TaskGroup() as tasks:
        lanes: list[asyncio.Task[None]] = []
        for number, (lane, span) in enumerate(rest_s.items()):
            chosen = [each for each in kinds if each.lane is lane]
            dice = random.Random(seed + number)
            lanes.append(tasks.create_task(do_harm(scene, chosen, dice, span, is_over)))

        def is_quiet() -> bool:
            return all(each.done() for each in lanes)

        # as long as there is harm: a zombie that has nothing to do would not be found out
        feeding = tasks.create_task(feed(scene.brokers, is_quiet))
    return feeding.result()


async def do_harm(
    scene: Scene,
    kinds: Sequence[Kind],
    dice: random.Random,
    rest_s: tuple[float, float],
    is_over: Callable[[], bool],
) -> None:
    """Do these, one after the other with a rest before each, until it is over. Each comes once
    before any comes again, or the end."""
    for number, kind in enumerate(_in_turn(dice, kinds)):
        await asyncio.sleep(dice.uniform(*rest_s))
        if number >= len(kinds) and is_over():
            return
        await kind.do(scene, dice)


def _in_turn(dice: random.Random, kinds: Sequence[Kind]) -> Iterator[Kind]:
    while True:
        yield from dice.sample(kinds, len(kinds))
