"""A blocked event loop: when it is told, and what is said to come of it."""

from __future__ import annotations

from kip848_client.observe.core.watching import is_blocked, what_happens_next


def test_a_heartbeat_that_was_left_out_is_told() -> None:
    assert not is_blocked(4_999, 5_000)
    assert is_blocked(5_000, 5_000)


def test_before_the_session_is_over_it_warns() -> None:
    text = what_happens_next(7_200, 9_000)
    assert "did not run for at least 7.2 s" in text
    assert "has not heard of this member for 9.0 s. After the session timeout" in text
    assert "asyncio.to_thread" in text


def test_after_it_the_loss_is_told() -> None:
    text = what_happens_next(48_000, 52_100)
    assert "UNKNOWN_MEMBER_ID" in text
    assert "on_partitions_lost" in text


def test_before_the_first_heartbeat_nothing_can_be_lost() -> None:
    assert "could not join its group" in what_happens_next(6_000, None)
