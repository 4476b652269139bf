"""Producing and transactions."""

from __future__ import annotations

import time
from typing import Any, Final

from tests.support.security.prepared import (
    BOTH,
    NAMES,
    UNKNOWN_ID,
    Case,
    Prepared,
    case,
    commit,
)

__all__ = ["PRODUCING_CASES"]

from mock_coordinator.batches import NewRecord, encode_batch

_NOW_MS: Final = time.time_ns() // 1_000_000
"""Kafka deletes records that are older than its retention, now and then."""
_TRANSACTIONAL: Final = 0x10


def _batch() -> bytes:
    return encode_batch([NewRecord(b"value", b"key", timestamp_ms=_NOW_MS)], _NOW_MS)


def _transactional_batch() -> bytes:
    return encode_batch(
        [NewRecord(b"value", b"key", timestamp_ms=_NOW_MS)],
        _NOW_MS,
        producer_id=4000,
        producer_epoch=0,
        base_sequence=0,
        attributes=_TRANSACTIONAL,
    )


def _produce_transactional(transactional_id: str | None) -> Case:
    data = [{"index": 0, "records": _transactional_batch()}]
    topics = [{"name": name, "partition_data": data} for name in NAMES]
    return case(
        f"Produce transactional records as {transactional_id}",
        11,
        lambda _s, _w: {
            "acks": -1,
            "timeout_ms": 5000,
            "transactional_id": transactional_id,
            "topic_data": topics,
        },
    )


def _produce(names: tuple[str, ...], **fields: Any) -> dict[str, Any]:
    data = [{"index": 0, "records": _batch()}]
    topics = [{"name": name, "partition_data": data} for name in names]
    return {"acks": -1, "timeout_ms": 5000, "topic_data": topics, **fields}


def _produce_ids(prepared: Prepared) -> dict[str, Any]:
    data = [{"index": 0, "records": _batch()}]
    ids = [prepared.ids["yes-a"], prepared.ids["no-a"], UNKNOWN_ID]
    topics = [{"topic_id": topic_id, "partition_data": data} for topic_id in ids]
    return {"acks": -1, "timeout_ms": 5000, "topic_data": topics}


def _add_offsets_to_txn(txn: str, group: str) -> Case:
    return case(
        f"AddOffsetsToTxn {txn} {group}",
        3,
        lambda _s, who: {
            "transactional_id": f"{txn}-txn-{who}",
            "producer_id": 4000,
            "producer_epoch": 0,
            "group_id": f"{group}-txn-group",
        },
    )


def _end_txn(txn: str) -> Case:
    return case(
        f"EndTxn {txn}",
        3,
        lambda _s, who: {
            "transactional_id": f"{txn}-txn-{who}",
            "producer_id": 4000,
            "producer_epoch": 0,
            "committed": True,
        },
    )


def _txn_offset_commit(txn: str, group: str) -> Case:
    return case(
        f"TxnOffsetCommit {txn} {group}",
        3,
        lambda _s, who: {
            **commit(f"{group}-txn-group", [(name, 0, 5) for name in NAMES]),
            "transactional_id": f"{txn}-txn-{who}",
            "producer_id": 4000,
            "producer_epoch": 0,
        },
    )


PRODUCING_CASES: Final[tuple[Case, ...]] = (
    case("Produce names", 11, lambda _s, _w: _produce(NAMES)),
    case("Produce v3", 3, lambda _s, _w: _produce(NAMES)),
    case("Produce ids", 13, lambda prepared, _w: _produce_ids(prepared)),
    case(
        "Produce with a transactional id",
        11,
        lambda _s, _w: _produce(BOTH, transactional_id="yes-txn"),
    ),
    case(
        "Produce with another's transactional id",
        11,
        lambda _s, _w: _produce(BOTH, transactional_id="no-txn"),
    ),
    *(_produce_transactional(each) for each in ("yes-txn", "no-txn", None)),
    case(
        "InitProducerId",
        4,
        lambda _s, _w: {"transactional_id": None, "transaction_timeout_ms": 60_000},
    ),
    case(
        "InitProducerId own id",
        4,
        lambda _s, who: {"transactional_id": f"yes-own-{who}", "transaction_timeout_ms": 60_000},
    ),
    case(
        "InitProducerId other's id",
        4,
        lambda _s, _w: {"transactional_id": "no-txn", "transaction_timeout_ms": 60_000},
    ),
    case(
        "AddPartitionsToTxn v3",
        3,
        lambda _s, who: {
            "v3_and_below_transactional_id": f"yes-txn-{who}",
            "v3_and_below_producer_id": 4000,
            "v3_and_below_producer_epoch": 0,
            "v3_and_below_topics": [{"name": name, "partitions": [0]} for name in NAMES],
        },
    ),
    case(
        "AddPartitionsToTxn v3 one topic",
        3,
        lambda _s, who: {
            "v3_and_below_transactional_id": f"yes-txn-{who}",
            "v3_and_below_producer_id": 4000,
            "v3_and_below_producer_epoch": 0,
            "v3_and_below_topics": [{"name": "yes-a", "partitions": [0]}],
        },
    ),
    case(
        "AddPartitionsToTxn v4",
        4,
        lambda _s, who: {
            "transactions": [
                {
                    "transactional_id": f"{kind}-txn-{who}",
                    "producer_id": 4000,
                    "producer_epoch": 0,
                    "topics": [{"name": name, "partitions": [0]} for name in BOTH],
                }
                for kind in ("yes", "no")
            ],
        },
    ),
    *(_add_offsets_to_txn(txn, group) for txn in ("yes", "no") for group in ("yes", "no")),
    *(_end_txn(txn) for txn in ("yes", "no")),
    *(_txn_offset_commit(txn, group) for txn in ("yes", "no") for group in ("yes", "no")),
    case(
        "WriteTxnMarkers",
        1,
        lambda _s, _w: {
            "markers": [
                {
                    "producer_id": 4000,
                    "producer_epoch": 0,
                    "transaction_result": False,
                    "topics": [{"name": "yes-missing", "partition_indexes": [0]}],
                    "coordinator_epoch": 0,
                }
            ]
        },
    ),
    case(
        "DescribeTransactions",
        0,
        lambda _s, _w: {"transactional_ids": ("yes-txn-x", "no-txn-x")},
    ),
    case("ListTransactions", 0, lambda _s, _w: {"state_filters": (), "producer_id_filters": ()}),
    case(
        "DescribeProducers",
        0,
        lambda _s, _w: {"topics": [{"name": name, "partition_indexes": [0]} for name in NAMES]},
    ),
)
