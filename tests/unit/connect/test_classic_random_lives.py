"""Classic groups of workers with whatever happens to them: nothing ever runs twice, and when it is
quiet everything that is configured runs again."""

from __future__ import annotations

import random

import pytest

from kip848_client.connect.core import (
    Configuration,
    ConfigurationRead,
    ConnectorTasks,
    RebalanceRequested,
)
from kip848_client.core.member import MemberState
from tests.unit.connect._classic_workers import ClassicWorker, ClassicWorkers

QUIET_MS = 400_000


class World:
    """A group, and chance."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.group = ClassicWorkers(max_delay_ms=self.chance.choice([0, 2_000, 20_000]))
        self.names = 0

    def join(self) -> None:
        self.names += 1
        worker = self.group.worker(f"w{self.names}", host=f"h{self.chance.randrange(4)}")
        worker.stop_ms = self.chance.choice([1, 300, 4_000])

    def someone(self) -> ClassicWorker | None:
        workers = [each for each in self.group.workers.values() if not each.core.closed]
        return self.chance.choice(workers) if workers else None

    def happen(self) -> None:
        """One thing."""
        worker = self.someone()
        if worker is None or len(self.group.workers) < 2:
            self.join()
            return
        match self.chance.randrange(10):
            case 0 | 1 if len(self.group.workers) < 5:
                self.join()
            case 2:
                self.group.kill(worker.name)
            case 3:
                if worker.core.state is not MemberState.UNSUBSCRIBED:
                    self.group.leave(worker.name)
            case 4:
                worker.cut_off = not worker.cut_off
            case 5:
                worker.loses_answers = not worker.loses_answers
            case 6:
                self.group.fail_over()
            case 7:
                self.reconfigure()
            case 8:
                self.be_cut_off_with_news_unread(worker)
            case _:
                if worker.core.state is MemberState.STABLE:
                    worker.feed(RebalanceRequested(64))

    def reconfigure(self, *, but: ClassicWorker | None = None) -> None:
        """All but one know it in the end, one after the other, and ask for a round."""
        group, chance = self.group, self.chance
        connectors = {
            name: ConnectorTasks(chance.randrange(4)) for name in "abc" if chance.random() < 0.8
        }
        group.configuration = Configuration(group.configuration.offset + 1, connectors)
        for each in group.workers.values():
            if not each.core.closed and each is not but:
                group.later(
                    chance.choice([0, 50, 6_000]), each, ConfigurationRead(group.configuration)
                )
                group.later(6_001, each, RebalanceRequested(2))

    def be_cut_off_with_news_unread(self, worker: ClassicWorker) -> None:
        """It is assigned items of a configuration that it reads when its session is over."""
        worker.read_ms = 60_000
        self.reconfigure(but=worker)
        self.group.run(self.chance.choice([3_000, 9_000, 15_000]))
        worker.cut_off = True

    def end(self) -> None:
        """Nothing happens any more."""
        group = self.group
        for name, worker in list(group.workers.items()):
            worker.cut_off = worker.loses_answers = False
            worker.read_ms = 1
            if worker.core.closed:
                group.kill(name)
        self.join()
        group.run(QUIET_MS)
        for name, worker in list(group.workers.items()):
            if worker.core.closed:  # it was leaving
                assert not worker.runs
                group.kill(name)
        group.expect_all(*group.workers)


@pytest.mark.parametrize("seed", range(60))
def test_nothing_runs_twice_and_everything_runs_again(seed: int) -> None:
    world = World(seed)
    for _ in range(30):
        world.happen()
        world.group.run(world.chance.choice([1, 10, 1_000, 5_000, 20_000]))
    world.end()
