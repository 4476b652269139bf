"""What a user gets wrong is refused when it is said, in words that help."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from kip848_client.core.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseTopic,
)
from kip848_client.errors import ConfigError, TransportError
from mock_coordinator import Fault, Match, MockBroker, MockCluster
from mock_coordinator.core.faults import Answer, faults_from_json


def some_broker(**options: Any) -> MockBroker:
    return MockBroker({"t": 1}, listen=False, **options)


def some_cluster(**options: Any) -> MockBroker:
    return MockCluster({"t": 1}, listen=False, **options)


@pytest.mark.parametrize("make", [some_broker, some_cluster])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"security": {"users": {}}}, r"expected SecurityOptions \(SecurityOptions.from_data"),
        ({"security": {}}, r"SecurityOptions.from_data reads plain data"),
        ({"new_uuid": b"0123456789abcdef"}, "expected a function that returns 16 bytes"),
        ({"new_uuid": uuid.uuid4}, r"new_uuid returned UUID\(.*\): expected 16 bytes"),
        ({"new_uuid": lambda: b"short"}, "new_uuid returned b'short': expected 16 bytes"),
        ({"new_uuid": lambda: "0123456789abcdef"}, "new_uuid returned '0123.*: expected 16 bytes"),
    ],
)
def test_options_of_the_wrong_kind(make: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make(**options)


def test_ids_of_your_own() -> None:
    given = iter(range(1000))
    broker = some_broker(new_uuid=lambda: next(given).to_bytes(16, "big"))
    assert broker.core.broker.catalog.topics["t"].topic_id[:14] == bytes(14)


@pytest.mark.parametrize(
    ("api", "response", "said"),
    [
        (None, MetadataResponse(), "needs match.api"),
        ("Fetch", MetadataResponse(), "MetadataResponse is not a response of Fetch"),
        ("Metadata", None, "NoneType is not a response of Metadata"),
        ("Metadata", MetadataResponse(controller_id=1 << 40), "-2147483648 <= number"),
        (
            "Metadata",
            MetadataResponse(topics=(MetadataResponseTopic(name="t", error_code=99_999),)),
            "-32768 <= number <= 32767",
        ),
    ],
)
def test_an_answer_that_nobody_could_write(api: str | None, response: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=f"fault 'odd': .*{said}"):
        Fault(Answer(response), Match(api=api), name="odd")


def test_an_answer_in_json_that_nobody_could_write() -> None:
    text = '[{"match": {"api": "ConsumerGroupHeartbeat"}, "answer": {"error_code": 99999}}]'
    with pytest.raises(ConfigError, match="-32768 <= number <= 32767"):
        faults_from_json(text)


def test_an_answer_for_the_versions_that_carry_it() -> None:
    answer = ConsumerGroupHeartbeatResponse(throttle_time_ms=7)
    Fault(Answer(answer), Match(api="ConsumerGroupHeartbeat", versions=(0, 0)))
    old = MetadataResponse(topics=(MetadataResponseTopic(name=None, topic_id=bytes(16)),))
    Fault(Answer(old), Match(api="Metadata"))
    with pytest.raises(ConfigError, match="fault ''"):
        Fault(Answer(old), Match(api="Metadata", versions=(0, 9)))


def test_a_connection_in_process_ends_with_its_block() -> None:
    broker = some_broker()
    with broker.connect() as connection:
        assert connection.ask(MetadataRequest(topics=None)).brokers
        before = broker.driver.connections
    assert connection.is_closed
    assert broker.driver.connections == before - 1
    with pytest.raises(TransportError, match="closed by the client"):
        connection.ask(MetadataRequest(topics=None))
    with pytest.raises(KeyError), broker.connect() as another:
        raise KeyError
    assert another.is_closed
