"""All metrics of a producer, as ``rows`` has those of a consumer."""

from __future__ import annotations

from typing import Final

from kip848_client.observe.core.metrics._row import AVERAGE, GAUGE, METER, TIMING, TOTAL, Row
from kip848_client.observe.core.metrics._sensors import Statistic

__all__ = [
    "BATCH_SIZE",
    "BATCH_SPLIT",
    "BUFFER_AVAILABLE",
    "BUFFER_EXHAUSTED",
    "BUFFER_TOTAL",
    "BUFFER_WAIT",
    "BUFFER_WAIT_RATIO",
    "COMPRESSION_RATE",
    "FLUSH",
    "IN_FLIGHT",
    "METADATA_AGE",
    "METADATA_WAIT",
    "QUEUE_TIME",
    "RECORDS_PER_REQUEST",
    "RECORD_ERROR",
    "RECORD_RETRY",
    "RECORD_SEND",
    "RECORD_SIZE",
    "REQUEST_LATENCY",
    "TABLE",
    "THROTTLE",
    "TOPIC_BYTES",
    "TOPIC_COMPRESSION_RATE",
    "TOPIC_RECORD_ERROR",
    "TOPIC_RECORD_RETRY",
    "TOPIC_RECORD_SEND",
    "TXN_ABORT",
    "TXN_BEGIN",
    "TXN_COMMIT",
    "TXN_INIT",
    "TXN_SEND_OFFSETS",
    "WAITING",
]

_PRODUCER: Final = "producer-metrics"
_TOPIC: Final = "producer-topic-metrics"


def _calls(name: str, call: str) -> Row:
    """The row for the duration of successful calls of a method."""
    return Row(name, _PRODUCER, TOTAL, f"How long calls of {call} took in all.", "ns")


def _of_topic(row: Row) -> Row:
    return Row(row.name, _TOPIC, row.statistics, row.meaning, row.unit, ("topic",), of="topic")


