"""Plays many seeds on one Kafka release: starts both sides, creates the topics, yields the
outcomes.

Most seeds run with ``group.consumer.assignment.interval.ms=0``, where an answer does not depend
on time. On releases that have the setting (4.3 and later), one seed in twenty runs with its default
instead, on brokers of its own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator, Sequence
from typing import Final, Literal

from tests.differential._actions import Plan
from tests.differential._play import Outcome, play
from tests.differential._sides import MockSide, RealSide, Side, TwinSide
from tests.differential._steps import Topic
from tests.support.real_kafka import RealKafka

__all__ = ["Against", "run"]

Against = Literal["mock", "twin"]

_CONFIGS: Final = {"group.consumer.max.size": "6"}
_REAL_ONLY: Final = {"group.coordinator.append.linger.ms": "0"}
"""Speed alone: real Kafka otherwise collects writes for 5 ms before it answers."""

_NO_INTERVAL: Final = {"group.consumer.assignment.interval.ms": "0"}
_TOPICS: Final = {
    "topic-a": 1,
    "topic-b": 3,
    "topic-c": 6,
    "topic-d": 12,
    "topic-e": 20,
    "topic-f": 33,
}
_INTERVAL_SEEDS: Final = 20


def run(version: str, seeds: Sequence[int], against: Against = "mock") -> Iterator[Outcome]:
    """Play seeds on a release and on our coordinator (or on the same broker twice).

    Raises ``KafkaUnavailableError`` where Kafka cannot run.
    """
    with_interval = [each for each in seeds if _has_interval(version) and _is_interval_seed(each)]
    without = [each for each in seeds if each not in with_interval]
    for chosen, has_interval in ((without, False), (with_interval, True)):
        if not chosen:
            continue
        configs = dict(_CONFIGS)
        if _has_interval(version) and not has_interval:
            configs.update(_NO_INTERVAL)
        with _sides(version, configs, against) as (real, other):
            topics = [_topic(real, other, name, count) for name, count in _TOPICS.items()]
            for seed in chosen:
                yield play(Plan(seed, topics, real.offered, has_interval), real, other)


def _has_interval(version: str) -> bool:
    return tuple(int(part) for part in version.split(".")) >= (4, 3)


def _is_interval_seed(seed: int) -> bool:
    return seed % _INTERVAL_SEEDS == _INTERVAL_SEEDS - 1


@contextlib.contextmanager
def _sides(
    version: str, configs: dict[str, str], against: Against
) -> Generator[tuple[RealSide, Side]]:
    with contextlib.ExitStack() as stack:
        kafka = stack.enter_context(RealKafka.start(version, {**configs, **_REAL_ONLY}))
        real = RealSide(kafka)
        stack.callback(real.close)
        other: Side
        if against == "twin":
            other = TwinSide(kafka)
            stack.callback(other.close)
        else:
            other = stack.enter_context(MockSide.start(kafka.profile, configs))
        yield real, other


def _topic(real: RealSide, other: Side, name: str, partitions: int) -> Topic:
    topic_id = real.new_topic(name, partitions)
    other.create_topic(name, partitions, topic_id)
    return Topic(name, topic_id, partitions)
