"""Records that the function cannot process."""

from __future__ import annotations

import pytest

from kip848_client.error_codes import ErrorCode
from kip848_client.errors import (
    BatchUnreadable,
    ConfigError,
    ProducerFenced,
    RecordTooLarge,
    RecordUnreadable,
    TransactionAborted,
)
from kip848_client.processor.core import _commands as do
from kip848_client.processor.core import _events as ev
from kip848_client.processor.core._model import ProcessorSettings, State
from kip848_client.records import RecordsDamaged
from tests.unit.processor._harness import P0, Harness, aborted_by, portion, refused

_LETTERS = ProcessorSettings(dead_letters=True)


def test_without_dead_letters_nothing_is_committed_and_the_error_is_raised() -> None:
    h = Harness()
    h.open(portion(P0, 5, 3))
    error = ValueError("poison")
    h.function_failed(6, error)
    h.asked(do.Abort)
    assert h.all_of(do.Ended) == []
    h.done(do.Abort)
    assert h.ended.error is error
    assert h.all_of(do.SendOffsets) == []


def test_an_error_that_another_one_hides_is_told() -> None:
    h = Harness()
    h.open(portion(P0, 5, 3))
    h.function_failed(6, ValueError("poison"))
    fenced = ProducerFenced("another one")
    h.failed(do.Abort, fenced)
    assert h.ended.error is fenced
    assert "before it there was: ValueError('poison')" in h.newest(do.Notice).text


def test_a_dead_letter_is_part_of_the_transaction() -> None:
    h = Harness(_LETTERS)
    h.open(portion(P0, 5, 4))
    error = ValueError("poison")
    h.function_failed(6, error)
    letters = h.asked(do.SendDeadLetters)
    assert (letters.partition, letters.first, letters.until) == (P0, 6, 7)
    assert letters.error is error
    h.letters_sent()
    assert (h.asked(do.Process).first, h.asked(do.Process).until) == (7, 9)
    h.processed()
    h.polled()
    h.pass_time(100)
    assert h.asked(do.SendOffsets).offsets == {P0: 9}


def test_a_failed_batch_is_dead_letters_record_by_record() -> None:
    h = Harness(_LETTERS)
    h.open(portion(P0, 5, 4))
    h.function_failed(5, ValueError("poison"), until=9)
    letters = h.asked(do.SendDeadLetters)
    assert (letters.first, letters.until) == (5, 9)
    h.letters_sent()
    h.polled()
    h.pass_time(100)
    assert h.asked(do.SendOffsets).offsets == {P0: 9}


@pytest.mark.parametrize(
    "error", [RecordTooLarge("10 GB"), ConfigError("no bytes"), KeyError("serializer")], ids=repr
)
def test_an_output_that_can_never_be_sent_makes_its_record_a_dead_letter(error: Exception) -> None:
    h = Harness(_LETTERS)
    h.open(portion(P0, 5, 4))
    h.output_refused(6, error)
    h.done(do.Abort)
    assert h.asked(do.Rewind).offsets == {P0: 5}
    h.pass_time(100)
    h.open(portion(P0, 5, 4))
    assert (h.asked(do.Process).first, h.asked(do.Process).until) == (5, 6)
    h.processed()
    letters = h.asked(do.SendDeadLetters)
    assert (letters.first, letters.until, letters.error) == (6, 7, error)
    h.letters_sent()
    assert (h.asked(do.Process).first, h.asked(do.Process).until) == (7, 9)
    h.processed()
    h.polled()
    h.pass_time(100)
    h.commit()
    # what comes again by other ways is not a dead letter for ever
    h.open(portion(P0, 5, 4))
    assert h.asked(do.Process).until == 9


def test_several_are_found_one_after_the_other() -> None:
    h = Harness(_LETTERS)
    for offset in (7, 5):
        h.open(portion(P0, 5, 4))
        while h.newest(do.Process).until <= offset:
            h.processed()
        h.output_refused(offset, RecordTooLarge("10 GB"))
        h.done(do.Abort)
        h.pass_time(1_000)
    h.open(portion(P0, 5, 4))
    seen: list[tuple[str, int, int]] = []
    while any(isinstance(each, do.Process | do.SendDeadLetters) for each in h.last):
        (command,) = (each for each in h.last if isinstance(each, do.Process | do.SendDeadLetters))
        seen.append((type(command).__name__, command.first, command.until))
        records = command.until - command.first
        h.post(ev.Processed(command.number, command.until, records))
    assert seen == [
        ("SendDeadLetters", 5, 6),
        ("Process", 6, 7),
        ("SendDeadLetters", 7, 8),
        ("Process", 8, 9),
    ]


def test_a_batch_of_dead_letters_may_come_again_in_parts() -> None:
    h = Harness(_LETTERS)
    h.open(portion(P0, 5, 4))
    h.post(ev.OutputRefused(h.newest(do.Process).number, 5, 9, RecordTooLarge("10 GB")))
    h.done(do.Abort)
    h.pass_time(100)
    h.open(portion(P0, 5, 2), portion(P0, 7, 4))
    assert (h.asked(do.SendDeadLetters).first, h.asked(do.SendDeadLetters).until) == (5, 7)
    h.letters_sent()
    assert (h.asked(do.SendDeadLetters).first, h.asked(do.SendDeadLetters).until) == (7, 9)
    h.letters_sent()
    assert (h.asked(do.Process).first, h.asked(do.Process).until) == (9, 11)


