"""A real Kafka broker for a test, ready to use.

::

    with RealKafka.start("4.4.0", configs={"group.consumer.assignment.interval.ms": "0"}) as kafka:
        topic_id = kafka.create_topic("orders", 6)
        client = ...  # bootstrap_servers=kafka.bootstrap

``start`` gives a broker whose group coordinator answers: ``__consumer_offsets`` is created by the
first FindCoordinator, and until its partition is loaded every group request gets NOT_COORDINATOR.

Topics that were just created are known to Metadata before the group coordinator knows them;
``create_topic`` therefore waits until a group can be assigned one of the topic's partitions.

Raises ``KafkaUnavailableError`` where Java, Maven or the jars are missing (tests skip with its
message) and ``BrokerFailedError`` with the end of the broker's log where a broker does not come
up.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kip848_client.core.types import LEAVE_EPOCH, TopicId
from kip848_client.core.wire import api_named
from kip848_client.core.wire.messages.topics import (
    CreateTopicsRequestCreatableTopic,
    CreateTopicsRequestCreatableTopicConfig,
    DeleteTopicsRequestDeleteTopicState,
)
from kip848_client.error_codes import ErrorCode
from tests.support.broker_folder import broker_folder
from tests.support.kafka_broker import BrokerFailedError, KafkaBroker
from tests.support.wire_connection import ConnectionLostError, WireConnection

__all__ = ["FAST_CONFIGS", "RealKafka"]

FAST_CONFIGS: Final[Mapping[str, str]] = {
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.session.timeout.ms": "10000",
}
"""Timers short enough for a test: heartbeats every 0.3 s, and group configs may go lower still."""

_READY_TIMEOUT_S: Final = 30
_POLL_S: Final = 0.02
_NOT_READY: Final = (14, 15, 16)  # loading, not available, not coordinator


class RealKafka:
    """A running broker; made by ``RealKafka.start``."""

    def __init__(self, broker: KafkaBroker) -> None:
        self._broker = broker
        self._probes = 0

    @classmethod
    @contextlib.contextmanager
    def start(
        cls,
        version: str,
        configs: Mapping[str, str] | None = None,
        data_dir: Path | None = None,
        features: Mapping[str, int] | None = None,
        plugins: Sequence[Path] = (),
    ) -> Generator[RealKafka]:
        """Run a broker of a release (e.g. "4.4.0") for the length of a ``with`` block.

        ``configs`` are broker settings on top of a plain single node. ``data_dir`` keeps the data
        (a later start continues with them) and the log; without it a temporary folder is used.
        ``features`` are those to begin with at another level than the release does. ``plugins`` are
        jars of classes that ``configs`` name.
        Raises ``KafkaUnavailableError`` and ``BrokerFailedError``.
        """
        with contextlib.ExitStack() as stack:
            folder = data_dir or stack.enter_context(broker_folder())
            broker = KafkaBroker(version, folder, configs, features=features, plugins=plugins)
            stack.callback(broker.discard if data_dir is None else broker.stop)
            broker.start()
            kafka = cls(broker)
            kafka.await_coordinator()
            yield kafka

    @property
    def version(self) -> str:
        """The release, e.g. "4.4.0"."""
        return self._broker.version

    @property
    def profile(self) -> str:
        """The mock's profile of the same behaviour, e.g. "4.4"."""
        return self.version.rpartition(".")[0]

    @property
    def host(self) -> str:
        return self._broker.host

    @property
    def port(self) -> int:
        return self._broker.port

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    def log_tail(self) -> str:
        """The end of the broker's log, for a failure message."""
        return self._broker.log_tail()

    def connect(self, *, client_id: str = "kip848-tests") -> WireConnection:
        """A plain connection to the broker; close it after use."""
        return WireConnection(self.host, self.port, client_id=client_id)

    def restart(self, *, crash: bool = False) -> None:
        """Stop (or kill) the broker and start it again on the same port with the same data."""
        if crash:
            self._broker.kill()
        else:
            self._broker.stop()
        self._broker.start()
        self.await_coordinator()

    def stop(self) -> None:
        """Stop the broker early; the ``with`` block's end is then a no-op."""
        self._broker.stop()

    def await_coordinator(self) -> None:
        """Return once the group coordinator answers for a group that does not exist."""
        find = api_named("FindCoordinator").request(coordinator_keys=("warm-up",))
        describe = api_named("DescribeGroups").request(groups=("warm-up",))
        last: Any = None
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while time.monotonic() < deadline:
            with contextlib.suppress(ConnectionLostError, OSError), self.connect() as connection:
                last = connection.request(find, 4)
                if last.coordinators[0].error_code == 0:
                    last = connection.request(describe, 6)
                    if last.groups[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND:
                        return
            time.sleep(_POLL_S)
        raise BrokerFailedError(f"no coordinator, last answer {last}:\n{self.log_tail()}")

    def create_topic(
        self, name: str, partitions: int, *, configs: Mapping[str, str] | None = None
    ) -> TopicId:
        """Create a topic, wait until the group coordinator knows it, and return its id."""
        topic = CreateTopicsRequestCreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=tuple(
                CreateTopicsRequestCreatableTopicConfig(name=key, value=value)
                for key, value in (configs or {}).items()
            ),
        )
        request = api_named("CreateTopics").request(topics=(topic,), timeout_ms=10_000)
        with self.connect() as connection:
            answer = connection.request(request, 7).topics[0]
            assert answer.error_code == 0, answer
        self.await_topic(name, partitions)
        topic_id: bytes = answer.topic_id
        return TopicId(topic_id)

    def delete_topic(self, name: str) -> None:
        """Delete a topic; the group coordinator learns of it a little later."""
        state = DeleteTopicsRequestDeleteTopicState(name=name)
        request = api_named("DeleteTopics").request(topics=(state,), timeout_ms=10_000)
        with self.connect() as connection:
            answer = connection.request(request, 6).responses[0]
            assert answer.error_code == 0, answer

    def await_topic(self, name: str, partitions: int) -> None:
        """Return once a group would be assigned so many partitions of a topic (0: it is gone)."""
        with self.connect() as connection:
            self._await_assignable(connection, name, partitions)

    def _await_assignable(self, connection: WireConnection, name: str, partitions: int) -> None:
        heartbeat = api_named("ConsumerGroupHeartbeat").request
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while time.monotonic() < deadline:
            self._probes += 1
            group = f"probe-{name}-{self._probes}"
            join = heartbeat(
                group_id=group,
                member_id="probe",
                member_epoch=0,
                rebalance_timeout_ms=1000,
                subscribed_topic_names=(name,),
                topic_partitions=(),
            )
            answer = connection.request(join, 1)
            if answer.error_code not in _NOT_READY:
                assert answer.error_code == 0, answer
                leave = heartbeat(group_id=group, member_id="probe", member_epoch=LEAVE_EPOCH)
                connection.request(leave, 1)
                connection.request(api_named("DeleteGroups").request(groups_names=(group,)), 2)
                given = answer.assignment.topic_partitions
                if sum(len(each.partitions) for each in given) == partitions:
                    return
            time.sleep(_POLL_S)
        raise BrokerFailedError(f"the coordinator never saw topic {name}:\n{self.log_tail()}")
