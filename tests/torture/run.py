"""A torture from its beginning to its verdict."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.torture.brokers import Brokers
from tests.torture.feeding import drained
from tests.torture.harm import KINDS, harmed_and_fed
from tests.torture.harms.processes import end_all
from tests.torture.inquiry import inquest
from tests.torture.judge import Verdict
from tests.torture.looking import look
from tests.torture.processes import Processes
from tests.torture.roles import Role
from tests.torture.scene import Lane, Scene

__all__ = ["Report", "counted", "told", "torture"]

_NAMES: Final = ("a", "b")
_REST_S: Final = {Lane.PROCESSES: (0.5, 2.0), Lane.BROKERS: (0.2, 2.5)}
_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class Report:
    """What was done, what came of it, and what is wrong with it."""

    seconds: float
    done: Counter[str]
    """Harm and moves."""
    told: Counter[str]
    """What is in the diaries of processors."""
    errors: Counter[str]
    """The same, of errors."""
    verdict: Verdict | None
    troubles: list[str]

    @property
    def is_clean(self) -> bool:
        """Whether all is as it should be."""
        return not self.troubles and self.verdict is not None and self.verdict.is_clean

    def __str__(self) -> str:
        lines = [
            f"{self.seconds:.0f} s; {counted(self.done)}",
            *told(self.told, self.errors),
            str(self.verdict),
            *(f"TROUBLE: {each}" for each in self.troubles),
        ]
        return "\n".join(lines)


def counted(counts: Counter[str]) -> str:
    """In one line."""
    return ", ".join(f"{what} {times}" for what, times in sorted(counts.items()) if times)


def told(counts: Counter[str], errors: Counter[str]) -> list[str]:
    """What processes have told, in lines."""
    return [
        f"processes: {counted(counts)}",
        *(f"  {times} x {error}" for error, times in errors.most_common(_SHOWN)),
    ]


async def torture(role: Role, brokers: Brokers, folder: Path, seconds: float, seed: int) -> Report:
    """Torture two processors for so long, let them finish, and look at what there is."""
    began = time.monotonic()

    def is_over() -> bool:
        return time.monotonic() - began >= seconds

    troubles: list[str] = []
    verdict: Verdict | None = None
    roles: dict[str, Role] = dict.fromkeys(_NAMES, role)
    kinds = [each for each in KINDS if each.in_torture]
    async with Processes.running(roles, brokers.bootstrap, seed, folder) as processes:
        scene = Scene(processes, brokers)
        supervising = asyncio.create_task(processes.supervise())
        try:
            fed = await harmed_and_fed(scene, kinds, _REST_S, seed, is_over)
            await drained(brokers, fed)
            supervising.cancel()
            await end_all(scene)
            verdict = (await look(brokers)).verdict(fed)
        except TimeoutError as err:
            troubles.append(f"it does not come to an end: {err}")
            troubles += await inquest(scene, folder)
        finally:
            supervising.cancel()
        troubles += [*scene.chronicle.troubles, *processes.troubles()]
        return Report(
            seconds=time.monotonic() - began,
            done=scene.chronicle.done,
            told=processes.counts(),
            errors=processes.errors(),
            verdict=verdict,
            troubles=troubles,
        )
