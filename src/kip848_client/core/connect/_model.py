"""The interface of an assignor of Connect workers, with its arguments and results. This is
``ConnectAssignor`` of the Connect proposal. It is declarative: it returns the final target, and the
coordinator makes sure that an item stops at one worker before it starts at another."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from kip848_client.core.client_assignors import AssignorMetadata
from kip848_client.core.connect._encoding import WorkerMetadata
from kip848_client.core.connect._items import NO_ITEMS, Items
from kip848_client.core.empty import EMPTY
from kip848_client.errors import WireError

__all__ = [
    "AssignmentMetadata",
    "Computed",
    "ConnectAssignor",
    "GroupWorker",
    "NewWorkerAssignment",
    "TargetAssignment",
    "WorkerGroup",
    "group_worker",
]


@dataclass(frozen=True, slots=True)
class GroupWorker:
    """One worker, as the assignor sees it.

    Attributes:
        member_epoch: The member's epoch.
        instance_id: ``group.instance.id`` of a static member, else ``None``.
    """

    member_epoch: int = 0
    target: Items = NO_ITEMS
    """What the last assignment assigned to it, whether it runs that yet or not."""
    metadata: AssignorMetadata = field(default_factory=AssignorMetadata)
    """The metadata of its assignor, besides the next two fields."""
    url: str | None = None
    """The URL where it can be reached; ``None`` if its metadata cannot be read."""
    config_offset: int | None = None
    """The config offset up to which it has read; ``None`` if its metadata cannot be read."""
    instance_id: str | None = None

    @property
    def identity(self) -> tuple[str, str] | None:
        """Identifies the worker when it returns as another member."""
        if self.instance_id is not None:
            return "instance", self.instance_id
        return None if self.url is None else ("url", self.url)


def group_worker(
    member_epoch: int,
    target: Items,
    said: AssignorMetadata,
    *,
    instance_id: str | None = None,
) -> GroupWorker:
    """A worker as the coordinator describes it. One whose metadata cannot be read takes part
    without a url and an offset, so that it does not block the others."""
    try:
        read = WorkerMetadata.decode(said.data, version=said.version)
    except WireError:
        return GroupWorker(member_epoch, target, said, instance_id=instance_id)
    more = AssignorMetadata(read.data, said.version, said.reason)
    return GroupWorker(member_epoch, target, more, read.url, read.config_offset, instance_id)


@dataclass(frozen=True, slots=True)
class WorkerGroup:
    """The group at one group epoch, and the items to distribute.

    Attributes:
        group_epoch: The epoch.
        workers: The workers by member id.
    """

    group_epoch: int
    workers: Mapping[str, GroupWorker]
    connectors: Mapping[str, int]
    """Every configured connector with its number of tasks, as the computing worker has read the
    configuration. The coordinator does not know it."""
    now_ms: int = 0
    """The clock of the computing worker; only differences are meaningful."""
    deferred: Items = NO_ITEMS
    """The items that the last assignment kept for workers that may return."""
    remaining_delay_ms: int = 0
    """The rest of the delay announced with the last assignment, for a worker that computes for the
    first time."""
    scheduled_rebalance_max_delay_ms: int = 300_000
    """The computing worker's setting: how long items wait for a departed worker (ms)."""


@dataclass(frozen=True, slots=True)
class AssignmentMetadata:
    """An assignor's metadata for one worker (``MemberAssignment`` of the draft).

    Attributes:
        data: At most a million bytes; needs version 1 or later.
        version: The format of ``data``. ``None``: the version of the worker's own metadata, which
            the worker can read.
        error: The assignor's own number, 1 to 127, for this worker only, which keeps running its
            items; 0 for none.
    """

    data: bytes = b""
    version: int | None = None
    error: int = 0


