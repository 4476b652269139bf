"""The settings of a worker, checked: names and defaults are Kafka Connect's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import Field, field_validator

from kip848_client.config._assignors import checked_connect_assignors
from kip848_client.config._client import ClientConfig, ClientSettings, Int32, WireText
from kip848_client.connect import ConnectAssignor

__all__ = ["WorkerConfig", "WorkerOptions"]


class WorkerOptions(ClientSettings, total=False):
    """The keyword arguments of ``Worker``, for type checkers; see ``WorkerConfig``."""

    group_id: str
    group_instance_id: str | None
    rest_advertised_url: str
    assignors: Sequence[ConnectAssignor]
    rebalance_timeout_ms: int
    session_timeout_ms: int
    task_shutdown_graceful_timeout_ms: int


class WorkerConfig(ClientConfig):
    """All settings of a worker. Frozen. Times in milliseconds."""

    group_id: WireText = Field(min_length=1)
    """The group of workers that share what is configured (``group.id``)."""
    group_instance_id: WireText | None = None
    """Makes the worker a static member: it may go and come back, and nothing moves meanwhile."""
    rest_advertised_url: WireText = ""
    """Where the others reach this worker. A worker that comes back under the same one gets its own
    items back at once."""
    assignors: tuple[Any, ...] = ()
    """``ConnectAssignor``s, the preferred one first; none for the incremental cooperative one."""
    rebalance_timeout_ms: Int32 = Field(60_000, ge=1)
    """What the coordinator gives a worker to stop what it has lost, and to compute."""
    session_timeout_ms: Int32 = Field(45_000, ge=1)
    """The broker's ``group.consumer.session.timeout.ms``. A worker that cannot reach the
    coordinator stops what it runs before others may start it."""
    task_shutdown_graceful_timeout_ms: Int32 = Field(5_000, ge=1)
    """What the listener gets to stop items; then it is cancelled."""

    @field_validator("assignors", mode="before")
    @classmethod
    def _are_assignors(cls, value: object) -> object:
        return checked_connect_assignors(value)
