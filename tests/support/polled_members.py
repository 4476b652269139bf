"""Members of group ``g`` with threads of their own, and the story of two of them.

Clients such as librdkafka block their caller, so the story runs in a thread, one step at a time;
between the steps a test looks at the broker.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

__all__ = ["ConfluentMember", "Member", "life_of_a_group", "poll_until"]

TOPIC: Final = "orders"
PARTITIONS: Final = [0, 1, 2, 3]
_PATIENCE_S: Final = 45.0


class Member(Protocol):
    """A consumer of group ``g`` and topic ``orders``, polled by whoever calls it."""

    values: list[bytes]

    def poll(self) -> None: ...
    def partitions(self) -> list[int]: ...
    def commit(self) -> None: ...
    def committed(self) -> list[int]: ...
    def close(self) -> None: ...


class ConfluentMember:
    """librdkafka's consumer, with whatever else it is configured with."""

    def __init__(self, bootstrap: str, **options: Any) -> None:
        from confluent_kafka import Consumer, TopicPartition

        self.values: list[bytes] = []
        self._wanted = [TopicPartition(TOPIC, partition) for partition in PARTITIONS]
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "g",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **{name.replace("_", "."): value for name, value in options.items()},
            }
        )
        self._consumer.subscribe([TOPIC])

    def poll(self) -> None:
        message = self._consumer.poll(0.05)
        if message is not None:
            assert message.error() is None, message.error()
            self.values.append(message.value() or b"")

    def partitions(self) -> list[int]:
        return sorted(part.partition for part in self._consumer.assignment())

    def commit(self) -> None:
        self._consumer.commit(asynchronous=False)

    def committed(self) -> list[int]:
        return [part.offset for part in self._consumer.committed(self._wanted, _PATIENCE_S)]

    def close(self) -> None:
        self._consumer.close()


def poll_until(condition: Callable[[], bool], *members: Member) -> None:
    """Poll the members in turn until a condition holds."""
    give_up = time.monotonic() + _PATIENCE_S
    while not condition():
        assert time.monotonic() < give_up, "the group did not get there in time"
        for member in members:
            member.poll()


def life_of_a_group(make: Callable[[str], Member], bootstrap: str) -> Iterator[str]:
    """The story, one step a yield; what the broker should then look like is checked outside.

    Ten records are in each of four partitions; before the last step each gets a ``late`` one.
    Members are polled in turn, so the second one is not waited for while it joins.
    """
    there: list[Member] = []
    try:
        yield from _steps(make, bootstrap, there)
    finally:
        for each in there:  # one that is left open asks for its broker for ever
            each.close()


def _steps(make: Callable[[str], Member], bootstrap: str, there: list[Member]) -> Iterator[str]:
    first = make(bootstrap)
    there.append(first)
    poll_until(lambda: len(first.values) == 40, first)
    assert first.partitions() == PARTITIONS
    first.commit()
    assert first.committed() == [10, 10, 10, 10]
    yield "consumed and committed"
    second = make(bootstrap)
    there.append(second)
    poll_until(
        lambda: len(first.partitions()) == 2 and len(second.partitions()) == 2, first, second
    )
    assert sorted(first.partitions() + second.partitions()) == PARTITIONS
    yield "two members"
    there.remove(first)
    first.close()
    poll_until(lambda: second.partitions() == PARTITIONS, second)
    yield "the second took over"
    poll_until(lambda: len(second.values) == 4, second)
    assert sorted(second.values) == [b"late-0", b"late-1", b"late-2", b"late-3"]
    there.remove(second)
    second.close()
    yield "both left"
