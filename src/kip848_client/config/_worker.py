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
    """The group of workers that share what is configured (``group.id``)."""
    group_protocol: Literal["connect", "classic"] | None = None
    """`connect` is the draft on the protocol of KIP-848, `classic` the one of Kafka Connect, beside
    Java workers. Without it, what the broker offers; one that it does not offer is refused."""
    connect_protocol: Literal["sessioned", "compatible", "eager"] = "sessioned"
    """Of the classic protocol: the newest embedded protocol; those below it are offered, too."""
    group_instance_id: WireText | None = None
    """Makes the worker a static member: it may go and come back, and nothing moves meanwhile. Not
    with the classic protocol."""
    rest_advertised_url: WireText = ""
    """Where the others reach this worker. A worker that comes back under the same one gets its own
    items back at once."""
    assignors: tuple[Any, ...] = ()
    """``ConnectAssignor``s, the preferred one first; none for the incremental cooperative one."""
    scheduled_rebalance_max_delay_ms: Int32 = Field(300_000, ge=0)
    """How long the items of a departed worker wait for its return; with 0, other workers get them
    at once. The computing worker applies its own value, on both protocols, so use the same value
    everywhere. An assignor that was created with a delay keeps its own."""
    rebalance_timeout_ms: Int32 = Field(60_000, ge=1)
    """What the coordinator gives a worker to stop what it has lost, and to compute."""
    session_timeout_ms: Int32 | None = Field(None, ge=1)
    """A worker that cannot reach the coordinator for so long stops what it runs before others may
    start it. With the classic protocol the coordinator is told (10000 if it is not set), else it is
    the broker's ``group.consumer.session.timeout.ms`` (45000)."""
    heartbeat_interval_ms: Int32 = Field(3_000, ge=1)
    """Of the classic protocol; else the broker tells."""
    worker_sync_timeout_ms: Int32 = Field(3_000, ge=1)
    """Of the classic protocol: how long a worker that leads waits to be told the configuration that
    another one knows; then it leaves, so that another leads."""
    worker_unsync_backoff_ms: Int32 = Field(300_000, ge=1)
    """And how long it stays away, if it is not told before."""
    task_shutdown_graceful_timeout_ms: Int32 = Field(5_000, ge=1)
    """What the listener gets to stop items; then it is cancelled."""

    @field_validator("assignors", mode="before")
    @classmethod
    def _are_assignors(cls, value: object) -> object:
        return checked_connect_assignors(value)
