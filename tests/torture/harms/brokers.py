"""Harm of brokers: leaders and coordinators move, and brokers die."""

from __future__ import annotations

import asyncio
import random
from typing import Final

from tests.support.kafka_broker import BrokerFailedError
from tests.torture.brokers import NODES, OFFSETS, TRANSACTIONS, UNREACHABLE
from tests.torture.names import IN, OUT, PARTITIONS
from tests.torture.scene import Scene

__all__ = ["kill", "move_everything", "move_group", "move_leaders", "move_transactions"]

_DOWN_S: Final = (0.0, 6.0)
"""How long a broker that was killed is away: sometimes others do not even notice it."""


async def move_group(scene: Scene, dice: random.Random) -> None:
    """The coordinator of the groups moves."""
    await _move(scene, dice, "group coordinator moved", OFFSETS, 0)


async def move_transactions(scene: Scene, dice: random.Random) -> None:
    """The coordinator of the transactions moves."""
    await _move(scene, dice, "transaction coordinator moved", TRANSACTIONS, 0)


async def move_leaders(scene: Scene, dice: random.Random) -> None:
    """A leader of each topic moves."""
    for topic in (IN, OUT):
        await _move(scene, dice, "leader moved", topic, dice.randrange(PARTITIONS))


async def move_everything(scene: Scene, dice: random.Random) -> None:
    """At the same moment."""
    await asyncio.gather(
        move_group(scene, dice),
        move_transactions(scene, dice),
        *(_move(scene, dice, "leader moved", OUT, number) for number in range(PARTITIONS)),
    )


async def kill(scene: Scene, dice: random.Random) -> None:
    """A broker crashes, and is started again."""
    assert scene.killed is not None
    node_id = dice.choice(NODES)
    with scene.chronicle.lasting("broker killed", str(node_id)):
        await scene.killed.crash(node_id)
        await asyncio.sleep(dice.uniform(*_DOWN_S))
        try:
            await scene.killed.restart(node_id)
        except BrokerFailedError as err:
            scene.chronicle.troubles.append(f"broker {node_id} did not come back: {err}")


async def _move(scene: Scene, dice: random.Random, what: str, topic: str, partition: int) -> None:
    by = dice.randrange(1, len(NODES))
    try:
        why_not = await scene.brokers.lead(
            topic, partition, lambda at: (at - 1 + by) % len(NODES) + 1
        )
    except UNREACHABLE as err:
        why_not = str(err)
    if why_not is None:
        scene.chronicle.note(what, f"{topic}-{partition}")
    else:
        scene.chronicle.done[f"not {what}: {why_not}"] += 1
