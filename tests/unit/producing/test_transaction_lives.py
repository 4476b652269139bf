"""Transactions from their beginning to their end, each rule in a life of its own."""

from __future__ import annotations

import itertools

import pytest

from kip848_client.error_codes import ErrorCode
from kip848_client.errors import (
    CommitInDoubt,
    CoordinatorUnavailable,
    LocalProtocolError,
    ProducerFailed,
    ProducerFenced,
    RecordUnreadable,
    RequestTimedOut,
    TransactionAborted,
    TransactionTimedOut,
    TransportError,
)
from kip848_client.producing import _commands as do
from kip848_client.producing import _events as ev
from kip848_client.producing._errors import Reaction
from kip848_client.producing._model import NOBODY, ProducerId, TransactionVersion
from kip848_client.producing._transaction_states import State
from tests.unit.producing._transactions import GROUP, ME, Harness, group, tp

BUMPED = ProducerId(7, 4)
REFUSED = RecordUnreadable("no", topic="t", partition=0, offset=0)
levels = pytest.mark.parametrize("level", [0, 1, 2])


def names(h: Harness) -> list[str]:
    """What was asked of coordinators, in order."""
    kinds = (
        do.InitProducerId,
        do.AddPartitions,
        do.AddOffsets,
        do.CommitOffsets,
        do.EndTransaction,
    )
    return [type(each).__name__ for each in h.commands if isinstance(each, kinds)]


# -- what is asked, in which order -------------------------------------------------------------


def test_v2_writes_at_once_and_adopts_what_the_end_tells() -> None:
    h = Harness(2).begun()
    h.record()
    assert h.batches.flying[0].producer == ME
    ticket = h.commit()
    assert not h.open, "a batch is on its way still"
    assert h.batches.is_hurried is True
    h.written()
    end = h.asked(do.EndTransaction)
    assert (end.commit, end.producer, end.version) == (True, ME, TransactionVersion.V2)
    h.answer(who=ProducerId(9, 0))
    assert h.is_done(ticket)
    assert h.batches.known_as == [ME, ProducerId(9, 0)]
    h.begin()
    h.record()
    assert h.batches.flying[0].producer == ProducerId(9, 0)


def test_v1_adds_what_it_writes_to_before_it_writes() -> None:
    h = Harness(1).begun()
    h.record(0)
    assert h.asked(do.AddPartitions).partitions == (tp(0),)
    h.record(1)
    h.record(2)
    assert not h.batches.flying
    h.answer()
    assert [each.tp for each in h.batches.flying] == [tp(0)]
    assert h.asked(do.AddPartitions).partitions == (tp(1), tp(2)), "the others together"
    h.answer()
    h.record(2)
    assert not h.open
    h.offsets()
    h.asked(do.AddOffsets)
    h.answer()
    command = h.asked(do.CommitOffsets)
    assert (command.node, command.version) == (2, TransactionVersion.V1)
    h.answer()
    ticket = h.commit()
    h.written()
    h.answer()
    assert h.is_done(ticket)
    assert h.batches.known_as == [ME], "the epoch stays"
    h.begin()
    h.record(0)
    h.asked(do.AddPartitions)  # of the next transaction: added anew


@levels
def test_two_groups_in_one_transaction(level: int) -> None:
    h = Harness(level).begun()
    tickets = [h.offsets(group("g")), h.offsets(group("h")), h.offsets(group("g"), 1)]
    while h.open:
        h.answer()
    assert all(h.is_done(each) for each in tickets)
    asked = [(each.group.group_id, set(each.offsets)) for each in h.all(do.CommitOffsets)]
    assert asked == [("g", {tp(0)}), ("h", {tp(0)}), ("g", {tp(1)})]
    assert [each.group_id for each in h.all(do.AddOffsets)] == ([] if level == 2 else ["g", "h"])
    keys = {each.key for each in h.all(do.FindCoordinator)}
    assert keys == {"id", "g", "h"}, "a coordinator for each group"


