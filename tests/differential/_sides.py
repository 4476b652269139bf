"""The two sides that a sequence is played on.

``RealSide`` is an Apache Kafka broker. ``MockSide`` is our coordinator behind its TCP server,
started through the command line as a user would, so that the whole path is compared. ``TwinSide``
is the same real broker again under other group ids: it proves that the comparison itself finds no
differences.
"""

from __future__ import annotations

import contextlib
import dataclasses
import subprocess
import sys
import threading
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from kip848_client._types import TopicId, format_topic_id
from kip848_client.wire import api_named
from kip848_client.wire.messages.topics import (
    CreatePartitionsRequestCreatePartitionsTopic,
    CreateTopicsRequestCreatableTopic,
    CreateTopicsRequestCreatableTopicConfig,
    DeleteTopicsRequestDeleteTopicState,
)
from tests.support.real_kafka import RealKafka
from tests.support.wire_connection import ConnectionLostError, WireConnection

__all__ = ["Closed", "MockSide", "RealSide", "Side", "TwinSide", "renamed"]

MOCK_COMMAND: Final = (sys.executable, "-m", "kip848_client", "mock")

_CLIENT_ID = "differential"
_START_TIMEOUT_S = 30
_STOP_TIMEOUT_S = 10


@dataclass(frozen=True, slots=True)
class Closed:
    """What a side answered that closed the connection instead."""

    answer: str = "connection closed"


class Side(Protocol):
    """Somewhere to play a sequence."""

    def request(self, message: Any, version: int) -> Any:
        """The response message, or ``Closed``."""
        ...

    def create_topic(self, name: str, partitions: int, topic_id: bytes) -> None:
        """Create a topic with this id; return when groups can use it."""
        ...

    def grow_topic(self, name: str, partitions: int) -> None: ...

    def delete_topic(self, name: str) -> None: ...

    def close(self) -> None: ...


class _Wire:
    """A connection that is opened again when the other side closes it."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._connection = WireConnection(host, port, client_id=_CLIENT_ID)

    def request(self, message: Any, version: int) -> Any:
        try:
            return self._connection.request(message, version)
        except ConnectionLostError:
            self._connection.close()
            self._connection = WireConnection(*self._address, client_id=_CLIENT_ID)
            return Closed()

    def versions(self) -> dict[str, tuple[int, int]]:
        return self._connection.versions()

    def close(self) -> None:
        self._connection.close()


class RealSide:
    """A running Kafka broker."""

    def __init__(self, kafka: RealKafka) -> None:
        self.kafka = kafka
        self._wire = _Wire(kafka.host, kafka.port)

    @property
    def offered(self) -> Mapping[str, tuple[int, int]]:
        """The version ranges of the APIs that both the broker and our wire layer speak."""
        ranges: dict[str, tuple[int, int]] = {}
        for name, (low, high) in self._wire.versions().items():
            ours = api_named(name).versions
            ranges[name] = (max(low, ours[0]), min(high, ours[1]))
        return ranges

    def request(self, message: Any, version: int) -> Any:
        return self._wire.request(message, version)

    def new_topic(self, name: str, partitions: int) -> TopicId:
        """Create a topic under an id of the broker's choice."""
        return self.kafka.create_topic(name, partitions)

    def grow_topic(self, name: str, partitions: int) -> None:
        answer = self._wire.request(_grow(name, partitions), 3)
        assert answer.results[0].error_code == 0, answer
        self.kafka.await_topic(name, partitions)

    def delete_topic(self, name: str) -> None:
        self.kafka.delete_topic(name)
        self.kafka.await_topic(name, 0)

    def close(self) -> None:
        self._wire.close()


class TwinSide:
    """The same broker, with every group id renamed on the way in and back on the way out."""

    def __init__(self, kafka: RealKafka) -> None:
        self._wire = _Wire(kafka.host, kafka.port)

    def request(self, message: Any, version: int) -> Any:
        answer = self._wire.request(renamed(message, {"diff-": "twin-"}), version)
        # The leading side's groups must not look like ours when a list shows both.
        return renamed(answer, {"diff-": "real-", "twin-": "diff-"})

    def create_topic(self, name: str, partitions: int, topic_id: bytes) -> None:
        """Nothing: the broker has it already."""

    def grow_topic(self, name: str, partitions: int) -> None:
        """Nothing: it was done on the same broker."""

    def delete_topic(self, name: str) -> None:
        """Nothing: it was done on the same broker."""

    def close(self) -> None:
        self._wire.close()


class MockSide:
    """Our coordinator, in a process of its own."""

    def __init__(self, host: str, port: int) -> None:
        self._wire = _Wire(host, port)

    @classmethod
    @contextlib.contextmanager
    def start(cls, profile: str, configs: Mapping[str, str]) -> Generator[MockSide]:
        """Run ``kip848 mock`` with a profile and broker settings for the length of the block."""
        command = [*MOCK_COMMAND, "--profile", profile]
        for key, value in configs.items():
            command += ["--config", f"{key}={value}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                side = cls(*_address(process))
                yield side
                side.close()
            finally:
                process.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_STOP_TIMEOUT_S)
                process.kill()

    def request(self, message: Any, version: int) -> Any:
        return self._wire.request(message, version)

    def create_topic(self, name: str, partitions: int, topic_id: bytes) -> None:
        identity = CreateTopicsRequestCreatableTopicConfig(
            name="mock.topic.id", value=format_topic_id(topic_id)
        )
        topic = CreateTopicsRequestCreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1, configs=(identity,)
        )
        request = api_named("CreateTopics").request(topics=(topic,), timeout_ms=10_000)
        answer = self._wire.request(request, 7).topics[0]
        assert (answer.error_code, answer.topic_id) == (0, topic_id), answer

    def grow_topic(self, name: str, partitions: int) -> None:
        answer = self._wire.request(_grow(name, partitions), 3)
        assert answer.results[0].error_code == 0, answer

    def delete_topic(self, name: str) -> None:
        state = DeleteTopicsRequestDeleteTopicState(name=name)
        request = api_named("DeleteTopics").request(topics=(state,), timeout_ms=10_000)
        answer = self._wire.request(request, 6).responses[0]
        assert answer.error_code == 0, answer

    def close(self) -> None:
        self._wire.close()


def _address(process: subprocess.Popen[str]) -> tuple[str, int]:
    """Where a started mock listens, from the one line that it prints."""
    assert process.stdout is not None
    killer = threading.Timer(_START_TIMEOUT_S, process.kill)
    killer.start()
    line = process.stdout.readline()
    killer.cancel()
    words = line.split()
    assert words[:2] == ["listening", "on"], f"the mock did not start: {line!r}"
    host, _, port = words[2].rpartition(":")
    return host, int(port)


def _grow(name: str, partitions: int) -> Any:
    topic = CreatePartitionsRequestCreatePartitionsTopic(
        name=name, count=partitions, assignments=None
    )
    return api_named("CreatePartitions").request(topics=(topic,), timeout_ms=10_000)


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """A copy of a message in which every string has had these parts replaced, in this order."""
    if not names:
        return value
    if isinstance(value, str):
        for old, new in names.items():
            value = value.replace(old, new)
        return value
    if isinstance(value, tuple):
        return tuple(renamed(each, names) for each in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        changed = {each.name: renamed(getattr(value, each.name), names) for each in fields}
        return dataclasses.replace(value, **changed)
    return value
