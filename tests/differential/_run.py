"""Plays many seeds on one Kafka release: starts the brokers that their kinds need, creates the
topics, plays several seeds at a time, yields the outcomes.

Most seeds run with ``group.consumer.assignment.interval.ms=0``, where an answer does not depend
on time. Kinds with the same settings share a broker, and one broker runs at a time. Sequences spend
most of their time waiting (for a topic to be known, for a timer), so several share the brokers;
each has groups and topics of its own.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Final, Literal

from mock_coordinator.core.profiles import profile_named
from mock_coordinator.core.release_line import ReleaseLine
from tests.differential._minimise import minimised
from tests.differential._outcome import Outcome
from tests.differential._plan import Kind, Plan, TooSlowError
from tests.differential._play import play
from tests.differential._sides import (
    CLIENT_ID,
    MockAddress,
    MockSide,
    RealSide,
    Side,
    TwinSide,
    mock_process,
)
from tests.differential._steps import Topic
from tests.differential._users import PASSWORD, SECURITY, USERS, connector
from tests.differential.kinds import kind_of
from tests.support.real_kafka import RealKafka
from tests.support.secure_kafka import start_secure_kafka
from tests.support.wire_connection import WireConnection

__all__ = ["Against", "Arena", "Job", "arena", "configs_of", "run"]

Against = Literal["mock", "twin"]
Job = tuple[int, Kind]

_CONFIGS: Final = {
    "group.consumer.max.size": "6",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.min.session.timeout.ms": "500",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
}
_INTERVAL_CONFIGS: Final = {
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.max.assignment.interval.ms": "600000",
}
_REAL_ONLY: Final = {
    "group.coordinator.append.linger.ms": "0",
    "num.network.threads": "1",
    "num.io.threads": "1",
}
"""Speed: real Kafka otherwise collects writes for 5 ms before it answers. And order: with one
thread each, a request that was sent before another one is looked at before it."""

_TOPICS: Final = {
    "topic-a": 1,
    "topic-b": 3,
    "topic-c": 6,
    "topic-d": 12,
    "topic-e": 20,
    "topic-f": 33,
}
WORKERS: Final = 8


@dataclass(slots=True)
class Arena:
    """A running broker, its opponent, and the topics that both have."""

    kafka: RealKafka
    against: Against
    mock: MockAddress | None
    sasl_port: int = 0
    """Of the real broker; 0 where there are no users."""
    topics: list[Topic] = field(default_factory=list[Topic])
    turn: threading.Lock = field(default_factory=threading.Lock)
    offered: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])

    def sides(self) -> tuple[RealSide, Side]:
        """Connections for one thread."""
        real = RealSide(self.kafka, self._connector(self.kafka, self.sasl_port), self.turn)
        if self.mock is None:
            return real, TwinSide(self.kafka, self._connector(self.kafka, self.sasl_port))
        return real, MockSide(self.mock, self._connector(self.mock, self.mock.sasl_port))

    @staticmethod
    def _connector(
        broker: RealKafka | MockAddress, sasl_port: int
    ) -> Callable[[int], WireConnection] | None:
        return connector(broker.host, broker.port, sasl_port, CLIENT_ID) if sasl_port else None

    def prepare(self) -> None:
        """Create the topics, find out what both sides offer."""
        real, other = self.sides()
        self.offered = real.offered
        real.warm_up()
        if isinstance(other, MockSide):
            other.warm_up()
        for name, count in _TOPICS.items():
            topic_id = real.new_topic(name, count, {})
            other.create_topic(name, count, topic_id, {})
            self.topics.append(Topic(name, topic_id, count))
        real.close()
        other.close()


def configs_of(kind: Kind, version: str) -> dict[str, str]:
    """The broker settings that a kind is played with on a release."""
    profile = profile_named(str(ReleaseLine.of(version)))
    has_interval = profile.has_assignment_interval
    return {**_CONFIGS, **(_INTERVAL_CONFIGS if has_interval else {}), **kind.configs}


def run(
    version: str,
    seeds: Sequence[int],
    against: Against = "mock",
    kind: Kind | None = None,
    *,
    workers: int = WORKERS,
    minimise: bool = False,
) -> Iterator[Outcome]:
    """Play seeds on a release and on our coordinator (or on the same broker twice); of one kind, or
    each of its own. The outcomes come as they are ready.

    Raises ``KafkaUnavailableError`` where Kafka cannot run.
    """
    groups: dict[tuple[bool, tuple[tuple[str, str], ...]], list[Job]] = {}
    for seed in seeds:
        chosen = kind or kind_of(seed, version)
        settings = tuple(sorted(configs_of(chosen, version).items()))
        groups.setdefault((chosen.secure, settings), []).append((seed, chosen))
    for (secure, settings), jobs in groups.items():
        with arena(version, dict(settings), against, secure=secure) as place:
            yield from _played(place, jobs, workers, minimise=minimise)


@contextlib.contextmanager
def arena(
    version: str, configs: dict[str, str], against: Against, *, secure: bool = False
) -> Generator[Arena]:
    """Both brokers, for the length of the block; ``secure`` ones have an authorizer and users."""
    with contextlib.ExitStack() as stack:
        settings = {**configs, **_REAL_ONLY}
        sasl_port = 0
        ours = dict(configs)
        if secure:
            users = {name: PASSWORD.format(name) for name in USERS}
            started = stack.enter_context(start_secure_kafka(version, users, configs=settings))
            kafka, sasl_port = started.kafka, started.ports["SASL"]
            ours["security"] = json.dumps(SECURITY)
        else:
            kafka = stack.enter_context(RealKafka.start(version, settings))
        mock = None
        if against == "mock":
            mock = stack.enter_context(mock_process(kafka.profile, ours))
        place = Arena(kafka, against, mock, sasl_port)
        place.prepare()
        yield place


def _played(
    place: Arena, jobs: Sequence[Job], workers: int, *, minimise: bool
) -> Iterator[Outcome]:
    local = threading.local()
    opened: list[tuple[RealSide, Side]] = []

    def sides() -> tuple[RealSide, Side]:
        if not hasattr(local, "sides"):
            local.sides = place.sides()
            opened.append(local.sides)
        found: tuple[RealSide, Side] = local.sides
        return found

    def one(seed: int, kind: Kind) -> Outcome:
        real, other = sides()
        plan = Plan(seed, place.topics, place.offered, kind.has_interval)
        try:
            outcome = play(kind, plan, real, other)
        except TooSlowError as err:
            return Outcome(seed, kind.name, too_slow=str(err))
        if minimise and outcome.divergences:
            outcome.trace = minimised(outcome, plan, real, other)
        return outcome

    pool = ThreadPoolExecutor(min(workers, len(jobs)), thread_name_prefix="differential")
    try:
        futures = [pool.submit(one, seed, kind) for seed, kind in jobs]
        for future in as_completed(futures):
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)
        for real, other in opened:
            real.close()
            other.close()