@levels
def test_nothing_is_committed_without_asking(level: int) -> None:
    h = Harness(level).begun()
    ticket = h.commit()
    assert h.is_done(ticket)
    h.begin()
    ticket = h.abort()
    assert h.is_done(ticket)
    h.begin()
    assert h.is_done(h.offsets(GROUP) - 1)
    h.post(ev.OffsetsAdded(99, GROUP, {}))
    assert h.is_done(99)
    assert not h.all(do.EndTransaction)
    assert h.is_in(State.IN_TRANSACTION)


@levels
def test_records_that_never_left_are_not_worth_an_end(level: int) -> None:
    h = Harness(level).begun()
    h.finds = False
    if level == 2:
        h.batches.is_held = True
    batch = h.record()
    ticket = h.abort()
    if level < 2:
        h.answer(ErrorCode.CONCURRENT_TRANSACTIONS)
    assert h.is_done(ticket)
    assert isinstance(batch.error, TransactionAborted)
    assert not h.all(do.EndTransaction)


def test_a_commit_waits_for_offsets_that_were_added() -> None:
    h = Harness(2).begun()
    offsets = h.offsets()
    ticket = h.commit()
    h.answer()
    assert h.is_done(offsets)
    h.asked(do.EndTransaction)
    h.answer()
    assert h.is_done(ticket)


# -- what harms a transaction ------------------------------------------------------------------


@levels
def test_the_first_error_is_what_commit_raises(level: int) -> None:
    h = Harness(level).filled()
    h.record(0)
    h.record(0)
    h.batch_refused(Reaction.ABORT_AND_BUMP, REFUSED)
    h.batch_refused(Reaction.ABORT, RequestTimedOut("later"))
    for ticket in (h.commit(), h.offsets()):
        error = h.error(ticket)
        assert isinstance(error, TransactionAborted)
        assert error.cause is REFUSED
        assert "RecordUnreadable" not in str(error)
    with pytest.raises(TransactionAborted) as raised:
        h.core.check_append()
    assert raised.value.__cause__ is REFUSED
    assert not h.all(do.EndTransaction), "a commit is never sent"


@levels
def test_a_record_that_is_refused_makes_the_commit_fail_that_waits_for_it(level: int) -> None:
    h = Harness(level).filled()
    h.record()
    h.record(0)
    ticket = h.commit()
    h.batch_refused(Reaction.ABORT, REFUSED)
    assert isinstance(h.error(ticket), TransactionAborted)
    h.written()
    assert not h.open
    h.abort()
    assert not h.asked(do.EndTransaction).commit


def test_an_abort_drops_what_waits_and_waits_for_what_is_on_its_way() -> None:
    h = Harness(2).begun()
    h.record()
    h.batches.is_held = True
    waiting = h.record()
    ticket = h.abort()
    assert waiting in h.batches.dropped
    assert not h.open
    h.batch_lost()
    assert len(h.batches.dropped) == 2, "what was lost is not sent again"
    assert not h.asked(do.EndTransaction).commit
    h.answer()
    assert h.is_done(ticket)


def test_an_abort_waits_for_the_request_that_is_open() -> None:
    h = Harness(2).begun()
    offsets = h.offsets()
    ticket = h.abort()
    h.asked(do.CommitOffsets)
    assert isinstance(h.error(offsets), TransactionAborted)
    h.answer()
    h.asked(do.EndTransaction)
    h.answer()
    assert h.is_done(ticket)


def test_an_abort_waits_to_hear_whether_a_partition_was_added() -> None:
    h = Harness(1).begun()
    h.record()
    ticket = h.abort()
    assert h.is_waiting(ticket)
    h.answer()
    assert not h.asked(do.EndTransaction).commit
    h.answer()
    assert h.is_done(ticket)


def test_a_refusal_that_comes_while_aborting_does_not_stop_the_abort() -> None:
    h = Harness(2).begun()
    h.offsets()
    ticket = h.abort()
    h.answer(ErrorCode.STALE_MEMBER_EPOCH)
    h.asked(do.EndTransaction)
    h.answer()
    assert h.is_done(ticket)


