"""``kip848 mock --data-dir``: a process that is killed without warning loses nothing that it had
acknowledged, however often."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kip848_client.core.wire.messages.classic_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from kip848_client.core.wire.messages.fetch import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
)
from kip848_client.core.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kip848_client.core.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kip848_client.core.wire.messages.produce import (
    ProduceRequest,
    ProduceRequestPartitionProduceData,
    ProduceRequestTopicProduceData,
)
from mock_coordinator import MockBroker, NewRecord
from mock_coordinator.batches import encode_batch
from mock_coordinator.core.groups.service.splitting import partition_for
from tests.support.kafka_tools import CONSOLE_CONSUMER, run_tool
from tests.support.wire_connection import ConnectionLostError, WireConnection

PATIENCE_S = 20
KILLS = 6
WRITERS = 3


@contextmanager
def running(folder: Path, *more: str) -> Generator[subprocess.Popen[str], None, None]:
    command = [sys.executable, "-m", "kip848_client", "mock", "--data-dir", str(folder)]
    settings = ["--topic", "t:3", "--config", "offsets.topic.num.partitions=2"]
    process = subprocess.Popen(
        [*command, *settings, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE_S)


@pytest.mark.skipif(shutil.which("sh") is None, reason="the shell limits the size of files")
def test_a_disk_that_is_full_ends_the_broker_with_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    # -B: Python would cut the bytecode that it writes, too, and others would read it
    words = ["-B", "-m", "kip848_client", "mock", "--data-dir", str(folder), "--topic", "t:3"]
    process = subprocess.Popen(
        ["sh", "-c", 'ulimit -f 100; exec "$@"', "sh", sys.executable, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    writer = Writer(port_of(process), 0, 0)
    writer.start()
    _, told = process.communicate(timeout=PATIENCE_S)
    writer.join()
    assert process.returncode == 1
    assert "Traceback" not in told
    assert "TaskGroup" not in told.splitlines()[-1]
    said = f"kip848 mock: the data folder {folder} cannot be written: File too large; acknowledged"
    assert told.splitlines()[-1].startswith(said)


def port_of(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.fullmatch(r"listening on [\w.]+:(\d+)\n", line)
    if found is None:
        assert process.stderr is not None
        raise AssertionError(f"{line!r} {process.stderr.read()}")
    return int(found[1])


class Writer(threading.Thread):
    """Produces a number and commits it, again and again, until the broker is gone. What was
    acknowledged is in ``produced`` and ``committed``."""

    def __init__(self, port: int, partition: int, start: int) -> None:
        super().__init__()
        self._port = port
        self._partition = partition
        self._number = start
        self.produced: list[int] = []
        self.committed = -1

    def run(self) -> None:
        try:
            with WireConnection("127.0.0.1", self._port) as connection:
                while True:
                    self._produce(connection)
                    self._commit(connection)
                    self._number += 1
        except (ConnectionLostError, OSError):
            return

    def _produce(self, connection: WireConnection) -> None:
        batch = encode_batch([NewRecord(str(self._number).encode())], 1)
        data = ProduceRequestPartitionProduceData(index=self._partition, records=batch)
        topic = ProduceRequestTopicProduceData(name="t", partition_data=(data,))
        request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=(topic,))
        answer = connection.request(request, 12).responses[0].partition_responses[0]
        assert answer.error_code == 0, answer
        self.produced.append(self._number)

    def _commit(self, connection: WireConnection) -> None:
        wanted = OffsetCommitRequestPartition(
            partition_index=self._partition, committed_offset=self._number
        )
        topic = OffsetCommitRequestTopic(name="t", partitions=(wanted,))
        request = OffsetCommitRequest(group_id=f"g{self._partition}", topics=(topic,))
        answer = connection.request(request, 9).topics[0].partitions[0]
        assert answer.error_code == 0, answer
        self.committed = self._number


def committed(connection: WireConnection, partition: int) -> int:
    wanted = OffsetFetchRequestTopics(name="t", partition_indexes=(partition,))
    group = OffsetFetchRequestGroup(group_id=f"g{partition}", topics=(wanted,))
    answer = connection.request(OffsetFetchRequest(groups=(group,)), 8).groups[0]
    offset: int = answer.topics[0].partitions[0].committed_offset
    return offset


@pytest.mark.everything("starts and kills processes for many seconds")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("fsync", ["always", "never"])
def test_killed_again_and_again_it_loses_nothing(tmp_path: Path, fsync: str) -> None:
    folder, dice = tmp_path / "data", random.Random(848)
    produced: list[list[int]] = [[] for _ in range(WRITERS)]
    last = [-1] * WRITERS
    for _ in range(KILLS):
        with running(folder, "--fsync", fsync) as process:
            port = port_of(process)
            with WireConnection("127.0.0.1", port) as connection:
                for partition, offset in enumerate(last):
                    assert committed(connection, partition) >= offset
            writers = [Writer(port, p, 1 + max(produced[p], default=0)) for p in range(WRITERS)]
            for writer in writers:
                writer.start()
            writers[0].join(dice.uniform(0.05, 0.4))
            process.kill()
            for partition, writer in enumerate(writers):
                writer.join(PATIENCE_S)
                produced[partition] += writer.produced
                last[partition] = max(last[partition], writer.committed)
    assert min(map(len, produced)) > KILLS
    broker = MockBroker(listen=False, data_dir=folder, config={"offsets.topic.num.partitions": "2"})
    for partition in range(WRITERS):
        stored = [int(record.value or b"") for record in broker.records("t", partition)]
        assert set(produced[partition]) <= set(stored)
        snapshot = broker.snapshot(f"g{partition}")
        assert snapshot is not None
        assert snapshot.offsets["t"][partition].offset >= last[partition]
    broker.close()


def test_a_damaged_folder_ends_the_process_with_one_clear_error(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with running(folder) as process:
        port_of(process)
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
    path = folder / "data"
    content = bytearray(path.read_bytes())
    content[40] ^= 1
    path.write_bytes(bytes(content) + bytes(content[19:]))
    with running(folder) as process:
        _, said = process.communicate(timeout=PATIENCE_S)
        assert process.returncode not in (0, None)
    assert "is damaged at byte" in said
    assert "Traceback" not in said


@pytest.mark.real_kafka
@pytest.mark.timeout(120)
def test_kafkas_console_consumer_prints_the_groups_records(
    tmp_path: Path, kafka_tools_jars: Path
) -> None:
    assert kafka_tools_jars.is_dir()
    with running(tmp_path / "data", "--config", "group.initial.rebalance.delay.ms=0") as process:
        port = port_of(process)
        writer = Writer(port, 1, 7)
        with WireConnection("127.0.0.1", port) as connection:
            writer._produce(connection)
            writer._commit(connection)
        _complete_classic_group(port)
        committed_in = partition_for("g1", 2)
        printed = _printed(port, committed_in, "OffsetsMessageFormatter")
        classic = _printed(port, partition_for("old", 2), "GroupMetadataMessageFormatter")
    assert '"group":"g1","topic":"t","partition":1' in printed
    assert '"offset":7' in printed
    assert '"group":"old"' in classic
    assert '"protocolType":"consumer","generation":1,"protocol":"range"' in classic


def _printed(port: int, partition: int, formatter: str) -> str:
    """What the console consumer makes of all records of a partition of the internal topic."""
    wanted = FetchRequestFetchPartition(
        partition=partition, fetch_offset=0, partition_max_bytes=1 << 20
    )
    topic = FetchRequestFetchTopic(topic="__consumer_offsets", partitions=(wanted,))
    with WireConnection("127.0.0.1", port) as connection:
        fetched = connection.request(FetchRequest(topics=(topic,)), 12)
    end: int = fetched.responses[0].partitions[0].high_watermark
    return run_tool(
        CONSOLE_CONSUMER,
        *("--bootstrap-server", f"127.0.0.1:{port}", "--topic", "__consumer_offsets"),
        *("--partition", str(partition), "--offset", "earliest"),
        *("--max-messages", str(end), "--timeout-ms", "20000"),
        *("--formatter", f"org.apache.kafka.tools.consumer.{formatter}"),
    )


def _complete_classic_group(port: int) -> None:
    with WireConnection("127.0.0.1", port) as connection:
        protocol = JoinGroupRequestProtocol(name="range", metadata=b"")
        join = JoinGroupRequest(
            group_id="old",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=(protocol,),
        )
        joined = connection.request(join, 3)
        assert joined.error_code == 0, joined
        share = SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"")
        sync = SyncGroupRequest(
            group_id="old",
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            assignments=(share,),
        )
        assert connection.request(sync, 3).error_code == 0
