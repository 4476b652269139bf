"""A broker with a data folder: everything is there again, and nobody is told too early."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kip848_client.core.wire.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kip848_client.core.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kip848_client.errors import ConfigError, TransportError
from mock_coordinator import MockBroker, VirtualClock
from mock_coordinator.core.topics.topic_names import OFFSETS_TOPIC
from mock_coordinator.storage import DataDamaged, Storage

START_MS = 1_750_000_000_000


def broker_on(folder: Path, **more: Any) -> MockBroker:
    settings = {"offsets.topic.num.partitions": "3", **more.pop("config", {})}
    return MockBroker(
        more.pop("topics", {"t": 2}),
        listen=False,
        clock=VirtualClock(START_MS),
        data_dir=folder,
        config=settings,
        **more,
    )


def commit(broker: MockBroker, group: str, offset: int, partition: int = 0) -> None:
    wanted = OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
    topic = OffsetCommitRequestTopic(name="t", partitions=(wanted,))
    answer = broker.connect().ask(OffsetCommitRequest(group_id=group, topics=(topic,)), 9)
    assert answer.topics[0].partitions[0].error_code == 0


def join(broker: MockBroker, group: str, member: str) -> Any:
    request = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=0,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=("t",),
        topic_partitions=(),
    )
    return broker.connect().ask(request, 1)


def values(broker: MockBroker, topic: str, partition: int) -> list[bytes | None]:
    return [record.value for record in broker.records(topic, partition)]


def test_everything_is_there_again(tmp_path: Path) -> None:
    first = broker_on(tmp_path)
    first.create_topic("more", 1, config={"retention.ms": "5"})
    first.add_partitions("more", 4)
    first.create_topic("gone", 1)
    first.produce("gone", b"lost")
    first.delete_topic("gone")
    first.produce("t", b"a", b"b")
    first.produce("t", b"c", partition=1)
    commit(first, "g", 2)
    assert join(first, "members", "A").error_code == 0
    before = {g: first.snapshot(g) for g in ("g", "members")}
    old = first.core.broker
    first.close()
    second = broker_on(tmp_path)
    new = second.core.broker
    assert new.disk.cluster_id == old.disk.cluster_id
    for now, then in zip(new.catalog.topics.values(), old.catalog.topics.values(), strict=True):
        assert replace(now, placement=0) == replace(then, placement=0)
    assert new.catalog.version >= old.catalog.version
    assert values(second, "t", 0) == [b"a", b"b"]
    assert values(second, "t", 1) == [b"c"]
    for group_id, snapshot in before.items():
        again = second.snapshot(group_id)
        assert again is not None
        assert snapshot is not None
        assert again.without_timers() == snapshot.without_timers()
    assert second.produce("t", b"d") == 2
    second.close()
    third = broker_on(tmp_path)
    assert values(third, "t", 0) == [b"a", b"b", b"d"]
    third.close()


@pytest.mark.parametrize("after", [(), (b"new",)], ids=["empty", "written to"])
def test_an_id_given_again_is_a_new_topic(tmp_path: Path, after: tuple[bytes, ...]) -> None:
    chosen = bytes(range(16))
    first = broker_on(tmp_path)
    first.create_topic("old", 1, topic_id=chosen)
    first.produce("old", b"a", b"b", b"c")
    first.delete_topic("old")
    first.create_topic("new", 1, topic_id=chosen)
    if after:
        first.produce("new", *after)
    first.close()
    second = broker_on(tmp_path)
    assert values(second, "new", 0) == list(after)
    second.close()


def test_settings_that_were_altered_are_there_again(tmp_path: Path) -> None:
    first = broker_on(tmp_path)
    config = IncrementalAlterConfigsRequestAlterableConfig(
        name="consumer.session.timeout.ms", config_operation=0, value="46000"
    )
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=32, resource_name="g", configs=(config,)
    )
    answer = first.connect().ask(IncrementalAlterConfigsRequest(resources=(resource,)))
    assert answer.responses[0].error_code == 0
    first.close()
    second = broker_on(tmp_path)
    assert second.core.broker.config.consumer_session_timeout_ms("g") == 46_000
    second.close()


def test_a_file_rewritten_says_the_same(tmp_path: Path) -> None:
    first = broker_on(tmp_path)
    for number in range(3000):
        commit(first, "g", number)
    first.produce("t", b"kept")
    size = (tmp_path / "data").stat().st_size
    assert first._storage is not None
    first._storage.rewrite()
    assert (tmp_path / "data").stat().st_size < size / 2
    commit(first, "g", 5000)
    first.close()
    second = broker_on(tmp_path)
    snapshot = second.snapshot("g")
    assert snapshot is not None
    assert snapshot.offsets["t"][0].offset == 5000
    assert values(second, "t", 0) == [b"kept"]
    second.close()


class BrokenDisk(Storage):
    """A disk that refuses from some moment on."""

    fails = False

    def flush(self) -> None:
        if self.fails:
            raise OSError("no space left")
        super().flush()


def test_nobody_is_told_of_what_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mock_coordinator.mock_broker.Storage", BrokenDisk)
    broker = broker_on(tmp_path)
    connection = broker.connect()
    storage = broker._storage
    assert isinstance(storage, BrokenDisk)
    storage.fails = True
    wanted = OffsetCommitRequestPartition(partition_index=0, committed_offset=9)
    topic = OffsetCommitRequestTopic(name="t", partitions=(wanted,))
    with pytest.raises(OSError, match="no space"):
        connection.ask(OffsetCommitRequest(group_id="g", topics=(topic,)), 9)
    assert connection._replies == {}
    storage.fails = False
    broker.driver.gate.flush()
    assert len(connection._replies) == 1
    broker.close()


def test_a_disk_that_failed_is_not_trusted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = broker_on(tmp_path)
    storage = broker._storage
    assert storage is not None
    connection = broker.connect()
    wanted = OffsetCommitRequestPartition(partition_index=0, committed_offset=9)
    topic = OffsetCommitRequestTopic(name="t", partitions=(wanted,))
    monkeypatch.setattr(storage._file, "append", _refusing)  # as a full disk does
    for _ in range(2):
        with pytest.raises(OSError, match="no space"):
            connection.ask(OffsetCommitRequest(group_id="g", topics=(topic,)), 9)
    assert connection._replies == {}
    broker.close()


def _refusing(_entries: object) -> None:
    raise OSError("no space left")


def test_one_process_at_a_time(tmp_path: Path) -> None:
    first = broker_on(tmp_path)
    with pytest.raises(ConfigError, match="used by another process"):
        broker_on(tmp_path)
    first.close()
    broker_on(tmp_path).close()


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"fsync": "sometimes"}, "expected one of always, second, never"),
        ({"config": {"transaction.state.log.num.partitions": "4"}}, "has 50 partitions"),
        ({"config": {"node.id": "7"}}, "is of brokers 1, but 1 would be missing"),
        ({"config": {"offsets.topic.num.partitions": "4"}}, "has 3 partitions"),
    ],
)
def test_what_cannot_be_served_is_refused(tmp_path: Path, more: Any, why: str) -> None:
    broker_on(tmp_path).close()
    with pytest.raises(ConfigError, match=why):
        broker_on(tmp_path, **more)


def test_a_damaged_folder_is_refused_with_its_name(tmp_path: Path) -> None:
    first = broker_on(tmp_path)
    commit(first, "g", 1)
    commit(first, "g", 2)
    first.close()
    path = tmp_path / "data"
    content = bytearray(path.read_bytes())
    content[60] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataDamaged, match=r"data is damaged at byte \d+"):
        broker_on(tmp_path)
    assert path.read_bytes() == bytes(content)


def test_a_simulated_crash_keeps_what_is_on_the_disk(tmp_path: Path) -> None:
    broker = broker_on(tmp_path)
    commit(broker, "g", 1)
    broker.restart()
    commit(broker, "g", 2)
    broker.close()
    again = broker_on(tmp_path)
    snapshot = again.snapshot("g")
    assert snapshot is not None
    assert snapshot.offsets["t"][0].offset == 2
    assert OFFSETS_TOPIC in again.core.broker.catalog.topics
    again.close()


@pytest.mark.parametrize("fsync", ["always", "second", "never"])
@pytest.mark.asyncio
async def test_requests_of_one_turn_share_a_write(tmp_path: Path, fsync: str) -> None:
    async with broker_on(tmp_path, fsync=fsync) as broker:
        connections = [broker.connect() for _ in range(20)]

        storage = broker._storage
        assert storage is not None
        writes = 0
        append = storage._file.append

        def counted(entries: Any) -> None:
            nonlocal writes
            writes += 1
            append(entries)

        storage._file.append = counted  # type: ignore[method-assign]  # counts, then does it
        wanted = OffsetCommitRequestPartition(partition_index=0, committed_offset=9)
        topic = OffsetCommitRequestTopic(name="t", partitions=(wanted,))
        answers = await asyncio.gather(
            *(
                connection.request(OffsetCommitRequest(group_id=f"g{i}", topics=(topic,)), 9)
                for i, connection in enumerate(connections)
            )
        )
        assert {answer.topics[0].partitions[0].error_code for answer in answers} == {0}
        assert 1 <= writes <= 3
    with pytest.raises(TransportError, match="the broker has ended"):
        await connections[0].request(OffsetCommitRequest(group_id="g", topics=(topic,)), 9)
