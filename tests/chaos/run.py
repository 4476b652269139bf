"""A chaos run from its beginning to its verdict."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.chaos.judge import Committed, Processed, ReadingVerdict, judged_reading
from tests.chaos.silence import Progress, copied, told_silences
from tests.support.tcp_proxy import TcpProxy
from tests.torture.brokers import RealBrokers, committed
from tests.torture.feeding import drained
from tests.torture.harm import KINDS, harmed_and_fed
from tests.torture.harms.processes import end_all
from tests.torture.inquiry import inquest
from tests.torture.judge import Verdict
from tests.torture.looking import look
from tests.torture.names import GROUP, READERS
from tests.torture.processes import Processes
from tests.torture.readers import PROCESSED
from tests.torture.roles import Role
from tests.torture.run import counted, told
from tests.torture.scene import Lane, Scene

__all__ = ["Report", "chaos"]

_ROLES: Final = {
    "a": Role.PROCESSOR,
    "b": Role.BY_HAND,
    "r": Role.READER,
    "s": Role.READER,
    "t": Role.AUTO_READER,
}
_REST_S: Final = {
    Lane.PROCESSES: (0.5, 3.0),
    Lane.BROKERS: (0.5, 3.0),
    Lane.NETWORK: (1.0, 5.0),
}
_LOOK_PAUSE_S: Final = 0.25
_HARM: Final = "harm.txt"
"""What was done, and when, beside what the processes tell with the time of day."""


@dataclass(slots=True)
class Report:
    """What was done, what came of it, and what is wrong with it."""

    seconds: float = 0
    done: Counter[str] = field(default_factory=Counter)
    told: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    copied: Verdict | None = None
    read: ReadingVerdict | None = None
    silences: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """Whether all is as it should be."""
        if self.troubles or self.copied is None or self.read is None:
            return False
        return self.copied.is_clean and self.read.is_clean

    def __str__(self) -> str:
        lines = [
            f"{self.seconds:.0f} s; {counted(self.done)}",
            *told(self.told, self.errors),
            f"exactly once: {self.copied}",
            f"at least once: {self.read}",
            "longest silence:",
            *(f"  {each}" for each in self.silences),
            *(f"TROUBLE: {each}" for each in self.troubles),
        ]
        return "\n".join(lines)


async def chaos(
    brokers: RealBrokers, proxy: TcpProxy, folder: Path, seconds: float, seed: int
) -> Report:
    """Harm five processes for so long, let them finish, and look at what there is."""
    began = time.monotonic()

    def is_over() -> bool:
        return time.monotonic() - began >= seconds

    report = Report()
    looks: dict[str, list[Committed]] = {GROUP: [], READERS: []}
    async with Processes.running(
        _ROLES, proxy.bootstrap, seed, folder, is_network_cut=True
    ) as processes:
        scene = Scene(processes, brokers, killed=brokers, proxy=proxy)
        tasks = [asyncio.create_task(processes.supervise())]
        tasks += [asyncio.create_task(_watch(brokers, *each)) for each in looks.items()]
        try:
            fed = await harmed_and_fed(scene, KINDS, _REST_S, seed, is_over)
            ended = time.monotonic()
            for group in looks:
                await drained(brokers, fed, group)
            tasks[0].cancel()
            await end_all(scene)
            found = await look(brokers)
            report.copied = found.verdict(fed)
            sizes = {partition: len(each) for partition, each in found.source.items()}
            read = _processed(processes)
            report.read = judged_reading(sizes, read, looks[READERS])
            done = {
                "copied": copied(looks[GROUP]),
                "read": [Progress(each.at, each.partition, len(each.offsets)) for each in read],
            }
            for what, each in done.items():
                report.silences += told_silences(what, each, scene.chronicle, began, ended)
        except TimeoutError as err:
            report.troubles.append(f"it does not come to an end: {err}")
            report.troubles += await inquest(scene, folder)
        finally:
            for task in tasks:
                task.cancel()
        now = f"{time.ctime()} is {time.monotonic() - began:.1f} s\n"
        (folder / _HARM).write_text(now + scene.chronicle.told(began))
        report.troubles += [*scene.chronicle.troubles, *processes.troubles()]
        report.seconds = time.monotonic() - began
        report.done = scene.chronicle.done
        report.told, report.errors = processes.counts(), processes.errors()
    return report


async def _watch(brokers: RealBrokers, group: str, looks: list[Committed]) -> None:
    """Look at what a group has committed again and again, until cancelled."""
    while True:
        offsets = await committed(brokers, group, is_stable=False)
        if offsets is not None:
            looks.append(Committed(time.monotonic(), offsets))
        await asyncio.sleep(_LOOK_PAUSE_S)


def _processed(processes: Processes) -> list[Processed]:
    return [
        Processed(entry["at"], entry["partition"], entry["offsets"])
        for entry in processes.entries()
        if entry["what"] == PROCESSED
    ]
