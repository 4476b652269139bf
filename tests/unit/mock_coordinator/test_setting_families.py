"""Times of logs that a broker may be given in several units; the answers are Kafka 4.4.0's."""

from __future__ import annotations

import pytest

from tests.unit.mock_coordinator.broker_harness import BrokerHarness
from tests.unit.mock_coordinator.test_configs import BROKER, SET, TOPIC, alter, one

FOREVER = "9223372036854775807"
GIVEN = {
    "log_retention_minutes": "2000",
    "log_roll_hours": "24",
    "log_flush_scheduler_interval_ms": "5000000",
}


def new_broker() -> BrokerHarness:
    return BrokerHarness({"t": 1}, **GIVEN)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("retention.ms", "120000000"),
        ("segment.ms", "86400000"),
        ("segment.jitter.ms", "0"),
        ("flush.ms", "5000000"),
    ],
)
def test_a_topic_starts_from_the_coarser_setting_without_naming_it(key: str, value: str) -> None:
    assert one(new_broker(), TOPIC, "t", key) == (value, 5, [])


def test_nothing_given_is_kafkas_default() -> None:
    harness = BrokerHarness({"t": 1})
    assert one(harness, TOPIC, "t", "retention.ms") == ("604800000", 5, [])
    assert one(harness, TOPIC, "t", "flush.ms") == (FOREVER, 5, [])


def test_a_negative_time_is_for_ever() -> None:
    harness = BrokerHarness({"t": 1}, log_retention_hours="-1")
    assert one(harness, TOPIC, "t", "retention.ms") == ("-1", 5, [])


def test_the_finest_setting_that_is_altered_supplies_topics_and_names_the_others() -> None:
    harness = new_broker()
    assert alter(harness, BROKER, "1", ("log.retention.ms", SET, "777000")) == (0, None)
    assert alter(harness, BROKER, "", ("log.flush.interval.ms", SET, "4000")) == (0, None)
    retention = [
        ("log.retention.ms", "777000", 2),
        ("log.retention.minutes", "2000", 4),
        ("log.retention.hours", "168", 5),
    ]
    assert one(harness, TOPIC, "t", "retention.ms") == ("777000", 2, retention)
    assert one(harness, BROKER, "1", "log.retention.ms") == ("777000", 2, retention)
    flush = [
        ("log.flush.interval.ms", "4000", 3),
        ("log.flush.scheduler.interval.ms", "5000000", 4),
        ("log.flush.scheduler.interval.ms", FOREVER, 5),
    ]
    assert one(harness, TOPIC, "t", "flush.ms") == ("4000", 3, flush)
    assert alter(harness, TOPIC, "t", ("retention.ms", SET, "5000")) == (0, None)
    own = [("retention.ms", "5000", 1), *retention]
    assert one(harness, TOPIC, "t", "retention.ms") == ("5000", 1, own)


def test_a_coarser_setting_knows_those_coarser_than_itself() -> None:
    minutes = [("log.retention.minutes", "2000", 4), ("log.retention.hours", "168", 5)]
    assert one(new_broker(), BROKER, "1", "log.retention.minutes") == ("2000", 4, minutes)
    assert one(new_broker(), BROKER, "1", "log.retention.ms") == (None, 5, [])
    hours = [("log.retention.hours", "168", 5)]
    assert one(new_broker(), BROKER, "1", "log.retention.hours") == ("168", 5, hours)


def test_what_is_overshadowed_at_runtime_loses_its_value_but_not_its_synonyms() -> None:
    harness = new_broker()
    assert alter(harness, BROKER, "", ("log.roll.ms", SET, "888000")) == (0, None)
    hours = [("log.roll.hours", "24", 4), ("log.roll.hours", "168", 5)]
    assert one(harness, BROKER, "1", "log.roll.hours") == ("168", 4, hours)
    assert alter(harness, BROKER, "1", ("log.retention.ms", SET, "1000")) == (0, None)
    assert one(harness, BROKER, "1", "log.retention.minutes")[:2] == (None, 4)
