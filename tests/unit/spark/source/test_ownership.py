"""Who may go on with which checkpoint."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kip848_client.core.types import TopicPartition
from kip848_client.errors import ConfigError
from kip848_client.spark.source.core._manifest import Manifest, Ownership
from kip848_client.spark.source.core._options import SourceOptions
from kip848_client.spark.source.core._ownership import check_ownership, check_positions
from mock_coordinator.threaded import BrokerThread
from tests.unit.spark.source._by_hand import Begin, Query, committed, options_of, produce

_A0, _A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def _options(ownership: str | None, *, has_group: bool = True) -> SourceOptions:
    said = {"kafka_group_id": "g"} if has_group else {}
    return options_of("h:1", **said, **({"ownership": ownership} if ownership else {}))


@pytest.mark.parametrize("said", [None, "exclusive", "shared"])
@pytest.mark.parametrize("kept", ["exclusive", "shared"])
def test_a_query_goes_on_with_a_checkpoint_of_its_own_ownership_alone(
    kept: Ownership, said: str | None
) -> None:
    batch = Manifest(3, {_A0: (1, 2)}, {}, kept)
    if kept == (said or "exclusive"):
        check_ownership(batch, _options(said))
        return
    default = "" if said else ", the default"
    mine = said or "exclusive"
    with pytest.raises(
        ConfigError, match=f"ownership={mine}{default}, so .* Set ownership={kept} to"
    ):
        check_ownership(batch, _options(said))


def test_a_checkpoint_that_does_not_say_leaves_it_to_the_user() -> None:
    batch = Manifest(3, {_A0: (1, 2)})
    check_ownership(batch, _options("shared"))
    check_ownership(batch, _options("exclusive"))
    check_ownership(batch, _options(None, has_group=False))  # it was never a member
    with pytest.raises(ConfigError, match="Set ownership=shared to continue as before, or owner"):
        check_ownership(batch, _options(None))


@pytest.mark.parametrize(
    ("batch", "ownership", "has_group", "is_refused"),
    [
        (Manifest(3, {_A0: (1, 2)}), "exclusive", True, True),
        (Manifest(0), "exclusive", True, True),
        (Manifest(3, {_A0: (1, 2), _A1: (0, 1)}), "exclusive", True, False),
        (Manifest(3, {_A0: (1, 2)}, {}, "exclusive"), "exclusive", True, False),
        (Manifest(3, {_A0: (1, 2)}), None, False, False),
    ],
)
def test_a_partition_that_an_old_checkpoint_lacks_is_not_read_from_its_first_record(
    batch: Manifest, ownership: str | None, has_group: bool, is_refused: bool
) -> None:
    """But one that was added since is, where it is certain that the checkpoint had all others."""
    options = _options(ownership, has_group=has_group)
    if not is_refused:
        check_positions(batch, options, [_A0, _A1])
        return
    with pytest.raises(ConfigError, match=r"no position for a-.: .*ownership=shared, set that"):
        check_positions(batch, options, [_A0, _A1])


def _restart_and_run(query: Query) -> None:
    query.restart()
    query.run()


def _by_an_older_version(query: Query) -> None:
    """What is in the checkpoint does not say the ownership."""
    query.log = [_unsaid(each) for each in query.log]
    query.planned = None if query.planned is None else _unsaid(query.planned)


def _unsaid(batch: Manifest) -> Manifest:
    said = batch.to_json()
    del said["ownership"]
    return Manifest.of(said)


@pytest.mark.mock_broker(topics={"a": 3})
@pytest.mark.parametrize("is_old", [True, False])
@pytest.mark.parametrize("is_in_hand", [True, False])
def test_a_shared_query_does_not_become_exclusive_by_a_new_default(
    mock_broker: BrokerThread, begin: Begin, is_in_hand: bool, is_old: bool
) -> None:
    """Nothing is read, and the group is left alone. With the option it goes on."""
    produce(mock_broker, 9)
    query = begin(kafka_group_id="g", ownership="shared")
    query.run()
    query.run()  # tells the group
    mock_broker.produce("a", b"v9", partition=0)
    if is_in_hand:
        assert query.plan()
    if is_old:
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
    with pytest.raises(ConfigError, match="no position for a-1"):
        query.run()
    assert len(query.sink) == 10


@pytest.mark.mock_broker(topics={"a": 3})
@pytest.mark.parametrize("has_group", [True, False])
def test_an_exclusive_query_does_not_become_a_member_by_an_option(
    mock_broker: BrokerThread, begin: Begin, has_group: bool
) -> None:
    """A member would read what its group has no offsets for from the first record."""
    produce(mock_broker, 9)
    query = begin(**({"kafka_group_id": "g"} if has_group else {}))
    query.run(limit=4)
    query.options = options_of(mock_broker.bootstrap, kafka_group_id="h", ownership="shared")
    query.restart()
    with pytest.raises(ConfigError, match="Set ownership=exclusive to continue"):
        query.run()
    assert mock_broker.snapshot("h") is None
    query.options = options_of(mock_broker.bootstrap, kafka_group_id="h")
    query.restart()
    produce(mock_broker, 3, first=9)
    query.run()
    assert len(query.sink) == 12


@pytest.mark.mock_broker(topics={"a": 3})
def test_an_exclusive_query_of_an_older_version_goes_on(
    mock_broker: BrokerThread, begin: Begin
) -> None:
    produce(mock_broker, 9)
    query = begin()
    query.run()
    _by_an_older_version(query)
    assert query.log[-1] == replace(query.log[-1], ownership=None)
    mock_broker.add_partitions("a", 4)
    mock_broker.produce("a", b"new", partition=3)
    query.restart()
    query.run()
    assert query.sink[9:] == [(3, 0, b"new")]
    assert query.log[-1].ownership == "exclusive"
