"""The event loop's clock and its relation to the wall clock."""

from __future__ import annotations

import time

import pytest

from kip848_client.runtime.clock import wall_clock_origin_ms
from tests.unit.consumer.fakes import FakeClock


def test_a_time_of_the_clock_plus_the_origin_is_a_time_of_day(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = FakeClock()
    clock.ms = 5_000
    monkeypatch.setattr(time, "time", lambda: 1_000.0)
    origin_ms = wall_clock_origin_ms(clock)
    assert origin_ms == 995_000
    assert origin_ms + clock.now_ms() == 1_000_000
