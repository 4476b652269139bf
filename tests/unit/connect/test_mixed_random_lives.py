"""Groups of workers of both protocols with whatever happens to them: nothing ever runs twice, and
when it is quiet everything that is configured runs again."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kip848_client.connect.core import (
    Configuration,
    ConfigurationRead,
    ConnectorTasks,
    RebalanceRequested,
)
from kip848_client.core.member import MemberState
from tests.unit.connect._mixed_workers import MixedWorkers

QUIET_MS = 400_000


class World:
    """A group, and chance."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.group = MixedWorkers(max_delay_ms=self.chance.choice([0, 2_000, 20_000]))
        self.names = 0
        self.kinds: set[str] = set()

    def join(self, *, classic: bool | None = None) -> None:
        self.names += 1
        if classic is None:
            classic = self.chance.random() < 0.6
        make = self.group.worker if classic else self.group.connect_worker
        worker = make(f"w{self.names}", host=f"h{self.chance.randrange(4)}")
        worker.stop_ms = self.chance.choice([1, 300, 4_000])

    def someone(self) -> Any:
        workers = [each for each in self.group.workers.values() if not each.core.closed]
        return self.chance.choice(workers) if workers else None

    def happen(self) -> None:
        """One thing."""
        worker = self.someone()
        if worker is None or len(self.group.workers) < 2:
            self.join()
            return
        match self.chance.randrange(10):
            case 0 | 1 | 2 if len(self.group.workers) < 5:
                self.join()
            case 3:
                self.group.kill(worker.name)
            case 4 | 5:
                if worker.core.state is not MemberState.UNSUBSCRIBED:
                    self.group.leave(worker.name)
            case 6:
                worker.cut_off = not worker.cut_off
            case 7:
                self.group.fail_over()
            case 8:
                self.reconfigure()
            case _:
                if worker.core.state is MemberState.STABLE:
                    worker.feed(RebalanceRequested(64))

    def reconfigure(self) -> None:
        """Everybody knows it in the end, one after the other."""
        group, chance = self.group, self.chance
        connectors = {
            name: ConnectorTasks(chance.randrange(4)) for name in "abc" if chance.random() < 0.8
        }
        group.configuration = Configuration(group.configuration.offset + 1, connectors)
        for each in group.workers.values():
            if not each.core.closed:
                told_ms = chance.choice([0, 50, 6_000])
                group.later(told_ms, each, ConfigurationRead(group.configuration))
                group.later(6_001, each, RebalanceRequested(2))

    def live(self) -> None:
        for _ in range(30):
            self.happen()
            self.group.run(self.chance.choice([1, 10, 1_000, 5_000, 20_000]))
            if self.group.base.groups.snapshot("c") is not None:
                self.kinds.add(self.group.kind.split()[0])

    def end(self, *, classic: bool) -> None:
        """Nothing happens any more."""
        group = self.group
        for name, worker in list(group.workers.items()):
            worker.cut_off = False
            if worker.core.closed:
                group.kill(name)
        self.join(classic=classic)
        group.run(QUIET_MS)
        for name, worker in list(group.workers.items()):
            if worker.core.closed:  # it was leaving
                assert not worker.runs
                group.kill(name)
        group.expect_all(*group.workers)


@pytest.mark.parametrize("seed", range(40))
def test_nothing_runs_twice_and_everything_runs_again(seed: int) -> None:
    world = World(seed)
    world.live()
    world.end(classic=seed % 2 == 0)


def test_the_groups_of_these_lives_change_their_type() -> None:
    worlds = [World(seed) for seed in range(3)]
    for world in worlds:
        world.live()
    assert any(world.kinds == {"classic", "connect"} for world in worlds)
