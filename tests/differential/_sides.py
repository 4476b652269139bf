"""The two sides that a sequence is played on.

``RealSide`` is an Apache Kafka broker. ``MockSide`` is our coordinator behind its TCP server in a
process of its own, so that the whole path is compared. ``TwinSide`` is the same real broker again
under other group ids: it proves that the comparison itself finds no differences.

A side belongs to one thread; the brokers behind them are shared.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from kip848_client.core.types import TopicId, format_topic_id
from kip848_client.core.wire import api_named
from kip848_client.core.wire.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsRequestDescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from kip848_client.core.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kip848_client.core.wire.messages.topics import (
    CreatePartitionsRequestCreatePartitionsTopic,
    CreateTopicsRequestCreatableTopic,
    CreateTopicsRequestCreatableTopicConfig,
    DeleteTopicsRequestDeleteTopicState,
)
from tests.differential._channels import BARRIER_GROUP, ChannelConnection, Channels, Closed
from tests.differential._names import renamed
from tests.support.real_kafka import RealKafka
from tests.support.wire_connection import WireConnection

__all__ = [
    "CLIENT_ID",
    "MOCK_COMMAND",
    "Closed",
    "MockAddress",
    "MockSide",
    "RealSide",
    "Side",
    "TwinSide",
    "mock_process",
]

MOCK_COMMAND: Final = (sys.executable, "-m", "tests.differential._mock_process")

CLIENT_ID: Final = "differential"
_START_TIMEOUT_S = 60
_STOP_TIMEOUT_S = 10
_SETTLE_TIMEOUT_S = 10
_SEEN_TIMEOUT_S = 10
_POLL_S = 0.002
_GROUP = 32  # ConfigResource.Type.GROUP
_SET = 0
_INTERVAL_CONFIG = "consumer.heartbeat.interval.ms"


class Side(Protocol):
    """Somewhere to play a sequence."""

    def request(
        self, message: Any, version: int, channel: int = 0, dice: Sequence[bytes] | None = None
    ) -> Any:
        """The response message, or ``Closed``. ``dice`` are the ids that it should draw; ``None``
        for a request that draws none."""
        ...

    def send(
        self, message: Any, version: int, channel: int, dice: Sequence[bytes] | None = None
    ) -> None:
        """Send without waiting for the answer; return when the request has been looked at."""
        ...

    def arrived_within(self, timeout_s: float, wanted: frozenset[int]) -> dict[int, Any]:
        """Answers to requests that were sent, by channel."""
        ...

    def barrier(self) -> None: ...

    def abandon(self) -> None:
        """Forget the requests that still wait."""
        ...

    def create_topic(
        self, name: str, partitions: int, topic_id: bytes, configs: Mapping[str, str]
    ) -> None:
        """Create a topic with this id; return when groups can use it."""
        ...

    def grow_topic(self, name: str, partitions: int) -> None: ...

    def delete_topic(self, name: str) -> None: ...

    def close(self) -> None: ...


def _plain_connection(host: str, port: int) -> Callable[[int], WireConnection]:
    return lambda _channel: ChannelConnection(host, port, client_id=CLIENT_ID).taken_up()


class RealSide:
    """A running Kafka broker. ``connect`` opens channels that are no plain connections; ``turn`` is
    held during requests that a broker verifies with its transaction coordinator, because it asks
    for several producers at once then, and answers one as another's version wants it."""

    def __init__(
        self,
        kafka: RealKafka,
        connect: Callable[[int], WireConnection] | None = None,
        turn: threading.Lock | None = None,
    ) -> None:
        self.kafka = kafka
        self._turn = turn or threading.Lock()
        self.channels = Channels(connect or _plain_connection(kafka.host, kafka.port))
        self._settled = 0

    @property
    def offered(self) -> Mapping[str, tuple[int, int]]:
        """The version ranges of the APIs that both the broker and our wire layer speak."""
        ranges: dict[str, tuple[int, int]] = {}
        for name, (low, high) in self.channels.versions().items():
            ours = api_named(name).versions
            ranges[name] = (max(low, ours[0]), min(high, ours[1]))
        return ranges

    def warm_up(self) -> None:
        """Return when the transaction coordinator answers; the first request for it creates its
        topic."""
        _warm_up(self.channels)

    def request(self, message: Any, version: int, channel: int = 0) -> Any:
        if getattr(message, "transactional_id", None) is None:
            return self.channels.request(message, version, channel)
        with self._turn:
            return self.channels.request(message, version, channel)

    def send(self, message: Any, version: int, channel: int) -> None:
        self.channels.send(message, version, channel)
        self.channels.barrier()

    def arrived_within(self, timeout_s: float, wanted: frozenset[int]) -> dict[int, Any]:
        return self.channels.arrived_within(timeout_s, wanted)

    def barrier(self) -> None:
        self.channels.barrier()

    def abandon(self) -> None:
        self.channels.abandon()

    def new_topic(self, name: str, partitions: int, configs: Mapping[str, str]) -> TopicId:
        """Create a topic under an id of the broker's choice."""
        return self.kafka.create_topic(name, partitions, configs=configs)

    def grow_topic(self, name: str, partitions: int) -> None:
        answer = self.channels.control(_grow(name, partitions), 3)
        assert answer.results[0].error_code == 0, answer
        self.kafka.await_topic(name, partitions)

    def delete_topic(self, name: str) -> None:
        self.kafka.delete_topic(name)
        self.kafka.await_topic(name, 0)

    def stir(self) -> None:
        """Commit an offset for a group of its own."""
        partition = OffsetCommitRequestPartition(partition_index=0, committed_metadata="")
        topic = OffsetCommitRequestTopic(name="topic-a", partitions=(partition,))
        self.channels.control(OffsetCommitRequest(group_id=BARRIER_GROUP, topics=(topic,)), 8)

    def settle_metadata(self) -> None:
        """Return when all changes of metadata made so far have their effect.

        A broker applies them in order, one after the other: when the second of two further changes
        shows, what came before the first is done with.
        """
        for _ in range(2):
            self._settled = self._settled % 1000 + 1
            value = str(5000 + self._settled)
            group = f"{BARRIER_GROUP}-{threading.get_ident()}"
            answer = self.channels.control(_set_interval(group, value), 1)
            assert answer.responses[0].error_code == 0, answer
            deadline = time.monotonic() + _SETTLE_TIMEOUT_S
            while value != _interval(self.channels.control(_describe_interval(group), 4)):
                assert time.monotonic() < deadline, "the broker does not apply a setting"
                time.sleep(_POLL_S)

    def close(self) -> None:
        self.channels.close()


