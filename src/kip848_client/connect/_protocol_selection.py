"""Selects a worker's group protocol, as set by the user or offered by the broker, and its
settings."""

from __future__ import annotations

import enum
from typing import Final

from kip848_client.config import WorkerConfig
from kip848_client.connect._requests import unsupported
from kip848_client.connect.core._classic_model import ClassicWorkerSettings
from kip848_client.connect.core._model import AssignorVersions, WorkerSettings
from kip848_client.core.connect import (
    ConnectProtocol,
    EagerAssignor,
    IncrementalCooperativeAssignor,
)
from kip848_client.core.wire import api_named
from kip848_client.errors import ConfigError, ProtocolUnsupported
from kip848_client.runtime.net._links import Link

__all__ = ["GroupProtocol", "chosen_protocol", "classic_settings", "connect_settings"]

_CONNECT: Final = api_named("ConnectGroupHeartbeat")
_CLASSIC: Final = api_named("JoinGroup")
_CLASSIC_VERSION: Final = 5
_CONNECT_SESSION_MS: Final = 45_000
_CLASSIC_SESSION_MS: Final = 10_000


class GroupProtocol(enum.Enum):
    """``group.protocol``."""

    CONNECT = "connect"
    """The draft of Connect on the KIP-848 protocol."""
    CLASSIC = "classic"
    """JoinGroup and SyncGroup, with the protocol type ``connect``."""


def chosen_protocol(config: WorkerConfig, link: Link) -> GroupProtocol:
    """The protocol set by the user, or else the newest one that the broker offers. Raises
    ``ProtocolUnsupported`` if the broker does not offer it, and ``ConfigError`` for settings that
    the classic protocol does not support."""
    where = f"broker {link.host}:{link.port}"
    offers_connect = _CONNECT.key in link.offered
    named = None if config.group_protocol is None else GroupProtocol(config.group_protocol)
    if named is GroupProtocol.CONNECT or (named is None and offers_connect):
        if not offers_connect:
            raise unsupported(where)
        return GroupProtocol.CONNECT
    offered = link.offered.get(_CLASSIC.key)
    if offered is None or offered[1] < _CLASSIC_VERSION:
        has = "does not offer it" if offered is None else f"offers v{offered[0]} to v{offered[1]}"
        raise ProtocolUnsupported(
            35,
            "UNSUPPORTED_VERSION",
            f"{where} {has}; workers need v{_CLASSIC_VERSION}",
            api=f"JoinGroup (API key {_CLASSIC.key})",
            hint="use Apache Kafka 4.0 or newer with 'classic' in "
            "group.coordinator.rebalance.protocols",
        )
    _require_what_classic_can(config, where, by_the_offer=named is None)
    return GroupProtocol.CLASSIC


def _require_what_classic_can(config: WorkerConfig, where: str, *, by_the_offer: bool) -> None:
    why = "group_protocol='classic'"
    if by_the_offer:
        why = f"{where} offers no groups of type connect, and the classic protocol"
    if config.group_instance_id is not None:
        raise ConfigError(
            f"group_instance_id = {config.group_instance_id!r}: {why} has no static workers, as in "
            "Kafka Connect; leave it away"
        )
    for each in config.assignors:
        if type(each) not in (IncrementalCooperativeAssignor, EagerAssignor):
            raise ConfigError(
                f"assignors: {why} has Kafka's own two assignors only, and not {each.name!r}; "
                "leave it away, or use a broker with groups of type connect"
            )


def connect_settings(config: WorkerConfig, offers: tuple[AssignorVersions, ...]) -> WorkerSettings:
    """The settings of a group of type connect."""
    return WorkerSettings(
        url=config.rest_advertised_url,
        assignors=offers,
        instance_id=config.group_instance_id,
        rebalance_timeout_ms=config.rebalance_timeout_ms,
        scheduled_rebalance_max_delay_ms=config.scheduled_rebalance_max_delay_ms,
        session_timeout_ms=config.session_timeout_ms or _CONNECT_SESSION_MS,
        task_shutdown_graceful_timeout_ms=config.task_shutdown_graceful_timeout_ms,
        request_timeout_ms=config.request_timeout_ms,
        retry_backoff_ms=config.retry_backoff_ms,
        retry_backoff_max_ms=config.retry_backoff_max_ms,
    )


def classic_settings(config: WorkerConfig) -> ClassicWorkerSettings:
    """The settings of a classic group. The delay of an incremental assignor, if set, takes
    precedence. A worker with only the eager assignor offers no other protocol."""
    delays = [
        each.scheduled_rebalance_max_delay_ms
        for each in config.assignors
        if isinstance(each, IncrementalCooperativeAssignor)
    ]
    protocol = ConnectProtocol[config.connect_protocol.upper()]
    if config.assignors and not delays:
        protocol = ConnectProtocol.EAGER
    delay_ms = next((each for each in delays if each is not None), None)
    if delay_ms is None:
        delay_ms = config.scheduled_rebalance_max_delay_ms
    return ClassicWorkerSettings(
        url=config.rest_advertised_url,
        connect_protocol=protocol,
        session_timeout_ms=config.session_timeout_ms or _CLASSIC_SESSION_MS,
        heartbeat_interval_ms=config.heartbeat_interval_ms,
        rebalance_timeout_ms=config.rebalance_timeout_ms,
        scheduled_rebalance_max_delay_ms=delay_ms,
        worker_sync_timeout_ms=config.worker_sync_timeout_ms,
        worker_unsync_backoff_ms=config.worker_unsync_backoff_ms,
        task_shutdown_graceful_timeout_ms=config.task_shutdown_graceful_timeout_ms,
        request_timeout_ms=config.request_timeout_ms,
        retry_backoff_ms=config.retry_backoff_ms,
        retry_backoff_max_ms=config.retry_backoff_max_ms,
    )
