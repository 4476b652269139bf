"""The metrics of Kafka's Java client 4.4.0, and the reasons for omitting some of them.

Sources: ``metrics()`` of a consumer with the group protocol ``consumer`` and of a producer with a
transactional id, after both have read and written records; for Connect workers, Kafka's
documentation of members, their connections and their items (MBeans ``kafka.connect``).
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["ABSENT", "JAVA", "why_absent"]

_NAMES: Final = """\
app-info client:
    commit-id start-time-ms version
connect-coordinator-metrics client:
    assigned-connectors assigned-tasks failed-rebalance-rate-per-hour failed-rebalance-total
    heartbeat-rate heartbeat-response-time-max heartbeat-total join-rate join-time-avg
    join-time-max join-total last-heartbeat-seconds-ago last-rebalance-seconds-ago
    rebalance-latency-avg rebalance-latency-max rebalance-latency-total
    rebalance-rate-per-hour rebalance-total sync-rate sync-time-avg sync-time-max sync-total
connect-metrics client:
    connection-close-rate connection-close-total connection-count connection-creation-rate
    connection-creation-total failed-authentication-rate failed-authentication-total
    failed-reauthentication-rate failed-reauthentication-total incoming-byte-rate
    incoming-byte-total io-ratio io-time-ns-avg io-time-ns-total io-wait-ratio
    io-wait-time-ns-avg io-wait-time-ns-total network-io-rate network-io-total
    outgoing-byte-rate outgoing-byte-total reauthentication-latency-avg
    reauthentication-latency-max request-rate request-size-avg request-size-max request-total
    response-rate response-total select-rate select-total
    successful-authentication-no-reauth-total successful-authentication-rate
    successful-authentication-total successful-reauthentication-rate
    successful-reauthentication-total
connect-node-metrics node:
    incoming-byte-rate incoming-byte-total outgoing-byte-rate outgoing-byte-total
    request-latency-avg request-latency-max request-rate request-size-avg request-size-max
    request-total response-rate response-total
connect-worker-metrics client:
    connector-count connector-startup-attempts-total connector-startup-failure-percentage
    connector-startup-failure-total connector-startup-success-percentage
    connector-startup-success-total task-count task-startup-attempts-total
    task-startup-failure-percentage task-startup-failure-total
    task-startup-success-percentage task-startup-success-total
connect-worker-rebalance-metrics client:
    completed-rebalances-total connect-protocol epoch leader-name rebalance-avg-time-ms
    rebalance-max-time-ms rebalancing time-since-last-rebalance-ms
consumer-coordinator-metrics client:
    assigned-partitions commit-latency-avg commit-latency-max commit-rate commit-total
    failed-rebalance-rate-per-hour failed-rebalance-total heartbeat-rate
    heartbeat-response-time-max heartbeat-total last-heartbeat-seconds-ago
    last-rebalance-seconds-ago partition-assigned-latency-avg partition-assigned-latency-max
    partition-lost-latency-avg partition-lost-latency-max partition-revoked-latency-avg
    partition-revoked-latency-max rebalance-latency-avg rebalance-latency-max
    rebalance-latency-total rebalance-rate-per-hour rebalance-total
consumer-fetch-manager-metrics client:
    bytes-consumed-rate bytes-consumed-total fetch-latency-avg fetch-latency-max fetch-rate
    fetch-size-avg fetch-size-max fetch-throttle-time-avg fetch-throttle-time-max
    fetch-total records-consumed-rate records-consumed-total records-lag-max
    records-lead-min records-per-request-avg
consumer-fetch-manager-metrics partition:
    preferred-read-replica records-lag records-lag-avg records-lag-max records-lead
    records-lead-avg records-lead-min
consumer-fetch-manager-metrics topic:
    bytes-consumed-rate bytes-consumed-total fetch-size-avg fetch-size-max
    records-consumed-rate records-consumed-total records-per-request-avg
consumer-metrics client:
    application-event-queue-processing-time-avg application-event-queue-processing-time-max
    application-event-queue-size application-event-queue-time-avg
    application-event-queue-time-max application-events-expired-count
    background-event-queue-processing-time-avg background-event-queue-processing-time-max
    background-event-queue-size background-event-queue-time-avg
    background-event-queue-time-max commit-sync-time-ns-total committed-time-ns-total
    connection-close-rate connection-close-total connection-count connection-creation-rate
    connection-creation-total failed-authentication-rate failed-authentication-total
    failed-reauthentication-rate failed-reauthentication-total incoming-byte-rate
    incoming-byte-total io-ratio io-time-ns-avg io-time-ns-total io-wait-ratio
    io-wait-time-ns-avg io-wait-time-ns-total last-poll-seconds-ago network-io-rate
    network-io-total outgoing-byte-rate outgoing-byte-total poll-idle-ratio-avg
    reauthentication-latency-avg reauthentication-latency-max request-rate request-size-avg
    request-size-max request-total response-rate response-total select-rate select-total
    successful-authentication-no-reauth-total successful-authentication-rate
    successful-authentication-total successful-reauthentication-rate
    successful-reauthentication-total time-between-network-thread-poll-avg
    time-between-network-thread-poll-max time-between-poll-avg time-between-poll-max
    unsent-requests-queue-size unsent-requests-queue-time-avg unsent-requests-queue-time-max
