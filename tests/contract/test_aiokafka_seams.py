"""Every name of aiokafka that we reach into, with its shape.

aiokafka is pinned to one minor version; when the pin moves, this file says what to look at again.
What the names *do* is tested in ``tests/unit/aiokafka`` on the real classes.
"""

from __future__ import annotations

import asyncio
import inspect
from importlib.metadata import version
from typing import Any

import pytest
from aiokafka import ConsumerRecord
from aiokafka import errors as theirs
from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.cluster import ClusterMetadata
from aiokafka.conn import AIOKafkaConnection, CloseReason
from aiokafka.consumer.fetcher import Fetcher, FetchError, FetchResult, PartitionRecords
from aiokafka.consumer.subscription_state import (
    Assignment,
    Subscription,
    SubscriptionState,
    TopicPartitionState,
)
from aiokafka.protocol.admin import SaslAuthenticateResponse_v1
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.util import create_task

from kip848_client._aiokafka._connection import ConnectionOptions
from kip848_client._aiokafka._metadata import ClusterPicture
from kip848_client.config import ConsumerConfig


def parameters(function: Any) -> list[str]:
    return list(inspect.signature(function).parameters)


def test_the_pinned_version() -> None:
    assert version("aiokafka").startswith("0.14.")


def test_a_connection_takes_our_options() -> None:
    names = set(parameters(AIOKafkaConnection))
    sasl = {"sasl_plain_username": "u", "sasl_plain_password": "p"}
    config = ConsumerConfig.of({"security_protocol": "SASL_PLAINTEXT", **sasl})
    options = ConnectionOptions("c", 1, None, config.security)
    assert {
        "client_id",
        "request_timeout_ms",
        "max_idle_ms",
        "on_close",
        *options.security,
    } <= names
    assert parameters(AIOKafkaConnection.send) == ["self", "request", "expect_response"]
    assert parameters(AIOKafkaConnection.close) == ["self", "reason", "exc"]
    assert {
        "CONNECTION_BROKEN",
        "CONNECTION_TIMEOUT",
        "OUT_OF_SYNC",
        "IDLE_DROP",
        "SHUTDOWN",
    } <= set(CloseReason.__members__)


@pytest.mark.asyncio
async def test_a_connection_keeps_what_the_broker_offers() -> None:
    connection = AIOKafkaConnection("127.0.0.1", 1)
    assert connection._versions == {}
    assert connection.connected() is False
    assert list(connection._requests) == []
    assert connection._loop is asyncio.get_running_loop()


def test_a_login_goes_through_the_seams_that_we_replace() -> None:
    login = inspect.getsource(AIOKafkaConnection._do_sasl_handshake)
    assert "await self.send(SaslAuthenticateRequest(payload))" in login
    assert "session_lifetime_ms" in SaslAuthenticateResponse_v1.SCHEMA.names
    # only the warning about clear text looks at the protocol
    assert login.count("_security_protocol") == 1
    warned = login[login.index("_security_protocol") :]
    assert warned.index("in the clear") < warned.index("authenticator")
    assert "(correlation_id, request_struct, fut)" in inspect.getsource(AIOKafkaConnection.send)
    assert inspect.iscoroutinefunction(AIOKafkaConnection.connect)


def test_a_connection_prepares_requests_as_ours_expect() -> None:
    source = inspect.getsource(AIOKafkaConnection.send)
    assert "request.prepare(self._versions)" in source
    assert "header.encode() + request_struct.encode()" in source
    frame = inspect.getsource(AIOKafkaConnection._handle_frame)
    assert "request.parse_response_header(resp)" in frame
    assert "request.RESPONSE_TYPE" in frame
    assert "resp_type.decode(resp)" in frame


@pytest.mark.asyncio
async def test_a_client_has_the_seams_that_we_replace() -> None:
    assert parameters(AIOKafkaClient._metadata_update) == ["self", "cluster_metadata", "topics"]
    assert parameters(AIOKafkaClient.send) == ["self", "node_id", "request", "group"]
    assert parameters(AIOKafkaClient._get_conn) == ["self", "node_id", "group", "no_hint"]
    assert "conn = await self._get_conn(node_id" in inspect.getsource(AIOKafkaClient.ready)
    assert inspect.iscoroutinefunction(AIOKafkaClient._md_synchronizer)
    assert ConnectionGroup.DEFAULT == 0
    assert parameters(AIOKafkaClient._on_connection_closed) == ["self", "conn", "reason"]
    client = AIOKafkaClient(retry_backoff_ms=100, metadata_max_age_ms=1_000)
    assert client.cluster.broker_metadata(1) is None
    assert client._sync_task is None
    assert client._retry_backoff == 0.1
    assert client._conns == {}
    assert client._loop is asyncio.get_running_loop()
    assert callable(client.force_metadata_update)
    assert inspect.iscoroutinefunction(client.close)


def test_the_cluster_view_reads_our_picture() -> None:
    cluster = ClusterMetadata()
    topics: list[Any] = [(0, "t", False, [(0, 3, 1, (1, 2), (1,))])]
    cluster.update_metadata(ClusterPicture([(1, "h", 9, None)], topics, 1))
    tp = type("TP", (tuple,), {"topic": "t", "partition": 3})()
    assert cluster.leader_for_partition(tp) == 1
    broker = cluster.broker_metadata(1)
    assert broker is not None
    assert broker.host == "h"
    assert cluster.partitions_for_topic("t") == {3}


