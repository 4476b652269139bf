"""The opaque bytes of the classic protocol in groups of Connect workers.

Consumers embed ``UserData`` that only their assignor can read. The bytes of workers have a known
encoding with versions 0 to 2 (``kip848_client.core.connect``), which workers of the new protocol
use as well. So the coordinator translates, and nothing is sent in version -1.

Classic rounds differ in two ways. A worker does not get its whole assignment but the items to start
and to stop, in addition to those that it reported. And tasks have no generations: those that a
group brings along have the generation ``BROUGHT``, until a target sets the real one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kip848_client.core.connect import (
    ITSELF,
    NO_ITEMS,
    ConnectorTaskId,
    ConnectProtocol,
    Items,
    OwnedItems,
    WorkerAssignment,
    WorkerMetadata,
    connector_of,
    resource_of,
)
from kip848_client.core.types import TopicId
from kip848_client.errors import WireError
from mock_coordinator.core.groups.records.assignor_values import AssignmentMetadata
from mock_coordinator.core.groups.records.state_records import ClassicProtocol

__all__ = [
    "BROUGHT",
    "Spoken",
    "as_resources",
    "assignment_for",
    "plain_items",
    "said_to",
    "spoken",
    "under_known_names",
]

BROUGHT: Final = 0x7FFF_FFFF
"""The generation of tasks that no target has named yet."""

_KNOWN: Final = {each.group_protocol: each for each in ConnectProtocol}
_NOTHING_SAID: Final = WorkerAssignment()


@dataclass(frozen=True, slots=True)
class Spoken:
    """What a worker says in the protocol that it likes best of those that are known."""

    protocol: ConnectProtocol
    raw: bytes
    metadata: WorkerMetadata

    @property
    def allocation(self) -> Items:
        """What it runs, by its own word."""
        allocation = self.metadata.allocation
        return NO_ITEMS if allocation is None else allocation.assigned or NO_ITEMS


def spoken(protocols: Iterable[ClassicProtocol]) -> Spoken:
    """Read what a worker offers. Raises ``WireError`` when it offers no protocol of Kafka Connect,
    or in bytes that cannot be read."""
    for offered in protocols:
        protocol = _KNOWN.get(offered.name)
        if protocol is not None:
            metadata = WorkerMetadata.decode(offered.metadata, version=protocol)
            return Spoken(protocol, offered.metadata, metadata)
    raise WireError(f"no protocol of Connect workers is offered, known are {', '.join(_KNOWN)}")


def plain_items(held: Iterable[Mapping[TopicId, Iterable[int]]]) -> Items:
    """Items without their generations, each once and in order."""
    keys: set[tuple[str, int]] = set()
    for resources in held:
        for resource, parts in resources.items():
            connector, _ = connector_of(resource)
            keys.update((connector, part) for part in parts)
    return Items(
        tuple(sorted(name for name, part in keys if part == ITSELF)),
        tuple(ConnectorTaskId(*key) for key in sorted(keys) if key[1] != ITSELF),
    )


def as_resources(items: Items) -> dict[TopicId, tuple[int, ...]]:
    """What a classic worker has, in the words of a Connect group."""
    found = {resource_of(name, ITSELF): (ITSELF,) for name in sorted(set(items.connectors))}
    tasks: dict[TopicId, set[int]] = {}
    for connector, task in items.tasks:
        tasks.setdefault(resource_of(connector, BROUGHT), set()).add(task)
    return found | {resource: tuple(sorted(tasks[resource])) for resource in sorted(tasks)}


def under_known_names(
    items: Items, held: Iterable[Mapping[TopicId, Iterable[int]]]
) -> tuple[OwnedItems, ...]:
    """What a worker reports, in the generations in which the coordinator knows it to have it.
    Anything else is nothing that the group has given it."""
    keys = {(name, ITSELF) for name in items.connectors} | {(a, b) for a, b in items.tasks}
    return tuple(
        OwnedItems(resource, tuple(parts))
        for resources in held
        for resource, numbers in resources.items()
        if (parts := [each for each in numbers if (connector_of(resource)[0], each) in keys])
    )


def said_to(version: int, assignment: WorkerAssignment) -> AssignmentMetadata:
    """Who leads, and by which configuration, without the items: the metadata of a target."""
    said = WorkerAssignment(
        leader=assignment.leader,
        leader_url=assignment.leader_url,
        config_offset=assignment.config_offset,
        assigned=None if version else NO_ITEMS,
        revoked=None,
        version=version,
    )
    return AssignmentMetadata(version, said.encode())


def assignment_for(
    worker: Spoken, assigned: Mapping[TopicId, Iterable[int]], said: AssignmentMetadata
) -> bytes:
    """The SyncGroup assignment of a worker that may have ``assigned`` now. ``said`` is the message
    for it from the worker that computed. Its delay is left out, because the latter worker
    computes again in time. Raises ``WireError`` for what does not fit into the encoding."""
    try:
        told = WorkerAssignment.decode(said.data) if said.data else None
    except WireError:  # an assignor of your own, which says something else
        told = None
    known = _NOTHING_SAID if told is None else told
    has, may_have = worker.allocation, plain_items([assigned])
    incremental = worker.protocol.is_incremental
    return WorkerAssignment(
        leader=known.leader,
        leader_url=known.leader_url,
        config_offset=worker.metadata.config_offset if told is None else told.config_offset,
        assigned=_without(may_have, has) if incremental else may_have,
        revoked=_without(has, may_have) if incremental else None,
        version=worker.protocol,
    ).encode()


def _without(items: Items, gone: Items) -> Items:
    connectors, tasks = frozenset(gone.connectors), frozenset(gone.tasks)
    return Items(
        tuple(sorted(each for each in set(items.connectors) if each not in connectors)),
        tuple(sorted(each for each in set(items.tasks) if each not in tasks)),
    )
