"""Groups of workers with whatever happens to them: nothing ever runs twice, and when it is quiet
everything that is configured runs again."""

from __future__ import annotations

import random

import pytest

from kip848_client.connect.core import (
    Configuration,
    ConfigurationRead,
    ConnectorTasks,
    RebalanceRequested,
)
from kip848_client.core.connect import (
    IncrementalCooperativeAssignor,
    RebalanceReason,
    SpreadAssignor,
)
from kip848_client.core.member import MemberState
from tests.unit.connect._workers import Worker, WorkerGroup, connector, task

DELAY_MS = 20_000
QUIET_MS = 200_000


class World:
    """A group, and chance."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        kind = self.chance.choice([IncrementalCooperativeAssignor, SpreadAssignor])
        self.group = WorkerGroup(kind(scheduled_rebalance_max_delay_ms=DELAY_MS))
        self.group.rebalance_timeout_ms = 60_000  # no shorter than the session
        self.names = 0
        self.host_of: dict[str, str] = {}
        self.static: set[str] = set()
        """Hosts whose workers are static members."""
        self.killed: list[str] = []
        """Hosts whose worker was killed. A static one can only come back after its session."""
        self.left: list[str] = []

    def join(self) -> None:
        self.names += 1
        name = f"w{self.names}"
        free = [*self.left, *(host for host in self.killed if host not in self.static)]
        host = self.chance.choice([name, *free])
        for hosts in (self.left, self.killed):
            if host in hosts:
                hosts.remove(host)
        if host == name and self.chance.random() < 0.3:
            self.static.add(host)
        static = f"i-{host}" if host in self.static else None
        self.host_of[name] = host
        worker = self.group.worker(name, host=host, instance_id=static)
        worker.stop_ms = self.chance.choice([1, 300, 4_000])

    def someone(self) -> Worker | None:
        workers = list(self.group.workers.values())
        return self.chance.choice(workers) if workers else None

    def happen(self) -> None:
        """One thing."""
        worker = self.someone()
        match self.chance.randrange(9):
            case 0 | 1:
                if len(self.group.workers) < 6:
                    self.join()
            case 2 if worker is not None:
                self.group.kill(worker.name)
                self.killed.append(self.host_of[worker.name])
            case 3 if worker is not None and worker.core.state is not MemberState.LEAVING:
                self.leave(worker)
            case 4 if worker is not None:
                worker.cut_off = True
            case 5 if worker is not None:
                worker.cut_off = False
            case 6:
                self.configure(worker)
            case 7 if worker is not None:
                self.be_cut_off_with_news_unread(worker)
            case _:
                pass

    def leave(self, worker: Worker) -> None:
        if worker.core.state in (MemberState.STABLE, MemberState.RECONCILING, MemberState.JOINING):
            unheard = worker.cut_off
            self.group.leave(worker.name)
            self.group.run(6_000)
            self.group.kill(worker.name)
            (self.killed if unheard else self.left).append(self.host_of[worker.name])

    def configure(self, worker: Worker | None) -> None:
        """Connectors come and go, and their tasks are configured anew."""
        offset = self.group.configuration.offset + 1
        connectors = dict(self.group.configuration.connectors)
        name = self.chance.choice("abcde")
        if name in connectors and self.chance.random() < 0.3:
            del connectors[name]
        else:
            connectors[name] = ConnectorTasks(self.chance.randrange(4), offset)
        self.group.configuration = Configuration(offset, connectors)
        if worker is not None:
            worker.feed(ConfigurationRead(self.group.configuration))
            worker.feed(RebalanceRequested(RebalanceReason.CONFIGURATION_CHANGED))

    def be_cut_off_with_news_unread(self, worker: Worker) -> None:
        """It is assigned items of a configuration that it reads when its session is over."""
        others = [each for each in self.group.workers.values() if each is not worker]
        worker.read_ms = 100_000
        self.configure(self.chance.choice(others) if others else None)
        self.group.run(self.chance.choice([6_000, 12_000]))
        worker.cut_off = True

    def end(self) -> None:
        """It is quiet, and everybody can be reached."""
        if not self.group.workers:
            self.join()
        for worker in self.group.workers.values():
            worker.cut_off, worker.read_ms = False, 1
        self.group.run(10_000)
        newest = next(iter(self.group.workers.values()))
        newest.feed(ConfigurationRead(self.group.configuration))
        newest.feed(RebalanceRequested(RebalanceReason.CONFIGURATION_CHANGED))
        self.group.run(QUIET_MS)


@pytest.mark.parametrize(
    "seed",
    [
        *range(20),
        *(
            pytest.param(seed, marks=pytest.mark.everything("more seeds"))
            for seed in range(20, 120)
        ),
    ],
)
def test_nothing_runs_twice_and_everything_runs_again(seed: int) -> None:
    world = World(seed)
    world.join()
    for _ in range(world.chance.randrange(5, 25)):
        world.happen()
        world.group.run(world.chance.choice([0, 10, 500, 3_000, 12_000, 40_000]))
    world.end()

    configured = {connector(name) for name in world.group.configuration.connectors} | {
        task(name, number, tasks.generation)
        for name, tasks in world.group.configuration.connectors.items()
        for number in range(tasks.count)
    }
    workers = world.group.workers.values()
    assert set().union(*(worker.runs for worker in workers)) == configured
    for worker in workers:
        assert worker.core.state is MemberState.STABLE, (worker.name, worker.core.state)
        assert set(worker.core.assigned) == worker.runs