@dataclass(frozen=True, slots=True)
class TargetAssignment:
    """What the group is to run in the end.

    Attributes:
        workers: Items by member id. Every item of every connector must be in it once, or in
            ``deferred``. A worker that is left out gets no items.
        error: The assignor's own number, 1 to 127: every worker keeps its items, and its
            ``on_assignment`` receives the number. 0 for none.
    """

    workers: Mapping[str, Items] = EMPTY
    deferred: Items = NO_ITEMS
    """Items that run nowhere for now."""
    delay_ms: int = 0
    """In how many milliseconds to compute the group again; 0: not before a change."""
    error: int = 0
    metadata: Mapping[str, AssignmentMetadata] = EMPTY
    """Metadata for individual workers, which they receive in ``on_assignment``."""


class Computed(NamedTuple):
    """What ``assign`` returns.

    Attributes:
        target: The target of the group.
    """

    target: TargetAssignment
    memory: object = None
    """Passed to the next call, once this target is installed. Must be immutable."""


@dataclass(frozen=True, slots=True)
class NewWorkerAssignment:
    """The argument of ``on_assignment``, which is called for each new assignment.

    Attributes:
        member_epoch: The member epoch of the assignment.
        items: The items that this worker is to run now. Items that still run elsewhere follow in a
            later call.
        delay_ms: In how many milliseconds the group is computed again; 0: not before a change.
    """

    member_epoch: int
    items: Items
    delay_ms: int
    error: int
    """The assignor's own number, or ``ASSIGNOR_FAILED``; 0 for none. Either the error of the whole
    target, with which every worker keeps its items, or the error for this worker."""
    data: bytes = b""
    """The assignor's data for this worker."""
    version: int = 0
    """The version of the format of ``data``."""
    member_id: str = ""
    """The id of this worker, for an assignor object shared by several workers."""


class ConnectAssignor(Protocol):
    """Computes which worker runs what, in one worker for the whole group.

    The workers vote by the order in which they offer assignors. The coordinator picks a computing
    worker that can read the versions of all, and keeps it as long as possible, because that worker
    has the memory.
    """

    @property
    def name(self) -> str:
        """The name under which workers offer it; not empty, and the same in all of them."""
        ...

    @property
    def minimum_version(self) -> int:
        """The lowest version of metadata that it reads.

        0 for the eager encoding, 1 and 2 for the incremental ones, more for custom ones.
        """
        ...

    @property
    def maximum_version(self) -> int:
        """The highest version of metadata that it reads."""
        ...

    def metadata(self) -> AssignorMetadata:
        """Return this worker's metadata for the assignor, besides url and config offset.

        ``data`` is encoded after those, from version 1 on. Called when the worker is created, and
        by ``Worker.rebalance``, which asks for a new assignment with the result and its ``reason``.

        Returns:
            The metadata that the computing worker gets as ``GroupWorker.metadata``.

        Raises:
            Exception: Any error that your method raises; ``Worker`` and ``Worker.rebalance`` raise
                ``ConfigError``.
        """
        ...

    def assign(self, group: WorkerGroup, memory: object) -> Computed | Awaitable[Computed]:
        """Compute the target of the group.

        The same arguments must give the same result: the time is in ``group``, and randomness is
        not allowed.

        Args:
            group: The workers and the items to distribute.
            memory: The memory returned by the last call whose target was installed. ``None`` in a
                worker that computes for the first time since it joined, or since another worker
                computed.

        Returns:
            The target and the memory, or an awaitable of them.

        Raises:
            Exception: Any error that your method raises is logged, and another worker computes.
        """
        ...

    def on_assignment(self, assignment: NewWorkerAssignment) -> Awaitable[None] | None:
        """Handle this worker's new assignment.

        Called before its items are stopped and started, which wait for it. It has the same time
        limit as stopping items.

        Args:
            assignment: The items, and the assignor's data for this worker.

        Returns:
            ``None``, or an awaitable that is awaited.

        Raises:
            Exception: Any error that your method raises is logged.
        """
        ...