class TwinSide:
    """The same broker, with every group id renamed on the way in and back on the way out."""

    def __init__(
        self, kafka: RealKafka, connect: Callable[[int], WireConnection] | None = None
    ) -> None:
        self._channels = Channels(connect or _plain_connection(kafka.host, kafka.port))

    def request(
        self,
        message: Any,
        version: int,
        channel: int = 0,
        dice: Sequence[bytes] | None = None,  # noqa: ARG002 (this broker's dice are its own)
    ) -> Any:
        answer = self._channels.request(renamed(message, {"diff-": "twin-"}), version, channel)
        return _as_leading(answer)

    def send(
        self,
        message: Any,
        version: int,
        channel: int,
        dice: Sequence[bytes] | None = None,  # noqa: ARG002 (this broker's dice are its own)
    ) -> None:
        self._channels.send(renamed(message, {"diff-": "twin-"}), version, channel)
        self._channels.barrier()

    def arrived_within(self, timeout_s: float, wanted: frozenset[int]) -> dict[int, Any]:
        found = self._channels.arrived_within(timeout_s, wanted)
        return {channel: _as_leading(answer) for channel, answer in found.items()}

    def barrier(self) -> None:
        self._channels.barrier()

    def abandon(self) -> None:
        self._channels.abandon()

    def create_topic(
        self, name: str, partitions: int, topic_id: bytes, configs: Mapping[str, str]
    ) -> None:
        """Nothing: the broker has it already."""

    def grow_topic(self, name: str, partitions: int) -> None:
        """Nothing: it was done on the same broker."""

    def delete_topic(self, name: str) -> None:
        """Nothing: it was done on the same broker."""

    def close(self) -> None:
        self._channels.close()


def _as_leading(answer: Any) -> Any:
    # The leading side's groups must not look like ours when a list shows both.
    return renamed(answer, {"diff-": "real-", "twin-": "diff-"})


@dataclass(frozen=True, slots=True)
class MockAddress:
    """Where a mock listens, and the lock that requests take for which it draws ids."""

    host: str
    port: int
    control_port: int
    sasl_port: int
    dice_lock: threading.RLock


@contextlib.contextmanager
def mock_process(
    profile: str, configs: Mapping[str, str], command: Sequence[str] = MOCK_COMMAND
) -> Generator[MockAddress]:
    """Run our broker with a profile and broker settings for the length of the block."""
    settings = [f"{key}={value}" for key, value in configs.items()]
    command = [*command, profile, *settings]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield _address(process)
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_TIMEOUT_S)
            process.kill()