# -- another epoch -----------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0, 1])
def test_v1_takes_another_epoch_when_the_broker_may_miss_sequences(level: int) -> None:
    h = Harness(level).filled()
    h.record()
    h.batch_refused(Reaction.ABORT_AND_BUMP, REFUSED)
    ticket = h.abort()
    h.answer()
    assert h.is_done(ticket)
    assert h.is_in(State.BUMPING)
    begin = h.begin()
    assert h.is_waiting(begin)
    assert h.asked(do.InitProducerId).producer == ME
    h.answer(who=BUMPED)
    assert h.is_done(begin)
    assert h.batches.known_as == [ME, BUMPED]
    assert h.core.producer == BUMPED


def test_v1_takes_another_epoch_when_a_batch_that_was_sent_is_dropped() -> None:
    h = Harness(1).filled()
    h.record()
    h.abort()
    h.batch_lost()
    h.answer()
    assert h.asked(do.InitProducerId).producer == ME


def test_v1_takes_another_epoch_when_the_broker_does_not_know_ours() -> None:
    h = Harness(1).filled()
    h.record()
    h.batch_refused(Reaction.ABORT_AND_BUMP, REFUSED)
    h.batches.has_gap = False
    h.abort()
    h.answer()
    assert h.asked(do.InitProducerId).producer == ME


def test_v1_takes_another_epoch_when_something_lost_may_still_arrive() -> None:
    h = Harness(1).filled()
    ticket = h.commit()
    h.lose()
    h.advance(100)
    h.answer()
    assert h.is_done(ticket)
    assert h.asked(do.InitProducerId).producer == ME
    h.answer(who=BUMPED)
    assert h.is_in(State.READY)


def test_v1_keeps_its_epoch_where_a_request_never_left() -> None:
    h = Harness(1).filled()
    h.commit()
    h.lose(sent=False)
    h.advance(100)
    h.answer()
    assert h.is_in(State.READY)


def test_v2_gets_its_epoch_from_the_end() -> None:
    h = Harness(2).filled()
    h.record()
    h.batch_refused(Reaction.ABORT_AND_BUMP, REFUSED)
    h.abort()
    h.answer(who=BUMPED)
    assert h.is_in(State.READY)
    assert h.batches.known_as[-1] == BUMPED
    assert names(h).count("InitProducerId") == 1


def test_an_end_that_names_nobody_is_followed_by_the_question() -> None:
    h = Harness(2).filled()
    ticket = h.commit()
    request = h.open.pop()
    h.post(ev.TxnAnswered(request.number))
    assert h.is_done(ticket)
    assert h.asked(do.InitProducerId).producer == ME


@pytest.mark.parametrize(("first", "then"), [(1, 2), (2, 1), (0, 2)])
def test_every_epoch_knows_one_version_only(first: int, then: int) -> None:
    h = Harness(first).filled()
    h.post(ev.TransactionVersionLearnt(then))
    assert h.core.version is (TransactionVersion.V2 if first == 2 else TransactionVersion.V1)
    h.commit()
    assert h.asked(do.EndTransaction).version is h.core.version
    h.answer()
    ticket = h.begin()
    if first < 2:
        assert h.asked(do.InitProducerId).producer == ME
        h.answer(who=BUMPED)
    assert h.is_done(ticket)  # the end of a V2 transaction brought a new epoch already
    assert h.core.version is (TransactionVersion.V2 if then == 2 else TransactionVersion.V1)


# -- timed out, or fenced ----------------------------------------------------------------------

STRANGERS = (
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_TXN_STATE,
)


@levels
@pytest.mark.parametrize("code", STRANGERS)
def test_a_transaction_that_timed_out_is_survived(level: int, code: int) -> None:
    h = Harness(level).filled()
    ticket = h.commit()
    h.answer(code)
    assert h.is_waiting(ticket), "it is not known yet what happened"
    assert h.asked(do.InitProducerId).producer == ME
    again = h.commit()
    assert h.is_waiting(again)
    h.answer(who=BUMPED)
    for each in (ticket, again, h.commit()):
        error = h.error(each)
        assert isinstance(error, TransactionTimedOut)
        assert "transaction_timeout_ms" in str(error)
    ends = len(h.all(do.EndTransaction))
    assert h.is_done(h.abort())
    assert len(h.all(do.EndTransaction)) == ends, "there is nothing to end"
    assert h.is_done(h.begin())
    assert h.core.producer == BUMPED


