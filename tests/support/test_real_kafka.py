"""The real-broker fixture itself: what the other tests take for granted."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from kip848_client.core.wire import api_named
from tests.support.kafka_broker import BrokerFailedError, KafkaBroker, _shuffled_ports, free_ports
from tests.support.kafka_jars import KafkaUnavailableError
from tests.support.kafka_tools import TOPICS, ToolFailedError, run_tool
from tests.support.pytest_kafka import skip_without_kafka
from tests.support.real_kafka import RealKafka


@pytest.mark.smoke
@pytest.mark.real_kafka
def test_broker_is_ready_and_offers_the_protocol(real_kafka: RealKafka) -> None:
    with real_kafka.connect() as connection:
        offered = connection.versions()
    assert offered["ConsumerGroupHeartbeat"] == (0, 1)
    assert offered["ConsumerGroupDescribe"] == (0, 1)


@pytest.mark.smoke
@pytest.mark.real_kafka
def test_created_topic_is_assigned_at_once(
    real_kafka: RealKafka, unique: Callable[[str], str]
) -> None:
    topic = unique("topic")
    topic_id = real_kafka.create_topic(topic, 3)
    join = api_named("ConsumerGroupHeartbeat").request(
        group_id=unique("group"),
        member_id="m",
        rebalance_timeout_ms=1000,
        subscribed_topic_names=(topic,),
        topic_partitions=(),
    )
    with real_kafka.connect() as connection:
        answer = connection.request(join, 1)
    (given,) = answer.assignment.topic_partitions
    assert given.topic_id == topic_id
    assert sorted(given.partitions) == [0, 1, 2]


@pytest.mark.real_kafka
def test_kafka_tools_reach_the_broker(
    real_kafka: RealKafka, unique: Callable[[str], str], kafka_tools_jars: Path
) -> None:
    topic = unique("topic")
    real_kafka.create_topic(topic, 1)
    at = ("--bootstrap-server", real_kafka.bootstrap)
    assert topic in run_tool(TOPICS, *at, "--list").splitlines()
    with pytest.raises(ToolFailedError, match="does not exist"):
        run_tool(TOPICS, *at, "--describe", "--topic", unique("absent"))


@pytest.mark.real_kafka
def test_restart_keeps_topics_and_port(
    tmp_path: Path, kafka_clients_jar: Callable[[str], Path]
) -> None:
    kafka_clients_jar("4.4.0")
    with RealKafka.start("4.4.0", {"broker.session.timeout.ms": "2000"}, tmp_path) as kafka:
        topic_id = kafka.create_topic("kept", 1)
        port = kafka.port
        kafka.restart(crash=True)
        assert kafka.port == port
        with kafka.connect() as connection:
            answer = connection.request(api_named("Metadata").request(topics=None), 12)
    assert topic_id in [each.topic_id for each in answer.topics]


@pytest.mark.real_kafka
def test_broken_settings_fail_with_the_brokers_own_words(
    tmp_path: Path, kafka_clients_jar: Callable[[str], Path]
) -> None:
    kafka_clients_jar("4.4.0")
    configs = {"group.consumer.session.timeout.ms": "1"}
    with (
        pytest.raises(BrokerFailedError, match=r"group\.consumer\.session\.timeout\.ms"),
        RealKafka.start("4.4.0", configs, tmp_path),
    ):
        pass


@pytest.mark.real_kafka
def test_a_folder_is_formatted_as_kafkas_tool_does(kafka_version: str, tmp_path: Path) -> None:
    """The tool runs once for each release; what it wrote is written again for other brokers."""
    by_tool, first, then = (KafkaBroker(kafka_version, tmp_path / name) for name in "abc")
    found: list[tuple[dict[str, bytes], dict[str, str]]] = []
    for broker in (by_tool, first, then):
        broker.folder.mkdir()
        broker._write_settings()
        broker._run_format() if broker is by_tool else broker._format()
        data = broker.folder / "data"
        meta = (data / "meta.properties").read_text().splitlines()
        found.append(
            (
                {
                    str(path.relative_to(data)): path.read_bytes()
                    for path in data.rglob("*")
                    if path.is_file() and path.name != "meta.properties"
                },
                dict(line.split("=") for line in meta if not line.startswith("#")),
            )
        )
    (tools, meta_of_tool), *ours = found
    for files, meta_of_ours in ours:
        assert files.keys() == tools.keys()
        assert meta_of_ours.keys() == meta_of_tool.keys()
        assert {meta_of_ours[key] for key in ("version", "node.id")} == {"1"}
    assert ours[0][0] == ours[1][0] != {}
    assert len({meta["cluster.id"] for _, meta in found}) == len(found)
    assert len({meta["directory.id"] for _, meta in found}) == len(found)


@pytest.mark.parametrize(
    ("required", "outcome"), [("1", pytest.fail.Exception), ("", pytest.skip.Exception)]
)
def test_a_missing_kafka_fails_where_it_is_required(
    required: str, outcome: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KIP848_REQUIRE_KAFKA", required)
    with pytest.raises(outcome, match="no Maven here"), skip_without_kafka():
        raise KafkaUnavailableError("no Maven here")


def test_no_port_is_given_again_soon() -> None:
    given = [port for _ in range(50) for port in free_ports(3)]
    assert len(given) == len(set(given))


def test_workers_side_by_side_are_given_other_ports() -> None:
    shares = [set(islice(_shuffled_ports(f"gw{number}"), 10_000)) for number in range(8)]
    assert len(set().union(*shares)) == sum(map(len, shares))
