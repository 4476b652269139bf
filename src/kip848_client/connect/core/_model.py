"""The data types of a worker's membership: its settings, and its assigned items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kip848_client.core.connect import ITSELF, AssignorMetadata, GroupWorker, Items, item_name
from kip848_client.core.empty import EMPTY
from kip848_client.core.member import MemberSettings

__all__ = [
    "AssignedItem",
    "AssignorVersions",
    "Configuration",
    "ConnectorTasks",
    "InstallableTarget",
    "PreparedWorkers",
    "WorkerRow",
    "WorkerSettings",
]


class AssignedItem(NamedTuple):
    """A connector or one of its tasks.

    The same task with another generation is another item: the old one is stopped before the new one
    is started.

    Attributes:
        connector: Name of the connector.
        task: Number of the task; -1 (``ITSELF``) for the connector itself.
        generation: How often the connector's tasks were reconfigured; -1 for the connector itself.
    """

    connector: str
    task: int = ITSELF
    generation: int = ITSELF

    def __str__(self) -> str:
        return item_name(self.connector, self.task)


@dataclass(frozen=True, slots=True)
class ConnectorTasks:
    """The configured tasks of a connector.

    Attributes:
        count: The number of tasks.
    """

    count: int
    generation: int = 0
    """How often they were reconfigured."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """The connectors and tasks to run, as far as a worker has read the configuration.

    Attributes:
        connectors: The tasks of each connector, by name.
    """

    offset: int = -1
    """The version of the configuration; newer ones have higher offsets."""
    connectors: Mapping[str, ConnectorTasks] = EMPTY


@dataclass(frozen=True, slots=True)
class PreparedWorkers:
    """The group at one group epoch, as sent to the computing worker.

    Attributes:
        group_epoch: The epoch.
        assignor: Name of the assignor to run.
        workers: The workers by member id.
        deferred: Items that the last assignment kept for workers that may return.
    """

    group_epoch: int
    assignor: str
    workers: Mapping[str, GroupWorker]
    deferred: Items


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """One worker's part of a target.

    Attributes:
        member_id: The worker.
        items: The items it is to run.
        version: The version of the encoding of ``said``.
        said: The assignor's data for it.
        error: The assignor's own number for it; 0 for none.
    """

    member_id: str
    items: tuple[AssignedItem, ...]
    version: int
    said: bytes
    error: int = 0


@dataclass(frozen=True, slots=True)
class InstallableTarget:
    """A target in the form for the coordinator.

    Attributes:
        rows: One per worker; empty if ``error`` is set.
        deferred: Items that run nowhere for now.
        error: The assignor's own number, with which every worker keeps its items; 0 for none.
    """

    rows: tuple[WorkerRow, ...] = ()
    deferred: tuple[AssignedItem, ...] = ()
    error: int = 0
    memory: object = None
    """Passed to the assignor with the next group, once this target is installed."""


@dataclass(frozen=True, slots=True)
class AssignorVersions:
    """An assignor that this worker can run.

    Attributes:
        name: Its name.
        minimum_version: The lowest version of metadata that it reads.
        maximum_version: The highest version of metadata that it reads.
    """

    name: str
    minimum_version: int
    maximum_version: int
    said: AssignorMetadata | None = None
    """This worker's metadata for it, besides url and config offset; ``None`` for none. Encoded in
    the newest version that the assignor knows."""

    @property
    def version(self) -> int:
        """The version in which this worker encodes its metadata."""
        return self.maximum_version if self.said is None else self.said.version

    @property
    def data(self) -> bytes:
        """The data after url and config offset."""
        return b"" if self.said is None else bytes(self.said.data)

    @property
    def own_reason(self) -> int:
        """This assignor's own reason when its worker requests a new assignment; 0 for none."""
        return 0 if self.said is None else self.said.reason


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """The part of a worker's configuration that its membership needs.

    All times are in milliseconds. The defaults are Kafka Connect's where it has the setting.

    Attributes:
        request_timeout_ms: How long a request may take.
        retry_backoff_ms: The pause before the first repetition.
        retry_backoff_max_ms: The longest pause.
    """

    url: str
    """The URL where other workers reach this one (``rest.advertised.*``)."""
    assignors: tuple[AssignorVersions, ...]
    """The assignors, the preferred one first; at least one."""
    instance_id: str | None = None
    """``group.instance.id``; makes the member static."""
    rebalance_timeout_ms: int = 60_000
    """``rebalance.timeout.ms``: how long the coordinator lets a worker take to stop revoked items,
    and to compute an assignment."""
    scheduled_rebalance_max_delay_ms: int = 300_000
    """``scheduled.rebalance.max.delay.ms``: how long the items of a lost worker wait for its
    return."""
    session_timeout_ms: int = 45_000
    """The broker's ``group.consumer.session.timeout.ms``: how long after the last accepted
    heartbeat other workers may run this worker's items."""
    task_shutdown_graceful_timeout_ms: int = 5_000
    """``task.shutdown.graceful.timeout.ms``: the time needed to stop. A worker that cannot reach
    the coordinator begins to stop this long before the end of its session."""
    request_timeout_ms: int = 40_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000

    def of_member(self) -> MemberSettings:
        """Convert the settings for the member core.

        A worker has no offsets to commit and is not polled.

        Returns:
            The settings of the member core. Raises nothing.
        """
        stop_after_ms = self.session_timeout_ms - self.task_shutdown_graceful_timeout_ms
        return MemberSettings(
            instance_id=self.instance_id,
            max_poll_interval_ms=self.rebalance_timeout_ms,
            auto_commit=False,
            session_timeout_ms=max(stop_after_ms, self.session_timeout_ms // 2),
            request_timeout_ms=self.request_timeout_ms,
            retry_backoff_ms=self.retry_backoff_ms,
            retry_backoff_max_ms=self.retry_backoff_max_ms,
        )
