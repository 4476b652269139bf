"""The jobs that there are. Those of one kind are cut into parts of some minutes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.long.job import Job
from tests.support.kafka_jars import ALL_VERSIONS

__all__ = ["JOBS"]

_NEWEST: Final = ALL_VERSIONS[-1]
_WORLDS: Final = {
    "groups": ("", 4_000, 200),
    "fetching": ("--fetching", 4_000, 200),
    "producing": ("--producing", 4_000, 200),
    "exactly-once": ("--exactly-once", 1_000, 50),
    "workers": ("--workers", 2_000, 100),
}
"""World -> its option, how many seeds, and how many of them in one part."""
_SEEDS: Final = 400
_SEEDS_AT_ONCE: Final = 50
_TWINS: Final = "900..940"
_DICE: Final = ("1", "2", "3")
_MINUTES: Final = 10


def _ranges(seeds: int, each: int, *, last_is_in: bool) -> tuple[str, ...]:
    """``0..199``, ``200..399``: as the simulation says it, which plays the last one, too."""
    return tuple(f"{low}..{low + each - last_is_in}" for low in range(0, seeds, each))


def _simulations() -> Iterator[Job]:
    for world, (option, seeds, each) in _WORLDS.items():
        yield Job(
            f"simulation-{world}",
            f"{seeds:,} seeds in virtual time",
            f"-m mock_coordinator.sim {option} --probes --seeds {{}}",
            _ranges(seeds, each, last_is_in=True),
        )
        yield Job(
            f"rare-paths-{world}",
            "do 200 seeds take every rare path twice; prints the seeds that the tests should play",
            f"-m tests.simulation.few {world}",
        )
    yield Job(
        "simulation-spark",
        "10,000 seeds of Spark queries with their checkpoints and groups, in virtual time",
        "-m tests.simulation.spark --seeds {}",
        _ranges(10_000, 2_000, last_is_in=True),
    )
    yield Job(
        "upgrading",
        "a hundred members are replaced one by one, in virtual time",
        "-m tests.simulation.upgrading --members 100 --partitions 1000 --upgraded 100",
    )


def _of_a_release(release: str) -> Iterator[Job]:
    kafka = f"--kafka {release}"
    yield Job(
        f"differential-{release}",
        f"{_SEEDS} random sequences on Kafka and on the bundled broker",
        f"-m tests.differential {kafka} --seeds {{}}",
        _ranges(_SEEDS, _SEEDS_AT_ONCE, last_is_in=False),
    )
    yield Job(
        f"twin-{release}",
        "the comparison finds nothing between a broker and itself",
        f"-m tests.differential {kafka} --against twin --kind consumer --seeds {_TWINS}",
    )
    yield Job(
        f"integration-{release}",
        "clients and tools on this release, as the whole suite plays them on two",
        f"-m pytest -n2 --everything --kafka-versions {release} tests/integration",
    )
    yield Job(
        f"situations-{release}",
        "what happens to a group in production, restarts of the controller included",
        f"-m tests.situations {kafka}",
    )
    yield Job(
        f"torture-{release}",
        "exactly once by a processor while processes and leaders go",
        f"-m tests.torture {kafka} --minutes {_MINUTES} --seed {{}}",
        _DICE,
    )
    yield Job(
        f"torture-by-hand-{release}",
        "the same by a consumer and a producer in a loop",
        f"-m tests.torture {kafka} --by-hand --minutes {_MINUTES} --seed {{}}",
        _DICE,
    )
    yield Job(
        f"chaos-{release}",
        "exactly once and at least once with brokers killed and networks cut",
        f"-m tests.chaos {kafka} --minutes {_MINUTES} --seed {{}}",
        _DICE,
    )


def _kill_series() -> Iterator[Job]:
    for where, option in (("bundled", ""), (_NEWEST, f"--kafka {_NEWEST}")):
        yield Job(
            f"pipeline-kills-{where}",
            "a pipeline of Spark is killed 20 times, each record is there once",
            f"-m tests.spark.kills --kills 20 {option}",
        )
        yield Job(
            f"sink-kills-{where}",
            "a query that writes exactly once is killed 20 times",
            f"-m tests.spark.sink_kills --kills 20 {option}",
        )
    yield Job(
        "cluster-kills-standalone",
        "workers of a cluster of Spark are killed 10 times",
        "-m tests.spark.clusters --kills 10",
    )
    yield Job(
        "cluster-kills-local",
        "executors of a cluster of Spark are killed 10 times",
        "-m tests.spark.clusters --kills 10 --local",
    )


def _settling() -> Iterator[Job]:
    yield Job(
        "rebalance",
        "how fast a group of this size settles on Kafka, against its bars",
        f"-m benchmarks rebalance --kafka {_NEWEST} --clients kip848 --runs 3 --consumers {{}}",
        ("50", "100"),
    )


JOBS: Final[tuple[Job, ...]] = (
    *_simulations(),
    *(job for release in reversed(ALL_VERSIONS) for job in _of_a_release(release)),
    Job(
        "torture-bundled",
        "exactly once on the bundled brokers",
        f"-m tests.torture --mock 4.4 --minutes {_MINUTES} --seed {{}}",
        _DICE,
    ),
    Job("situations-bundled", "as on Kafka, on the bundled brokers", "-m tests.situations"),
    *_kill_series(),
    *_settling(),
)
