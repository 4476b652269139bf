"""The sequences that a rule for "where does a query continue" must survive, played by hand.

Each broke a simpler rule. The numbers are those of the design: 1 to 16.
"""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path

import pytest

from kip848_client import Admin, TopicPartition
from kip848_client.core.types import TopicPartition as Partition
from kip848_client.errors import ConfigError
from kip848_client.spark.source.core._begin import Lineage
from kip848_client.spark.source.core._exclusive_plan import ExclusivePlan
from kip848_client.spark.source.core._manifest import Manifest
from kip848_client.spark.source.core._planning import Planning, Seen
from mock_coordinator.threaded import BrokerThread
from tests.unit.spark.source._by_hand import Begin, Query, committed, options_of, produce

pytestmark = pytest.mark.mock_broker(topics={"a": 3})

_BOTH = pytest.mark.parametrize("ownership", ["exclusive", "shared"])


def _commit(broker: BrokerThread, *offsets: int) -> None:
    """As a plain consumer or the reset tool: of partitions 0, 1, ..., without members."""

    async def do() -> None:
        async with Admin(bootstrap_servers=broker.bootstrap) as admin:
            places = {TopicPartition("a", number): at for number, at in enumerate(offsets)}
            await admin.alter_group_offsets("g", places)

    asyncio.run(do())


def _offsets(query: Query) -> dict[int, list[int]]:
    """What the sink has, by partition."""
    found: dict[int, list[int]] = {}
    for partition, offset, _ in query.sink:
        found.setdefault(partition, []).append(offset)
    return found


def _each(*offsets: int) -> dict[int, list[int]]:
    return {number: list(offsets) for number in range(3)}


def _store(query: Query, folder: Path, *, commits: int) -> None:
    """As Spark stores its logs; it has committed the first ``commits`` batches."""
    for name in ("offsets", "commits"):
        (folder / name).mkdir(exist_ok=True)
    batches = [*query.log[1:], *([] if query.planned is None else [query.planned])]
    for number, each in enumerate(batches):
        text = json.dumps(each.to_json())
        (folder / "offsets" / str(number)).write_text(f"v1\n{{}}\n{text}")
        if number < commits:
            (folder / "commits" / str(number)).write_text("v1\n{}")


def test_1_what_others_commit_does_not_move_an_exclusive_query(
    mock_broker: BrokerThread, begin: Begin
) -> None:
    produce(mock_broker, 9)
    query = begin(kafka_group_id="g")
    query.run()
    query.runner.close()
    produce(mock_broker, 9, first=9)
    _commit(mock_broker, 6, 6, 6)
    query.restart()
    query.run()
    assert _offsets(query) == _each(0, 1, 2, 3, 4, 5)
    assert committed(mock_broker) == {0: 6, 1: 6, 2: 6}


