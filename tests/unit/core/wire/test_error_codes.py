"""Error codes: known names, unknown numbers, and the exceptions they become."""

from __future__ import annotations

from kip848_client.error_codes import ErrorCode, default_message, error_name, is_retriable
from kip848_client.errors import (
    BrokerError,
    StaleMemberEpoch,
    UnknownBrokerError,
    broker_error,
)


def test_codes_that_documents_get_wrong() -> None:
    expected = {
        110: "FENCED_MEMBER_EPOCH",
        111: "UNRELEASED_INSTANCE_ID",
        112: "UNSUPPORTED_ASSIGNOR",
        113: "STALE_MEMBER_EPOCH",
        128: "INVALID_REGULAR_EXPRESSION",
    }
    assert {code: ErrorCode(code).name for code in expected} == expected


def test_an_unknown_code_is_kept() -> None:
    assert error_name(4242) == "UNKNOWN_ERROR_4242"
    assert not is_retriable(4242)
    assert default_message(4242) == "UNKNOWN_ERROR_4242"
    error = broker_error(4242, error_name(4242), "news")
    assert isinstance(error, UnknownBrokerError)
    assert error.code == 4242


def test_retriable_is_kafkas_judgement() -> None:
    assert is_retriable(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert is_retriable(ErrorCode.NOT_COORDINATOR)
    assert not is_retriable(ErrorCode.FENCED_MEMBER_EPOCH)


def test_an_error_says_what_who_and_the_way_out() -> None:
    error = broker_error(
        113, "STALE_MEMBER_EPOCH", "too old", api="OffsetCommit", hint="commit again"
    )
    assert isinstance(error, StaleMemberEpoch)
    assert str(error) == "OffsetCommit: STALE_MEMBER_EPOCH (113): too old (commit again)"
    assert type(broker_error(3, "UNKNOWN_TOPIC_OR_PARTITION")) is BrokerError
