"""Administrators' tools against our broker over TCP: Kafka's own, confluent-kafka's and
kafka-python's. Each tells a story from the creation of a topic to its deletion."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from mock_coordinator import MockBroker
from tests.support.kafka_tools import (
    CONFIGS,
    CONSUMER_GROUPS,
    DELETE_RECORDS,
    GET_OFFSETS,
    GROUPS,
    LEADER_ELECTION,
    REASSIGN_PARTITIONS,
    TOPICS,
    TRANSACTIONS,
    VERIFIABLE_CONSUMER,
    VERIFIABLE_PRODUCER,
    ToolFailedError,
    run_tool,
)
from tests.support.pytest_kafka import skip_without_kafka

pytestmark = [pytest.mark.foreign, pytest.mark.asyncio, pytest.mark.timeout(120)]

SETTINGS = {"group.initial.rebalance.delay.ms": "0"}
RECORDS = 20
PATIENCE_S = 20

# kafka-python 3 reads its schemas with a function that Python 3.11 deprecates and 3.13 keeps
tolerant = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Tools:
    """Kafka's command line tools, pointed at one broker."""

    def __init__(self, bootstrap: str) -> None:
        self._at = ("--bootstrap-server", bootstrap)

    async def run(self, main_class: str, line: str) -> str:
        """Run a tool with these words; returns what it printed."""

        def call() -> str:
            with skip_without_kafka():
                return run_tool(main_class, *self._at, *line.split())

        return await anyio.to_thread.run_sync(call)


def json_file(path: Path, content: Any) -> str:
    path.write_text(json.dumps(content))
    return str(path)


@pytest.mark.real_kafka
async def test_javas_tools_and_topics(tmp_path: Path) -> None:
    async with MockBroker(config=SETTINGS) as broker:
        tools = Tools(broker.bootstrap)
        made = await tools.run(TOPICS, "--create --topic a --partitions 3 --config retention.ms=1")
        assert "Created topic a." in made
        await tools.run(TOPICS, "--alter --topic a --partitions 4")
        shown = await tools.run(TOPICS, "--describe --topic a")
        assert "PartitionCount: 4" in shown
        assert "retention.ms=1" in shown
        changed = "--alter --entity-type topics --entity-name a --add-config segment.ms=100000"
        assert "Completed" in await tools.run(CONFIGS, f"{changed} --delete-config retention.ms")
        shown = await tools.run(CONFIGS, "--describe --entity-type topics --entity-name a")
        assert "segment.ms=100000" in shown
        assert "retention.ms" not in shown
        produced = await tools.run(VERIFIABLE_PRODUCER, f"--topic a --max-messages {RECORDS}")
        assert produced.count("producer_send_success") == RECORDS
        records = {"topic": "a", "partition": 0, "offset": -1}
        path = json_file(tmp_path / "delete.json", {"partitions": [records], "version": 1})
        count = len(broker.records("a", 0))
        deleted = await tools.run(DELETE_RECORDS, f"--offset-json-file {path}")
        assert f"low_watermark: {count}" in deleted
        offsets = await tools.run(GET_OFFSETS, "--topic a --time earliest")
        assert f"a:0:{count}" in offsets
        assert "a:1:0" in offsets
        await tools.run(TOPICS, "--delete --topic a")
        assert not (await tools.run(TOPICS, "--list")).split()


async def consumed(tools: Tools, protocol: str) -> None:
    """Some records for topic ``a``, read and committed by group ``g``, which then is empty."""
    await tools.run(VERIFIABLE_PRODUCER, f"--topic a --max-messages {RECORDS}")
    limits = f"--max-messages {RECORDS} --reset-policy earliest"
    events = await tools.run(
        VERIFIABLE_CONSUMER, f"--topic a --group-id g --group-protocol {protocol} {limits}"
    )
    assert '"name":"offsets_committed"' in events
    assert '"success":false' not in events


async def offsets_of_g(tools: Tools) -> list[list[str]]:
    """Current offset, end of the log and lag of each partition."""
    shown = await tools.run(CONSUMER_GROUPS, "--describe --group g --offsets")
    return [line.split()[3:6] for line in shown.splitlines() if line.startswith("g ")]


