"""What a call of an admin waits for."""

from __future__ import annotations

from kip848_client.admin.core._retry_rounds import ANYONE, Rounds
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import RequestTimedOut, refusal


def test_a_request_that_is_not_answered_is_a_wait() -> None:
    rounds: Rounds[str, int] = Rounds(["a", "b"])
    assert rounds.waits() == {"a": "no broker has said yet which broker is responsible"}
    rounds.found("a", 3)
    assert rounds.waits() == {"a": "broker 3 has not answered"}
    rounds.found("a", ANYONE)
    assert rounds.waits() == {"a": "no broker has answered"}


def test_the_first_that_waits_is_told_with_its_reason() -> None:
    rounds: Rounds[str, int] = Rounds(["a", "b"])
    why = refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, None, "FindCoordinator")
    rounds.refused("a", why)
    rounds.not_found(["b"], RequestTimedOut("nobody"))
    assert rounds.waits() == {"a": str(why)}
    rounds.answered({"a": 1}, ["a"], "a broker")
    assert list(rounds.waits()) == ["b"]
    rounds.answered({"b": 1}, ["b"], "a broker")
    assert rounds.waits() == {}
