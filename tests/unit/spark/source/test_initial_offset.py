"""Spark asks for the initial offset twice before the first batch, and again when it repeats it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from kip848_client import Admin
from kip848_client.errors import ConfigError
from kip848_client.spark.source.core._begin import CommitNote
from kip848_client.spark.source.core._offset_limits import END, OffsetRangeLimit
from mock_coordinator.threaded import BrokerThread
from tests.unit.spark.source._by_hand import Begin, Query, committed, options_of, produce

pytestmark = pytest.mark.mock_broker(topics={"a": 3})


def _tokens(broker: BrokerThread) -> set[str]:
    """The checkpoints that have committed the group's offsets."""

    async def ask() -> set[str]:
        async with Admin(bootstrap_servers=broker.bootstrap) as admin:
            found = await admin.list_group_offsets("g")
        notes = (CommitNote.of(each.metadata) for each in found.values())
        return {note.token for note in notes if note is not None}

    return asyncio.run(ask())


def _by_default(query: Query) -> Query:
    """Where the options do not name a start: at the group's offsets, or the end."""
    query.options = replace(query.options, sets_starting=False, starting=OffsetRangeLimit(END))
    query.runner = query._run()
    return query


def _store(query: Query, folder: Path) -> None:
    """As Spark stores its log: the batches, and which of them it has committed."""
    (folder / "offsets").mkdir()
    (folder / "commits").mkdir()
    for number, each in enumerate(query.log[1:]):
        text = json.dumps(each.to_json())
        (folder / "offsets" / str(number)).write_text(f"v1\n{{}}\n{text}")
        (folder / "commits" / str(number)).write_text("v1\n{}")


@pytest.mark.parametrize("ownership", ["exclusive", "shared"])
@pytest.mark.parametrize("is_default", [True, False])
def test_the_initial_offset_is_the_same_each_time(
    mock_broker: BrokerThread, begin: Begin, ownership: str, is_default: bool
) -> None:
    """The offsets that the query has committed meanwhile are not another's."""
    query = begin(kafka_group_id="g", ownership=ownership)
    if is_default:
        _by_default(query)
    first = query.runner.first()
    query.log.append(first)
    query.plan()
    produce(mock_broker, 3)
    assert query.runner.first() == first
    query.run()
    assert len(query.sink) == 3


@pytest.mark.parametrize("ownership", ["exclusive", "shared"])
def test_a_repeated_first_batch_keeps_its_token(
    mock_broker: BrokerThread, begin: Begin, ownership: str
) -> None:
    """The checkpoint has the token of the first run, although the second was asked for a start."""
    query = _by_default(begin(kafka_group_id="g", ownership=ownership))
    query.log.append(query.runner.first())
    assert not query.plan()
    produce(mock_broker, 9)
    assert query.plan()
    assert query.planned is not None
    planned = query.planned
    query.runner.close()
    query.runner = query._run()
    query.runner.first()
    query.read()
    query.run()
    assert len(query.sink) == 9
    assert _tokens(mock_broker) == {planned.token}
    assert committed(mock_broker) == {0: 3, 1: 3, 2: 3}


def test_the_log_of_commits_is_found_after_another_initial_offset(
    mock_broker: BrokerThread, begin: Begin, tmp_path: Path
) -> None:
    query = _by_default(begin(kafka_group_id="g", checkpoint=str(tmp_path)))
    query.log.append(query.runner.first())
    assert not query.plan()
    produce(mock_broker, 9)
    assert query.plan()
    query.runner.first()
    query.read()
    _store(query, tmp_path)
    query.runner.close()
    assert committed(mock_broker) == {0: 3, 1: 3, 2: 3}


def test_a_query_that_begins_is_refused_where_another_has_committed(
    mock_broker: BrokerThread, begin: Begin
) -> None:
    """When Spark asks for the first batch: it asks for the initial offset in other cases, too."""
    produce(mock_broker, 9)
    one = begin(kafka_group_id="g")
    one.run()
    other = _by_default(begin(kafka_group_id="g"))
    with pytest.raises(ConfigError, match="has the offsets of another query"):
        other.run()
    other.log.clear()  # Spark has stored nothing
    other.options = options_of(mock_broker.bootstrap, kafka_group_id="g")
    other.restart()
    other.run()
    assert len(other.sink) == 9