@pytest.mark.real_kafka
@pytest.mark.parametrize(("profile", "protocol"), [("4.0", "classic"), ("4.4", "consumer")])
async def test_javas_tools_and_groups(profile: str, protocol: str) -> None:
    async with MockBroker({"a": 2}, profile=profile, config=SETTINGS) as broker:
        tools = Tools(broker.bootstrap)
        await consumed(tools, protocol)
        assert [lag for _, _, lag in await offsets_of_g(tools)] == ["0"]
        assert "Empty" in await tools.run(CONSUMER_GROUPS, "--describe --group g --state")
        await tools.run(CONSUMER_GROUPS, "--describe --group g --members --verbose")
        assert protocol.capitalize() in await tools.run(GROUPS, "--list")
        assert "successful" in await tools.run(CONSUMER_GROUPS, "--delete --group g")
        assert broker.snapshot("g") is None


@pytest.mark.real_kafka
async def test_javas_tools_and_the_offsets_of_a_group() -> None:
    async with MockBroker({"a": 1}, config=SETTINGS) as broker:
        tools = Tools(broker.bootstrap)
        await consumed(tools, "consumer")
        assert await offsets_of_g(tools) == [[str(RECORDS), str(RECORDS), "0"]]
        reset = "--reset-offsets --to-earliest --group g --topic a --execute"
        assert "NEW-OFFSET" in await tools.run(CONSUMER_GROUPS, reset)
        assert await offsets_of_g(tools) == [["0", str(RECORDS), str(RECORDS)]]
        forgotten = await tools.run(CONSUMER_GROUPS, "--delete-offsets --group g --topic a")
        assert "Successful" in forgotten
        assert "Empty" in await tools.run(CONSUMER_GROUPS, "--list --state")


@pytest.mark.real_kafka
async def test_javas_tools_and_the_cluster(tmp_path: Path) -> None:
    async with MockBroker({"a": 2}, config=SETTINGS) as broker:
        tools = Tools(broker.bootstrap)
        group = "--entity-type groups --entity-name g"
        timeout = "consumer.session.timeout.ms=50000"
        await tools.run(CONFIGS, f"--alter {group} --add-config {timeout}")
        assert timeout in await tools.run(CONFIGS, f"--describe {group}")
        node = "--entity-type brokers --entity-name 1"
        await tools.run(CONFIGS, f"--alter {node} --add-config message.max.bytes=2000000")
        assert "message.max.bytes=2000000" in await tools.run(CONFIGS, f"--describe {node}")
        user = "--entity-type users --entity-name alice"
        password = "SCRAM-SHA-256=[iterations=4096,password=secret]"
        await tools.run(CONFIGS, f"--alter {user} --add-config {password}")
        await tools.run(CONFIGS, f"--alter {user} --add-config producer_byte_rate=1000")
        shown = await tools.run(CONFIGS, f"--describe {user}")
        assert "iterations=4096" in shown
        assert "producer_byte_rate=1000" in shown
        assert broker.core.broker.disk.scram.get("alice", 1) is not None
        election = "--election-type preferred --topic a --partition 0"
        assert "already elected" in await tools.run(LEADER_ELECTION, election)
        assert "TransactionalId" in await tools.run(TRANSACTIONS, "list")
        replicas = {"topic": "a", "partition": 0, "replicas": [1]}
        path = json_file(tmp_path / "move.json", {"version": 1, "partitions": [replicas]})
        # This tool asks first which log directories there are, and they are not served.
        with pytest.raises(ToolFailedError, match="does not support DESCRIBE_LOG_DIRS"):
            await tools.run(REASSIGN_PARTITIONS, f"--reassignment-json-file {path} --execute")


