"""What group coordinators measure, as values, as text, and over HTTP."""

from __future__ import annotations

import math
import socket

import anyio
import anyio.to_thread
import pytest

from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kip848_client.core.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kip848_client.observe.metrics_server import Family, MetricsServer, as_text
from mock_coordinator import MockBroker, MockCluster, VirtualClock
from mock_coordinator.command import metrics_text
from mock_coordinator.core.faults import Delay, Fault, Match, Moment


def joining(group: str = "g", member: str = "one") -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=("t",),
        topic_partitions=(),
    )


def committing(*offsets: int) -> OffsetCommitRequest:
    partitions = tuple(
        OffsetCommitRequestPartition(partition_index=number, committed_offset=offset)
        for number, offset in enumerate(offsets)
    )
    topic = OffsetCommitRequestTopic(name="t", partitions=partitions)
    return OffsetCommitRequest(group_id="simple", topics=(topic,))


def made() -> MockBroker:
    config = {"group.consumer.assignment.interval.ms": "0"}
    return MockBroker({"t": 2}, listen=False, clock=VirtualClock(), config=config)


def test_a_broker_without_groups_has_all_names() -> None:
    broker = made()
    assert {each.name for each in broker.metrics()} == {
        "consumer-group-count",
        "consumer-group-rebalance-count",
        "consumer-group-rebalance-rate",
        "event-queue-size",
        "group-count",
        "num-partitions",
        "offset-commit-count",
        "offset-commit-rate",
        "partition-load-time-avg",
        "partition-load-time-max",
    }
    assert broker.metric("group-count") == 0
    assert broker.metric("num-partitions", state="active") == 50
    assert math.isnan(broker.metric("partition-load-time-max"))
    with pytest.raises(KeyError):
        broker.metric("partition-count")


def test_groups_are_counted_by_type_and_state() -> None:
    broker = made()
    broker.connect().ask(joining())
    broker.connect().ask(committing(3, 4), 9)
    assert broker.metric("group-count", protocol="consumer") == 1
    assert broker.metric("group-count", protocol="classic") == 1
    assert broker.metric("consumer-group-count", state="stable") == 1
    assert broker.metric("consumer-group-count", state="empty") == 0
    assert broker.metric("offset-commit-count") == 2


def test_each_group_epoch_is_a_rebalance() -> None:
    broker = made()
    broker.connect().ask(joining())
    once = broker.metric("consumer-group-rebalance-count")
    assert once >= 1
    broker.connect().ask(joining(member="two"))
    assert broker.metric("consumer-group-rebalance-count") == once + 1
    assert broker.metric("consumer-group-rebalance-rate") > 0
    broker.advance(120_000)
    assert broker.metric("consumer-group-rebalance-count") > once, "sessions have ended, too"


def test_loads_are_timed_and_partitions_counted_meanwhile() -> None:
    cluster = MockCluster({"t": 1}, brokers=2, listen=False, clock=VirtualClock())
    cluster.connect(node_id=cluster.coordinator_of("g")).ask(joining())
    cluster.load_time_ms = 700
    to = next(node.node_id for node in cluster.nodes if node.node_id != cluster.coordinator_of("g"))
    cluster.move_coordinator("g", to)
    assert cluster.metric("num-partitions", state="loading") == 1
    assert cluster.metric("group-count") == 0, "it is not loaded"
    cluster.advance(700)
    assert cluster.metric("num-partitions", state="loading") == 0
    assert cluster.metric("partition-load-time-max") == 700
    assert cluster.metric("group-count", protocol="consumer") == 1


def test_requests_that_are_held_back_are_the_queue() -> None:
    broker = made()
    broker.faults.add(
        Fault(Delay(by_ms=500, moment=Moment.REQUEST), Match(api="ConsumerGroupHeartbeat"))
    )
    broker.connect()._submit(joining(), None)
    assert broker.metric("event-queue-size") == 1
    broker.advance(500)
    assert broker.metric("event-queue-size") == 0


def test_the_text_is_what_prometheus_reads() -> None:
    broker = made()
    broker.connect().ask(joining())
    lines = metrics_text(broker.metrics()).splitlines()
    prefix = "kafka_server_group_coordinator_metrics"
    assert f'{prefix}_consumer_group_count{{state="stable"}} 1' in lines
    assert f"# TYPE {prefix}_consumer_group_count gauge" in lines
    assert f"# TYPE {prefix}_offset_commit_count counter" in lines
    assert f"{prefix}_partition_load_time_max NaN" in lines
    types = [line for line in lines if line.startswith("# TYPE")]
    assert len(set(types)) == len(types) == 10


def test_large_and_small_values_keep_their_digits() -> None:
    family = Family("x", "gauge", [({}, 12_345_678.0), ({"a": "b"}, 0.25)], "What it is.")
    lines = ["# HELP x What it is.", "# TYPE x gauge", "x 12345678", 'x{a="b"} 0.25']
    assert as_text([family]).splitlines() == lines


ASKED = (
    (b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", b"HTTP/1.1 200 OK", b"\r\n\r\nseen 1\n"),
    (b"GET /metrics?name=x HTTP/1.0\r\n\r\n", b"HTTP/1.1 200 OK", b"seen 1\n"),
    (b"HEAD /metrics HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK", b"close\r\n\r\n"),
    (b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 404 Not Found", b"the only page is /metrics\n"),
    (b"POST /metrics HTTP/1.1\r\n\r\n", b"HTTP/1.1 405 Method Not Allowed", b"are allowed\n"),
    (b"\r\n\r\n", b"HTTP/1.1 405", b"are allowed\n"),
    (b"\x00\xff" * 4_096, b"HTTP/1.1 405", b"are allowed\n"),
)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_whatever_a_visitor_says_is_answered_and_harms_nobody() -> None:
    server = MetricsServer(lambda: "seen 1\n", "127.0.0.1", 0)
    await server.listen()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve)
        await (await anyio.connect_tcp("127.0.0.1", server.port)).aclose()  # it says nothing
        for asked, begins, ends in ASKED:
            answer = await anyio.to_thread.run_sync(visit, server.port, asked)
            assert answer.startswith(begins), asked
            assert answer.endswith(ends), asked
        tasks.cancel_scope.cancel()


def visit(port: int, asked: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.sendall(asked)
        answer = b""
        while chunk := connection.recv(65_536):
            answer += chunk
        return answer


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_a_page_that_fails_is_answered_with_500_and_the_next_is_served(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pages: list[str] = ["seen 1\n"]
    server = MetricsServer(pages.pop, "127.0.0.1", 0)
    await server.listen()
    request = ASKED[0][0]
    good = failed = again = b""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve)
        good = await anyio.to_thread.run_sync(visit, server.port, request)
        failed = await anyio.to_thread.run_sync(visit, server.port, request)
        pages.append("seen 2\n")
        again = await anyio.to_thread.run_sync(visit, server.port, request)
        tasks.cancel_scope.cancel()
    assert good.endswith(b"\r\n\r\nseen 1\n")
    assert failed.startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
    body = failed.partition(b"\r\n\r\n")[2]
    assert body == b"the metrics cannot be read: IndexError; see the program's log\n"
    assert again.endswith(b"\r\n\r\nseen 2\n")
    (logged,) = (each for each in caplog.records if each.levelname == "ERROR")
    assert "/metrics" in logged.getMessage()
    assert logged.exc_info is not None
    assert logged.exc_info[0] is IndexError
