"""Who is asked again, whom else, and when a target has failed."""

from __future__ import annotations

from typing import Any

import pytest

from kip848_client.admin._failures import all_of
from kip848_client.admin.core._retry_rounds import DeadlineExceeded, Rounds, refusal
from kip848_client.core.ports import ConnectionBroken, NotSent
from kip848_client.core.types import TopicPartition
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import AdminFailed, CoordinatorUnavailable, Kip848Error


def found(*targets: str, node: int = 1) -> Rounds[str, str]:
    rounds: Rounds[str, str] = Rounds(targets, {ErrorCode.GROUP_ID_NOT_FOUND: "gone"})
    assert rounds.to_find() == targets
    assert rounds.asks() == {}
    for target in targets:
        rounds.found(target, node)
    return rounds


def test_each_broker_is_asked_once_for_all_that_is_its_own() -> None:
    rounds = found("a", "b", "c")
    rounds.found("c", 2)
    assert rounds.asks() == {1: ("a", "b"), 2: ("c",)}
    rounds.answered({"a": "A", "b": "B"}, ("a", "b"), "Api")
    assert rounds.asks() == {2: ("c",)}
    rounds.answered({"c": "C"}, ("c",), "Api")
    assert rounds.is_over
    assert rounds.done == {"a": "A", "b": "B", "c": "C"}


def test_a_broker_that_is_not_the_one_is_looked_up_again() -> None:
    rounds = found("a", "b")
    refused = refusal(ErrorCode.NOT_COORDINATOR, None, "Api")
    rounds.answered({"a": refused, "b": "B"}, ("a", "b"), "Api")
    assert rounds.to_find() == ("a",)
    assert not rounds.is_over


def test_a_broker_that_loads_is_asked_again() -> None:
    rounds = found("a")
    rounds.refused("a", refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, None, "Api"))
    assert rounds.to_find() == ()
    assert rounds.asks() == {1: ("a",)}


def test_a_broker_that_is_lost_is_looked_up_again() -> None:
    rounds = found("a")
    rounds.lost(("a",), NotSent("no"))
    assert rounds.to_find() == ("a",)


def test_any_other_refusal_is_the_end() -> None:
    rounds = found("a")
    refused = refusal(ErrorCode.GROUP_AUTHORIZATION_FAILED, None, "Api")
    rounds.refused("a", refused)
    assert rounds.is_over
    assert rounds.failed == {"a": refused}


def test_what_is_not_answered_has_failed() -> None:
    rounds = found("a")
    rounds.answered({}, ("a",), "Api")
    assert "says nothing" in str(rounds.failed["a"])


def test_what_a_lost_attempt_has_done_counts_as_done() -> None:
    rounds = found("a", "b")
    rounds.lost(("a",), ConnectionBroken("cut"))
    rounds.lost(("b",), NotSent("never left"))
    for target in ("a", "b"):
        rounds.found(target, 1)
        rounds.refused(target, refusal(ErrorCode.GROUP_ID_NOT_FOUND, None, "Api"))
    assert rounds.done == {"a": "gone"}
    assert set(rounds.failed) == {"b"}


def test_giving_up_tells_the_last_error_of_each() -> None:
    rounds = found("a", "b")
    refused = refusal(ErrorCode.NOT_COORDINATOR, None, "Api")
    rounds.refused("a", refused)
    said: dict[str, Kip848Error | None] = {}

    def error(target: str, last: Kip848Error | None) -> Kip848Error:
        said[target] = last
        return CoordinatorUnavailable(target)

    rounds.give_up(error)
    assert said == {"a": refused, "b": None}
    assert rounds.is_over
    assert set(rounds.failed) == {"a", "b"}


def test_a_broker_that_has_not_heard_of_a_target_does_not_have_the_last_word() -> None:
    unknown = refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None, "Api")
    rounds: Rounds[str, str] = Rounds(
        ["a"], not_there_yet=frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
    )
    rounds.found("a", 1)
    rounds.answered({"a": unknown}, ("a",), "Api")
    assert rounds.to_find() == ("a",)
    rounds.refused("a", unknown)
    assert rounds.failed == {"a": unknown}


def test_what_was_wrong_counts_more_than_that_the_time_is_over() -> None:
    rounds = found("a", "b")
    why = NotSent("connection refused")
    rounds.lost(("a",), why)
    late = DeadlineExceeded("no broker has answered")
    rounds.not_found(("a",), late)
    rounds.lost(("b",), late)
    said: dict[str, Kip848Error | None] = {}

    def given_up(target: str, last: Kip848Error | None) -> Kip848Error:
        said[target] = last
        return Kip848Error(target)

    rounds.give_up(given_up)
    assert said == {"a": why, "b": late}


@pytest.mark.parametrize(
    ("target", "name"), [("g", "'g'"), (TopicPartition("t", 1), "t-1"), (3, "broker 3")]
)
def test_what_failed_is_named_once(target: Any, name: str) -> None:
    for text in ("away", f"{name}: away"):
        with pytest.raises(AdminFailed) as failed:
            all_of("looking", {}, {target: Kip848Error(text)})
        assert str(failed.value) == f"looking failed for 1 of 1: {name}: away"
