"""Produces small records to all partitions of a topic, so many a second to each, until killed.

Each round goes over the partitions in slices, so that brokers and clients see an even stream.

``python -m benchmarks.rebalance.source BOOTSTRAP TOPIC PARTITIONS PER_SECOND``, a process of its
own, so that it does not compete with the consumers for an interpreter.
"""

from __future__ import annotations

import sys
import time

from confluent_kafka import Producer

__all__ = ["main"]

_SLICES_A_SECOND = 20


def main(bootstrap: str, topic: str, partitions: int, per_second: float) -> None:
    """Rounds over all partitions at an even pace."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    due = time.monotonic()
    slices = max(1, round(_SLICES_A_SECOND / per_second))
    while True:
        for number in range(slices):
            for partition in range(number, partitions, slices):
                producer.produce(topic, b"x" * 100, partition=partition)
            producer.poll(0)
            due += 1 / per_second / slices
            time.sleep(max(0.0, due - time.monotonic()))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
