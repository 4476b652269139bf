"""Several brokers with one data folder: records, groups, transactions, leaders and what each broker
was told are there again, however the process ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kip848_client.core.wire.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from kip848_client.core.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kip848_client.errors import ConfigError
from mock_coordinator import MockBroker, MockCluster, VirtualClock
from mock_coordinator.core.topics.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from mock_coordinator.storage.data_file import DataFile
from mock_coordinator.storage.entries import Batch, Document
from tests.support.raw_transactions import RawTransactions

START_MS = 1_750_000_000_000
BROKER = 4


def cluster_on(folder: Path, brokers: int = 3, **more: Any) -> MockCluster:
    return MockCluster(
        {"t": 3},
        brokers=brokers,
        listen=False,
        clock=VirtualClock(START_MS),
        data_dir=folder,
        config={"offsets.topic.num.partitions": "5", **more},
    )


def killed(cluster: MockBroker) -> None:
    """The process is gone; whatever was not written yet is lost."""
    assert cluster._storage is not None
    cluster._storage.abandon()


def raw_of(cluster: MockBroker) -> RawTransactions:
    class Speaking:
        def request(self, message: Any, version: int) -> Any:
            return cluster.connect().ask(message, version)

        def close(self) -> None:
            """Nothing."""

    topics = cluster.core.broker.catalog.topics
    ids = {name: bytes(topic.topic_id) for name, topic in topics.items()}
    return RawTransactions(Speaking, ids, lambda: START_MS)


def commit(cluster: MockCluster, group: str, offset: int) -> None:
    wanted = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = OffsetCommitRequestTopic(name="t", partitions=(wanted,))
    answer = cluster.connect().ask(OffsetCommitRequest(group_id=group, topics=(topic,)), 9)
    assert answer.topics[0].partitions[0].error_code == 0


def alter(cluster: MockCluster, node_id: int, name: str, value: str) -> None:
    config = IncrementalAlterConfigsRequestAlterableConfig(
        name=name, config_operation=0, value=value
    )
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=BROKER, resource_name=str(node_id), configs=(config,)
    )
    request = IncrementalAlterConfigsRequest(resources=(resource,))
    answer = cluster.connect(node_id=node_id).ask(request)
    assert answer.responses[0].error_code == 0, answer


def leaders(cluster: MockCluster) -> dict[str, list[tuple[int | None, int, tuple[int, ...]]]]:
    broker = cluster.core.broker
    return {
        name: [
            (state.leader, state.leader_epoch, state.replicas)
            for state in broker.disk.leaders.placed(topic.topic_id)
        ]
        for name, topic in broker.catalog.topics.items()
    }


def test_everything_is_there_again(tmp_path: Path) -> None:
    first = cluster_on(tmp_path)
    first.create_topic("one", 6, replication_factor=1)
    for partition in range(6):
        first.produce("one", b"%d" % partition, partition=partition)
    for number in range(20):
        commit(first, f"g{number}", number)
    raw = raw_of(first)
    _, producer = raw.init("x")
    assert raw.produce("x", producer, 0, {("t", 1): [b"1"]})[0][2] == 0
    first.move_leader("t", 1, 1)
    first.move_leader("t", 1, 3)
    first.move_coordinator("g1", 3)
    alter(first, 2, "producer.id.expiration.ms", "77777")
    before = leaders(first)
    killed(first)

    second = cluster_on(tmp_path)
    assert leaders(second) == before
    leader, epoch, _ = before["t"][1]
    assert leader == 3
    assert epoch > 0
    for partition in range(6):
        assert [r.value for r in second.records("one", partition)] == [b"%d" % partition]
    for number in range(20):
        snapshot = second.snapshot(f"g{number}")
        assert snapshot is not None
        assert snapshot.offsets["t"][0].offset == number
    configs = second.core.broker.disk.configs
    assert {n: configs[n].integer("producer.id.expiration.ms") for n in configs} == {
        1: 86_400_000,
        2: 77_777,
        3: 86_400_000,
    }
    raw = raw_of(second)
    assert raw.describe("x")[0][2] == "Ongoing"
    assert raw.produce("x", producer, 1, {("t", 1): [b"2"]})[0][2] == 0
    answer, _ = raw.end("x", producer, commit=True)
    assert answer[0] == 0
    log = second.core.broker.logs.known(_topic(second).topic_id, 1)
    assert log is not None
    assert log.leader_epoch == epoch
    second.close()
    third = cluster_on(tmp_path)
    assert raw_of(third).describe("x")[0][2] == "CompleteCommit"
    assert len(third.records("t", 1)) == 2
    third.close()


def _topic(cluster: MockCluster) -> Any:
    return cluster.core.broker.catalog.topics["t"]


@pytest.mark.asyncio
async def test_all_brokers_run_after_a_start_and_who_had_no_leader_gets_one(tmp_path: Path) -> None:
    first = cluster_on(tmp_path)
    first.create_topic("one", 3, replication_factor=1)
    lonely = next(p for p in range(3) if first.leader_of("one", p) == 2)
    await first.stop_broker(2)
    assert first.leader_of("one", lonely) is None
    led = [first.leader_of("t", partition) for partition in range(3)]
    killed(first)
    second = cluster_on(tmp_path)
    assert all(node.up and not node.fenced for node in second.nodes)
    assert second.leader_of("one", lonely) == 2
    assert [second.leader_of("t", partition) for partition in range(3)] == led
    state = second.core.broker.partition_state(_topic(second), 0)
    assert sorted(state.isr) == [1, 2, 3]
    second.close()


def test_fewer_brokers_than_have_data_are_refused_and_more_are_welcome(tmp_path: Path) -> None:
    cluster_on(tmp_path).close()
    content = (tmp_path / "data").read_bytes()
    with pytest.raises(ConfigError, match=r"is of brokers 1, 2, 3, but 3 would be missing"):
        cluster_on(tmp_path, brokers=2)
    with pytest.raises(ConfigError, match=r"would be missing"):
        MockCluster(listen=False, data_dir=tmp_path, config={"node.id": "11"})
    assert (tmp_path / "data").read_bytes() == content, "nothing was changed"
    more = cluster_on(tmp_path, brokers=5)
    assert {r for name in ("t", OFFSETS_TOPIC) for r in _replicas(more, name)} == {1, 2, 3}
    more.create_topic("new", 10, replication_factor=1)
    assert _replicas(more, "new") == {1, 2, 3, 4, 5}
    more.close()
    with pytest.raises(ConfigError, match=r"but 4, 5 would be missing"):
        cluster_on(tmp_path)


def _replicas(cluster: MockCluster, name: str) -> set[int]:
    return {r for _, _, replicas in leaders(cluster)[name] for r in replicas}


def test_a_folder_of_one_broker_serves_several(tmp_path: Path) -> None:
    one = cluster_on(tmp_path, brokers=1)
    one.produce("t", b"old")
    commit(one, "g", 5)
    one.close()
    three = cluster_on(tmp_path)
    assert [record.value for record in three.records("t", 0)] == [b"old"]
    assert {three.leader_of("t", partition) for partition in range(3)} == {1}
    snapshot = three.snapshot("g")
    assert snapshot is not None
    assert snapshot.offsets["t"][0].offset == 5
    three.close()


def test_no_producer_id_is_given_twice_and_few_are_written_down(tmp_path: Path) -> None:
    given: set[int] = set()
    for _ in range(3):
        cluster = cluster_on(tmp_path)
        storage = cluster._storage
        assert storage is not None
        size = storage._file.size_bytes
        for _ in range(500):
            given.add(raw_of(cluster).init(None)[1][0])
        assert storage._file.size_bytes - size < 2000
        killed(cluster)
    assert len(given) == 1500


# --- Format 1 -------------------------------------------------------------------------------------


def old_folder(folder: Path) -> MockCluster:
    """A folder as it was before transactions were records and topics had leaders, and the cluster
    that it was made of."""
    made = cluster_on(folder / "new", brokers=1)
    made.produce("t", b"old")
    commit(made, "g", 5)
    disk = made.core.broker.disk
    folder.joinpath("old").mkdir()
    file = DataFile(folder / "old" / "data")
    assert list(file.read()) == []
    documents: dict[str, Any] = {
        "cluster": {
            "cluster_id": disk.cluster_id,
            "profile": "4.4",
            "catalog_version": disk.catalog.version,
            "next_producer_id": 7,
        },
        "settings": {"broker": {}, "cluster": {"min.insync.replicas": "1"}},
        "scram": {},
        "quotas": [],
        "transaction/gone": None,
    }
    state = {"previous_producer_id": 3, "next_producer_id": -1, "producer_id": 3}
    for name, number in (("x", 1), ("y", 2)):
        documents[f"transaction/{name}"] = {
            **state,
            "producer_epoch": 4,
            "timeout_ms": 60_000,
            "state": number,
            "partitions": [["t", 0]],
            "last_update_ms": START_MS,
            "start_ms": START_MS,
            "client_version": 2,
        }
    for number, topic in enumerate(disk.catalog.topics.values()):
        if topic.name == TRANSACTIONS_TOPIC:
            continue
        documents[f"topic/{topic.topic_id.hex()}"] = {
            "number": number,
            "name": topic.name,
            "partitions": topic.partitions,
            "config": topic.config,
            "internal": topic.internal,
            "created_ms": topic.created_ms,
            "starts": {},
        }
    file.append(Document(key, value) for key, value in documents.items())
    for (topic_id, partition), log in disk.logs.all():
        if log.batches:
            file.append(Batch(topic_id, partition, batch.data) for batch in log.batches)
    file.close()
    path = folder / "old" / "data"
    path.write_bytes(path.read_bytes().replace(b"kip848-mock-data 2\n", b"kip848-mock-data 1\n"))
    made.close()
    return made


@pytest.mark.parametrize("brokers", [1, 3])
def test_a_folder_of_format_1_is_read_and_becomes_one_of_this(tmp_path: Path, brokers: int) -> None:
    made = old_folder(tmp_path)
    for again in range(3):
        cluster = cluster_on(tmp_path / "old", brokers=brokers)
        assert (tmp_path / "old" / "data").read_bytes().startswith(b"kip848-mock-data 2\n")
        disk = cluster.core.broker.disk
        assert disk.cluster_id == made.core.broker.disk.cluster_id
        assert [record.value for record in cluster.records("t", 0)][:1] == [b"old"]
        snapshot = cluster.snapshot("g")
        assert snapshot is not None
        assert snapshot.offsets["t"][0].offset == 5
        raw = raw_of(cluster)
        assert raw.describe("x")[0][2] == "Ongoing"
        cluster.advance(0)
        assert raw.describe("y")[0][2] == "CompleteCommit", "it was decided"
        names = {record.transactional_id for record in disk.transactions.records}
        assert names == {"x", "y"}
        assert raw.init(None)[1][0] >= 7 + again
        killed(cluster)


def test_a_folder_of_format_1_stays_as_it_is_when_it_cannot_be_used(tmp_path: Path) -> None:
    old_folder(tmp_path)
    content = (tmp_path / "old" / "data").read_bytes()
    with pytest.raises(ConfigError, match="has 5 partitions"):
        MockBroker(listen=False, data_dir=tmp_path / "old", clock=VirtualClock(START_MS))
    assert (tmp_path / "old" / "data").read_bytes() == content


def test_a_folder_of_the_future_is_refused(tmp_path: Path) -> None:
    cluster_on(tmp_path).close()
    path = tmp_path / "data"
    content = path.read_bytes().replace(b"data 2\n", b"data 3\n", 1)
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="is not a data file of this version"):
        cluster_on(tmp_path)
    assert path.read_bytes() == content
