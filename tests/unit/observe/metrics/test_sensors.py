"""Sums since the start, and averages, maxima and rates of the newest windows."""

from __future__ import annotations

import math

import pytest

from kip848_client.observe.core.metrics import BUCKETS_MS, Sensor, Statistic


def sensor(*, buckets: bool = False) -> Sensor:
    return Sensor(0, buckets=buckets)


def test_the_total_is_since_the_start() -> None:
    counted = sensor()
    for now_ms in (0, 40_000, 400_000):
        counted.record(now_ms, 2)
    assert counted.read(Statistic.TOTAL, 900_000) == 6
    assert counted.count == 3


def test_average_and_maximum_are_of_the_last_minute() -> None:
    timed = sensor()
    timed.record(0, 100)
    timed.record(31_000, 10)
    assert timed.read(Statistic.AVG, 40_000) == 55
    assert timed.read(Statistic.MAX, 40_000) == 100
    timed.record(65_000, 20)
    assert timed.read(Statistic.AVG, 66_000) == 15
    assert timed.read(Statistic.MAX, 66_000) == 20


def test_of_nothing_there_is_no_average() -> None:
    timed = sensor()
    assert math.isnan(timed.read(Statistic.AVG, 1_000))
    timed.record(0, 5)
    assert math.isnan(timed.read(Statistic.MAX, 70_000))


def test_negative_values_have_a_maximum_too() -> None:
    timed = sensor()
    timed.record(0, -5)
    assert timed.read(Statistic.MAX, 1) == -5


def test_a_rate_is_a_second_of_the_windows() -> None:
    counted = sensor()
    for now_ms in range(0, 60_000, 100):
        counted.record(now_ms)
    assert counted.read(Statistic.RATE, 60_000) == pytest.approx(10, rel=0.6)
    assert counted.read(Statistic.RATE, 59_999) == pytest.approx(10, rel=0.01)
    assert counted.read(Statistic.HOURLY, 59_999) == pytest.approx(36_000, rel=0.01)


def test_the_first_records_are_not_a_storm() -> None:
    counted = sensor()
    counted.record(0)
    assert counted.read(Statistic.RATE, 1) == pytest.approx(1 / 30)


def test_what_is_long_ago_has_no_rate() -> None:
    counted = sensor()
    counted.record(0)
    assert counted.read(Statistic.RATE, 120_000) == 0


def test_buckets_count_by_their_upper_bounds() -> None:
    timed = sensor(buckets=True)
    for value in (0, 5, 6, BUCKETS_MS[-1] + 1):
        timed.record(0, value)
    assert timed.buckets is not None
    assert timed.buckets[:2] == [2, 1]
    assert timed.buckets[-1] == 1
    assert sum(timed.buckets) == timed.count
