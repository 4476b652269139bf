"""Pauses between attempts."""

from __future__ import annotations

import pytest

from kip848_client.config import AdminConfig, ClientConfig, ConsumerConfig, ProducerConfig
from kip848_client.errors import ConfigError
from kip848_client.runtime._backoff import Backoff, jittered


def test_pauses_double_up_to_the_limit() -> None:
    backoff = Backoff(100, 1_000, jitter=lambda pause_ms: pause_ms)
    pauses = [backoff.pause_s(failures) for failures in (0, 1, 2, 3, 4, 5, 6, 10**6)]
    assert pauses == [0.1, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0]


@pytest.mark.parametrize("config", [AdminConfig, ConsumerConfig, ProducerConfig])
def test_a_limit_below_the_first_pause_is_the_first_pause(config: type[ClientConfig]) -> None:
    assert config.of({"retry_backoff_ms": 2_000}).retry_backoff_max_ms == 2_000
    assert config.of({"retry_backoff_max_ms": 1}).retry_backoff_max_ms == 100
    assert config.of({}).retry_backoff_max_ms == 1_000


def test_a_wrong_first_pause_is_reported_alone() -> None:
    with pytest.raises(ConfigError, match="retry_backoff_ms = 0: "):
        ConsumerConfig.of({"retry_backoff_ms": 0})


def test_pauses_vary_by_a_fifth() -> None:
    pauses = {jittered(1_000) for _ in range(500)}
    assert 800 <= min(pauses) < 850
    assert 1_150 < max(pauses) <= 1_200
