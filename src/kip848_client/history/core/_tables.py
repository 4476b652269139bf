"""Computes all four tables from events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kip848_client.history.core._clocks import offsets_of_clocks, on_one_clock
from kip848_client.history.core._downtime import PartitionDowntime, partition_downtime
from kip848_client.history.core._event import HistoryEvent
from kip848_client.history.core._heartbeats import HeartbeatSla, heartbeat_sla
from kip848_client.history.core._ownership import Tenure, tenures
from kip848_client.history.core._rebalances import RebalanceDuration, rebalance_duration
from kip848_client.history.core._zombies import ZombieCommit, zombie_commits

__all__ = ["SLA_MS", "Tables", "tables_of"]

SLA_MS: Final = 1_000
"""The default limit for the answer to a heartbeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """Everything that is computed from events.

    Attributes:
        sla_ms: How soon a heartbeat was to be answered, in milliseconds.
        partition_downtime: How long partitions had no owner.
        heartbeat_sla: How soon heartbeats were answered.
        rebalance_duration: How long groups took from epoch to epoch.
        zombie_commits: Commits of members that no longer had the partition.
    """

    events: tuple[HistoryEvent, ...]
    """The events without duplicates, on one clock, in order of time."""
    clock_offsets: Mapping[str, int]
    """The clock corrections by host, in ms, without zeros."""
    tenures: tuple[Tenure, ...]
    """The owners of partitions over time, sorted by partition and time."""
    sla_ms: int
    partition_downtime: tuple[PartitionDowntime, ...]
    heartbeat_sla: tuple[HeartbeatSla, ...]
    rebalance_duration: tuple[RebalanceDuration, ...]
    zombie_commits: tuple[ZombieCommit, ...]


def tables_of(events: Iterable[HistoryEvent], sla_ms: int = SLA_MS) -> Tables:
    """Compute all tables. Raises nothing.

    Args:
        events: In any order; duplicates count once; of one or several groups.
        sla_ms: How soon a heartbeat is to be answered, in milliseconds.

    Returns:
        The tables, with all times on the coordinator's clock where it wrote events.
    """
    distinct = list(dict.fromkeys(events))
    offsets = offsets_of_clocks(distinct)
    ordered = on_one_clock(distinct, offsets)
    owned = tenures(ordered)
    return Tables(
        events=tuple(ordered),
        clock_offsets=offsets,
        tenures=tuple(owned),
        sla_ms=sla_ms,
        partition_downtime=tuple(partition_downtime(owned)),
        heartbeat_sla=tuple(heartbeat_sla(ordered, sla_ms)),
        rebalance_duration=tuple(rebalance_duration(ordered)),
        zombie_commits=tuple(zombie_commits(ordered, owned)),
    )
