"""What a worker's membership knows: its settings, and the items that it is assigned."""

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
    """A connector (``task`` is ``ITSELF``, and there is no generation) or one of its tasks.

    The ``generation`` counts how often the tasks of the connector were configured anew: the same
    task of another generation is another item, and the one is stopped before the other is started.
    """

    connector: str
    task: int = ITSELF
    generation: int = ITSELF

    def __str__(self) -> str:
        return item_name(self.connector, self.task)


@dataclass(frozen=True, slots=True)
class ConnectorTasks:
    """The tasks of a connector, as they are configured."""

    count: int
    generation: int = 0
    """How often they were configured anew."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """What there is to run, as far as a worker has read it."""

    offset: int = -1
    """Which configuration this is; a later one has a higher offset."""
    connectors: Mapping[str, ConnectorTasks] = EMPTY


@dataclass(frozen=True, slots=True)
class PreparedWorkers:
    """The group at one group epoch: what the coordinator gave to the worker that computes."""

    group_epoch: int
    assignor: str
    workers: Mapping[str, GroupWorker]
    deferred: Items


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """What one worker shall run, and what it is told with it."""

    member_id: str
    items: tuple[AssignedItem, ...]
    version: int
    said: bytes
    error: int = 0


@dataclass(frozen=True, slots=True)
class InstallableTarget:
    """A target that the coordinator can take; no rows with an error."""

    rows: tuple[WorkerRow, ...] = ()
    deferred: tuple[AssignedItem, ...] = ()
    error: int = 0
    memory: object = None
    """What the assignor is given back with the next group, once this is installed."""


@dataclass(frozen=True, slots=True)
class AssignorVersions:
    """An assignor that this worker can run."""

    name: str
    minimum_version: int
    maximum_version: int
    said: AssignorMetadata | None = None
    """What this worker says to it, beside its url and its place in the configuration; ``None`` for
    nothing, in the newest version that the assignor knows."""

    @property
    def version(self) -> int:
        """Of what this worker writes."""
        return self.maximum_version if self.said is None else self.said.version

    @property
    def data(self) -> bytes:
        """What follows url and place."""
        return b"" if self.said is None else bytes(self.said.data)

    @property
    def own_reason(self) -> int:
        """This assignor's reason when its worker asks for a new assignment; 0 for none."""
        return 0 if self.said is None else self.said.reason


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What the membership needs to know of the worker's configuration. All times in milliseconds;
    the defaults are Kafka Connect's where it has the setting."""

    url: str
    """Where the other workers reach this one (``rest.advertised.*``)."""
    assignors: tuple[AssignorVersions, ...]
    """The preferred one first; at least one."""
    instance_id: str | None = None
    """``group.instance.id``; makes the member static."""
    rebalance_timeout_ms: int = 60_000
    """``rebalance.timeout.ms``: what the coordinator gives a worker to stop what it has lost, and
    to compute an assignment."""
    scheduled_rebalance_max_delay_ms: int = 300_000
    """``scheduled.rebalance.max.delay.ms``: how long the items of a lost worker wait for it."""
    session_timeout_ms: int = 45_000
    """The broker's ``group.consumer.session.timeout.ms``: so long after the last heartbeat that was
    accepted others may run what this worker runs."""
    task_shutdown_graceful_timeout_ms: int = 5_000
    """``task.shutdown.graceful.timeout.ms``: what it takes to stop. So long before the end of its
    session a worker that cannot reach the coordinator begins to stop."""
    request_timeout_ms: int = 40_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000

    def of_member(self) -> MemberSettings:
        """The same for the member core. A worker has no offsets to commit and is not polled."""
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
