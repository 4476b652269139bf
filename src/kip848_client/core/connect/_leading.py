"""The leader's work after JoinGroup in a classic group of workers: agree on a configuration,
compute a round, and encode it for SyncGroup."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kip848_client.core.connect._eager import eager_round
from kip848_client.core.connect._encoding import CONFIG_MISMATCH, WorkerAssignment, WorkerMetadata
from kip848_client.core.connect._items import NO_ITEMS, Items
from kip848_client.core.connect._protocols import ConnectProtocol
from kip848_client.core.connect._rounds import RoundMemory, incremental_round
from kip848_client.errors import WireError

__all__ = ["Configuration", "Leader", "Led", "lead"]


@dataclass(frozen=True, slots=True)
class Configuration:
    """The configuration that the leader has read, up to ``offset``."""

    offset: int
    connectors: Mapping[str, int]
    """Every connector, with its number of tasks."""
    is_fresh: bool = False
    """Whether it was read to the end after the workers had joined."""


@dataclass(frozen=True, slots=True)
class Leader:
    """The leader and its mode."""

    member_id: str
    url: str
    protocol: ConnectProtocol
    """The protocol that the group has agreed on."""
    max_delay_ms: int = 300_000
    java_order: bool = True


@dataclass(frozen=True, slots=True)
class Led:
    """The assignments of all members, by member id, and the memory for the next round."""

    assignments: Mapping[str, bytes]
    runs: Mapping[str, Items]
    """Each worker's items after the round."""
    memory: RoundMemory
    error: int = 0
    """0 or ``CONFIG_MISMATCH``."""
    unreadable: Mapping[str, WireError] = field(default_factory=dict[str, WireError])
    """Members whose metadata cannot be read, with the error."""


def lead(
    members: Mapping[str, bytes],
    configuration: Configuration,
    memory: RoundMemory,
    leader: Leader,
    *,
    now_ms: int,
    completed: int,
    generation: int,
) -> Led | None:
    """Compute the round ``generation`` of a group with these members' metadata.

    Returns ``None`` if a member has read more of the configuration than the leader: read it to the
    end and call again, with ``is_fresh``. If the leader is still behind then, all members get
    ``CONFIG_MISMATCH``, read on and rejoin. A member whose metadata cannot be read gets an empty
    assignment and takes no part in the round: the items it runs count as lost.
    """
    said, unreadable = _read(members)
    wanted = max((each.config_offset for each in said.values()), default=configuration.offset)
    if configuration.offset < wanted:
        if not configuration.is_fresh:
            return None
        told = {each: _told(leader, wanted, error=CONFIG_MISMATCH) for each in members}
        return Led(told, {}, memory, CONFIG_MISMATCH, unreadable)
    offset = configuration.offset if configuration.is_fresh else wanted
    told = {each: _told(leader, offset) for each in members}
    if not leader.protocol.is_incremental:
        runs = eager_round(configuration.connectors, said)
        told |= {each: _told(leader, offset, items) for each, items in runs.items()}
        return Led(told, runs, RoundMemory(), unreadable=unreadable)
    done = incremental_round(
        configuration.connectors,
        {each: _reported(read) for each, read in said.items()},
        memory,
        now_ms=now_ms,
        completed=completed,
        generation=generation,
        max_delay_ms=leader.max_delay_ms,
        java_order=leader.java_order,
    )
    told |= {
        each: _told(leader, offset, row.start, row.stop, done.delay_ms)
        for each, row in done.workers.items()
    }
    runs = {each: row.runs for each, row in done.workers.items()}
    return Led(told, runs, done.memory, unreadable=unreadable)


def _read(
    members: Mapping[str, bytes],
) -> tuple[dict[str, WorkerMetadata], dict[str, WireError]]:
    said: dict[str, WorkerMetadata] = {}
    unreadable: dict[str, WireError] = {}
    for each, raw in members.items():
        try:
            said[each] = WorkerMetadata.decode(raw)
        except WireError as err:
            unreadable[each] = err
    return said, unreadable


def _reported(said: WorkerMetadata) -> Items:
    return NO_ITEMS if said.allocation is None else said.allocation.assigned or NO_ITEMS


def _told(
    leader: Leader,
    offset: int,
    start: Items = NO_ITEMS,
    stop: Items = NO_ITEMS,
    delay_ms: int = 0,
    *,
    error: int = 0,
) -> bytes:
    return WorkerAssignment(
        leader=leader.member_id,
        leader_url=leader.url,
        config_offset=offset,
        assigned=start,
        revoked=stop,
        delay_ms=delay_ms,
        error=error,
        version=leader.protocol,
    ).encode()
