"""How long a run waits for its end."""

from __future__ import annotations

from tests.torture.feeding import PATIENCE_S, Patience


def test_it_waits_as_long_as_more_is_done() -> None:
    patience = Patience(0.0)
    times = [number * PATIENCE_S for number in range(10)]
    assert not any(patience.is_over(round(now) + 1, now) for now in times)


def test_it_does_not_wait_for_what_does_not_go_on() -> None:
    patience = Patience(0.0)
    assert not patience.is_over(5, 10.0)
    assert not patience.is_over(0, 11.0), "it cannot be told at the moment"
    assert not patience.is_over(5, 10.0 + PATIENCE_S)
    assert patience.is_over(5, 10.1 + PATIENCE_S)