def confluent_story(bootstrap: str) -> dict[str, Any]:
    """What confluent-kafka's AdminClient does and sees."""
    confluent = pytest.importorskip("confluent_kafka")
    ck = pytest.importorskip("confluent_kafka.admin")
    client = ck.AdminClient({"bootstrap.servers": bootstrap})

    def done(futures: dict[Any, Any]) -> list[Any]:
        return [future.result(PATIENCE_S) for future in futures.values()]

    done(client.create_topics([ck.NewTopic("a", 2, 1, config={"retention.ms": "1000"})]))
    done(client.create_partitions([ck.NewPartitions("a", 3)]))
    seen: dict[str, Any] = {
        "partitions": len(client.list_topics(timeout=PATIENCE_S).topics["a"].partitions)
    }
    entry = ck.ConfigEntry("segment.ms", "100000", incremental_operation=ck.AlterConfigOpType.SET)
    topic = ck.ConfigResource(ck.ResourceType.TOPIC, "a", incremental_configs=[entry])
    done(client.incremental_alter_configs([topic]))
    described = done(client.describe_configs([ck.ConfigResource(ck.ResourceType.TOPIC, "a")]))[0]
    seen["configs"] = (described["retention.ms"].value, described["segment.ms"].value)
    deleted = done(client.delete_records([confluent.TopicPartition("a", 0, 0)]))[0]
    seen["low_watermark"] = deleted.low_watermark
    scram = ck.ScramCredentialInfo(ck.ScramMechanism.SCRAM_SHA_512, 8192)
    upsertion = ck.UserScramCredentialUpsertion("bob", scram, b"password")
    done(client.alter_user_scram_credentials([upsertion]))
    users = client.describe_user_scram_credentials().result(PATIENCE_S)
    seen["scram"] = users["bob"].scram_credential_infos[0].iterations
    seen["nodes"] = len(client.describe_cluster().result(PATIENCE_S).nodes)
    offsets = confluent.ConsumerGroupTopicPartitions("g", [confluent.TopicPartition("a", 0, 0)])
    done(client.alter_consumer_group_offsets([offsets]))
    listed = client.list_consumer_groups().result(PATIENCE_S)
    seen["groups"] = [group.group_id for group in listed.valid]
    seen["state"] = done(client.describe_consumer_groups(["g"]))[0].state.name
    done(client.delete_consumer_groups(["g"]))
    done(client.delete_topics(["a"]))
    seen["left"] = "a" in client.list_topics(timeout=PATIENCE_S).topics
    return seen


@pytest.mark.parametrize("profile", ["4.0", "4.4"])
async def test_the_admin_client_of_confluent_kafka(profile: str) -> None:
    async with MockBroker(profile=profile) as broker:
        seen = await anyio.to_thread.run_sync(confluent_story, broker.bootstrap)
    assert seen == {
        "partitions": 3,
        "configs": ("1000", "100000"),
        "low_watermark": 0,
        "scram": 8192,
        "nodes": 1,
        "groups": ["g"],
        "state": "EMPTY",
        "left": False,
    }


def kafka_python_story(bootstrap: str) -> dict[str, Any]:
    """What kafka-python's KafkaAdminClient does and sees."""
    admin = pytest.importorskip("kafka.admin")
    structs = pytest.importorskip("kafka.structs")
    client = admin.KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        client.create_topics({"a": {"num_partitions": 2, "replication_factor": 1}})
        client.create_partitions({"a": 3})
        seen: dict[str, Any] = {
            "partitions": len(client.describe_topics(["a"])[0]["partitions"]),
            "page": len(client.describe_topic_partitions(["a"])["topics"][0]["partitions"]),
        }
        client.alter_configs([admin.ConfigResource("topic", "a", configs={"retention.ms": "1000"})])
        configs = client.describe_configs([admin.ConfigResource("topic", "a")])
        seen["retention"] = configs["topic"]["a"]["retention.ms"]["value"]
        here = structs.TopicPartition("a", 0)
        seen["low_watermark"] = client.delete_records({here: 0})[here]["low_watermark"]
        client.alter_group_offsets("g", {here: structs.OffsetAndMetadata(0, "", -1)})
        seen["groups"] = [group["group_id"] for group in client.list_groups()]
        client.delete_groups(["g"])
        seen["moving"] = client.list_partition_reassignments()
        seen["level"] = client.describe_features()["group.version"]["finalized"]
        seen["users"] = client.describe_user_scram_credentials()
        client.delete_topics(["a"])
        seen["topics"] = client.list_topics()
    finally:
        client.close()
    return seen


@tolerant
@pytest.mark.parametrize("profile", ["4.0", "4.4"])
async def test_the_admin_client_of_kafka_python(profile: str) -> None:
    async with MockBroker(profile=profile) as broker:
        seen = await anyio.to_thread.run_sync(kafka_python_story, broker.bootstrap)
    assert seen == {
        "partitions": 3,
        "page": 3,
        "retention": "1000",
        "low_watermark": 0,
        "groups": ["g"],
        "moving": {},
        "level": (1, 1),
        "users": {},
        "topics": ["__consumer_offsets"],
    }
