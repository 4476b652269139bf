"""Errors of ours as users of aiokafka expect them: ``kip848_client.aiokafka.errors``."""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka import errors as theirs

import kip848_client.errors as ours
from kip848_client.aiokafka import errors
from kip848_client.error_codes import ErrorCode, error_name
from kip848_client.errors import broker_error

WHERE: dict[str, Any] = {"topic": "t", "partition": 1}
LOG: dict[str, Any] = {**WHERE, "offset": 7, "start": 2, "end": 5}

TABLE: list[tuple[ours.Kip848Error, type[Exception]]] = [
    (ours.ConfigError("x"), ValueError),
    (ours.ConsumerClosed("x"), theirs.ConsumerStoppedError),
    (ours.NotAssigned("x"), theirs.IllegalStateError),
    (ours.LocalProtocolError("x"), theirs.IllegalStateError),
    (ours.CommitFailed("x", offsets={}), theirs.CommitFailedError),
    (ours.RequestTimedOut("x"), theirs.KafkaTimeoutError),
    (ours.DeliveryTimedOut("x", maybe_written=True), theirs.KafkaTimeoutError),
    (
        ours.DeliveryTimedOut("x", maybe_written=True, last_code=ErrorCode.NOT_LEADER_OR_FOLLOWER),
        theirs.NotLeaderForPartitionError,
    ),
    (
        ours.DeliveryTimedOut(
            "x", maybe_written=True, last_code=ErrorCode.THROTTLING_QUOTA_EXCEEDED
        ),
        theirs.KafkaTimeoutError,
    ),
    (ours.BootstrapFailed("x"), theirs.KafkaConnectionError),
    (ours.CoordinatorUnavailable("x"), theirs.KafkaConnectionError),
    (ours.TransportError("x"), theirs.KafkaConnectionError),
    (ours.NoOffsetForPartition("x"), theirs.NoOffsetForPartitionError),
    (ours.OffsetOutOfRange("x", **LOG), theirs.OffsetOutOfRangeError),
    (ours.LogTruncated("x", leader_epoch=3, **LOG), theirs.OffsetOutOfRangeError),
    (ours.TopicGone("x", topic="t"), theirs.UnknownTopicOrPartitionError),
    (ours.RecordTooLarge("x"), theirs.MessageSizeTooLargeError),
    (ours.RecordUnreadable("x", offset=3, **WHERE), theirs.CorruptRecordException),
    (ours.UnsupportedVersion("x"), theirs.UnsupportedVersionError),
    (ours.ProducerFenced("x"), theirs.ProducerFenced),
    (ours.ProducerFailed("x"), errors.ProducerFailedError),
    (ours.TransactionAborted("x"), errors.TransactionAbortedError),
    (ours.TransactionTimedOut("x"), errors.TransactionAbortedError),
    (ours.CommitInDoubt("x"), theirs.KafkaTimeoutError),
    (ours.RemoteProtocolError("x"), theirs.KafkaError),
    (ours.CallbackError("x"), theirs.KafkaError),
    (ours.WireError("x"), theirs.KafkaError),
    (ours.Kip848Error("x"), theirs.KafkaError),
]


@pytest.mark.parametrize(("error", "kind"), TABLE, ids=[type(each).__name__ for each, _ in TABLE])
def test_each_has_one_of_theirs(error: ours.Kip848Error, kind: type[Exception]) -> None:
    made = errors.translated(error)
    assert isinstance(made, kind)
    assert made.__cause__ is error
    assert "x" in str(made) or isinstance(error, ours.OffsetOutOfRange)
    assert isinstance(
        made, theirs.KafkaError | ValueError | theirs.ConsumerStoppedError | theirs.IllegalOperation
    )


@pytest.mark.parametrize(
    "code", [each for each in ErrorCode if each > 0], ids=lambda each: each.name
)
def test_each_code_is_caught_as_theirs(code: ErrorCode) -> None:
    made: Any = errors.translated(broker_error(code, error_name(code), "told", retriable=True))
    assert isinstance(made, theirs.BrokerResponseError)
    assert made.errno == code
    assert code.name in str(made)
    assert type(made) is not theirs.UnknownError


def test_damaged_bytes_are_theirs_whatever_has_found_them() -> None:
    error = ours.RecordUnreadable("damaged", offset=3, **WHERE)
    error.__cause__ = broker_error(2, "CORRUPT_MESSAGE", "checksum")
    assert type(errors.translated(error)) is theirs.CorruptRecordException


def test_an_unknown_server_error_is_theirs() -> None:
    made = errors.translated(broker_error(-1, "UNKNOWN_SERVER_ERROR", "told"))
    assert type(made) is theirs.UnknownError
    assert "told" in str(made)


def test_a_code_that_nobody_knows() -> None:
    made: Any = errors.translated(broker_error(9_999, "UNKNOWN_ERROR_9999"))
    assert type(made) is errors.RefusedByBrokerError
    assert made.errno == 9_999


def test_those_of_the_new_protocol_have_classes() -> None:
    for code, kind in (
        (ErrorCode.STALE_MEMBER_EPOCH, errors.StaleMemberEpochError),
        (ErrorCode.FENCED_MEMBER_EPOCH, errors.FencedMemberEpochError),
        (ErrorCode.FENCED_INSTANCE_ID, errors.FencedInstanceIdError),
        (ErrorCode.UNRELEASED_INSTANCE_ID, errors.UnreleasedInstanceIdError),
        (ErrorCode.GROUP_MAX_SIZE_REACHED, errors.GroupMaxSizeReachedError),
        (ErrorCode.UNSUPPORTED_ASSIGNOR, errors.UnsupportedAssignorError),
        (ErrorCode.INVALID_REGULAR_EXPRESSION, errors.InvalidRegularExpressionError),
    ):
        refused = broker_error(code, code.name, "told", retriable=True, hint="do this")
        made = errors.translated(refused)
        assert type(made) is kind
        assert isinstance(made, type(refused))
        assert made.retriable
        assert "do this" in str(made)


def test_a_commit_of_what_went_away_says_the_words_that_are_looked_for() -> None:
    gone = errors.translated(
        ours.CommitFailed("not committed", offsets={("t", 1): 3}, cause=ours.NotAssigned("gone"))
    )
    assert "already rebalanced" in str(gone)
    assert isinstance(gone, errors.OffsetsNotCommittedError)
    assert gone.offsets == {("t", 1): 3}
    other = errors.translated(ours.CommitFailed("no", offsets={}, cause=ours.RequestTimedOut("t")))
    assert "already rebalanced" not in str(other)


def test_causes_are_theirs_too() -> None:
    refused = broker_error(ErrorCode.MESSAGE_TOO_LARGE, "MESSAGE_TOO_LARGE")
    made = errors.translated(ours.TransactionAborted("aborted", cause=refused))
    assert isinstance(made, errors.TransactionAbortedError)
    assert isinstance(made.cause, theirs.MessageSizeTooLargeError)


def test_what_a_deserializer_raised_is_raised() -> None:
    error = ours.RecordUnreadable("x", offset=3, **WHERE)
    error.__cause__ = cause = KeyError("k")
    assert errors.translated(error) is cause


def test_the_rest_is_aiokafkas() -> None:
    assert errors.KafkaError is theirs.KafkaError
    assert errors.for_code is theirs.for_code
    with pytest.raises(AttributeError):
        _ = errors.NoSuchError
