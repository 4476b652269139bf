"""Harm of processes."""

from __future__ import annotations

import asyncio
import random
import signal
from typing import Final

from tests.torture.names import FENCED_EXIT, FREEZE_S
from tests.torture.processes import Process
from tests.torture.roles import READING
from tests.torture.scene import Scene

__all__ = ["block", "dawdle", "end_all", "freeze", "kill", "restart", "succeed"]

_GONE_S: Final = (0.0, 1.5)
"""How long one that was killed is away."""
_BOTH: Final = 0.3


async def kill(scene: Scene, dice: random.Random) -> None:
    """One or two crash, and are started again."""
    victims = _victims(scene, dice)
    lasting = scene.chronicle.lasting("killed", ", ".join(victims), len(victims))
    with lasting, scene.processes.in_hand(*victims):
        for name in victims:
            await scene.processes.living[name].kill()
        await asyncio.sleep(dice.uniform(*_GONE_S))
        for name in victims:
            await scene.processes.start(name)


async def freeze(scene: Scene, dice: random.Random) -> None:
    """One or two are frozen for longer than sessions and transactions last."""
    names = _victims(scene, dice)
    victims = [scene.processes.living[name] for name in names]
    with scene.chronicle.lasting("frozen", ", ".join(names), len(names)):
        for process in victims:
            process.was_silent = True
            process.signal(signal.SIGSTOP)
        await asyncio.sleep(FREEZE_S)
        for process in victims:
            process.signal(signal.SIGCONT)


async def succeed(scene: Scene, dice: random.Random) -> None:
    """Another one takes the transactional id over; the first one wakes up and must find out. If it
    gives up what it does at that moment and begins anew, it takes the id back."""
    processes = scene.processes
    name = dice.choice(processes.copiers)
    zombie = processes.living[name]
    await zombie.has_begun()  # or it would be the one that takes the id over
    with scene.chronicle.lasting("two of", name, times=0), processes.in_hand(name):
        zombie.signal(signal.SIGSTOP)
        successor = await processes.start(name)
        await asyncio.sleep(FREEZE_S)
        zombie.signal(signal.SIGCONT)
        fenced = await zombie.or_other(successor)
        _expect(scene, FENCED_EXIT, await fenced.ended(), f"one of two of {name}", fenced)
        if fenced is zombie:
            scene.chronicle.done["succeeded"] += 1
        else:
            scene.chronicle.done["taken back"] += 1
            processes.living[name] = zombie


async def restart(scene: Scene, dice: random.Random) -> None:
    """One ends gently, and is started again."""
    name = dice.choice(scene.processes.names)
    with scene.chronicle.lasting("restarted", name), scene.processes.in_hand(name):
        await _end(scene, name)
        await scene.processes.start(name)


async def block(scene: Scene, dice: random.Random) -> None:
    """One keeps its event loop for longer than sessions and transactions last."""
    name = dice.choice(scene.processes.names)
    process = scene.processes.living[name]
    await process.has_begun()
    process.was_silent = True
    with scene.chronicle.lasting("blocked", name):
        process.signal(signal.SIGUSR2)
        await asyncio.sleep(FREEZE_S)


async def dawdle(scene: Scene, dice: random.Random) -> None:
    """One that reads keeps records for longer than it may."""
    name = dice.choice(scene.processes.names_of(READING))
    process = scene.processes.living[name]
    await process.has_begun()
    with scene.chronicle.lasting("dawdling", name):
        process.signal(signal.SIGHUP)
        await asyncio.sleep(FREEZE_S)


async def end_all(scene: Scene) -> None:
    """End them all, gently."""
    for name in scene.processes.names:
        await _end(scene, name)


def _victims(scene: Scene, dice: random.Random) -> list[str]:
    count = 2 if dice.random() < _BOTH else 1
    return dice.sample(scene.processes.names, count)


async def _end(scene: Scene, name: str) -> None:
    process = scene.processes.living[name]
    _expect(scene, 0, await process.end(), name, process)


def _expect(scene: Scene, expected: int, code: int | None, who: str, process: Process) -> None:
    if code != expected and not process.has_given_up:
        how = "did not end" if code is None else f"ended with {code}"
        said = process.said()
        scene.chronicle.troubles.append(f"{who} {how}, {expected} is expected:\n{said}")
