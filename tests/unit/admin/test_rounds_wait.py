"""What a call of an admin waits for."""

from __future__ import annotations

from kip848_client.admin._rounds import Rounds
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import RequestTimedOut, refusal


def test_nothing_is_said_before_anything_went_wrong() -> None:
    assert Rounds[str, int](["a", "b"]).waits() == {}


def test_the_first_that_waits_is_told_with_its_reason() -> None:
    rounds: Rounds[str, int] = Rounds(["a", "b"])
    why = refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, None, "FindCoordinator")
    rounds.refused("a", why)
    rounds.not_found(["b"], RequestTimedOut("nobody"))
    assert rounds.waits() == {"a": why}
    rounds.answered({"a": 1}, ["a"], "a broker")
    assert list(rounds.waits()) == ["b"]
    rounds.answered({"b": 1}, ["b"], "a broker")
    assert rounds.waits() == {}