class MockSide:
    """Our coordinator."""

    def __init__(
        self, address: MockAddress, connect: Callable[[int], WireConnection] | None = None
    ) -> None:
        self.channels = Channels(connect or _plain_connection(address.host, address.port))
        self._lock = address.dice_lock
        self._control = socket.create_connection((address.host, address.control_port))
        self._control.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def warm_up(self) -> None:
        """As the real side's."""
        _warm_up(self.channels)

    def request(
        self, message: Any, version: int, channel: int = 0, dice: Sequence[bytes] | None = None
    ) -> Any:
        if dice is None:
            return self.channels.request(message, version, channel)
        with self._loaded(dice):
            return self.channels.request(message, version, channel)

    def send(
        self, message: Any, version: int, channel: int, dice: Sequence[bytes] | None = None
    ) -> None:
        with contextlib.nullcontext() if dice is None else self._loaded(dice):
            question = f"seen {self.channels.send(message, version, channel)}"
            deadline = time.monotonic() + _SEEN_TIMEOUT_S
            while not self._say(question) and not self.channels.has_answer(channel):
                assert time.monotonic() < deadline, "the request is not looked at"
                time.sleep(_POLL_S)

    @contextlib.contextmanager
    def _loaded(self, dice: Sequence[bytes]) -> Generator[None]:
        """While this lasts, only this side's requests may draw ids, and these come first."""
        with self._lock:
            self._say(" ".join(each.hex() for each in dice))
            try:
                yield
            finally:
                self._say("")

    def _say(self, line: str) -> bool:
        self._control.sendall(f"{line}\n".encode())
        return self._control.recv(16) == b"ok\n"

    def arrived_within(self, timeout_s: float, wanted: frozenset[int]) -> dict[int, Any]:
        return self.channels.arrived_within(timeout_s, wanted)

    def barrier(self) -> None:
        self.channels.barrier()

    def abandon(self) -> None:
        self.channels.abandon()

    def create_topic(
        self, name: str, partitions: int, topic_id: bytes, configs: Mapping[str, str]
    ) -> None:
        given = {"mock.topic.id": format_topic_id(TopicId(topic_id)), **configs}
        topic = CreateTopicsRequestCreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=tuple(
                CreateTopicsRequestCreatableTopicConfig(name=key, value=value)
                for key, value in given.items()
            ),
        )
        request = api_named("CreateTopics").request(topics=(topic,), timeout_ms=10_000)
        answer = self.channels.control(request, 7).topics[0]
        assert (answer.error_code, answer.topic_id) == (0, topic_id), answer

    def grow_topic(self, name: str, partitions: int) -> None:
        answer = self.channels.control(_grow(name, partitions), 3)
        assert answer.results[0].error_code == 0, answer

    def delete_topic(self, name: str) -> None:
        state = DeleteTopicsRequestDeleteTopicState(name=name)
        request = api_named("DeleteTopics").request(topics=(state,), timeout_ms=10_000)
        answer = self.channels.control(request, 6).responses[0]
        assert answer.error_code == 0, answer

    def close(self) -> None:
        self.channels.close()
        self._control.close()


def _address(process: subprocess.Popen[str]) -> MockAddress:
    """Where a started mock listens, from the one line that it prints."""
    assert process.stdout is not None
    killer = threading.Timer(_START_TIMEOUT_S, process.kill)
    killer.start()
    line = process.stdout.readline()
    killer.cancel()
    words = line.split()
    assert words[:2] == ["listening", "on"], f"the mock did not start: {line!r}"
    host, _, port = words[2].rpartition(":")
    return MockAddress(host, int(port), int(words[4]), int(words[6]), threading.RLock())


def _warm_up(channels: Channels) -> None:
    for_groups = api_named("FindCoordinator").request(coordinator_keys=("warm-up",))
    find = api_named("FindCoordinator").request(key_type=1, coordinator_keys=("warm-up",))
    init = api_named("InitProducerId").request(
        transactional_id="warm-up", transaction_timeout_ms=60_000
    )
    channels.control(for_groups, 4)  # creates __consumer_offsets
    deadline = time.monotonic() + _SETTLE_TIMEOUT_S
    while (
        channels.control(find, 4).coordinators[0].error_code or channels.control(init, 4).error_code
    ):
        assert time.monotonic() < deadline, "no transaction coordinator"
        time.sleep(_POLL_S)


def _grow(name: str, partitions: int) -> Any:
    topic = CreatePartitionsRequestCreatePartitionsTopic(
        name=name, count=partitions, assignments=None
    )
    return api_named("CreatePartitions").request(topics=(topic,), timeout_ms=10_000)


def _set_interval(group: str, value: str) -> IncrementalAlterConfigsRequest:
    change = IncrementalAlterConfigsRequestAlterableConfig(
        name=_INTERVAL_CONFIG, config_operation=_SET, value=value
    )
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=_GROUP, resource_name=group, configs=(change,)
    )
    return IncrementalAlterConfigsRequest(resources=(resource,))


def _describe_interval(group: str) -> DescribeConfigsRequest:
    resource = DescribeConfigsRequestDescribeConfigsResource(
        resource_type=_GROUP, resource_name=group, configuration_keys=(_INTERVAL_CONFIG,)
    )
    return DescribeConfigsRequest(resources=(resource,))


def _interval(answer: Any) -> str | None:
    found = [each.value for result in answer.results for each in result.configs]
    return found[0] if found else None
