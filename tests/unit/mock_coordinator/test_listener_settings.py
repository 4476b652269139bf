"""What a broker says of where it listens; clients and tools read it from DescribeConfigs."""

from __future__ import annotations

from tests.unit.mock_coordinator.broker_harness import BrokerHarness
from tests.unit.mock_coordinator.test_configs import BROKER, one

DEFAULT = ("listeners", "PLAINTEXT://:9092", 5)


def test_what_is_bound_counts_as_given_in_the_brokers_file() -> None:
    harness = BrokerHarness()
    harness.broker.core.advertise("127.0.0.1", 19092)
    bound = "PLAINTEXT://127.0.0.1:19092"
    assert one(harness, BROKER, "1", "listeners") == (bound, 4, [("listeners", bound, 4), DEFAULT])
    advertised = [("advertised.listeners", bound, 4)]
    assert one(harness, BROKER, "1", "advertised.listeners") == (bound, 4, advertised)


def test_every_listener_is_named() -> None:
    harness = BrokerHarness()
    harness.broker.core.advertise("::1", 19092)
    addresses = harness.broker.core.broker.disk.security.addresses
    addresses["SASL"] = {1: ("localhost", 19093)}
    addresses["ELSEWHERE"] = {2: ("localhost", 19094)}
    bound = "PLAINTEXT://[::1]:19092,SASL://localhost:19093"
    assert one(harness, BROKER, "1", "advertised.listeners")[0] == bound


def test_a_setting_that_was_given_stays() -> None:
    harness = BrokerHarness(advertised_listeners="PLAINTEXT://broker.example:9092")
    harness.broker.core.advertise("127.0.0.1", 19092)
    value, source, _ = one(harness, BROKER, "1", "advertised.listeners")
    assert (value, source) == ("PLAINTEXT://broker.example:9092", 4)


def test_a_broker_without_a_port_names_none() -> None:
    harness = BrokerHarness()
    harness.broker.core.advertise("127.0.0.1", 0)
    assert one(harness, BROKER, "1", "listeners") == ("PLAINTEXT://:9092", 5, [DEFAULT])
    assert one(harness, BROKER, "1", "advertised.listeners") == (None, 5, [])