@levels
@pytest.mark.parametrize("code", STRANGERS)
def test_a_successor_ends_this_producer(level: int, code: int) -> None:
    h = Harness(level).filled()
    ticket = h.commit()
    h.answer(code)
    h.answer(ErrorCode.PRODUCER_FENCED)
    assert isinstance(h.error(ticket), ProducerFenced)
    assert isinstance(h.error(h.begin()), ProducerFenced)
    with pytest.raises(ProducerFenced):
        h.core.check_append()
    assert h.is_done(h.abort()), "so that a block shows its own error"


@levels
def test_a_batch_of_a_transaction_that_timed_out(level: int) -> None:
    h = Harness(level).filled()
    h.record(0)
    h.record(0)
    h.batch_refused(Reaction.ASK, REFUSED)
    assert not h.open, "a batch is on its way"
    ticket = h.abort()
    h.batch_refused(Reaction.ASK, REFUSED)
    assert h.asked(do.InitProducerId).producer == ME
    h.answer(who=BUMPED)
    assert h.is_done(ticket)
    assert not h.all(do.EndTransaction)
    assert h.is_in(State.READY)


@levels
def test_asking_does_not_wait_for_the_application(level: int) -> None:
    h = Harness(level).filled()
    h.record(0)
    h.batch_refused(Reaction.ASK, REFUSED)
    h.answer(who=BUMPED)
    assert h.is_in(State.ABORTABLE)
    with pytest.raises(TransactionTimedOut):
        h.core.check_append()
    assert h.is_done(h.abort())
    assert h.is_done(h.begin())


def test_a_time_out_is_not_the_reason_where_something_failed_before() -> None:
    h = Harness(2).filled()
    h.record(0)
    h.record(0)
    h.batch_refused(Reaction.ABORT, REFUSED)
    h.batch_refused(Reaction.ASK, RequestTimedOut("later"))
    h.answer(who=BUMPED)
    error = h.error(h.commit())
    assert type(error) is TransactionAborted
    assert error.cause is REFUSED
    assert h.is_done(h.abort())


def test_a_coordinator_that_cannot_end_it_is_asked_for_another_epoch() -> None:
    h = Harness(2).filled()
    ticket = h.abort()
    h.answer(ErrorCode.INVALID_TXN_STATE)
    h.asked(do.InitProducerId)
    h.lose()
    h.advance(200)
    assert h.asked(do.InitProducerId).producer == ME, "the same question (KIP-360)"
    h.answer(who=BUMPED)
    assert h.is_done(ticket)


# -- in doubt ----------------------------------------------------------------------------------


@levels
def test_a_commit_in_doubt_can_be_asked_for_again(level: int) -> None:
    h = Harness(level).filled()
    ticket = h.commit(5_000)
    h.lose()
    h.advance(5_000)
    error = h.error(ticket)
    assert isinstance(error, CommitInDoubt)
    assert "commit() again" in str(error)
    asked = len(h.all(do.EndTransaction))
    h.advance(60_000)
    if h.open:
        h.lose()
    h.advance(60_000)
    assert len(h.all(do.EndTransaction)) <= asked + 1, "nobody wants to know"
    again = h.commit(5_000)
    assert h.asked(do.EndTransaction).commit
    assert h.asked(do.EndTransaction).producer == ME
    h.answer()
    assert h.is_done(again)


def test_an_answer_that_comes_while_in_doubt_is_kept_for_who_asks() -> None:
    h = Harness(2).filled()
    h.commit(1_000)
    h.advance(1_000)
    h.answer(who=BUMPED)
    assert h.is_in(State.IN_DOUBT)
    assert isinstance(h.error(h.begin()), LocalProtocolError)
    assert isinstance(h.error(h.abort()), LocalProtocolError)
    assert h.is_done(h.commit())
    assert h.is_in(State.READY)
    h.begin()
    assert h.core.producer == BUMPED


def test_a_commit_that_nobody_waits_for_any_more_tells_its_outcome_later() -> None:
    h = Harness(1).filled()
    ticket = h.commit()
    h.core.wait_ended(ticket)
    h.answer()
    assert h.is_waiting(ticket)
    assert h.is_in(State.IN_DOUBT)
    assert h.is_done(h.commit())
    assert h.is_in(State.READY)


