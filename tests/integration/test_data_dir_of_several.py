"""``kip848 mock --brokers 3 --data-dir``: three brokers that are killed without warning lose no
record, no commit and no transaction that they had acknowledged, however often."""

from __future__ import annotations

import contextlib
import random
import re
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from kip848_client.core.wire import api_named
from mock_coordinator import MockCluster
from tests.integration.test_data_dir import PATIENCE_S, Writer, committed, running
from tests.support.raw_transactions import RawTransactions
from tests.support.wire_connection import ConnectionLostError, WireConnection

KILLS = 5
PARTITIONS = 3
GROUP, TRANSACTION = 0, 1


def ports_of(process: subprocess.Popen[str]) -> list[int]:
    """Where the brokers listen, by id."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("listening on "), line
    ports = [int(port) for port in re.findall(r":(\d+)", line)]
    assert len(ports) == 3, line
    return ports


def leader_of(ports: list[int], partition: int) -> int:
    """The port of the broker that leads a partition of the topic."""
    with WireConnection("127.0.0.1", ports[0]) as connection:
        answer = connection.request(api_named("Metadata").request(topics=None), 12)
    topic = next(topic for topic in answer.topics if topic.name == "t")
    leaders: dict[int, int] = {p.partition_index: p.leader_id for p in topic.partitions}
    return ports[leaders[partition] - 1]


def coordinator_of(ports: list[int], key: str, kind: int) -> int:
    """The port of the broker that coordinates a group or a transactional id."""
    request = api_named("FindCoordinator").request(key_type=kind, coordinator_keys=(key,))
    with WireConnection("127.0.0.1", ports[-1]) as connection:
        found = connection.request(request, 4).coordinators[0]
    assert found.error_code == 0, found
    port: int = found.port
    return port


class RoutedWriter(Writer):
    """Produces at the leader of a partition and commits at the coordinator of a group."""

    def __init__(self, ports: list[int], partition: int, start: int) -> None:
        super().__init__(leader_of(ports, partition), partition, start)
        self._coordinator = coordinator_of(ports, f"g{partition}", GROUP)

    def run(self) -> None:
        try:
            with (
                WireConnection("127.0.0.1", self._port) as leader,
                WireConnection("127.0.0.1", self._coordinator) as coordinator,
            ):
                while True:
                    self._produce(leader)
                    self._commit(coordinator)
                    self._number += 1
        except (ConnectionLostError, OSError):
            return


class Routed:
    """The brokers as one connection for requests about one transactional id and partition 0."""

    def __init__(self, ports: list[int]) -> None:
        at_leader = WireConnection("127.0.0.1", leader_of(ports, 0))
        at_coordinator = WireConnection("127.0.0.1", coordinator_of(ports, "x", TRANSACTION))
        self._to = {0: at_leader, 1: at_leader}
        self._coordinator = at_coordinator

    def request(self, message: Any, version: int) -> Any:
        connection = self._to.get(type(message).API_KEY, self._coordinator)
        return connection.request(message, version)

    def close(self) -> None:
        self._to[0].close()
        self._coordinator.close()


def transact(ports: list[int], start: int, acknowledged: list[bytes]) -> int:
    """Transactions of a record each, until the brokers are gone; returns the next number."""
    number = start
    raw = RawTransactions(lambda: Routed(ports), {})
    try:
        producer = (-1, -1)
        while producer[0] < 0:  # a transaction of the last life is aborted first
            answer, producer = raw.init("x")
            assert answer[0] in (0, 51), answer
        sequence = 0
        while True:
            number += 1
            value = b"txn-%d" % number
            written = raw.produce("x", producer, sequence, {("t", 0): [value]}, 12)
            assert written[0][2] == 0, written
            answer, after = raw.end("x", producer, commit=True)
            assert answer[0] == 0, answer
            sequence = sequence + 1 if after == producer else 0
            producer = after
            acknowledged.append(value)
    except (ConnectionLostError, OSError, TypeError):
        return number
    finally:
        raw.close()


class Killer(threading.Thread):
    """Kills a process after some seconds."""

    def __init__(self, process: subprocess.Popen[str], after_s: float) -> None:
        super().__init__()
        self._process = process
        self._after_s = after_s

    def run(self) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(self._after_s)
        self._process.kill()


@pytest.mark.everything("starts and kills processes for many seconds")
@pytest.mark.timeout(180)
def test_killed_again_and_again_they_lose_nothing(tmp_path: Path) -> None:
    folder, dice = tmp_path / "data", random.Random(848)
    produced: list[list[int]] = [[] for _ in range(PARTITIONS)]
    last = [-1] * PARTITIONS
    for _ in range(KILLS):
        with running(folder, "--brokers", "3") as process:
            ports = ports_of(process)
            for partition, offset in enumerate(last):
                port = coordinator_of(ports, f"g{partition}", GROUP)
                with WireConnection("127.0.0.1", port) as connection:
                    assert committed(connection, partition) >= offset
            writers = [
                RoutedWriter(ports, p, 1 + max(produced[p], default=0)) for p in range(PARTITIONS)
            ]
            for writer in writers:
                writer.start()
            writers[0].join(dice.uniform(0.1, 0.5))
            process.kill()
            for partition, writer in enumerate(writers):
                writer.join(PATIENCE_S)
                produced[partition] += writer.produced
                last[partition] = max(last[partition], writer.committed)
    assert min(map(len, produced)) > KILLS
    cluster = MockCluster(
        listen=False, data_dir=folder, config={"offsets.topic.num.partitions": "2"}
    )
    for partition in range(PARTITIONS):
        stored = [int(record.value or b"") for record in cluster.records("t", partition)]
        assert set(produced[partition]) <= set(stored)
        snapshot = cluster.snapshot(f"g{partition}")
        assert snapshot is not None
        assert snapshot.offsets["t"][partition].offset >= last[partition]
    cluster.close()


@pytest.mark.everything("starts and kills processes for many seconds")
@pytest.mark.timeout(180)
def test_killed_amid_transactions_they_keep_what_was_committed(tmp_path: Path) -> None:
    folder, dice = tmp_path / "data", random.Random(848)
    acknowledged: list[bytes] = []
    number = 0
    for _ in range(KILLS):
        with running(folder, "--brokers", "3") as process:
            ports = ports_of(process)
            killer = Killer(process, dice.uniform(0.2, 0.5))
            killer.start()
            number = transact(ports, number, acknowledged)
            killer.join(PATIENCE_S)
    assert len(acknowledged) > KILLS
    with running(folder, "--brokers", "3") as process:
        ports = ports_of(process)
        raw = RawTransactions(lambda: Routed(ports), {})
        while raw.init("x")[0][0] == 51:
            pass
        visible = committed_values(raw)
        raw.close()
    assert set(acknowledged) <= set(visible)
    assert len(visible) == len(set(visible)), "nothing twice"
    assert len(visible) <= len(acknowledged) + KILLS, "at most one a life was not acknowledged"


def committed_values(raw: RawTransactions) -> list[bytes]:
    """What a read_committed consumer sees of partition 0."""
    found: list[bytes] = []
    code, end, stable, _, aborted, batches = raw.fetch("t", 0)
    assert (code, stable) == (0, end)
    gone = sorted(aborted, key=lambda each: each[1])
    hidden: set[str] = set()
    for base, attributes, producer, _, _, _, records in batches:
        while gone and gone[0][1] <= base:
            hidden.add(gone.pop(0)[0])
        if attributes & 0x20:
            hidden.discard(producer)
        elif producer not in hidden:
            found += [value for _, value in records]
    return found
