"""Every cell of the error table: what a code in the answer to a request leads to.

The expectations are written by hand, from what brokers mean by a code; see ``_errors``.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kip848_client.core.produce import _commands as do
from kip848_client.core.produce._transaction_states import State
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import (
    CommitFailed,
    CommitInDoubt,
    ProducerFailed,
    ProducerFenced,
    TransactionAborted,
)
from tests.unit.core.produce._transactions import GROUP, ME, Harness


def init(level: int) -> Harness:
    h = Harness(level)
    h.start()
    h.asked(do.InitProducerId)
    return h


def add_partitions(_level: int) -> Harness:
    h = Harness(1).begun()
    h.record()
    h.asked(do.AddPartitions)
    return h


def add_offsets(_level: int) -> Harness:
    h = Harness(1).begun()
    h.offsets()
    h.asked(do.AddOffsets)
    return h


def commit_offsets(level: int) -> Harness:
    h = Harness(level).begun()
    h.offsets()
    if level < 2:
        h.answer()
    h.asked(do.CommitOffsets)
    return h


def commit(level: int) -> Harness:
    h = Harness(level).filled()
    h.commit()
    assert h.asked(do.EndTransaction).commit
    return h


def abort(level: int) -> Harness:
    h = Harness(level).filled()
    h.abort()
    assert not h.asked(do.EndTransaction).commit
    return h


COLUMNS: tuple[Callable[[int], Harness], ...] = (
    init,
    add_partitions,
    add_offsets,
    commit_offsets,
    commit,
    abort,
)

AGAIN = "the same request, after a pause"
MOVED = "a look-up of the coordinator, and the same request"
HARM = "the transaction can only be aborted"
ASK = "InitProducerId with our own id and epoch"
OVER = "the producer cannot go on"

E = ErrorCode
CELLS: dict[int, tuple[str, ...]] = {
    # InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, TxnOffsetCommit, EndTxn: commit, abort
    E.NOT_COORDINATOR: (MOVED,) * 6,
    E.COORDINATOR_NOT_AVAILABLE: (MOVED,) * 6,
    E.REQUEST_TIMED_OUT: (AGAIN, AGAIN, AGAIN, MOVED, AGAIN, AGAIN),
    E.NETWORK_EXCEPTION: (AGAIN,) * 6,
    E.COORDINATOR_LOAD_IN_PROGRESS: (AGAIN,) * 6,
    E.CONCURRENT_TRANSACTIONS: (AGAIN,) * 6,
    E.THROTTLING_QUOTA_EXCEEDED: (AGAIN,) * 6,
    E.UNKNOWN_TOPIC_OR_PARTITION: (OVER, AGAIN, AGAIN, AGAIN, OVER, OVER),
    E.UNKNOWN_TOPIC_ID: (OVER, AGAIN, AGAIN, AGAIN, OVER, OVER),
    E.NOT_LEADER_OR_FOLLOWER: (OVER, AGAIN, AGAIN, AGAIN, OVER, OVER),
    E.OPERATION_NOT_ATTEMPTED: (OVER, AGAIN, AGAIN, OVER, OVER, OVER),
    E.NOT_ENOUGH_REPLICAS: (OVER, OVER, OVER, AGAIN, OVER, OVER),
    E.NOT_ENOUGH_REPLICAS_AFTER_APPEND: (OVER, OVER, OVER, AGAIN, OVER, OVER),
    E.TOPIC_AUTHORIZATION_FAILED: (OVER, HARM, HARM, HARM, OVER, OVER),
    E.GROUP_AUTHORIZATION_FAILED: (OVER, HARM, HARM, HARM, OVER, OVER),
    E.INVALID_GROUP_ID: (OVER, HARM, HARM, HARM, OVER, OVER),
    E.ILLEGAL_GENERATION: (OVER, OVER, OVER, HARM, OVER, OVER),
    E.UNKNOWN_MEMBER_ID: (OVER, OVER, OVER, HARM, OVER, OVER),
    E.GROUP_ID_NOT_FOUND: (OVER, OVER, OVER, HARM, OVER, OVER),
    E.STALE_MEMBER_EPOCH: (OVER, OVER, OVER, HARM, OVER, OVER),
    E.FENCED_INSTANCE_ID: (OVER, OVER, OVER, HARM, OVER, OVER),
    E.REBALANCE_IN_PROGRESS: (OVER, OVER, OVER, HARM, OVER, OVER),
    E.OFFSET_METADATA_TOO_LARGE: (OVER, OVER, OVER, HARM, OVER, OVER),
    E.INVALID_COMMIT_OFFSET_SIZE: (OVER, OVER, OVER, HARM, OVER, OVER),
    E.UNKNOWN_PRODUCER_ID: (OVER, HARM, HARM, HARM, ASK, ASK),
    E.INVALID_PRODUCER_ID_MAPPING: (OVER, HARM, HARM, HARM, ASK, ASK),
    E.INVALID_PRODUCER_EPOCH: (OVER, ASK, ASK, ASK, ASK, ASK),
    E.PRODUCER_FENCED: (OVER, ASK, ASK, ASK, ASK, ASK),
    E.INVALID_TXN_STATE: (OVER, ASK, ASK, ASK, ASK, ASK),
    E.TRANSACTION_ABORTABLE: (AGAIN, HARM, HARM, HARM, HARM, ASK),
    E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: (OVER,) * 6,
    E.CLUSTER_AUTHORIZATION_FAILED: (OVER,) * 6,
    E.INVALID_TRANSACTION_TIMEOUT: (OVER,) * 6,
    E.UNSUPPORTED_VERSION: (OVER,) * 6,
    E.UNSUPPORTED_FOR_MESSAGE_FORMAT: (OVER,) * 6,
    E.UNKNOWN_SERVER_ERROR: (OVER,) * 6,
    E.INVALID_REQUEST: (OVER,) * 6,
    4_711: (OVER,) * 6,
}

cells = pytest.mark.parametrize(
    ("code", "column", "expected"),
    [
        pytest.param(code, column, cell, id=f"{E(code).name if code in {*E} else code}-{column}")
        for code, row in CELLS.items()
        for column, cell in enumerate(row)
    ],
)


def test_every_request_is_in_the_table() -> None:
    assert all(len(row) == len(COLUMNS) for row in CELLS.values())


@pytest.mark.parametrize("level", [1, 2])
@cells
def test_what_a_code_leads_to(level: int, code: int, column: int, expected: str) -> None:
    h = COLUMNS[column](level)
    kind = type(h.open[0])
    lookups = len(h.all(do.FindCoordinator))
    h.answer(code)
    seen = ""
    if h.core.state is State.FATAL:
        seen = OVER
        assert not h.open
    elif h.open and isinstance(h.open[0], do.InitProducerId) and kind is not do.InitProducerId:
        assert h.open[0].producer == ME
        seen = ASK
    elif h.core.state is State.ABORTABLE:
        seen = HARM
        assert not h.open
    else:
        assert not h.open, "without a pause"
        h.advance(100)
        assert isinstance(h.open[0], kind)
        seen = AGAIN if len(h.all(do.FindCoordinator)) == lookups else MOVED
    assert seen == expected


@pytest.mark.parametrize(
    ("code", "column"),
    [
        (code, column)
        for code, row in CELLS.items()
        for column, cell in enumerate(row)
        if cell in (HARM, OVER)
    ],
)
def test_whoever_waits_is_told_and_the_error_says_the_way_out(code: int, column: int) -> None:
    """What cannot be mended is told at once, to whoever waits: nobody is left waiting."""
    cell = CELLS[code][column]
    h = COLUMNS[column](2)
    ticket = h.commit() if column in (1, 2, 3) else max((1, *h.outcomes))
    if column in (4, 5):
        ticket += 1
    h.answer(code)
    error = h.error(ticket)
    name = E(code).name if code in {*E} else "UNKNOWN_ERROR_4711"
    assert name in str(error)
    if cell is HARM:
        assert isinstance(error, TransactionAborted)
        assert "abort it" in str(error)
        assert isinstance(error.cause, CommitFailed) is (column == 3)
    elif code in (E.PRODUCER_FENCED, E.INVALID_PRODUCER_EPOCH):
        assert isinstance(error, ProducerFenced)
        assert "take the id back" in str(error)
    elif isinstance(error, CommitInDoubt):
        assert column == 4, "only a commit can be in doubt"
        assert isinstance(error.cause, ProducerFailed)
        assert "read the committed offsets" in str(error)
    else:
        assert isinstance(error, ProducerFailed)
        assert "make a new one" in str(error)


def test_a_commit_that_is_refused_by_an_unknown_code_is_in_doubt() -> None:
    for code, doubt in (
        (E.UNKNOWN_SERVER_ERROR, True),
        (4_711, True),
        (E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, False),
    ):
        h = Harness().filled()
        ticket = h.commit()
        h.answer(code)
        assert isinstance(h.error(ticket), CommitInDoubt) is doubt
        for again in (h.commit(), h.begin()):
            error = h.error(again)
            assert isinstance(error, ProducerFailed)
            assert error.maybe_committed is doubt


@pytest.mark.parametrize("level", [1, 2])
def test_offsets_that_are_refused_are_told_as_such(level: int) -> None:
    h = Harness(level).begun()
    ticket = h.offsets()
    other = h.offsets()
    if level == 1:
        h.answer()
    h.answer(E.STALE_MEMBER_EPOCH)
    error = h.error(ticket)
    assert isinstance(error, TransactionAborted)
    cause = error.cause
    assert isinstance(cause, CommitFailed)
    assert error.__cause__ is cause
    assert "STALE_MEMBER_EPOCH" in str(cause)
    assert "not in the group any more" in str(cause)
    assert [offset.offset for offset in cause.offsets.values()] == [10]
    assert isinstance(h.error(other), TransactionAborted), "offsets that wait go down with them"


def test_of_several_partitions_the_gravest_code_counts() -> None:
    h = Harness().begun()
    ticket = h.offsets(GROUP, 0, 1, 2)
    h.answer(p0=0, p1=E.UNKNOWN_TOPIC_OR_PARTITION, p2=E.TOPIC_AUTHORIZATION_FAILED)
    error = h.error(ticket)
    assert isinstance(error, TransactionAborted)
    assert "TOPIC_AUTHORIZATION_FAILED" in str(error)
    assert "t-2" in str(error)
