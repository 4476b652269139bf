"""All metrics of a Connect worker, as ``rows`` has those of a consumer.

Names and groups are those of Kafka Connect's workers, where they have the metric.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Final

from kip848_client.observe.core.metrics import rows
from kip848_client.observe.core.metrics._row import GAUGE, TIMING, Row
from kip848_client.observe.core.metrics.rows import MembershipRows

__all__ = [
    "ASSIGNED_CONNECTORS",
    "ASSIGNED_TASKS",
    "CONNECTOR_COUNT",
    "ITEMS_ASSIGNED_LATENCY",
    "ITEMS_LOST_LATENCY",
    "ITEMS_REVOKED_LATENCY",
    "MEMBER",
    "TABLE",
    "TASK_COUNT",
]

_CONNECT: Final = "connect-coordinator-metrics"
_WORKER: Final = "connect-worker-metrics"

MEMBER: Final = MembershipRows(
    heartbeat=replace(rows.HEARTBEAT, group=_CONNECT),
    heartbeat_response_time=replace(rows.HEARTBEAT_RESPONSE_TIME, group=_CONNECT),
    last_heartbeat=replace(rows.LAST_HEARTBEAT, group=_CONNECT),
    rebalance=replace(
        rows.REBALANCE,
        group=_CONNECT,
        meaning="Assignments of this worker that changed and were carried out; in a classic group, "
        "rounds of the group.",
    ),
    rebalance_latency=replace(
        rows.REBALANCE_LATENCY,
        group=_CONNECT,
        meaning="From the coordinator's new target, or in a classic group from JoinGroup, until "
        "everything that had to stop has stopped.",
    ),
    failed_rebalance=replace(rows.FAILED_REBALANCE, group=_CONNECT),
    last_rebalance=replace(rows.LAST_REBALANCE, group=_CONNECT),
    member_epoch=replace(
        rows.MEMBER_EPOCH,
        group=_CONNECT,
        meaning="The member epoch, or the generation of a classic group; 0 while the worker is not "
        "in the group.",
    ),
    fenced=replace(rows.FENCED, group=_CONNECT),
    loop_lag=replace(rows.LOOP_LAG, group="connect-metrics"),
)
ASSIGNED_CONNECTORS: Final = Row(
    "assigned-connectors", _CONNECT, GAUGE, "Connectors that are assigned to this worker."
)
ASSIGNED_TASKS: Final = Row(
    "assigned-tasks", _CONNECT, GAUGE, "Tasks that are assigned to this worker."
)
CONNECTOR_COUNT: Final = Row(
    "connector-count",
    _WORKER,
    GAUGE,
    "Connectors that the listener was called to start, not yet to stop.",
)
TASK_COUNT: Final = Row(
    "task-count",
    _WORKER,
    GAUGE,
    "Tasks that the listener was called to start, not yet to stop.",
)
ITEMS_ASSIGNED_LATENCY: Final = Row(
    "items-assigned-latency",
    _WORKER,
    TIMING,
    "From the request to start items to the return of the listener's on_assigned.",
    "ms",
    ours=True,
)
ITEMS_REVOKED_LATENCY: Final = Row(
    "items-revoked-latency",
    _WORKER,
    TIMING,
    "From the request to stop items to the return of the listener's on_revoked.",
    "ms",
    ours=True,
)
ITEMS_LOST_LATENCY: Final = Row(
    "items-lost-latency",
    _WORKER,
    TIMING,
    "From the loss of items to the return of the listener's on_lost.",
    "ms",
    ours=True,
)

TABLE: Final = (
    *(getattr(MEMBER, each.name) for each in fields(MEMBER)),
    *(ASSIGNED_CONNECTORS, ASSIGNED_TASKS, CONNECTOR_COUNT, TASK_COUNT),
    *(ITEMS_ASSIGNED_LATENCY, ITEMS_REVOKED_LATENCY, ITEMS_LOST_LATENCY),
)
"""Every row."""
