"""Every name of aiokafka that we reach into, with its shape.

aiokafka is pinned to one minor version; when the pin moves, this file says what to look at again.
What the names *do* is tested in ``tests/unit/aiokafka`` on the real classes.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from importlib.metadata import version
from typing import Any

import pytest
from aiokafka import ConsumerRecord
from aiokafka import errors as theirs
from aiokafka.conn import AIOKafkaConnection, CloseReason
from aiokafka.protocol.admin import SaslAuthenticateResponse_v1

from kip848_client.config import ConsumerConfig
from kip848_client.runtime.net._connection import ConnectionOptions


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


def test_frames_can_be_received_by_ours() -> None:
    """``FrameProtocol`` takes the place of the stream once a connection is open."""
    connect = inspect.getsource(AIOKafkaConnection.connect)
    assert "self._reader, self._writer, self._protocol = reader, writer, protocol" in connect
    assert connect.rstrip().endswith("return reader, writer")
    read = inspect.getsource(AIOKafkaConnection._read)
    assert "reader = self._reader" in read
    assert "self._handle_frame(resp)" in read
    # how it ends: their task raises what the reader has, and their connection closes
    ended = inspect.getsource(AIOKafkaConnection._on_read_task_error)
    assert "self.close(reason=CloseReason.CONNECTION_BROKEN, exc=exc)" in ended
    assert "self._writer = self._reader = None" in inspect.getsource(AIOKafkaConnection.close)


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


def test_all_that_is_sent_and_received_can_be_measured() -> None:
    """Each request is one write; what else a writer is used for, ``_measured`` hands on."""
    source = inspect.getsource(AIOKafkaConnection)
    assert inspect.getsource(AIOKafkaConnection.send).count("self._writer.write(") == 1
    used = set(re.findall(r"self\._writer\.(\w+)", source))
    assert used == {"write", "drain", "close"}
    # a connection whose login fails is closed
    connect = inspect.getsource(AIOKafkaConnection.connect)
    assert "await self._do_version_lookup()" in connect
    assert "except:\n            self.close()\n            raise" in connect


def test_a_connection_prepares_requests_as_ours_expect() -> None:
    source = inspect.getsource(AIOKafkaConnection.send)
    assert "request.prepare(self._versions)" in source
    assert "header.encode() + request_struct.encode()" in source
    frame = inspect.getsource(AIOKafkaConnection._handle_frame)
    assert "request.parse_response_header(resp)" in frame
    assert "request.RESPONSE_TYPE" in frame
    assert "resp_type.decode(resp)" in frame


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