@_BOTH
def test_2_a_checkpoint_is_set_back(
    mock_broker: BrokerThread, begin: Begin, ownership: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Exclusive begins there, with a warning; shared refuses with both numbers."""
    produce(mock_broker, 9)
    query = begin(kafka_group_id="g", ownership=ownership)
    query.run()
    backup = list(query.log)
    produce(mock_broker, 9, first=9)
    query.run()
    query.runner.close()
    query.log, query.sink = backup, query.sink[:9]
    with caplog.at_level(logging.WARNING, "kip848_client.spark"):
        query.restart()
        if ownership == "exclusive":
            query.run()
            assert _offsets(query) == _each(0, 1, 2, 3, 4, 5)
            assert "group g has offset 6 for a-0, which this query did not commit" in caplog.text
            return
        with pytest.raises(ConfigError, match="has offset 6 for a-0, and the checkpoint has 3"):
            query.run()
    assert _offsets(query) == _each(0, 1, 2)
    assert committed(mock_broker) == {0: 6, 1: 6, 2: 6}


def test_3_a_repeated_batch_is_left_to_others_only_as_far_as_they_have_committed(
    mock_broker: BrokerThread, begin: Begin
) -> None:
    """What another member holds and has not committed is read here, too: it may stop short."""
    produce(mock_broker, 9)
    query = begin(kafka_group_id="g", ownership="shared")
    assert query.plan()
    query.runner.close()
    _commit(mock_broker, 1)
    query.restart()
    assert _offsets(query) == {0: [1, 2], 1: [0, 1, 2], 2: [0, 1, 2]}
    query.runner.close()  # before the group hears of it
    _commit(mock_broker, 2)  # the other member stops short
    query.restart()
    produce(mock_broker, 3, first=9)
    query.run()
    assert _offsets(query) == {0: [1, 2, 3], 1: [0, 1, 2, 3], 2: [0, 1, 2, 3]}


@pytest.mark.parametrize("said", ["fail", "group", "checkpoint"])
def test_4_an_offset_below_what_the_group_had_is_a_reset(
    mock_broker: BrokerThread, begin: Begin, said: str
) -> None:
    produce(mock_broker, 9)
    query = begin(kafka_group_id="g", ownership="shared")
    query.run()
    produce(mock_broker, 9, first=9)
    query.run()
    query.runner.close()
    _commit(mock_broker, 1, 4, 6)  # 4 is not below the 3 that the group had
    query.options = options_of(
        mock_broker.bootstrap, kafka_group_id="g", ownership="shared", onGroupReset=said
    )
    query.restart()
    produce(mock_broker, 3, first=18)
    if said == "fail":
        with pytest.raises(ConfigError, match=r"offset 1 for a-0, and had 3 .*\(6\)"):
            query.run()
        return
    query.run()
    again = [1, 2, 3, 4, 5] if said == "group" else []
    assert _offsets(query)[0] == [0, 1, 2, 3, 4, 5, *again, 6]
    assert _offsets(query)[1] == [0, 1, 2, 3, 4, 5, 6]


def test_5_a_copy_of_a_checkpoint_is_not_another_member(
    mock_broker: BrokerThread, begin: Begin
) -> None:
    produce(mock_broker, 9)
    query = begin(kafka_group_id="g", ownership="shared")
    query.run()
    copy = begin(kafka_group_id="g", ownership="shared")
    copy.log = list(query.log)
    produce(mock_broker, 9, first=9)
    query.run()
    query.runner.close()
    with pytest.raises(ConfigError, match="the checkpoint was set back, or is a copy"):
        copy.run()
    assert copy.sink == []


@pytest.mark.parametrize("is_told", [True, False])
def test_6_a_repeated_batch_is_whole_although_the_group_was_informed_of_it(
    mock_broker: BrokerThread, begin: Begin, is_told: bool
) -> None:
    """Spark's log of commits has lost the batch. Each use of the stream gets the same."""
    produce(mock_broker, 9)
    query = begin(kafka_group_id="g", ownership="shared")
    assert query.plan()
    query.read()
    if is_told:
        assert not query.plan()
        assert committed(mock_broker) == {0: 3, 1: 3, 2: 3}
    query.runner.close()
    query.planned, query.sink = query.log.pop(), []
    planned = query.planned
    query.restart()
    assert _offsets(query) == _each(0, 1, 2)
    assert query.runner.batch(planned) == planned.ranges


@_BOTH
def test_7_a_batch_without_data_is_the_same_manifest(
    mock_broker: BrokerThread, begin: Begin, ownership: str
) -> None:
    """The source knows neither the query's id nor Spark's batch id: the numbers are its own."""
    produce(mock_broker, 9)
    query = begin(kafka_group_id="g", ownership=ownership)
    query.run()
    last = query.log[-1]
    assert (last.number, query.runner.next(last, None)) == (1, last)
    query.restart()
    assert query.runner.next(last, None).to_json() == last.to_json()
    produce(mock_broker, 3, first=9)
    query.run()
    assert (query.log[-1].number, query.log[-1].token) == (2, last.token)
    assert (last.run, query.log[-1].run) == (1, 2)


@_BOTH
@pytest.mark.parametrize("is_vouched", [True, False])
def test_8_a_query_that_stops_informs_the_group_of_what_spark_has_committed(
    mock_broker: BrokerThread, begin: Begin, ownership: str, is_vouched: bool, tmp_path: Path
) -> None:
    produce(mock_broker, 9)
    query = begin(kafka_group_id="g", ownership=ownership, checkpoint=str(tmp_path))
    query.run(limit=3)
    produce(mock_broker, 9, first=9)
    before = committed(mock_broker)
    assert query.plan()
    batches = len(query.log)
    _store(query, tmp_path, commits=batches if is_vouched else batches - 1)
    query.runner.close()
    assert committed(mock_broker) == ({0: 6, 1: 6, 2: 6} if is_vouched else before)


@_BOTH
def test_9_available_now_places_nothing_before_there_is_a_manifest(
    mock_broker: BrokerThread, begin: Begin, ownership: str
) -> None:
    produce(mock_broker, 9)
    query = begin(kafka_group_id="g", ownership=ownership, startingOffsets="latest")
    query.runner.stop_at_what_is_there()
    assert committed(mock_broker) == {}
    query.run()
    assert query.sink == []
    assert committed(mock_broker) == {0: 3, 1: 3, 2: 3}


@_BOTH
def test_10_the_first_manifest_has_a_place_for_every_partition(
    mock_broker: BrokerThread, begin: Begin, ownership: str
) -> None:
    """A partition that is added later begins at its first record, also with ``latest``."""
    produce(mock_broker, 9)
    query = begin(kafka_group_id="g", ownership=ownership, startingOffsets="latest")
    assert not query.plan()
    assert set(query.log[0].positions.values()) == {3}
    query.runner.close()
    mock_broker.add_partitions("a", 4)
    mock_broker.produce("a", b"new", partition=3)
    query.restart()
    query.run()
    assert query.sink == [(3, 0, b"new")]


def test_11_without_a_checkpoint_a_used_group_is_refused(
    mock_broker: BrokerThread, begin: Begin
) -> None:
    produce(mock_broker, 9)
    begin(kafka_group_id="g").run()
    query = begin(kafka_group_id="g", startingOffsets=None)
    with pytest.raises(ConfigError, match="has the offsets of another query"):
        query.run()
    other = begin(kafka_group_id="g", startingOffsets="earliest")
    other.run()
    assert len(other.sink) == 9, "a start that is named wins"


def test_12_an_old_checkpoint_needs_its_ownership(mock_broker: BrokerThread, begin: Begin) -> None:
    """A shared checkpoint as exclusive reads what it lacks from the group's offsets."""
    produce(mock_broker, 9)
    _commit(mock_broker, 0, 2, 2)
    query = begin(kafka_group_id="g")
    ids = query.runner.first().topic_ids
    query.log = [Manifest(3, {Partition("a", 0): (0, 2)}, ids, version=1)]
    query.restart()
    with pytest.raises(ConfigError, match="an older version"):
        query.runner.next(query.log[0], None)
    query.options = options_of(mock_broker.bootstrap, kafka_group_id="g", ownership="exclusive")
    query.restart()
    found = query.runner.next(query.log[0], None)
    assert found.ranges == {Partition("a", number): (2, 3) for number in range(3)}


@_BOTH
def test_13_positions_in_a_topic_that_was_created_again_are_another_logs(
    mock_broker: BrokerThread, begin: Begin, ownership: str
) -> None:
    produce(mock_broker, 9)
    query = begin(kafka_group_id="g", ownership=ownership, failOnDataLoss="false")
    query.run()
    query.runner.close()
    mock_broker.delete_topic("a")
    mock_broker.create_topic("a", 3)
    produce(mock_broker, 12, first=100)
    query.sink.clear()
    query.restart()
    query.run()
    assert _offsets(query) == _each(0, 1, 2, 3)
    assert committed(mock_broker) == {0: 4, 1: 4, 2: 4}


def test_14_a_log_that_was_cut_and_has_grown_is_a_loss_and_an_epoch_alone_is_none() -> None:
    tp, ids = Partition("a", 0), {"a": "id"}
    start = Manifest(4, {tp: (100, 210)}, ids, "exclusive", epochs={tp: 1}, token="t")
    plan = ExclusivePlan(Planning(False), Lineage("t", 2), start)
    moved = Seen({tp: (0, 210)}, ids, {tp: 2}, {tp: 210})
    assert plan.next(moved, None, 0) is start, "Spark would run empty batches"
    cut = Seen({tp: (0, 400)}, ids, {tp: 2}, {tp: 120})
    assert plan.next(cut, None, 0).ranges == {tp: (120, 400)}
    assert "log truncation" in plan.planning.losses[0]


def test_15_an_exclusive_query_shows_its_lag_and_a_reset_never_wins(
    mock_broker: BrokerThread, begin: Begin, caplog: pytest.LogCaptureFixture
) -> None:
    produce(mock_broker, 9)
    query = begin(kafka_group_id="g", startingOffsets="latest")
    assert not query.plan()
    assert committed(mock_broker) == {0: 3, 1: 3, 2: 3}, "with nothing to read"
    query.log.append(query.log[-1])
    query.runner.close()
    _commit(mock_broker, 0, 0, 0)
    produce(mock_broker, 3, first=9)
    query.restart()
    with caplog.at_level(logging.WARNING, "kip848_client.spark"):
        query.run()
    assert _offsets(query) == _each(3)
    assert committed(mock_broker) == {0: 4, 1: 4, 2: 4}
    assert "the checkpoint counts, and 3 replaces it" in caplog.text


@_BOTH
def test_16_a_batch_in_hand_is_not_committed_when_spark_asks_again(
    mock_broker: BrokerThread, begin: Begin, ownership: str
) -> None:
    """With asynchronous progress tracking Spark asks before its log has the batch: unsupported,
    and the source cannot see the option. The start that it names is all that is committed."""
    produce(mock_broker, 9)
    query = begin(kafka_group_id="g", ownership=ownership)
    assert query.plan()
    produce(mock_broker, 9, first=9)
    assert query.planned is not None
    assert query.runner.next(query.log[-1], None).to_json() == query.planned.to_json()
    assert committed(mock_broker) == {0: 0, 1: 0, 2: 0}
