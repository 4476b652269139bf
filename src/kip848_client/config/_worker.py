"""The settings of a worker, checked: names and defaults are Kafka Connect's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field, field_validator

from kip848_client.config._assignors import checked_connect_assignors
from kip848_client.config._client import Int32, WireText
from kip848_client.config._metrics import MeasuredConfig, MeasuredSettings
from kip848_client.core.connect import ConnectAssignor

__all__ = ["WorkerConfig", "WorkerOptions"]


class WorkerOptions(MeasuredSettings, total=False):
    """The keyword arguments of ``Worker``, for type checkers; see ``WorkerConfig``."""

    group_id: str
    group_protocol: Literal["connect", "classic"] | None
    connect_protocol: Literal["sessioned", "compatible", "eager"]
    group_instance_id: str | None
    rest_advertised_url: str
    assignors: Sequence[ConnectAssignor]
    scheduled_rebalance_max_delay_ms: int
    rebalance_timeout_ms: int
    session_timeout_ms: int | None
    heartbeat_interval_ms: int
    worker_sync_timeout_ms: int
    worker_unsync_backoff_ms: int
    task_shutdown_graceful_timeout_ms: int


class WorkerConfig(MeasuredConfig):
    """All settings of a worker. Frozen. Times in milliseconds."""

    group_id: WireText = Field(min_length=1)
    """The group of workers that share the configured items (``group.id``)."""
    group_protocol: Literal["connect", "classic"] | None = None
    """`connect` is the draft based on KIP-848, `classic` the protocol of Kafka Connect, for groups
    with Java workers. `None`: the one that the broker offers. A protocol that the broker does not
    offer is refused."""
    connect_protocol: Literal["sessioned", "compatible", "eager"] = "sessioned"
    """Classic protocol: the newest embedded protocol; older ones are also offered."""
    group_instance_id: WireText | None = None
    """Makes the worker a static member: it can leave and come back without moving items. Not with
    the classic protocol.
    """
    rest_advertised_url: WireText = ""
    """The URL at which other workers reach this one. A worker that comes back with the same URL
    gets its items back at once.
    """
    assignors: tuple[Any, ...] = ()
    """``ConnectAssignor``s, the preferred one first; empty: the incremental cooperative one."""
    scheduled_rebalance_max_delay_ms: Int32 = Field(300_000, ge=0)
    """How long the items of a departed worker wait for its return; with 0, other workers get them
    at once. The computing worker applies its own value, on both protocols, so use the same value
    everywhere. An assignor that was created with a delay keeps its own."""
    rebalance_timeout_ms: Int32 = Field(60_000, ge=1)
    """The coordinator's time limit for stopping revoked items and for computing."""
    session_timeout_ms: Int32 | None = Field(None, ge=1)
    """A worker that cannot reach the coordinator for this time stops its items before other workers
    may start them. With the classic protocol it is sent to the coordinator (default 10000);
    otherwise the default is the broker's ``group.consumer.session.timeout.ms`` (45000).
    """
    heartbeat_interval_ms: Int32 = Field(3_000, ge=1)
    """Classic protocol only; otherwise the broker sets it."""
    worker_sync_timeout_ms: Int32 = Field(3_000, ge=1)
    """Classic protocol: how long a leader waits for a newer configuration that another worker has;
    then it leaves, so that another worker leads.
    """
    worker_unsync_backoff_ms: Int32 = Field(300_000, ge=1)
    """Classic protocol: how long it then stays away, unless it gets the configuration before."""
    task_shutdown_graceful_timeout_ms: Int32 = Field(5_000, ge=1)
    """The time for the listener to stop items; then it is cancelled."""

    @field_validator("assignors", mode="before")
    @classmethod
    def _are_assignors(cls, value: object) -> object:
        return checked_connect_assignors(value)