def test_without_dead_letters_such_an_output_is_raised() -> None:
    h = Harness()
    h.open(portion(P0, 5, 4))
    error = RecordTooLarge("10 GB")
    h.output_refused(6, error)
    h.done(do.Abort)
    assert h.ended.error is error


def test_a_dead_letter_that_can_never_be_sent_is_raised() -> None:
    h = Harness(_LETTERS)
    h.open(portion(P0, 5, 4))
    h.function_failed(6, ValueError("poison"))
    error = RecordTooLarge("10 GB")
    h.failed(do.SendDeadLetters, error)
    h.done(do.Abort)
    assert h.ended.error is error


def test_a_topic_that_may_not_be_written_to_is_raised_and_no_dead_letter() -> None:
    h = Harness(_LETTERS)
    h.open(portion(P0, 5, 4))
    error = refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    h.output_refused(6, error)
    h.done(do.Abort)
    assert h.ended.error is error
    assert h.all_of(do.SendDeadLetters) == []


def test_an_output_that_meets_a_harmed_transaction_is_no_poison() -> None:
    h = Harness(_LETTERS)
    h.open(portion(P0, 5, 4))
    h.output_refused(6, TransactionAborted("", cause=refused(ErrorCode.INVALID_TXN_STATE)))
    h.done(do.Abort)
    h.pass_time(100)
    h.open(portion(P0, 5, 4))
    assert h.asked(do.Process).until == 9


def test_an_output_that_meets_a_fenced_producer_ends_it() -> None:
    h = Harness(_LETTERS)
    h.open(portion(P0, 5, 4))
    h.output_refused(6, ProducerFenced("another one"))
    assert isinstance(h.ended.error, ProducerFenced)
    assert h.core.state is State.ENDED


def test_dead_letters_of_a_partition_that_is_asked_back_go_with_it() -> None:
    h = Harness(_LETTERS)
    h.open(portion(P0, 5, 4))
    h.post(ev.Revoked(1, (P0,)))
    h.function_failed(5, ValueError("poison"))
    h.asked(do.SendDeadLetters)
    h.letters_sent()
    assert h.asked(do.SendOffsets).offsets == {P0: 6}
    assert h.asked(do.Rewind).offsets == {P0: 6}


def test_an_error_that_cannot_be_shown_does_no_harm() -> None:
    class OddError(Exception):
        def __str__(self) -> str:
            raise ZeroDivisionError

        __repr__ = __str__

    h = Harness(_LETTERS)
    h.open(portion(P0, 5, 4))
    h.function_failed(6, OddError())
    h.letters_sent()
    h.output_refused(7, OddError())
    h.done(do.Abort)
    assert h.asked(do.Rewind).offsets == {P0: 5}


def unreadable(offset: int) -> RecordUnreadable:
    """As the consumer raises it for a record whose fields make no sense."""
    return RecordUnreadable("odd", topic="t", partition=0, offset=offset, data=b"all of it")


def test_a_record_that_cannot_be_read_is_a_dead_letter_behind_those_before_it() -> None:
    h = Harness(_LETTERS)
    h.open(portion(P0, 5, 2))
    h.processed()
    error = unreadable(7)
    h.post(ev.PollFailed(h.newest(do.Poll).number, error))
    assert h.asked(do.TakeUnreadable).error is error
    letters = h.asked(do.SendDeadLetters)
    assert (letters.partition, letters.first, letters.until) == (P0, 7, 8)
    assert letters.error is error
    h.letters_sent()
    h.polled(portion(P0, 8, 1))
    h.processed()
    h.close_by_time()
    assert h.asked(do.SendOffsets).offsets == {P0: 9}
    h.commit()
    assert h.all_of(do.Ended) == []


def test_a_record_that_cannot_be_read_comes_again_after_an_abort() -> None:
    h = Harness(_LETTERS)
    h.post(ev.PollFailed(h.newest(do.Poll).number, unreadable(7)))
    h.done(do.Begin)
    h.failed(do.SendDeadLetters, aborted_by(ErrorCode.UNKNOWN_PRODUCER_ID))
    h.done(do.Abort)
    assert h.asked(do.Rewind).offsets == {P0: 7}
    h.pass_time(100)
    h.post(ev.PollFailed(h.newest(do.Poll).number, unreadable(7)))
    h.done(do.Begin)
    h.letters_sent()
    h.polled()
    h.close_by_time()
    assert h.asked(do.SendOffsets).offsets == {P0: 8}
    h.commit()
    assert [each.text for each in h.all_of(do.Notice) if "dead letter" in each.text] == [
        "a record becomes a dead letter: odd"
    ]


def test_an_unreadable_record_of_a_partition_that_goes_is_left_to_the_next_member() -> None:
    h = Harness(_LETTERS)
    h.post(ev.PollFailed(h.newest(do.Poll).number, unreadable(7)))
    h.post(ev.Revoked(1, {P0}))
    assert h.asked(do.Rewind).offsets == {P0: 7}
    h.done(do.Begin)
    assert h.all_of(do.SendDeadLetters) == []


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        (ProcessorSettings(), unreadable(7)),
        (_LETTERS, RecordsDamaged("bytes", topic="t", partition=0, offset=7)),
        (_LETTERS, BatchUnreadable("large", topic="t", partition=0, offset=7, next_offset=9)),
    ],
    ids=["no dead letters", "damaged bytes", "a batch that is too large"],
)
def test_what_has_no_bytes_or_no_topic_to_go_to_ends_the_processor(
    settings: ProcessorSettings, error: Exception
) -> None:
    h = Harness(settings)
    h.post(ev.PollFailed(h.newest(do.Poll).number, error))
    assert h.ended.error is error
