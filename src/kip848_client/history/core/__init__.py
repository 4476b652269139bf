"""The history of groups: what happened to their members, as events of one schema, and four tables
that are computed from them. Pure.

Members and the bundled coordinator write events as lines of JSON
(``kip848_client.history.recording``). ``_schema`` defines their fields, ``_lines`` parses them,
``_clocks`` corrects the clocks of several hosts, ``_ownership`` finds the owners of partitions over
time, and one module per table computes the rest. ``kip848 report`` draws the tables.
``kip848_client.spark.history`` has the same tables in SQL.
"""

from __future__ import annotations

from kip848_client.history.core._clocks import offsets_of_clocks, on_one_clock
from kip848_client.history.core._downtime import Gap, PartitionDowntime, gaps_of, partition_downtime
from kip848_client.history.core._event import HistoryEvent
from kip848_client.history.core._heartbeats import HeartbeatSla, heartbeat_sla
from kip848_client.history.core._lines import LINE_BYTES_MAX, BadLine, line_of, parse_line
from kip848_client.history.core._ownership import Tenure, tenures
from kip848_client.history.core._rebalances import RebalanceDuration, rebalance_duration
from kip848_client.history.core._schema import (
    COORDINATOR,
    FIELDS,
    KINDS,
    SCHEMA,
    TABLES,
    Column,
    Field,
    Kind,
    Role,
)
from kip848_client.history.core._tables import SLA_MS, Tables, tables_of
from kip848_client.history.core._zombies import ZombieCommit, zombie_commits

__all__ = [
    "COORDINATOR",
    "FIELDS",
    "KINDS",
    "LINE_BYTES_MAX",
    "SCHEMA",
    "SLA_MS",
    "TABLES",
    "BadLine",
    "Column",
    "Field",
    "Gap",
    "HeartbeatSla",
    "HistoryEvent",
    "Kind",
    "PartitionDowntime",
    "RebalanceDuration",
    "Role",
    "Tables",
    "Tenure",
    "ZombieCommit",
    "gaps_of",
    "heartbeat_sla",
    "line_of",
    "offsets_of_clocks",
    "on_one_clock",
    "parse_line",
    "partition_downtime",
    "rebalance_duration",
    "tables_of",
    "tenures",
    "zombie_commits",
]
