"""When partitions may be given up, and what becomes of those that are lost."""

from __future__ import annotations

from kip848_client.error_codes import ErrorCode
from kip848_client.errors import CallbackError, CommitInDoubt
from kip848_client.processor.core import _commands as do
from kip848_client.processor.core import _events as ev
from kip848_client.processor.core._model import ProcessorSettings, State
from tests.unit.processor._harness import P0, P1, Harness, aborted_by, portion


def test_without_a_transaction_a_partition_is_given_up_at_once() -> None:
    h = Harness()
    h.post(ev.Revoked(1, (P0,)))
    assert h.asked(do.Release).ticket == 1
    assert h.core.state is State.IDLE


def test_before_run_and_after_the_end_too() -> None:
    h = Harness(run=False)
    h.post(ev.Revoked(1, (P0,)))
    assert h.asked(do.Release).ticket == 1
    h.post(ev.RunRequested())
    h.post(ev.StopRequested(h.now))
    h.post(ev.Revoked(2, (P0,)))
    assert h.asked(do.Release).ticket == 2


def test_a_partition_goes_after_the_commit_of_what_is_whole() -> None:
    h = Harness()
    h.open(portion(P0, 5, 3), portion(P1, 0, 2))
    h.post(ev.Revoked(1, (P0,)))
    assert not h.asked(do.Cut).discard
    h.processed(2)
    # it may stay ours after all: then it is read from here
    assert h.asked(do.Rewind).offsets == {P0: 7}
    assert h.asked(do.SendOffsets).offsets == {P0: 7}
    h.done(do.SendOffsets)
    assert h.all_of(do.Release) == []
    h.done(do.Commit)
    assert h.asked(do.Release).ticket == 1
    # the other partition goes on with what is in hand
    h.polled()
    h.done(do.Begin)
    assert h.asked(do.Process).partition == P1


def test_records_in_hand_of_a_partition_that_is_asked_back_are_not_processed() -> None:
    h = Harness()
    h.open(portion(P0, 5, 3), portion(P1, 0, 2), portion(P1, 4, 2))
    h.post(ev.Revoked(1, (P1,)))
    assert h.asked(do.Rewind).offsets == {P1: 0}
    h.processed()
    assert h.asked(do.SendOffsets).offsets == {P0: 8}
    h.commit()
    h.asked(do.Poll)
    assert h.core.state is State.IDLE


def test_a_transaction_that_has_nothing_yet_holds_nothing_up() -> None:
    h = Harness()
    h.polled(portion(P0, 5, 3))
    h.post(ev.Revoked(1, (P0,)))
    assert h.asked(do.Release).ticket == 1
    h.done(do.Begin)
    assert h.asked(do.Poll).wait_ms == 1_000
    h.post(ev.Revoked(2, (P1,)))
    assert h.asked(do.Release).ticket == 2
    assert h.core.state is State.OPEN


def test_a_transaction_that_takes_too_long_is_aborted_for_it() -> None:
    h = Harness(ProcessorSettings(revocation_patience_ms=3_000))
    h.open(portion(P0, 5, 3))
    h.post(ev.Revoked(1, (P0,)))
    h.pass_time(2_999)
    assert h.all_of(do.Abort) == []
    h.pass_time(1)
    assert h.asked(do.Cut).discard
    h.asked(do.Abort)
    assert h.all_of(do.Release) == []
    h.done(do.Abort)
    assert h.asked(do.Release).ticket == 1
    # the function has its record still; nothing begins before it is through
    assert h.all_of(do.Poll) == [h.all_of(do.Poll)[0]]
    h.processed()
    h.asked(do.Poll)
    assert h.all_of(do.SendOffsets) == []


def test_offsets_that_are_not_answered_in_time_are_aborted_for_it() -> None:
    h = Harness(ProcessorSettings(revocation_patience_ms=3_000))
    h.open(portion(P0, 5, 3))
    h.post(ev.Revoked(1, (P0,)))
    h.processed()
    offsets = h.asked(do.SendOffsets)
    h.pass_time(3_000)
    h.asked(do.Abort)
    h.post(ev.Failed(offsets.number, aborted_by(ErrorCode.STALE_MEMBER_EPOCH)))
    assert h.core.stale == 1
    h.done(do.Abort)
    h.asked(do.Release)


def test_a_commit_that_was_sent_is_waited_for_however_long() -> None:
    h = Harness(ProcessorSettings(revocation_patience_ms=3_000))
    h.open(portion(P0, 5, 3))
    h.post(ev.Revoked(1, (P0,)))
    h.processed()
    h.done(do.SendOffsets)
    h.pass_time(3_000)
    h.failed(do.Commit, CommitInDoubt("who knows"))
    assert not h.all_of(do.Abort)
    assert not h.all_of(do.Release)
    h.post(ev.WaitEnded(1))  # the listener's time is over, and the group asks again
    h.post(ev.Revoked(2, (P0,)))
    h.pass_time(100)
    h.done(do.Commit)
    assert [each.ticket for each in h.all_of(do.Release)] == [2]


def test_a_partition_that_stays_after_all_is_read_on() -> None:
    h = Harness()
    h.open(portion(P0, 5, 3))
    h.post(ev.Revoked(1, (P0,)))
    h.post(ev.WaitEnded(1))
    h.processed(1)
    assert h.asked(do.Rewind).offsets == {P0: 6}
    h.polled(portion(P0, 6, 2))
    assert h.asked(do.Process).first == 6


def test_our_own_listener_that_overran_is_no_reason_to_end() -> None:
    h = Harness()
    h.post(ev.PollFailed(h.newest(do.Poll).number, CallbackError("on_partitions_revoked")))
    h.asked(do.Notice)
    h.asked(do.Poll)


# -- lost ----------------------------------------------------------------------------------------


def test_a_loss_aborts_at_once_although_the_function_runs() -> None:
    h = Harness()
    h.open(portion(P0, 5, 3), portion(P1, 7, 1))
    h.post(ev.Lost((P0,)))
    assert h.asked(do.Drop).partitions == {P0}
    assert "max_poll_interval_ms" in h.newest(do.Notice).text, "who can do something about it"
    assert h.asked(do.Cut).discard
    h.asked(do.Abort)
    h.done(do.Abort)
    # only what is ours is read again
    assert h.asked(do.Rewind).offsets == {P1: 7}
    h.pass_time(100)
    assert h.core.state is State.IDLE
    h.processed()  # too late
    h.asked(do.Poll)


def test_a_loss_aborts_while_offsets_are_on_their_way() -> None:
    h = Harness()
    h.open(portion(P0, 5, 3))
    h.processed()
    h.polled()
    h.pass_time(100)
    h.asked(do.SendOffsets)
    h.post(ev.Lost((P0, P1)))
    h.asked(do.Abort)
    h.done(do.Abort)
    assert h.all_of(do.Rewind) == []


def test_a_loss_of_what_the_transaction_has_no_records_of_does_not_harm_it() -> None:
    h = Harness()
    h.open(portion(P0, 5, 3), portion(P1, 7, 1))
    h.post(ev.Lost((P1,)))
    h.processed()
    h.polled()
    h.pass_time(100)
    assert h.asked(do.SendOffsets).offsets == {P0: 8}


def test_after_a_loss_the_partition_may_come_again() -> None:
    h = Harness()
    h.open(portion(P0, 5, 3))
    h.post(ev.Lost((P0,)))
    h.processed()
    h.done(do.Abort)
    h.pass_time(100)
    h.open(portion(P0, 30, 1))
    assert h.asked(do.Process).first == 30
