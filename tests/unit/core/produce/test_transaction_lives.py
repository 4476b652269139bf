"""Transactions from their beginning to their end, each rule in a life of its own."""

from __future__ import annotations

import pytest

from kip848_client.core.produce import _commands as do
from kip848_client.core.produce import _events as ev
from kip848_client.core.produce._error_rules import Reaction
from kip848_client.core.produce._model import ProducerId, TransactionVersion
from kip848_client.core.produce._transaction_states import State
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import (
    RecordUnreadable,
    RequestTimedOut,
    TransactionAborted,
)
from tests.unit.core.produce._transactions import GROUP, ME, Harness, group, tp

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


def offsets_asked(h: Harness) -> list[int]:
    """Of one partition each, in order."""
    return [each.offset for asked in h.all(do.CommitOffsets) for each in asked.offsets.values()]


@levels
def test_newer_offsets_do_not_overtake_older_ones(level: int) -> None:
    """The group's coordinator keeps what comes last."""
    h = Harness(level).begun()
    older = h.offset(10)
    if level < 2:
        h.answer()
    h.core.wait_ended(older)  # whoever gives up on them does not stop them
    h.answer(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    newer, other = h.offset(20), h.offset(30, group("h"))
    if level < 2:
        h.answer()
    assert h.asked(do.CommitOffsets).group == group("h"), "another group does not wait"
    h.answer()
    assert h.is_done(other)
    assert not h.open
    h.ms_until_asked()
    h.answer()
    h.answer()
    assert h.is_done(newer)
    assert offsets_asked(h) == [10, 30, 10, 20]


@levels
def test_offsets_that_one_which_was_lost_could_undo_end_the_transaction(level: int) -> None:
    """It may arrive at any time until the transaction ends, and would be the last one."""
    h = Harness(level).begun()
    older, same = h.offset(10), h.offset(10)
    if level < 2:
        h.answer()
    h.lose()
    h.ms_until_asked()
    h.answer()
    h.answer()
    assert h.is_done(older)
    assert h.is_done(same), "that may come again"
    newer = h.offset(20)
    error = h.error(newer)
    assert isinstance(error, TransactionAborted)
    assert "t-0" in str(error)
    assert "may still arrive" in str(error)
    assert offsets_asked(h) == [10, 10, 10]
    abort = h.abort()
    h.answer()
    if level < 2:
        h.answer()  # with another epoch nothing of it can arrive any more
    assert h.is_done(abort)
    h.begin()
    newer = h.offset(20)
    while h.open:
        h.answer()
    assert h.is_done(newer)


@levels
def test_offsets_that_never_left_undo_nothing(level: int) -> None:
    h = Harness(level).begun()
    h.offset(10)
    if level < 2:
        h.answer()
    newer = h.offset(20)
    h.lose(sent=False)
    h.ms_until_asked()
    h.answer()
    h.answer()
    assert h.is_done(newer)
    assert offsets_asked(h) == [10, 10, 20]


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


@pytest.mark.parametrize("what", ["partition", "group"])
def test_an_abort_ends_what_a_lost_addition_may_have_opened(what: str) -> None:
    """Nothing else of the transaction was sent. If the coordinator has the addition, it would be
    part of the next transaction."""
    h = Harness(1).begun()
    if what == "partition":
        h.record()
        h.asked(do.AddPartitions)
    else:
        h.offsets()
        h.asked(do.AddOffsets)
    h.lose(sent=True)
    ticket = h.abort()
    h.ms_until_asked()
    assert not h.asked(do.EndTransaction).commit
    h.answer()
    assert h.is_done(ticket)
    assert h.asked(do.InitProducerId).producer == ME, "it may still arrive, under this epoch"


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


@levels
def test_an_init_that_was_lost_is_made_void_by_another_one(level: int) -> None:
    h = Harness(level).filled()
    h.abort()
    h.answer(ErrorCode.INVALID_TXN_STATE)
    h.lose()
    h.advance(200)
    h.answer(who=BUMPED)
    begin = h.begin()
    assert h.is_waiting(begin)
    assert h.asked(do.InitProducerId).producer == BUMPED
    h.answer(who=ProducerId(7, 5))
    assert h.is_done(begin)
    assert h.core.producer == ProducerId(7, 5)


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