def test_fetch_is_a_version_that_kafka_4_serves() -> None:
    topics = [("t", [(0, 5, 100)])]
    request = FetchRequest(1, 1, 1, 0, topics)
    assert request.topics == topics
    for newest_of_broker in (16, 17, 18):
        prepared = request.prepare({1: (4, newest_of_broker)})
        assert prepared.API_VERSION == 11


@pytest.mark.asyncio
async def test_assignments_and_states_have_their_fields() -> None:
    assignment = Assignment([])
    assert (assignment._tp_state, assignment._topic_partitions) == ({}, frozenset())
    assert assignment.tps == frozenset()
    assert assignment.active
    assert parameters(Assignment.state_value) == ["self", "tp"]
    state = TopicPartitionState(assignment)
    assert (state._position, state.has_valid_position, state.paused) == (None, False, False)
    assert (state.highwater, state.lso, state.timestamp) == (None, None, None)
    assert not state.awaiting_reset
    state.seek(5)
    assert (state._position, state.position) == (5, 5)
    state.pause()
    assert state.paused
    assert state._paused
    assert state.resume_fut is not None
    state.resume()
    assert not state.paused
    for name in ("consumed_to", "reset_to", "await_reset"):
        assert len(parameters(getattr(TopicPartitionState, name))) == 2
    subscription = Subscription(())
    assert subscription._assignment is None
    assert subscription._reassignment_in_progress is True
    assert SubscriptionState()._subscription is None


@pytest.mark.asyncio
async def test_the_fetcher_has_the_seams_that_we_use() -> None:
    assert parameters(Fetcher._proc_fetch_request) == ["self", "assignment", "node_id", "request"]
    fields = {
        "_records",
        "_in_flight",
        "_pending_tasks",
        "_fetch_task",
        "_fetch_waiters",
        "_wait_consume_future",
        "_closed",
    }
    source = inspect.getsource(Fetcher.__init__)
    # one collection for the fetcher's whole life
    assert inspect.getsource(Fetcher).count("self._records = ") == 1
    assert all(f"self.{name} = " in source for name in fields)
    assert parameters(Fetcher._notify) == ["self", "future"]
    assert parameters(Fetcher._create_fetch_waiter) == ["self"]
    assert isinstance(inspect.getattr_static(Fetcher, "error_future"), property)
    options = set(parameters(Fetcher.__init__))
    assert {
        "fetch_min_bytes",
        "fetch_max_bytes",
        "fetch_max_wait_ms",
        "max_partition_fetch_bytes",
        "check_crcs",
        "retry_backoff_ms",
        "auto_offset_reset",
        "isolation_level",
        "client_rack",
    } <= options
    # results are stored and reported without an await in between
    body = inspect.getsource(Fetcher._proc_fetch_request)
    assert "await " not in body[body.index("self._records[tp] = FetchResult") :]


def test_fetch_results_have_their_methods() -> None:
    for name in ("getone", "getall", "has_more"):
        assert callable(getattr(FetchResult, name))
    assert "self.next_fetch_offset = fetch_offset" in inspect.getsource(PartitionRecords.__init__)
    # what ours does with the state that it has looked up
    one = inspect.getsource(FetchResult.getone)
    assert "next(self._partition_records, None)" in one
    assert one.index("next(") < one.index("self._update_position()")
    assert "state.consumed_to(self._partition_records.next_fetch_offset)" in inspect.getsource(
        FetchResult._update_position
    )
    usable = inspect.getsource(FetchResult.check_assignment)
    assert "tp_state.paused" in usable
    assert "position != self._partition_records.next_fetch_offset" in usable
    assert "self._partition_records = " in inspect.getsource(FetchResult.__init__)
    assert "self._error = " in inspect.getsource(FetchError.__init__)
    # records are built through the instance, so that one can bring its own builder
    assert "self._consumer_record(tp, record)" in inspect.getsource(
        PartitionRecords._unpack_records
    )


def test_their_records_are_what_ours_imitate() -> None:
    assert list(ConsumerRecord.__dataclass_fields__)[:3] == ["topic", "partition", "offset"]


def test_their_errors_have_kafkas_codes() -> None:
    assert theirs.TopicAuthorizationFailedError.errno == 29
    assert theirs.OffsetOutOfRangeError.errno == 1
    for name in (
        "KafkaConnectionError",
        "NodeNotReadyError",
        "CorrelationIdError",
        "StaleMetadata",
        "NoBrokersAvailable",
        "RequestTimedOutError",
        "KafkaTimeoutError",
        "IncompatibleBrokerVersion",
        "UnsupportedVersionError",
        "BrokerResponseError",
    ):
        assert issubclass(getattr(theirs, name), theirs.KafkaError)


@pytest.mark.asyncio
async def test_tasks_are_made_by_their_helper() -> None:
    async def nothing() -> None:
        pass

    await create_task(nothing())