RECORD_SEND: Final = Row(
    "record-send",
    _PRODUCER,
    METER,
    "Records that were sent to a broker; one that is sent again counts again.",
)
RECORD_RETRY: Final = Row("record-retry", _PRODUCER, METER, "Records that were sent again.")
RECORD_ERROR: Final = Row(
    "record-error",
    _PRODUCER,
    METER,
    "Records that have failed: calls that wait for them get an error. Includes those of aborted "
    "transactions.",
)
RECORD_SIZE: Final = Row(
    "record-size",
    _PRODUCER,
    AVERAGE,
    "Bytes of a record before compression, by batch: the average of each.",
    "bytes",
)
QUEUE_TIME: Final = Row(
    "record-queue-time",
    _PRODUCER,
    TIMING,
    "How long a batch waited from its first record to the request that it went out in.",
    "ms",
)
BATCH_SIZE: Final = Row(
    "batch-size", _PRODUCER, TIMING, "Bytes of a batch as it was sent (compressed).", "bytes"
)
BATCH_SPLIT: Final = Row(
    "batch-split", _PRODUCER, METER, "Batches that a broker found too large, and that were split."
)
COMPRESSION_RATE: Final = Row(
    "compression-rate",
    _PRODUCER,
    AVERAGE,
    "Bytes of a batch as it was sent, by its bytes before compression.",
)
RECORDS_PER_REQUEST: Final = Row(
    "records-per-request", _PRODUCER, AVERAGE, "Records in a Produce request."
)
REQUEST_LATENCY: Final = Row(
    "request-latency", _PRODUCER, TIMING, "How long a broker took to answer a Produce.", "ms"
)
IN_FLIGHT: Final = Row(
    "requests-in-flight", _PRODUCER, GAUGE, "Produce requests that are not answered yet."
)
THROTTLE: Final = Row(
    "produce-throttle-time",
    _PRODUCER,
    TIMING,
    "How long a broker that answered a Produce takes nothing more of this client.",
    "ms",
)
METADATA_AGE: Final = Row(
    "metadata-age", _PRODUCER, GAUGE, "Since brokers have told who leads what.", "seconds"
)
BUFFER_TOTAL: Final = Row("buffer-total-bytes", _PRODUCER, GAUGE, "`buffer_memory`.", "bytes")
BUFFER_AVAILABLE: Final = Row(
    "buffer-available-bytes",
    _PRODUCER,
    GAUGE,
    "What of it no record holds. An open batch holds as much as it may grow to.",
    "bytes",
)
BUFFER_EXHAUSTED: Final = Row(
    "buffer-exhausted",
    _PRODUCER,
    METER,
    "Records that were not taken because there was no room for them within `max_block_ms`.",
)
BUFFER_WAIT: Final = Row(
    "bufferpool-wait-time-ns",
    _PRODUCER,
    TOTAL,
    "How long calls of send() waited for room, each for itself.",
    "ns",
)
BUFFER_WAIT_RATIO: Final = Row(
    "bufferpool-wait-ratio",
    _PRODUCER,
    GAUGE,
    "The same as a part of the time. With many calls at once it may be more than 1.",
)
WAITING: Final = Row("waiting-threads", _PRODUCER, GAUGE, "Calls of send() that wait for room now.")
METADATA_WAIT: Final = Row(
    "metadata-wait-time-ns",
    _PRODUCER,
    TOTAL,
    "How long calls of send() waited for the partitions of a topic.",
    "ns",
)
FLUSH: Final = _calls("flush-time-ns", "flush()")
TXN_INIT: Final = Row(
    "txn-init-time-ns",
    _PRODUCER,
    TOTAL,
    "How long it took in start() to become the one producer with the transactional id.",
    "ns",
)
TXN_BEGIN: Final = _calls("txn-begin-time-ns", "begin_transaction()")
TXN_SEND_OFFSETS: Final = _calls("txn-send-offsets-time-ns", "send_offsets_to_transaction()")
TXN_COMMIT: Final = _calls("txn-commit-time-ns", "commit_transaction()")
TXN_ABORT: Final = _calls("txn-abort-time-ns", "abort_transaction()")

TOPIC_RECORD_SEND: Final = _of_topic(RECORD_SEND)
TOPIC_RECORD_RETRY: Final = _of_topic(RECORD_RETRY)
TOPIC_RECORD_ERROR: Final = _of_topic(RECORD_ERROR)
TOPIC_BYTES: Final = Row(
    "byte", _TOPIC, METER, "Bytes of batches as they were sent.", "bytes", ("topic",), of="topic"
)
TOPIC_COMPRESSION_RATE: Final = Row(
    "compression-rate",
    _TOPIC,
    (Statistic.VALUE,),
    COMPRESSION_RATE.meaning,
    labels=("topic",),
    of="topic",
)

TABLE: Final = (
    *(RECORD_SEND, RECORD_RETRY, RECORD_ERROR, RECORD_SIZE, QUEUE_TIME),
    *(BATCH_SIZE, BATCH_SPLIT, COMPRESSION_RATE),
    *(RECORDS_PER_REQUEST, REQUEST_LATENCY, IN_FLIGHT, THROTTLE, METADATA_AGE, METADATA_WAIT),
    *(BUFFER_TOTAL, BUFFER_AVAILABLE, BUFFER_EXHAUSTED),
    *(BUFFER_WAIT, BUFFER_WAIT_RATIO, WAITING),
    *(FLUSH, TXN_INIT, TXN_BEGIN, TXN_SEND_OFFSETS, TXN_COMMIT, TXN_ABORT),
    *(TOPIC_RECORD_SEND, TOPIC_RECORD_RETRY, TOPIC_RECORD_ERROR),
    *(TOPIC_BYTES, TOPIC_COMPRESSION_RATE),
)
"""Every row."""
