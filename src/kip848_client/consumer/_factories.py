"""Builds the parts of a consumer that need only its settings.

``Engine`` wires them together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kip848_client.config import ConsumerConfig, parse_duration_ms
from kip848_client.consumer._arguments import checked_deserializer
from kip848_client.core.assignor_rounds import ComputingSettings
from kip848_client.core.backoff import backoff_ms
from kip848_client.core.fetch import FetchCore, FetchSettings
from kip848_client.core.group import GroupCore
from kip848_client.core.member import MemberCore, MemberSettings, OfferedAssignor
from kip848_client.core.offsets import CommitterCore, CommitterSettings, OffsetTracker
from kip848_client.core.ports import Clock
from kip848_client.core.types import MemberId, TopicId, TopicPartition
from kip848_client.records import Decoding, Deserializer
from kip848_client.runtime._backoff import jittered
from kip848_client.runtime.client._parts import connection_options
from kip848_client.runtime.clock import wall_clock_origin_ms
from kip848_client.runtime.net._transport import KafkaTransport

__all__ = ["Network", "connections", "decoding_of", "fetch_core", "group_core"]

Network = Callable[[ConsumerConfig, Clock], KafkaTransport]

_BY_DURATION: Final = "by_duration:"


def connections(
    config: ConsumerConfig, clock: Clock, kind: Callable[..., KafkaTransport] = KafkaTransport
) -> KafkaTransport:
    """Build the connections to the brokers; none is open yet. (A test passes its own.)"""
    return kind(
        config.bootstrap_servers,
        config.group_id,
        connection_options(config),
        clock,
        fetch_max_wait_ms=config.fetch_max_wait_ms,
    )


def fetch_core(config: ConsumerConfig, clock: Clock) -> FetchCore:
    """Build the core that decides what to fetch from which broker."""
    policy, age_ms = config.auto_offset_reset, 0
    if policy.startswith(_BY_DURATION):
        age_ms = parse_duration_ms(policy.removeprefix(_BY_DURATION))
        policy = _BY_DURATION.rstrip(":")
    settings = FetchSettings(
        min_bytes=config.fetch_min_bytes,
        max_wait_ms=config.fetch_max_wait_ms,
        max_bytes=config.fetch_max_bytes,
        max_partition_bytes=config.max_partition_fetch_bytes,
        buffer_bytes=config.fetch_buffer_bytes,
        read_committed=config.isolation_level == "read_committed",
        rack=config.client_rack or "",
        reset_policy=policy,
        reset_age_ms=age_ms,
        clock_origin_ms=wall_clock_origin_ms(clock),
        has_group=config.group_id is not None,
        request_timeout_ms=config.request_timeout_ms,
        retry_backoff_ms=config.retry_backoff_ms,
        retry_backoff_max_ms=config.retry_backoff_max_ms,
        metadata_max_age_ms=config.metadata_max_age_ms,
    )
    return FetchCore(settings, jittered)


def decoding_of(
    config: ConsumerConfig,
    key_deserializer: Deserializer | None,
    value_deserializer: Deserializer | None,
) -> Decoding:
    """Build the deserializers of fetched records. Raises ``ConfigError``."""
    return Decoding(
        config.check_crcs,
        checked_deserializer(key_deserializer, "key_deserializer"),
        checked_deserializer(value_deserializer, "value_deserializer"),
        decompressed_bytes_max=config.max_decompressed_batch_bytes,
    )


def _committer_core(config: ConsumerConfig, tracker: OffsetTracker) -> CommitterCore:
    """Build the core that decides when and what to commit."""
    settings = CommitterSettings(
        auto_commit_interval_ms=config.commit_interval_ms,
        request_timeout_ms=config.request_timeout_ms,
        retry_backoff_ms=config.retry_backoff_ms,
        retry_backoff_max_ms=config.retry_backoff_max_ms,
    )
    return CommitterCore(settings, tracker, jittered)


def _member_core(
    config: ConsumerConfig, member_id: MemberId, offer: tuple[OfferedAssignor, ...]
) -> MemberCore:
    """Build the core of the membership."""
    settings = MemberSettings(
        instance_id=config.group_instance_id,
        rack_id=config.client_rack,
        server_assignor=config.group_remote_assignor,
        client_assignors=offer,
        max_poll_interval_ms=config.poll_interval_ms,
        auto_commit=config.enable_auto_commit,
        request_timeout_ms=config.request_timeout_ms,
        retry_backoff_ms=config.retry_backoff_ms,
        retry_backoff_max_ms=config.retry_backoff_max_ms,
        extra_heartbeats=config.extra_heartbeats,
    )
    return MemberCore(settings, member_id, jittered)


def group_core(
    config: ConsumerConfig,
    member_id: MemberId,
    tracker: OffsetTracker,
    newest_id: Callable[[str], TopicId | None],
    read_id: Callable[[TopicPartition], TopicId | None],
    offer: tuple[OfferedAssignor, ...] = (),
) -> GroupCore:
    """Build the core for everything about the group. ``offer``: the initial metadata of its
    client-side assignors."""
    base_ms, cap_ms = config.retry_backoff_ms, config.retry_backoff_max_ms
    return GroupCore(
        _member_core(config, member_id, offer),
        _committer_core(config, tracker),
        newest_id,
        read_id,
        lambda failures: backoff_ms(failures, base_ms, cap_ms, jittered),
        ComputingSettings(
            rebalance_timeout_ms=config.poll_interval_ms,
            assignor_timeout_ms=config.callback_timeout_ms,
            request_timeout_ms=config.request_timeout_ms,
        ),
    )