def test_in_doubt_and_then_timed_out_is_aborted() -> None:
    h = Harness(2).filled()
    h.commit(1_000)
    h.lose()
    h.advance(1_000)
    if h.open:
        h.lose()
    again = h.commit()
    h.answer(ErrorCode.INVALID_TXN_STATE)
    assert h.is_waiting(again)
    h.answer(who=BUMPED)
    assert isinstance(h.error(again), TransactionTimedOut)


@levels
def test_in_doubt_and_then_fenced_stays_in_doubt(level: int) -> None:
    h = Harness(level).filled()
    ticket = h.commit()
    h.lose()
    h.advance(100)
    h.answer(ErrorCode.PRODUCER_FENCED)
    h.answer(ErrorCode.PRODUCER_FENCED)
    for each in (ticket, h.commit()):
        error = h.error(each)
        assert isinstance(error, CommitInDoubt)
        assert isinstance(error.cause, ProducerFenced)
        assert "read the committed offsets back" in str(error)
    assert isinstance(h.error(h.begin()), ProducerFenced)


def test_a_commit_that_was_never_sent_is_not_in_doubt() -> None:
    h = Harness(2).filled()
    ticket = h.commit(1_000)
    while h.now < 2_000 and h.is_waiting(ticket):
        if h.open:
            h.lose(sent=False)
        h.advance(50)
    error = h.error(ticket)
    assert isinstance(error, TransactionAborted)
    assert "connection lost" in str(error)
    assert not h.open
    h.abort()
    h.advance(1_000)
    assert not h.asked(do.EndTransaction).commit


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REQUEST_TIMED_OUT,
    ],
)
def test_a_commit_that_the_coordinator_could_not_write_down_is_in_doubt(code: int) -> None:
    h = Harness(2).filled()
    ticket = h.commit(50)
    h.answer(code)
    h.advance(50)
    assert isinstance(h.error(ticket), CommitInDoubt)


