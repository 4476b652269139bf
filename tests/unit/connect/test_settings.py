"""What a worker's settings mean on each protocol."""

from __future__ import annotations

import pytest

from kip848_client.config import WorkerConfig, worker_settings
from kip848_client.connect._assignor_metadata import offered_versions
from kip848_client.connect._protocol_selection import classic_settings, connect_settings
from kip848_client.core.connect import (
    GroupWorker,
    IncrementalCooperativeAssignor,
    Items,
    SpreadAssignor,
    WorkerGroup,
)
from kip848_client.errors import ConfigError


def config(**options: object) -> WorkerConfig:
    return WorkerConfig.of({"group_id": "w", **options})


@pytest.mark.parametrize("delay_ms", [0, 7_000, 300_000])
def test_the_delay_is_a_setting_on_both_protocols(delay_ms: int) -> None:
    given = config(scheduled_rebalance_max_delay_ms=delay_ms)
    assert classic_settings(given).scheduled_rebalance_max_delay_ms == delay_ms
    offered = (offered_versions(IncrementalCooperativeAssignor()),)
    assert connect_settings(given, offered).scheduled_rebalance_max_delay_ms == delay_ms


def test_the_default_is_that_of_kafka_connect() -> None:
    assert config().scheduled_rebalance_max_delay_ms == 300_000


def test_an_assignor_that_was_made_with_a_delay_keeps_it() -> None:
    own = IncrementalCooperativeAssignor(scheduled_rebalance_max_delay_ms=0)
    given = config(scheduled_rebalance_max_delay_ms=7_000, assignors=[own])
    assert classic_settings(given).scheduled_rebalance_max_delay_ms == 0
    other = IncrementalCooperativeAssignor()
    given = config(scheduled_rebalance_max_delay_ms=7_000, assignors=[other])
    assert classic_settings(given).scheduled_rebalance_max_delay_ms == 7_000


@pytest.mark.parametrize("kind", [IncrementalCooperativeAssignor, SpreadAssignor])
@pytest.mark.parametrize(("own_ms", "expected_ms"), [(None, 7_000), (400, 400), (0, 0)])
def test_an_assignor_takes_the_setting_of_its_worker(
    kind: type[IncrementalCooperativeAssignor], own_ms: int | None, expected_ms: int
) -> None:
    assignor = kind(scheduled_rebalance_max_delay_ms=own_ms)
    had = Items(("a",))
    both = {"w1": GroupWorker(), "w2": GroupWorker(1, had)}
    first = assignor.assign(WorkerGroup(1, both, {"a": 0}, scheduled_rebalance_max_delay_ms=7_000))
    alone = WorkerGroup(2, {"w1": GroupWorker(1)}, {"a": 0}, scheduled_rebalance_max_delay_ms=7_000)
    second = assignor.assign(alone, first.memory)
    assert second.target.delay_ms == expected_ms
    assert second.target.deferred == (had if expected_ms else Items())


@pytest.mark.parametrize("wrong", [-1, 2**31, "soon"])
def test_a_delay_that_cannot_be_is_refused(wrong: object) -> None:
    with pytest.raises(ConfigError, match="scheduled_rebalance_max_delay_ms"):
        config(scheduled_rebalance_max_delay_ms=wrong)


def test_a_file_of_kafka_connect_names_them_as_kafka_does() -> None:
    found = worker_settings(
        {
            "bootstrap.servers": "ignored:9092",
            "group.id": "w",
            "scheduled.rebalance.max.delay.ms": "7000 ",
            "rebalance.timeout.ms": "50000",
            "session.timeout.ms": "9000",
            "heartbeat.interval.ms": "2000",
            "task.shutdown.graceful.timeout.ms": "4000",
            "worker.sync.timeout.ms": "2500",
            "worker.unsync.backoff.ms": "100000",
            "connect.protocol": "compatible",
            "client.id": "c",
        }
    )
    given = WorkerConfig.of(found)
    settings = classic_settings(given)
    assert settings.scheduled_rebalance_max_delay_ms == 7_000
    assert settings.rebalance_timeout_ms == 50_000
    assert settings.session_timeout_ms == 9_000
    assert settings.heartbeat_interval_ms == 2_000
    assert settings.task_shutdown_graceful_timeout_ms == 4_000
    assert settings.worker_sync_timeout_ms == 2_500
    assert settings.worker_unsync_backoff_ms == 100_000
    assert settings.connect_protocol.name == "COMPATIBLE"
    assert (given.group_id, given.client_id) == ("w", "c")


def test_a_property_that_is_no_number_is_named() -> None:
    with pytest.raises(ConfigError, match=r"scheduled\.rebalance\.max\.delay\.ms"):
        worker_settings({"scheduled.rebalance.max.delay.ms": "soon"})


def test_kafkas_name_as_a_keyword_names_ours() -> None:
    with pytest.raises(ConfigError, match="did you mean scheduled_rebalance_max_delay_ms"):
        WorkerConfig.of({"group_id": "w", "scheduled.rebalance.max.delay.ms": 1})
