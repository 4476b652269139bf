"""The history of group members: events of one schema, and tables computed from them.

``kip848_client.history.recording`` writes and reads events, ``tables_of`` computes the tables,
``kip848 report`` draws them, and ``kip848_client.spark.history`` has the same tables in SQL.
"""

from __future__ import annotations

from kip848_client.history.core import (
    FIELDS,
    KINDS,
    SCHEMA,
    SLA_MS,
    TABLES,
    HeartbeatSla,
    HistoryEvent,
    PartitionDowntime,
    RebalanceDuration,
    Tables,
    ZombieCommit,
    heartbeat_sla,
    partition_downtime,
    rebalance_duration,
    tables_of,
    zombie_commits,
)

__all__ = [
    "FIELDS",
    "KINDS",
    "SCHEMA",
    "SLA_MS",
    "TABLES",
    "HeartbeatSla",
    "HistoryEvent",
    "PartitionDowntime",
    "RebalanceDuration",
    "Tables",
    "ZombieCommit",
    "heartbeat_sla",
    "partition_downtime",
    "rebalance_duration",
    "tables_of",
    "zombie_commits",
]
