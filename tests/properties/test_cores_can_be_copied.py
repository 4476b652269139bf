"""A copy of any core, made at any moment, does what the original does for the next 100 events.

So a state can be kept, compared, and tried out: no core holds a future, a generator, a function
that is bound to the original, or anything else that belongs to its driver.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pytest

from kip848_client.connect.core import ClassicWorkerCore, WorkerCore
from kip848_client.core.fetch import FetchCore
from kip848_client.core.group import GroupCore
from kip848_client.core.member import MemberCore
from kip848_client.core.offsets import CommitterCore, OffsetTracker
from kip848_client.core.produce import ProducerCore
from kip848_client.core.produce._model import ProduceSettings
from kip848_client.core.produce._routes import Route
from kip848_client.observe.core.telemetry._core import TelemetryCore
from kip848_client.observe.core.telemetry._model import CloseRequested, Unserved
from kip848_client.processor.core import ProcessorCore
from mock_coordinator.connection import ConnectionSettings
from mock_coordinator.connection.core import ConnectionCore
from mock_coordinator.core.chronicle import Chronicle
from mock_coordinator.core.cluster import ClusterCore
from mock_coordinator.core.state.offsets_log import OffsetsLog
from mock_coordinator.sim import draw_options, simulate
from mock_coordinator.sim.exactly_once.options import draw_process_options
from mock_coordinator.sim.exactly_once.world import ProcessWorld
from mock_coordinator.sim.producing.options import draw_produce_options
from mock_coordinator.sim.producing.world import ProduceWorld
from mock_coordinator.sim.workers.options import draw_worker_options
from mock_coordinator.sim.workers.world import WorkerWorld
from tests.properties import test_fetch_core as fetching
from tests.support.copied_core import Copying
from tests.support.examples import examples
from tests.support.producer_world import ProducerWorld
from tests.unit.connect.test_classic_random_lives import World as ClassicWorld
from tests.unit.mock_coordinator.connection.connection_harness import (
    PLAIN,
    SASL,
    ConnectionHarness,
    metadata,
    request,
    token,
)
from tests.unit.observe.telemetry import test_core as telemetry

CORES: Final = (
    ClassicWorkerCore,
    ClusterCore,
    CommitterCore,
    Chronicle,
    ConnectionCore,
    FetchCore,
    GroupCore,
    MemberCore,
    OffsetsLog,
    ProcessorCore,
    ProducerCore,
    TelemetryCore,
    WorkerCore,
)


def _groups(seed: int) -> None:
    simulate(draw_options(seed))


def _fetching(seed: int) -> None:
    trouble = (0.0, 0.1, 0.4)[seed % 3]
    for n in range(3):
        rows_a_step = (1, 500)[n % 2]
        life = fetching.run(
            seed * 3 + n, trouble, "earliest", committed=bool(seed % 2), rows_a_step=rows_a_step
        )
        if rows_a_step > 1:
            life.heal()


def _producing(seed: int) -> None:
    ProduceWorld.play(draw_produce_options(seed))


def _plain_producing(seed: int) -> None:
    ProducerWorld(seed, ProduceSettings(batch_bytes=191, request_bytes=1_000)).run(300)


def _processing(seed: int) -> None:
    ProcessWorld.play(draw_process_options(seed))


def _working(seed: int) -> None:
    WorkerWorld.play(draw_worker_options(seed))


def _working_classically(seed: int) -> None:
    world = ClassicWorld(seed)
    for _ in range(20):
        world.happen()
        world.group.run(world.chance.choice([1, 10, 1_000, 5_000, 20_000]))


def _telemetry(seed: int) -> None:
    dice = random.Random(seed)
    world = telemetry.World(0, 1)
    for _ in range(400):
        world.now_ms += dice.choice([0, 1, 40_000, 400_000])
        event = telemetry._any_event(dice)
        if not isinstance(event, CloseRequested | Unserved):
            world.post(event)


def _connections(seed: int) -> None:
    """A client that logs in and asks, in pieces of any size."""
    dice = random.Random(seed)
    plain = ConnectionSettings(max_frame_bytes=2_000, idle_ms=60_000, failed_login_delay_ms=50)
    for factory in (PLAIN, SASL) * 3:
        line = ConnectionHarness(plain, factory, is_prompt=False, is_greedy=False)
        data = b"" if factory is PLAIN else request("SaslHandshake", 1, mechanism="PLAIN")
        data += b"" if factory is PLAIN else token(b"\0alice\0open sesame")
        data += b"".join(metadata(number) for number in range(60))
        while data and line.closed is None:
            size = dice.randint(1, 90)
            line.feed(data[:size])
            data = data[size:]
            for name in dice.choices(("answer", "take", "turn"), k=dice.randint(0, 6)):
                getattr(line, name)()
            line.advance(dice.choice((0, 0, 1, 100)))


@dataclass(frozen=True)
class Kind:
    """A core, its random lives, and how many calls there are in one, about."""

    core: type
    live: Callable[[int], None]
    calls: int
    beside: tuple[type, ...] = ()
    ignored: tuple[str, ...] = ()
    parts: Callable[[Any], Mapping[Any, object]] = lambda _core: {}
    lives: int = 8
    """Of the whole suite."""


def _routes(core: ProducerCore) -> Mapping[str, Route]:
    return core.routes


_LOOKING: Final = ("fetches", "restarted")
KINDS: Final = {
    "member": Kind(MemberCore, _groups, 1_000),
    "committer": Kind(CommitterCore, _groups, 300, (OffsetTracker,)),
    "group": Kind(GroupCore, _groups, 1_000, (OffsetTracker,)),
    "fetch": Kind(FetchCore, _fetching, 600),
    "produce": Kind(ProducerCore, _plain_producing, 600, (Route,), parts=_routes),
    "transactions": Kind(ProducerCore, _producing, 1_000, (Route,), parts=_routes),
    "processor": Kind(ProcessorCore, _processing, 200),
    "worker": Kind(WorkerCore, _working, 400),
    "classic worker": Kind(ClassicWorkerCore, _working_classically, 200),
    "telemetry": Kind(TelemetryCore, _telemetry, 100),
    "broker": Kind(ClusterCore, _groups, 2_000, ignored=_LOOKING),
    "broker of transactions": Kind(ClusterCore, _producing, 400, ignored=_LOOKING),
    "broker of workers": Kind(ClusterCore, _working, 1_000, ignored=_LOOKING),
    "connection": Kind(ConnectionCore, _connections, 200),
}


def _seeds() -> Iterator[Any]:
    for name, kind in KINDS.items():
        for seed in range(max(2, examples(kind.lives))):
            yield pytest.param(kind, seed, id=f"{name}-{seed}")


@pytest.mark.parametrize(("kind", "seed"), list(_seeds()))
def test_a_copy_does_what_the_original_does(kind: Kind, seed: int) -> None:
    at = random.Random(seed).randint(1, kind.calls)
    while not _is_copied(kind, seed, at):
        at //= 2  # the life ended before
        assert at, "nothing was compared"


def _is_copied(kind: Kind, seed: int, at: int) -> bool:
    copying = Copying(
        kind.core, at, beside=kind.beside, cores=CORES, ignored=kind.ignored, parts=kind.parts
    )
    with copying:
        kind.live(seed)
    return copying.compared > 0
