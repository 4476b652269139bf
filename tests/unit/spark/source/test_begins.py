"""Where a query begins: what its options, its group, its checkpoint and its output say, and which
of them counts. Without Spark."""

from __future__ import annotations

import asyncio

import pytest

from kip848_client import Admin, TopicPartition
from mock_coordinator import NewRecord
from mock_coordinator.threaded import BrokerThread
from tests.unit.spark.source._by_hand import Begin, Query, committed, options_of, produce

pytestmark = pytest.mark.mock_broker(topics={"a": 3})


def _commit(broker: BrokerThread, *offsets: int) -> None:
    """For the group, which has no members: of partitions 0, 1, ..."""

    async def do() -> None:
        async with Admin(bootstrap_servers=broker.bootstrap) as admin:
            places = {TopicPartition("a", number): at for number, at in enumerate(offsets)}
            await admin.alter_group_offsets("g", places)

    asyncio.run(do())


def _read(query: Query) -> dict[int, list[int]]:
    """The offsets that a query has read, by partition."""
    query.run()
    found: dict[int, list[int]] = {}
    for partition, offset, _ in query.sink:
        found.setdefault(partition, []).append(offset)
    return found


def _produce_by_time(broker: BrokerThread) -> None:
    """Of each partition: offset 0 at 1,000 ms, 1 at 2,000 and so on, three in all."""
    for partition in range(3):
        for number in range(3):
            record = NewRecord(b"x", timestamp_ms=1_000 * (number + 1))
            broker.produce("a", record, partition=partition)


_NAMED = [
    {"startingOffsets": '{"a": {"0": 1, "1": 1, "2": 1}}'},
    {"startingOffsetsByTimestamp": '{"a": {"0": 2000, "1": 2000, "2": 2000}}'},
    {"startingTimestamp": "2000"},
]
"""Three ways to begin at offset 1."""


@pytest.mark.parametrize("said", _NAMED)
@pytest.mark.parametrize("committed_at", [0, 2, 3])
def test_places_that_the_user_names_count_more_than_those_of_the_group(
    mock_broker: BrokerThread, begin: Begin, said: dict[str, str], committed_at: int
) -> None:
    _produce_by_time(mock_broker)
    _commit(mock_broker, committed_at, committed_at)
    query = begin(kafka_group_id="g", **said)
    assert _read(query) == {0: [1, 2], 1: [1, 2], 2: [1, 2]}
    assert committed(mock_broker) == {0: 3, 1: 3, 2: 3}


@pytest.mark.parametrize("said", _NAMED)
def test_a_member_begins_where_its_group_is_whatever_the_user_names(
    mock_broker: BrokerThread, begin: Begin, said: dict[str, str]
) -> None:
    """Other members may have read what is before; the rest begins where the options say."""
    _produce_by_time(mock_broker)
    _commit(mock_broker, 0, 2)
    query = begin(kafka_group_id="g", ownership="shared", **said)
    assert _read(query) == {0: [0, 1, 2], 1: [2], 2: [1, 2]}


@pytest.mark.parametrize(("everywhere", "rest"), [("earliest", {2: [0, 1, 2]}), ("latest", {})])
def test_a_word_for_all_partitions_is_for_those_of_which_a_members_group_has_nothing(
    mock_broker: BrokerThread, begin: Begin, everywhere: str, rest: dict[int, list[int]]
) -> None:
    _produce_by_time(mock_broker)
    _commit(mock_broker, 0, 2)
    query = begin(kafka_group_id="g", ownership="shared", startingOffsets=everywhere)
    assert _read(query) == {0: [0, 1, 2], 1: [2], **rest}


@pytest.mark.parametrize(
    ("everywhere", "rows"),
    [
        ("earliest", {0: [0, 1, 2], 1: [0, 1, 2], 2: [0, 1, 2]}),
        ("latest", {}),
        (None, {0: [0, 1, 2], 1: [2]}),
    ],
)
def test_what_the_user_sets_counts_more_than_the_group_of_an_exclusive_query(
    mock_broker: BrokerThread, begin: Begin, everywhere: str | None, rows: dict[int, list[int]]
) -> None:
    """Without it, the group's offsets count, and then the end."""
    _produce_by_time(mock_broker)
    _commit(mock_broker, 0, 2)
    assert _read(begin(kafka_group_id="g", startingOffsets=everywhere)) == rows


@pytest.mark.parametrize("said", [{}, *_NAMED])
def test_the_checkpoint_counts_more_than_group_and_options(
    mock_broker: BrokerThread, begin: Begin, said: dict[str, str]
) -> None:
    _produce_by_time(mock_broker)
    query = begin(kafka_group_id="g")
    query.run()
    _commit(mock_broker, 0, 0, 0)
    query.options = options_of(mock_broker.bootstrap, kafka_group_id="g", **said)
    query.restart()
    produce(mock_broker, 1)
    assert _read(query) == {0: [0, 1, 2, 3], 1: [0, 1, 2], 2: [0, 1, 2]}
    assert committed(mock_broker) == {0: 4, 1: 3, 2: 3}
