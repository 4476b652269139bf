"""Writers that write exactly once, called as Spark calls them, on the bundled broker: transactions
of both versions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from kip848_client import Admin
from kip848_client.admin._transactions import TransactionAdmin, TransactionToEnd
from kip848_client.errors import ConfigError
from kip848_client.spark._data_source import Kip848DataSource
from kip848_client.spark.sink import _transaction_committer, _writers
from kip848_client.spark.sink._options import sink_options
from kip848_client.spark.sink._running_task import RunningTask
from kip848_client.spark.sink.core import _decisions
from kip848_client.spark.sink.core._two_phase_commit import BatchLost, BatchRefused, Decide, End
from mock_coordinator import options
from mock_coordinator.core.profiles import profile_named
from mock_coordinator.threaded import BrokerThread
from tests.unit.spark.sink._writing import (
    NAME,
    SCHEMA,
    Died,
    Query,
    arrow,
    open_transactions,
    time_out,
)


@pytest.fixture(params=[("4.0", 1), ("4.0", 2), ("4.4", 1), ("4.4", 2)], ids=str)
def query(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Query]:
    """Of each version of Kafka and of transactions."""
    profile, level = request.param
    monkeypatch.setattr(
        options, "profile_named", lambda name: profile_named(name).at_transaction_version(level)
    )
    with BrokerThread(topics={"a": 2}, profile=profile) as broker:
        yield Query(broker.bootstrap, monkeypatch)


@pytest.fixture
def newest(monkeypatch: pytest.MonkeyPatch) -> Iterator[Query]:
    """Of the newest ones."""
    with BrokerThread(topics={"a": 2}) as broker:
        yield Query(broker.bootstrap, monkeypatch)


def test_rows_are_there_once_when_their_batch_is_committed(query: Query) -> None:
    messages = query.write([b"1", b"2"], [b"3"], [])
    assert len(open_transactions(query.bootstrap)) == 2
    query.writer().commit(messages, 0)
    assert query.values() == [b"1", b"2", b"3"]
    query.batch(1, [b"4"], [b"5"])
    query.batch(2, [])
    query.restart()  # repeats what Spark has not in its log
    query.batch(1, [b"5", b"4"])
    assert query.values() == [b"1", b"2", b"3", b"4", b"5"]
    assert not open_transactions(query.bootstrap)


def test_a_driver_that_dies_after_its_decision_has_its_batch_carried_out(query: Query) -> None:
    messages = query.write([b"1"], [b"2"])
    live = query.dies_before(End)
    with pytest.raises(Died):
        query.writer().commit(messages, 0)
    live()
    assert len(open_transactions(query.bootstrap)) == 2
    query.restart()
    query.batch(0, [b"2"], [b"1"])
    assert query.values() == [b"1", b"2"]
    assert not open_transactions(query.bootstrap)


def test_a_driver_that_dies_before_its_decision_has_its_batch_written_anew(query: Query) -> None:
    messages = query.write([b"1"], [b"2"])
    live = query.dies_before(Decide)
    with pytest.raises(Died):
        query.writer().commit(messages, 0)
    live()
    query.restart()
    query.batch(0, [b"2", b"1"])
    assert query.values() == [b"1", b"2"]
    assert not open_transactions(query.bootstrap)  # they were swept


def test_a_batch_that_is_aborted_leaves_nothing(query: Query) -> None:
    query.writer().abort([*query.write([b"1"]), None], 0)
    assert not open_transactions(query.bootstrap)
    query.restart()
    query.batch(0, [b"2"])
    assert query.values() == [b"2"]


def test_a_commit_that_fails_after_its_decision_is_carried_out_by_thetime_out(query: Query) -> None:
    messages = query.write([b"1"], [b"2"])
    live = query.dies_before(End)
    with pytest.raises(Died):
        query.writer().commit(messages, 0)
    live()
    query.writer().abort(messages, 0)
    assert query.values() == [b"1", b"2"]


def test_a_transaction_that_timed_out_before_the_decision_refuses_the_batch(query: Query) -> None:
    messages = query.write([b"1"], [b"2"])
    time_out(query.bootstrap, f"{NAME}-{query.run}-1-0")
    with pytest.raises(BatchRefused, match="is aborted, not open"):
        query.writer().commit(messages, 0)
    query.writer().abort(messages, 0)
    query.restart()
    query.batch(0, [b"1"], [b"2"])
    assert query.values() == [b"1", b"2"]


def test_what_timed_out_after_the_decision_is_told_or_written_anew(
    query: Query, caplog: pytest.LogCaptureFixture
) -> None:
    messages = query.write([b"1"], [b"2"])
    live = query.dies_before(End)
    with pytest.raises(Died):
        query.writer().commit(messages, 0)
    live()
    time_out(query.bootstrap, f"{NAME}-{query.run}-0-0")
    query.restart()
    with caplog.at_level(logging.WARNING):
        query.batch(0, [b"1"], [b"2"])
    assert "it is written again" in caplog.text
    assert query.values() == [b"1", b"2"]


def test_what_was_committed_in_part_only_is_lost_loudly(newest: Query) -> None:
    messages = newest.write([b"1"], [b"2"])
    live = newest.dies_before(End)
    with pytest.raises(Died):
        newest.writer().commit(messages, 0)
    live()
    ends = newest.write([], [])
    first = messages[0].prepared.participant

    async def end_one() -> None:
        async with TransactionAdmin(bootstrap_servers=newest.bootstrap) as admin:
            mine = TransactionToEnd(
                first.transactional_id, first.producer_id, first.epoch, first.is_v2
            )
            assert not await admin.end_transactions([mine], commits=True)

    asyncio.run(end_one())
    time_out(newest.bootstrap, messages[1].prepared.participant.transactional_id)
    newest.restart()
    again = newest.write([b"1"], [b"2"])
    with pytest.raises(BatchLost, match="1 rows of batch 0 are lost"):
        newest.writer().commit(again, 0)
    newest.writer().abort(again, 0)
    assert newest.values() == [b"1"]
    newest.said["failOnDataLoss"] = "false"
    newest.writer().commit(ends, 0)

    async def forget() -> None:  # the other way out that the error names
        async with Admin(bootstrap_servers=newest.bootstrap) as admin:
            await admin.delete_groups([NAME])

    asyncio.run(forget())
    newest.restart()
    newest.batch(0, [b"1"], [b"2"])
    assert newest.values() == [b"1", b"1", b"2"]


def test_a_driver_that_was_replaced_meanwhile_is_refused(newest: Query) -> None:
    messages = newest.write([b"1"])
    decide = _transaction_committer._TransactionCommitter._decide

    async def late(committer: Any, decision: Any, kept: Any) -> None:
        async with _transaction_committer._Driver(
            bootstrap_servers=newest.bootstrap, transactional_id=NAME
        ):
            await decide(committer, decision, kept)

    newest._patch.setattr(_transaction_committer._TransactionCommitter, "_decide", late)
    with pytest.raises(BatchRefused, match="another driver has taken over"):
        newest.writer().commit(messages, 0)
    newest._patch.setattr(_transaction_committer._TransactionCommitter, "_decide", decide)
    newest.writer().abort(messages, 0)
    assert newest.values() == []
    assert not open_transactions(newest.bootstrap)


def test_a_task_that_fails_aborts_what_it_has_begun(newest: Query) -> None:
    task = RunningTask("q", newest.run, 0, 0)
    newest._patch.setattr(_writers, "running_task", lambda _: task)

    def rows() -> Iterator[Any]:
        yield arrow([b"1"])
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        newest.writer().write(rows())
    newest.said["kafka.max.request.size"] = "1000"
    with pytest.raises(Exception, match="a record of 2082 bytes"):
        newest.writer().write(iter([arrow([b"1", b"x" * 2000])]))
    assert not open_transactions(newest.bootstrap)
    newest.writer().abort([None], 0)
    assert newest.values() == []


def test_a_decision_for_which_there_is_no_room_refuses_the_batch(newest: Query) -> None:
    newest._patch.setattr(_decisions, "_TEXT_MAX", 1)
    messages = newest.write([b"1"], [b"2"], [b"3"])
    with pytest.raises(BatchRefused, match=r"3 tasks, too many .* 2 partitions of a; .*coalesce"):
        newest.writer().commit(messages, 0)
    newest.writer().abort(messages, 0)
    newest.restart()
    newest.batch(0, [b"1"], [b"2", b"3"])
    newest.restart()
    newest.batch(0, [b"1", b"2", b"3"])
    newest.batch(1, [b"4"])
    assert newest.values() == [b"1", b"2", b"3", b"4"]


def test_another_attempt_of_a_task_does_not_disturb_the_first(newest: Query) -> None:
    first = newest.write([b"1"])
    newest.write([b"1"], attempt=1)
    newest.writer().commit(first, 0)
    assert newest.values() == [b"1"]
    assert not open_transactions(newest.bootstrap)  # the other one was swept


def test_a_batch_query_is_written_whole_or_not_at_all(newest: Query) -> None:
    task = RunningTask("batch-1", "a" * 12, 0, 0)
    newest._patch.setattr(_writers, "running_task", lambda _: task)
    writer = Kip848DataSource(newest.said).writer(SCHEMA, overwrite=False)
    writer.commit([writer.write(iter([arrow([b"1"])]))])
    other = Kip848DataSource(newest.said).writer(SCHEMA, overwrite=False)
    other.abort([other.write(iter([arrow([b"2"])])), None])
    assert newest.values() == [b"1"]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"kafka.transactional.id": " "}, "kafka.transactional.id is empty"),
        ({"kafka.transaction.timeout.ms": "1"}, "needs kafka.transactional.id"),
        ({"kafka.transactional.id": "q", "kafka.acks": "1"}, "acks"),
        ({"failOnDataLoss": "no"}, "failOnDataLoss must be true or false, got 'no'"),
    ],
)
def test_options_that_do_not_fit_are_refused(said: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        sink_options({"kafka.bootstrap.servers": "localhost:1", **said})
