"""The parts of a consumer that need nothing but its settings, made from them.

``Engine`` wires them together. ``Network`` is what touches sockets: a test gives its own.
"""

from __future__ import annotations

import base64
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from kip848_client._aiokafka._client import FetchClient
from kip848_client._aiokafka._connection import ConnectionOptions
from kip848_client._aiokafka._fetch import FetchPath
from kip848_client._aiokafka._tokens import with_token_provider
from kip848_client._aiokafka._transport import KafkaTransport
from kip848_client._aiokafka._unreadable import Unreadable
from kip848_client._backoff import backoff_ms
from kip848_client._ports import Clock
from kip848_client._types import MemberId, TopicId, TopicPartition
from kip848_client.config import ConsumerConfig
from kip848_client.consumer._backoff import jittered
from kip848_client.group import GroupCore
from kip848_client.member import MemberCore, MemberSettings
from kip848_client.offsets import CommitterCore, CommitterSettings, OffsetTracker

__all__ = ["Network", "connections", "fetch_path", "group_core", "new_member_id"]

R = TypeVar("R")

_log = logging.getLogger("kip848_client")

_MEMBER_ID_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Network:
    """Connections for short requests, and those of the fetcher."""

    transport: KafkaTransport
    client: FetchClient


def connections(config: ConsumerConfig, clock: Clock) -> Network:
    """Connections to the brokers; none is open yet."""
    if config.security_protocol == "SASL_PLAINTEXT" and config.sasl_mechanism == "PLAIN":
        _log.warning(
            "user name and password go to the brokers in the clear; "
            "use security_protocol SASL_SSL, or a mechanism that does not send the password"
        )
    options = ConnectionOptions(
        client_id=config.client_id,
        request_timeout_ms=config.request_timeout_ms,
        connections_max_idle_ms=config.connections_max_idle_ms,
        security=with_token_provider(config.security),
    )
    client = FetchClient(
        options,
        retry_backoff_ms=config.retry_backoff_ms,
        metadata_max_age_ms=config.metadata_max_age_ms,
    )
    transport = KafkaTransport(config.bootstrap_servers, config.group_id, options, clock)
    return Network(transport, client)


def fetch_path(
    config: ConsumerConfig,
    client: FetchClient,
    build: Callable[[Any, Any], R | Unreadable],
    out_of_range: Callable[[TopicPartition, int], bool],
) -> FetchPath[R]:
    """The way of records to the application."""
    return FetchPath(
        client,
        build,
        out_of_range,
        fetch_min_bytes=config.fetch_min_bytes,
        fetch_max_bytes=config.fetch_max_bytes,
        fetch_max_wait_ms=config.fetch_max_wait_ms,
        max_partition_fetch_bytes=config.max_partition_fetch_bytes,
        check_crcs=config.check_crcs,
        retry_backoff_ms=config.retry_backoff_ms,
        isolation_level=config.isolation_level,
        client_rack=config.client_rack,
    )


def _committer_core(config: ConsumerConfig, tracker: OffsetTracker) -> CommitterCore:
    """What decides when and what to commit."""
    settings = CommitterSettings(
        auto_commit_interval_ms=config.commit_interval_ms,
        request_timeout_ms=config.request_timeout_ms,
        retry_backoff_ms=config.retry_backoff_ms,
        retry_backoff_max_ms=max(config.retry_backoff_ms, config.retry_backoff_max_ms),
    )
    return CommitterCore(settings, tracker, jittered)


def _member_core(config: ConsumerConfig, member_id: MemberId) -> MemberCore:
    """What decides about the membership."""
    settings = MemberSettings(
        instance_id=config.group_instance_id,
        rack_id=config.client_rack,
        server_assignor=config.group_remote_assignor,
        max_poll_interval_ms=config.poll_interval_ms,
        auto_commit=config.enable_auto_commit,
        request_timeout_ms=config.request_timeout_ms,
        retry_backoff_ms=config.retry_backoff_ms,
        retry_backoff_max_ms=max(config.retry_backoff_ms, config.retry_backoff_max_ms),
        extra_heartbeats=config.extra_heartbeats,
    )
    return MemberCore(settings, member_id, jittered)


def group_core(
    config: ConsumerConfig,
    member_id: MemberId,
    tracker: OffsetTracker,
    newest_id: Callable[[str], TopicId | None],
) -> GroupCore:
    """What decides about everything that concerns the group."""
    base_ms = config.retry_backoff_ms
    cap_ms = max(base_ms, config.retry_backoff_max_ms)
    return GroupCore(
        _member_core(config, member_id),
        _committer_core(config, tracker),
        newest_id,
        lambda failures: backoff_ms(failures, base_ms, cap_ms, jittered),
    )


def new_member_id() -> MemberId:
    """A UUID's worth of real randomness, as Kafka's documentation asks for (KIP-1082)."""
    raw = secrets.token_bytes(_MEMBER_ID_BYTES)
    return MemberId(base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii"))
