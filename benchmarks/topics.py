"""What topics are filled with, for those benchmarks that move records."""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

__all__ = ["Data", "Topic", "fill", "values"]

_LIMIT_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class Data:
    """What a topic is filled with."""

    value_bytes: int
    compression: str
    partitions: int

    @property
    def topic(self) -> str:
        return f"bench-{self.value_bytes}-{self.compression}-{self.partitions}"

    def __str__(self) -> str:
        return f"{self.value_bytes} bytes, {self.compression}, {self.partitions} partitions"


class Topic(NamedTuple):
    """A filled topic, as a measuring process is told of it."""

    bootstrap: str
    name: str
    partitions: int
    records: int


def values(size: int) -> list[bytes]:
    """Texts as logs have them: some of it repeats, some does not."""
    dice = random.Random(848)
    found: list[bytes] = []
    for number in range(5000):
        head = {"id": number, "user": dice.randrange(10**6), "level": dice.choice("DIWE")}
        text = json.dumps(head)[:-1] + ', "message": "'
        while len(text) < size:
            text += dice.choice(("connection", "request", "took", f"{dice.random():.9f}")) + " "
        found.append((text[: size - 2] + '"}').encode())
    return found


def fill(bootstrap: str, data: Data, records: int) -> Topic:
    """Fill the topic of this data, which must be there. Raises ``TimeoutError``."""
    from confluent_kafka import Producer

    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "compression.type": data.compression,
        "linger.ms": 50,
        "batch.size": 65_536,
        "queue.buffering.max.messages": 1_000_000,
    }
    producer = Producer(settings)
    texts = itertools.cycle(values(data.value_bytes))
    for number, value in zip(range(records), texts, strict=False):
        partition = number // 100 % data.partitions
        while True:
            try:
                producer.produce(data.topic, value, b"key-%05d" % (number % 99_991), partition)
                break
            except BufferError:
                producer.poll(0.1)
    left = producer.flush(_LIMIT_S)
    if left:
        raise TimeoutError(f"{left} records of {data.topic} were not stored")
    return Topic(bootstrap, data.topic, data.partitions, records)
