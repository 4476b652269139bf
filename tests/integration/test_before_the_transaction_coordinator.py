"""What producers get before anybody has asked for the transaction coordinator, here and in Kafka.

``__transaction_state`` is made by the first FindCoordinator for a transactional id, and until then
nobody coordinates.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from kip848_client.error_codes import ErrorCode
from tests.integration.test_transactions_like_kafka import CONFIGS, MockSide
from tests.support.raw_transactions import RawTransactions
from tests.support.real_kafka import RealKafka
from tests.support.transaction_sequences import PARTITIONS

pytestmark = [pytest.mark.real_kafka, pytest.mark.timeout(300)]

FOO = [("foo", 0)]


def conversation(raw: RawTransactions) -> Iterator[tuple[str, Any]]:
    """Every request of a producer and of an administrator that is about transactions."""
    for version in (0, 2, 4, 5):
        yield f"init v{version}", raw.init("t", version=version)[0]
    yield "init, an empty id", raw.init("")[0]
    yield "init, too long a time-out", raw.init("t", timeout_ms=1 << 30)[0]
    yield "init, somebody else", raw.init("t", producer=(5, 5))[0]
    answer, producer = raw.init(None)
    while answer[0] == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:  # it fetches ids for producers
        answer, producer = raw.init(None)
    yield "init without an id", answer
    for version in (3, 4, 5):
        yield f"add partitions v{version}", raw.add_partitions("t", producer, FOO, version)
    yield "add partitions of no topic", raw.add_partitions("t", producer, [("nope", 0)], 3)
    yield "add partitions, an empty id", raw.add_partitions("", producer, FOO, 3)
    yield "add offsets", raw.add_offsets("t", producer, "g")
    yield "add offsets, an empty id", raw.add_offsets("", producer, "g")
    for version in (3, 4, 5):
        yield (
            f"commit offsets v{version}",
            raw.txn_commit("t", producer, "g", {("foo", 0): 3}, version=version),
        )
    for version in (11, 12):
        answer = raw.produce("t", producer, 0, {("foo", 0): [b"x"]}, version)
        yield f"produce v{version}", answer
    for version in (3, 4, 5):
        yield f"end v{version}", raw.end("t", producer, commit=True, version=version)[0]
    yield "end, an empty id", raw.end("", producer, commit=True)[0]
    yield "describe", raw.describe("t", "")
    yield "list", raw.list()


def test_nobody_coordinates_before_somebody_asks_who_does(kafka_version: str) -> None:
    with RealKafka.start(kafka_version, CONFIGS) as broker:
        topic_id = broker.create_topic("foo", PARTITIONS)
        with closing(RawTransactions(broker.connect, {"foo": topic_id})) as raw:
            theirs = dict(conversation(raw))
        profile = broker.profile
    side = MockSide(profile, "foo", known=False)
    ours = dict(conversation(RawTransactions(side.connect, side.topic_ids())))
    assert ours == theirs
