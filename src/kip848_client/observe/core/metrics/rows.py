"""All metrics of a consumer: names, units, labels, meanings. One row for each sensor or gauge.

Names and groups are those of Kafka's Java client, if it has the metric; rows with ``ours`` are
additional. A metric's name is the sensor's name and the statistic's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kip848_client.observe.core.metrics._row import (
    AVERAGE,
    GAUGE,
    HOURLY,
    METER,
    SUMMED,
    TIMING,
    TOTAL,
    Row,
)
from kip848_client.observe.core.metrics._sensors import Statistic

__all__ = [
    "ASSIGNED_LATENCY",
    "ASSIGNED_PARTITIONS",
    "BYTES_CONSUMED",
    "COMMIT",
    "COMMITTED",
    "COMMIT_LATENCY",
    "COMMIT_SYNC",
    "FAILED_REBALANCE",
    "FENCED",
    "FETCH",
    "FETCH_LATENCY",
    "FETCH_SIZE",
    "HEARTBEAT",
    "HEARTBEAT_RESPONSE_TIME",
    "LAST_HEARTBEAT",
    "LAST_POLL",
    "LAST_REBALANCE",
    "LOOP_LAG",
    "LOST_LATENCY",
    "MEMBER",
    "MEMBER_EPOCH",
    "PHASE_TIME",
    "POLLS",
    "POLL_IDLE",
    "REBALANCE",
    "REBALANCE_LATENCY",
    "RECORDS_CONSUMED",
    "RECORDS_LAG",
    "RECORDS_LAG_AVG",
    "RECORDS_LAG_MAX",
    "RECORDS_LAG_MOST",
    "RECORDS_LEAD",
    "RECORDS_LEAD_AVG",
    "RECORDS_LEAD_LEAST",
    "RECORDS_LEAD_MIN",
    "RECORDS_PER_REQUEST",
    "REVOKED_LATENCY",
    "STALE_COMMIT",
    "TABLE",
    "THROTTLE",
    "TOPIC_BYTES_CONSUMED",
    "TOPIC_RECORDS_CONSUMED",
    "MembershipRows",
]

_COORDINATOR: Final = "consumer-coordinator-metrics"
_CONSUMER: Final = "consumer-metrics"
_FETCH: Final = "consumer-fetch-manager-metrics"


@dataclass(frozen=True, slots=True)
class MembershipRows:
    """The rows that every kind of group member has."""

    heartbeat: Row
    heartbeat_response_time: Row
    last_heartbeat: Row
    rebalance: Row
    rebalance_latency: Row
    failed_rebalance: Row
    last_rebalance: Row
    member_epoch: Row
    fenced: Row
    loop_lag: Row


def _of_topic(row: Row) -> Row:
    return Row(row.name, _FETCH, row.statistics, row.meaning, row.unit, ("topic",), of="topic")


def _of_partition(name: str, what: str) -> Row:
    meaning = f"{what} of the last 30 to 60 s, noted whenever records were handed out."
    return Row(name, _FETCH, GAUGE, meaning, labels=("topic", "partition"), of="partition")


HEARTBEAT: Final = Row("heartbeat", _COORDINATOR, METER, "Heartbeats that were sent.")
HEARTBEAT_RESPONSE_TIME: Final = Row(
    "heartbeat-response-time",
    _COORDINATOR,
    (Statistic.MAX,),
    "How long the coordinator took to answer a heartbeat.",
    "ms",
)
LAST_HEARTBEAT: Final = Row(
    "last-heartbeat-seconds-ago",
    _COORDINATOR,
    GAUGE,
    "Since the last heartbeat was sent.",
    "seconds",
)
REBALANCE: Final = Row(
    "rebalance",
    _COORDINATOR,
    HOURLY,
    "Assignments of this member that changed and were carried out.",
)
REBALANCE_LATENCY: Final = Row(
    "rebalance-latency",
    _COORDINATOR,
    SUMMED,
    "From the coordinator's new target to the moment in which it is carried out.",
    "ms",
)
FAILED_REBALANCE: Final = Row(
    "failed-rebalance",
    _COORDINATOR,
    HOURLY,
    "Targets that were not carried out: the member was fenced, failed or left meanwhile.",
)
LAST_REBALANCE: Final = Row(
    "last-rebalance-seconds-ago",
    _COORDINATOR,
    GAUGE,
    "Since the last rebalance of this member ended.",
    "seconds",
)
ASSIGNED_PARTITIONS: Final = Row(
    "assigned-partitions", _COORDINATOR, GAUGE, "Partitions that are assigned."
)
COMMIT: Final = Row("commit", _COORDINATOR, METER, "OffsetCommit requests that were answered.")
COMMIT_LATENCY: Final = Row(
    "commit-latency", _COORDINATOR, TIMING, "How long OffsetCommit took.", "ms"
)
ASSIGNED_LATENCY: Final = Row(
    "partition-assigned-latency",
    _COORDINATOR,
    TIMING,
    "How long the listener's on_partitions_assigned took.",
    "ms",
)
REVOKED_LATENCY: Final = Row(
    "partition-revoked-latency",
    _COORDINATOR,
    TIMING,
    "How long the listener's on_partitions_revoked took.",
    "ms",
)
LOST_LATENCY: Final = Row(
    "partition-lost-latency",
    _COORDINATOR,
    TIMING,
    "How long the listener's on_partitions_lost took.",
    "ms",
)
MEMBER_EPOCH: Final = Row(
    "member-epoch",
    _COORDINATOR,
    GAUGE,
    "The member epoch; 0 while the member is not in the group.",
    ours=True,
)
FENCED: Final = Row(
    "fenced",
    _COORDINATOR,
    TOTAL,
    "How often the coordinator put this member out, by the error that said so.",
    labels=("cause",),
    ours=True,
)
STALE_COMMIT: Final = Row(
    "stale-commit",
    _COORDINATOR,
    TOTAL,
    "OffsetCommit requests that were refused with STALE_MEMBER_EPOCH; most are repeated with the "
    "new epoch.",
    ours=True,
)
PHASE_TIME: Final = Row(
    "reconciliation-phase-time",
    _COORDINATOR,
    SUMMED,
    "How long a phase of a rebalance took: committing before partitions change hands, revoking "
    "(until the application and its listener are done), assigning (the listener).",
    "ms",
    labels=("phase",),
    ours=True,
)
POLLS: Final = Row(
    "time-between-poll",
    _CONSUMER,
    TIMING,
    "From one call for records to the next. While records flow it is measured every 10 ms.",
    "ms",
)
LAST_POLL: Final = Row(
    "last-poll-seconds-ago",
    _CONSUMER,
    GAUGE,
    "Since the application has asked for records last; 0 while it waits for some.",
    "seconds",
)
POLL_IDLE: Final = Row(
    "poll-idle-ratio",
    _CONSUMER,
    AVERAGE,
    "Which part of the time the application spent waiting for records.",
)
COMMIT_SYNC: Final = Row(
    "commit-sync-time-ns", _CONSUMER, TOTAL, "How long calls of commit() took in all.", "ns"
)
COMMITTED: Final = Row(
    "committed-time-ns",
    _CONSUMER,
    TOTAL,
    "How long calls of committed() and seek_to_committed() took in all.",
    "ns",
)
LOOP_LAG: Final = Row(
    "event-loop-lag",
    _CONSUMER,
    TIMING,
    "How late the event loop ran a timer that is due once a second.",
    "ms",
    ours=True,
)
FETCH: Final = Row("fetch", _FETCH, METER, "Fetch requests that were answered.")
FETCH_LATENCY: Final = Row(
    "fetch-latency",
    _FETCH,
    TIMING,
    "How long a Fetch took, the broker's waiting for records included.",
    "ms",
)
FETCH_SIZE: Final = Row(
    "fetch-size", _FETCH, TIMING, "Bytes of records in the answer to a Fetch.", "bytes"
)
THROTTLE: Final = Row(
    "fetch-throttle-time",
    _FETCH,
    TIMING,
    "How long a broker that answered a Fetch takes nothing more of this client.",
    "ms",
)
BYTES_CONSUMED: Final = Row(
    "bytes-consumed",
    _FETCH,
    METER,
    "Bytes of records that were handed out, as they came (compressed), once all that was fetched "
    "of a partition at a time is handed out.",
    "bytes",
)
RECORDS_CONSUMED: Final = Row(
    "records-consumed", _FETCH, METER, "Records that were handed out, counted as their bytes are."
)
RECORDS_PER_REQUEST: Final = Row(
    "records-per-request",
    _FETCH,
    AVERAGE,
    "Records in the answer to a Fetch that has some, by the headers of its batches.",
)
TOPIC_BYTES_CONSUMED: Final = _of_topic(BYTES_CONSUMED)
TOPIC_RECORDS_CONSUMED: Final = _of_topic(RECORDS_CONSUMED)
RECORDS_LAG_MAX: Final = Row(
    "records-lag-max", _FETCH, GAUGE, "The largest records-lag of all partitions now."
)
RECORDS_LEAD_MIN: Final = Row(
    "records-lead-min", _FETCH, GAUGE, "The smallest records-lead of all partitions now."
)
RECORDS_LAG: Final = Row(
    "records-lag",
    _FETCH,
    GAUGE,
    "How many offsets the position is behind the end of the partition, as it was fetched last.",
    labels=("topic", "partition"),
)
RECORDS_LEAD: Final = Row(
    "records-lead",
    _FETCH,
    GAUGE,
    "How many offsets the position is before the start of the partition's log: near 0, retention "
    "is about to delete what was not read.",
    labels=("topic", "partition"),
)
RECORDS_LAG_AVG: Final = _of_partition("records-lag-avg", "The average records-lag")
RECORDS_LAG_MOST: Final = _of_partition("records-lag-max", "The largest records-lag")
RECORDS_LEAD_AVG: Final = _of_partition("records-lead-avg", "The average records-lead")
RECORDS_LEAD_LEAST: Final = _of_partition("records-lead-min", "The smallest records-lead")

MEMBER: Final = MembershipRows(
    heartbeat=HEARTBEAT,
    heartbeat_response_time=HEARTBEAT_RESPONSE_TIME,
    last_heartbeat=LAST_HEARTBEAT,
    rebalance=REBALANCE,
    rebalance_latency=REBALANCE_LATENCY,
    failed_rebalance=FAILED_REBALANCE,
    last_rebalance=LAST_REBALANCE,
    member_epoch=MEMBER_EPOCH,
    fenced=FENCED,
    loop_lag=LOOP_LAG,
)
TABLE: Final = (
    *(HEARTBEAT, HEARTBEAT_RESPONSE_TIME, LAST_HEARTBEAT),
    *(REBALANCE, REBALANCE_LATENCY, FAILED_REBALANCE, LAST_REBALANCE, ASSIGNED_PARTITIONS),
    *(COMMIT, COMMIT_LATENCY, ASSIGNED_LATENCY, REVOKED_LATENCY, LOST_LATENCY),
    *(MEMBER_EPOCH, FENCED, STALE_COMMIT, PHASE_TIME),
    *(POLLS, LAST_POLL, POLL_IDLE, COMMIT_SYNC, COMMITTED, LOOP_LAG),
    *(FETCH, FETCH_LATENCY, FETCH_SIZE, THROTTLE, BYTES_CONSUMED, RECORDS_CONSUMED),
    *(RECORDS_PER_REQUEST, TOPIC_BYTES_CONSUMED, TOPIC_RECORDS_CONSUMED),
    *(RECORDS_LAG_MAX, RECORDS_LEAD_MIN, RECORDS_LAG, RECORDS_LEAD),
    *(RECORDS_LAG_AVG, RECORDS_LAG_MOST, RECORDS_LEAD_AVG, RECORDS_LEAD_LEAST),
)
"""Every row."""
