"""Who may go on with which checkpoint."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from kip848_client import Admin
from kip848_client.core.types import TopicPartition
from kip848_client.errors import ConfigError
from kip848_client.spark.source.core._begin import GroupOffset
from kip848_client.spark.source.core._manifest import Manifest
from kip848_client.spark.source.core._options import SourceOptions
from kip848_client.spark.source.core._ownership import GroupState, check_ownership, upgraded
from kip848_client.spark.source.core._planning import Seen
from mock_coordinator.threaded import BrokerThread
from tests.unit.spark.source._by_hand import Begin, Query, committed, options_of, produce

_A0, _A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def _options(ownership: str | None, *, has_group: bool = True) -> SourceOptions:
    said = {"kafka_group_id": "g"} if has_group else {}
    return options_of("h:1", **said, **({"ownership": ownership} if ownership else {}))


def test_a_checkpoint_of_an_older_version_needs_its_ownership_stated() -> None:
    batch = Manifest(3, {_A0: (1, 2)}, version=1)
    check_ownership(batch, _options("shared"))
    check_ownership(batch, _options("exclusive"))
    check_ownership(batch, _options(None, has_group=False))  # it was never a member
    with pytest.raises(ConfigError, match="Set ownership=shared to continue as before, or owner"):
        check_ownership(batch, _options(None))
    shared = replace(batch, ownership="shared")
    with pytest.raises(ConfigError, match=r"this query runs with ownership=exclusive, the default"):
        check_ownership(shared, _options(None))
    check_ownership(shared, _options("exclusive"))
    check_ownership(replace(shared, version=2), _options(None))


_SEEN = Seen({_A0: (0, 9), _A1: (0, 9)}, {})


def test_what_an_old_members_checkpoint_lacks_begins_at_the_group() -> None:
    old = Manifest(3, {_A0: (1, 2)}, version=1)
    found = upgraded(old, _SEEN, GroupState(offsets={_A0: GroupOffset(5), _A1: GroupOffset(4)}))
    assert found.ends == {_A0: 2, _A1: 4}
    assert found.unread == {_A1}
    with pytest.raises(ConfigError, match="no position for a-1, and the group has no offset"):
        upgraded(old, _SEEN, GroupState(offsets={_A0: GroupOffset(5)}))


@pytest.mark.parametrize(
    "kept",
    [
        Manifest(3, {_A0: (1, 2)}, {}, "exclusive", version=1),
        Manifest(0, version=1),
        Manifest(3, {_A0: (1, 2)}),
    ],
)
def test_a_partition_that_a_whole_checkpoint_lacks_was_added_later(kept: Manifest) -> None:
    assert upgraded(kept, _SEEN, GroupState()) is kept


def _restart_and_run(query: Query) -> None:
    query.restart()
    query.run()


def _by_an_older_version(query: Query) -> None:
    """What is in the checkpoint does not say the ownership."""
    query.log = [_unsaid(each) for each in query.log]
    query.planned = None if query.planned is None else _unsaid(query.planned)


def _unsaid(batch: Manifest) -> Manifest:
    """Version 1: an exclusive query had a range for each partition, a member those of the batch."""
    spans = dict(batch.ranges)
    if batch.ownership == "exclusive":
        spans |= {tp: (at, at) for tp, at in batch.positions.items()}
    ranges: dict[str, dict[str, list[int]]] = {}
    for (topic, partition), span in spans.items():
        ranges.setdefault(topic, {})[str(partition)] = [*span]
    said = {"number": batch.number, "ranges": ranges, "topics": {**batch.topic_ids}}
    return Manifest.of(said)


@pytest.mark.mock_broker(topics={"a": 3})
@pytest.mark.parametrize("is_in_hand", [True, False])
def test_a_shared_query_of_an_older_version_does_not_become_exclusive_by_a_new_default(
    mock_broker: BrokerThread, begin: Begin, is_in_hand: bool
) -> None:
    """Nothing is read, and the group is left alone. With the option it continues."""
    produce(mock_broker, 9)
    query = begin(kafka_group_id="g", ownership="shared")
    query.run()
    query.run()  # commits to the group
    mock_broker.produce("a", b"v9", partition=0)
    if is_in_hand:
        assert query.plan()
    _by_an_older_version(query)
    rows, offsets = list(query.sink), committed(mock_broker)
    query.options = options_of(mock_broker.bootstrap, kafka_group_id="g")
    with pytest.raises(ConfigError, match="Set ownership=shared to continue"):
        _restart_and_run(query)
    assert (query.sink, committed(mock_broker)) == (rows, offsets)
    query.options = options_of(mock_broker.bootstrap, kafka_group_id="g", ownership="shared")
    _restart_and_run(query)
    mock_broker.produce("a", b"v10", partition=1)
    query.run()
    assert query.sink == [*rows, (0, 3, b"v9"), (1, 3, b"v10")]
    assert query.log[-1].ownership == "shared"


@pytest.mark.mock_broker(topics={"a": 3})
def test_an_old_checkpoint_with_one_batch_of_a_member_is_not_taken_for_all_positions(
    mock_broker: BrokerThread, begin: Begin
) -> None:
    """The user may say ``ownership=exclusive``, because the pages advise it."""
    produce(mock_broker, 9)
    query = begin(kafka_group_id="g", ownership="shared")
    query.run()
    mock_broker.produce("a", b"v9", partition=0)
    query.run()
    assert set(query.log[-1].ranges) == {TopicPartition("a", 0)}
    _by_an_older_version(query)
    query.options = options_of(mock_broker.bootstrap, kafka_group_id="g", ownership="exclusive")
    query.restart()
    query.run()
    assert len(query.sink) == 10
    query.runner.close()
    _forget_offsets(mock_broker)
    query.restart()
    with pytest.raises(ConfigError, match="no position for a-1, and the group has no offset"):
        query.run()


def _forget_offsets(broker: BrokerThread) -> None:
    async def do() -> None:
        async with Admin(bootstrap_servers=broker.bootstrap) as admin:
            await admin.delete_groups(["g"])

    asyncio.run(do())


@pytest.mark.mock_broker(topics={"a": 3})
@pytest.mark.parametrize("has_group", [True, False])
def test_an_exclusive_query_becomes_a_member_of_a_group_that_knows_nothing_of_it(
    mock_broker: BrokerThread, begin: Begin, has_group: bool
) -> None:
    """Its group hears of all positions first: other members begin there."""
    produce(mock_broker, 9)
    query = begin(**({"kafka_group_id": "g"} if has_group else {}))
    query.run()
    for group in ("g", "h"):
        query.options = options_of(mock_broker.bootstrap, kafka_group_id=group, ownership="shared")
        query.restart()
        assert not query.plan()
        assert committed(mock_broker, group) == {0: 3, 1: 3, 2: 3}
    produce(mock_broker, 3, first=9)
    query.run()
    assert len(query.sink) == 12
    query.options = options_of(mock_broker.bootstrap, kafka_group_id="g", ownership="shared")
    query.restart()
    with pytest.raises(ConfigError, match="for group 'h', and group 'g' has offsets"):
        query.run()


@pytest.mark.mock_broker(topics={"a": 3})
def test_an_exclusive_query_of_an_older_version_goes_on(
    mock_broker: BrokerThread, begin: Begin
) -> None:
    produce(mock_broker, 9)
    query = begin()
    query.run()
    _by_an_older_version(query)
    mock_broker.add_partitions("a", 4)
    mock_broker.produce("a", b"new", partition=3)
    query.restart()
    query.run()
    assert query.sink[9:] == [(3, 0, b"new")]
    assert query.log[-1].ownership == "exclusive"