@pytest.mark.parametrize(
    "code", [ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
)
def test_a_commit_that_was_turned_away_is_not_in_doubt(code: int) -> None:
    h = Harness(2).filled()
    ticket = h.commit(50)
    h.answer(code)
    h.advance(50)
    assert isinstance(h.error(ticket), TransactionAborted)


def test_each_who_waits_has_a_deadline_of_his_own() -> None:
    h = Harness(2).filled()
    short, long = h.commit(100), h.commit(1_000)
    h.advance(100)
    assert isinstance(h.error(short), CommitInDoubt)
    assert h.is_in(State.COMMITTING)
    h.answer()
    assert h.is_done(long)
    assert h.is_in(State.READY)


# -- coordinators, pauses, deadlines -----------------------------------------------------------


def test_the_first_add_waits_for_markers_but_a_little_while() -> None:
    h = Harness(1).begun()
    h.record()
    for _ in range(3):
        h.answer(ErrorCode.CONCURRENT_TRANSACTIONS)
        h.advance(19)
        assert not h.open
        h.advance(1)
        h.asked(do.AddPartitions)
    h.answer()
    h.record(1)
    h.answer(ErrorCode.CONCURRENT_TRANSACTIONS)
    h.advance(99)
    assert not h.open
    h.advance(1)
    h.asked(do.AddPartitions)


def test_pauses_grow() -> None:
    h = Harness(2).filled()
    h.commit()
    pauses: list[int] = []
    for _ in range(6):
        h.answer(ErrorCode.CONCURRENT_TRANSACTIONS)
        begin = h.now
        while not h.open:
            h.advance(10)
        pauses.append(h.now - begin)
    assert pauses == [100, 200, 400, 800, 1_000, 1_000]


def test_a_coordinator_that_moves_is_looked_up_with_pauses_that_grow() -> None:
    h = Harness(2).filled()
    h.commit()
    times: list[int] = []
    while len(times) < 6:
        h.answer(ErrorCode.NOT_COORDINATOR)
        known = len(h.all(do.FindCoordinator))
        while len(h.all(do.FindCoordinator)) == known:
            h.advance(10)
        times.append(h.now)
        while not h.open:
            h.advance(10)
    between = [after - before for before, after in itertools.pairwise(times)]
    assert between == sorted(between)
    assert between[-1] == 1_000


def test_a_look_up_that_fails_is_made_again() -> None:
    h = Harness(2)
    h.finds = False
    ticket = h.start(10_000)
    for code in (0, ErrorCode.COORDINATOR_NOT_AVAILABLE):
        h.post(ev.CoordinatorNotFound(h.lookups.pop().number, code, "nobody"))
        assert not h.lookups
        h.advance(200)
    h.post(ev.CoordinatorFound(h.lookups.pop().number, 4))
    assert h.asked(do.InitProducerId).node == 4
    h.answer()
    assert h.is_done(ticket)


def test_a_look_up_that_is_refused_for_good() -> None:
    h = Harness(2)
    h.finds = False
    ticket = h.start()
    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    h.post(ev.CoordinatorNotFound(h.lookups.pop().number, code, "no"))
    error = h.error(ticket)
    assert isinstance(error, ProducerFailed)
    assert "DESCRIBE and WRITE" in str(error)
    h = Harness(2).begun()
    h.finds = False
    ticket = h.offsets()
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    h.post(ev.CoordinatorNotFound(h.lookups.pop().number, code, "no"))
    assert isinstance(h.error(ticket), TransactionAborted)
    assert h.is_in(State.ABORTABLE)
    assert h.is_done(h.abort()), "nothing was added"
    h.advance(60_000)
    assert len(h.all(do.FindCoordinator)) == 2, "nobody wants that coordinator any more"


def test_a_login_that_is_refused_is_fatal() -> None:
    h = Harness(2)
    ticket = h.start()
    h.lose(fatal=TransportError("SASL: no"))
    assert isinstance(h.error(ticket), ProducerFailed)
    assert "SASL: no" in str(h.error(ticket))


@levels
def test_every_wait_ends(level: int) -> None:
    h = Harness(level)
    h.finds = False
    start, begin = h.start(1_000), h.begin(2_000)
    h.advance(1_000)
    error = h.error(start)
    assert isinstance(error, CoordinatorUnavailable)
    assert "its coordinator is not known yet" in str(error)
    h.advance(1_000)
    assert isinstance(h.error(begin), CoordinatorUnavailable)
    h = Harness(level).begun()
    h.finds = False
    offsets = h.offsets()
    if level < 2:
        h.answer()
    h.advance(119_999)
    assert h.is_waiting(offsets)
    h.advance(1)
    assert isinstance(h.error(offsets), TransactionAborted)
    assert "delivery_timeout_ms" in str(h.error(offsets))
    h = Harness(level).filled()
    abort = h.abort(1_000)
    h.advance(1_000)
    assert isinstance(h.error(abort), RequestTimedOut)
    again = h.abort()
    h.answer()
    assert h.is_done(again)


def test_offsets_of_a_topic_that_does_not_come_are_given_up() -> None:
    h = Harness(2).begun()
    ticket = h.offsets(GROUP, 0, 1)
    asked = 0
    while h.is_waiting(ticket):
        if h.open:
            asked += 1
            assert set(h.asked(do.CommitOffsets).offsets) <= {tp(0), tp(1)}
            h.answer(p0=0, p1=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        h.advance(100)
    assert set(h.all(do.CommitOffsets)[-1].offsets) == {tp(1)}, "what is taken is not sent again"
    assert 100 < asked < 200
    assert h.now <= 1_000 + 120_000 + 1_000
    assert "UNKNOWN_TOPIC_OR_PARTITION" in str(h.error(ticket))


def test_who_gives_up_on_offsets_does_not_stop_them() -> None:
    h = Harness(2).begun()
    ticket = h.offsets()
    h.core.wait_ended(ticket)
    h.answer()
    assert h.is_waiting(ticket)
    assert h.is_in(State.IN_TRANSACTION)


# -- late answers ------------------------------------------------------------------------------


def test_late_answers_are_ignored_and_counted() -> None:
    h = Harness(2).filled()
    h.commit()
    request = h.asked(do.EndTransaction)
    h.answer()
    assert h.core.stale == 0
    h.post(ev.TxnAnswered(request.number, ErrorCode.PRODUCER_FENCED))
    h.post(ev.TxnLost(request.number, "late", True))
    h.post(ev.CoordinatorFound(1, 9))
    assert h.core.stale == 3
    h.begin()
    h.offsets()
    h.post(ev.TxnAnswered(request.number, ErrorCode.UNKNOWN_SERVER_ERROR))
    assert h.core.stale == 4, "another request is open"
    h.answer()
    h.core.batch_failed(h.now, ME, Reaction.ABORT, REFUSED)
    assert h.core.stale == 5
    assert h.is_in(State.IN_TRANSACTION), "that was a batch of the epoch before"
    h.core.batch_failed(h.now, None, Reaction.ABORT, REFUSED)
    assert h.is_in(State.ABORTABLE), "and that was never sent"


# -- closing -----------------------------------------------------------------------------------


@levels
def test_closing_aborts_what_is_open(level: int) -> None:
    h = Harness(level).filled()
    offsets = h.offsets()
    h.core.close()
    h.settle()
    assert isinstance(h.error(offsets), TransactionAborted)
    assert not h.core.is_at_rest
    h.answer()
    assert not h.asked(do.EndTransaction).commit
    h.answer()
    assert h.core.is_at_rest
    assert isinstance(h.error(h.begin()), LocalProtocolError)


def test_closing_lets_a_commit_end() -> None:
    h = Harness(2).filled()
    ticket = h.commit()
    h.core.close()
    h.settle()
    assert not h.core.is_at_rest
    h.answer()
    assert h.is_done(ticket)
    assert h.core.is_at_rest


def test_closing_aborts_a_transaction_whose_commit_failed() -> None:
    h = Harness(2).filled()
    h.record()
    ticket = h.commit()
    h.core.close()
    h.batch_refused(Reaction.ABORT, REFUSED)
    assert isinstance(h.error(ticket), TransactionAborted)
    assert not h.asked(do.EndTransaction).commit
    h.answer()
    assert h.core.is_at_rest


def test_closing_tells_those_who_wait_to_begin() -> None:
    h = Harness(2)
    start, begin = h.start(), h.begin()
    h.core.close()
    h.settle()
    assert isinstance(h.error(start), LocalProtocolError)
    assert isinstance(h.error(begin), LocalProtocolError)
    assert h.core.is_at_rest


def test_the_first_question_is_asked_as_nobody_and_once() -> None:
    h = Harness(2)
    start, begin = h.start(), h.begin()
    assert h.asked(do.InitProducerId).producer == NOBODY
    h.answer()
    assert h.is_done(start)
    assert h.is_done(begin)
    assert h.is_done(h.start())
    assert names(h) == ["InitProducerId"]


def test_only_one_of_two_who_wait_begins() -> None:
    h = Harness(2)
    first, second = h.begin(), h.begin()
    h.answer()
    assert h.is_done(first)
    assert isinstance(h.error(second), LocalProtocolError)


def test_who_waits_when_the_time_for_closing_is_over_is_told() -> None:
    h = Harness(2).filled()
    offsets, commit = h.offsets(), h.commit()
    h.core.close()
    h.core.end()
    h.settle()
    assert isinstance(h.error(offsets), TransactionAborted)
    assert isinstance(h.error(commit), TransactionAborted), "the end was never sent"
    h = Harness(2).filled()
    commit = h.commit()
    h.core.close()
    h.core.end()
    h.settle()
    assert isinstance(h.error(commit), CommitInDoubt)
    h = Harness(2).filled()
    abort = h.abort()
    h.core.close()
    h.core.end()
    h.settle()
    assert isinstance(h.error(abort), RequestTimedOut)


def test_what_was_wanted_after_the_step_is_due_at_once() -> None:
    h = Harness(1).begun()
    assert h.core.due_ms() is None
    assert not h.core.may_send(tp(5))
    assert h.core.due_ms() == 0
    h.settle()
    assert h.asked(do.AddPartitions).partitions == (tp(5),)