consumer-node-metrics node:
    incoming-byte-rate incoming-byte-total outgoing-byte-rate outgoing-byte-total
    request-latency-avg request-latency-max request-rate request-size-avg request-size-max
    request-total response-rate response-total
kafka-metrics-count client:
    count
producer-metrics client:
    batch-size-avg batch-size-max batch-split-rate batch-split-total buffer-available-bytes
    buffer-exhausted-rate buffer-exhausted-total buffer-total-bytes bufferpool-wait-ratio
    bufferpool-wait-time-ns-total compression-rate-avg connection-close-rate
    connection-close-total connection-count connection-creation-rate
    connection-creation-total failed-authentication-rate failed-authentication-total
    failed-reauthentication-rate failed-reauthentication-total flush-time-ns-total
    incoming-byte-rate incoming-byte-total io-ratio io-time-ns-avg io-time-ns-total
    io-wait-ratio io-wait-time-ns-avg io-wait-time-ns-total metadata-age
    metadata-wait-time-ns-total network-io-rate network-io-total outgoing-byte-rate
    outgoing-byte-total produce-throttle-time-avg produce-throttle-time-max
    reauthentication-latency-avg reauthentication-latency-max record-error-rate
    record-error-total record-queue-time-avg record-queue-time-max record-retry-rate
    record-retry-total record-send-rate record-send-total record-size-avg record-size-max
    records-per-request-avg request-latency-avg request-latency-max request-rate
    request-size-avg request-size-max request-total requests-in-flight response-rate
    response-total select-rate select-total successful-authentication-no-reauth-total
    successful-authentication-rate successful-authentication-total
    successful-reauthentication-rate successful-reauthentication-total
    txn-abort-time-ns-total txn-begin-time-ns-total txn-commit-time-ns-total
    txn-init-time-ns-total txn-prepare-time-ns-total txn-send-offsets-time-ns-total
    waiting-threads
producer-node-metrics node:
    incoming-byte-rate incoming-byte-total outgoing-byte-rate outgoing-byte-total
    request-latency-avg request-latency-max request-rate request-size-avg request-size-max
    request-total response-rate response-total
producer-topic-metrics topic:
    byte-rate byte-total compression-rate record-error-rate record-error-total
    record-retry-rate record-retry-total record-send-rate record-send-total
"""
"""Groups, their scope, and names."""


def _parsed() -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    names: list[str] = []
    for line in _NAMES.splitlines():
        if line.startswith(" "):
            names += line.split()
        else:
            group, of = line.rstrip(":").split()
            names = found[group, "" if of == "client" else of] = []
    return found


JAVA: Final = _parsed()
"""By group and scope (``topic``, ``partition``, ``node``, or empty)."""

ABSENT: Final = {
    r"app-info .*|kafka-metrics-count .*": "about the program, not the client: `kip848 --version`",
    r"consumer-metrics (application|background)-event.*": "no queue between the application and a "
    "network thread: both run in one event loop",
    r"consumer-metrics unsent-requests-queue-.*": "a request is sent when it is created, or "
    "waits for its connection",
    r"consumer-metrics time-between-network-thread-poll-.*": "no network thread: `event-loop-lag` "
    "measures the delay of the event loop",
    "connect-coordinator-metrics "
    "(join|sync)-.*": "only in the classic protocol: `rebalance-latency` includes both requests",
    r"connect-worker-metrics .*-startup-.*": "your listener starts items, several in one call: "
    "`items-assigned-latency`",
    r"connect-worker-rebalance-metrics .*": "the same as `rebalance`, `rebalance-latency` and "
    "`member-epoch` of connect-coordinator-metrics, and `leader_url` of the worker",
    "(consumer|producer|connect)-metrics (io-.*|select-.*)": "about the event loop, not the client",
    r"(consumer|producer|connect)-metrics (.*reauthentication.*|.*-no-reauth-.*)": "an "
    "expiring login is renewed with a new connection and counts as a login of that connection",
    r"consumer-fetch-manager-metrics preferred-read-replica of partition": "not shown: "
    "`fetch-latency` shows whether reading from a near replica helps",
    r"consumer-fetch-manager-metrics (fetch-size|records-per-request)-.* of topic": "only "
    "whole answers are measured; `bytes-consumed` and `records-consumed` exist for each topic",
    r"producer-metrics record-size-max": "single records are not measured, because it would "
    "cost time for each",
    r"producer-metrics txn-prepare-time-ns-total": "two-phase commit (KIP-939) is not supported",
}
"""A pattern for ``group name`` (and ``of`` the scope), and the reason."""


def why_absent(group: str, of: str, name: str) -> str | None:
    """The reason; ``None`` for a metric that should be here."""
    text = f"{group} {name}{f' of {of}' if of else ''}"
    return next((why for pattern, why in ABSENT.items() if re.fullmatch(pattern, text)), None)
