"""A producer's settings: what is accepted, what is refused, and in which words."""

from __future__ import annotations

import inspect
import logging
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer

from kip848_client import Producer
from kip848_client.config import ProducerConfig, ProducerSettings
from kip848_client.config._producer import AIOKAFKA_ONLY
from kip848_client.core.produce import ProduceSettings
from kip848_client.errors import ConfigError
from kip848_client.producer._engine import produce_settings


def test_defaults_are_kafkas() -> None:
    config = ProducerConfig.of({})
    assert (config.acks, config.idempotent) == (-1, True)
    assert config.deliver_within_ms == 120_000
    assert config.max_block_ms == 60_000
    assert produce_settings(config) == ProduceSettings()


def test_the_typed_keywords_are_the_settings() -> None:
    typed = set(ProducerSettings.__annotations__)
    assert typed == {*ProducerConfig.model_fields, *AIOKAFKA_ONLY, "strict"}


def test_every_name_of_aiokafkas_is_accepted() -> None:
    theirs = set(inspect.signature(AIOKafkaProducer).parameters)
    ours = {*ProducerSettings.__annotations__, *inspect.signature(Producer).parameters}
    assert theirs <= ours


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"acks": 2}, "acks = 2: must be 'all'"),
        ({"acks": True}, "acks = True"),
        ({"acks": 1, "enable_idempotence": True}, "need acks='all', not 1"),
        ({"acks": 0, "transactional_id": "x"}, "need acks='all', not 0"),
        ({"transactional_id": "x", "enable_idempotence": False}, "needs idempotence"),
        ({"transactional_id": " "}, "must not be empty or blank"),
        (
            {"enable_idempotence": True, "max_in_flight_requests_per_connection": 6},
            "5 at most",
        ),
        ({"delivery_timeout_ms": 30_000}, "less than linger_ms and request_timeout_ms together"),
        ({"compression_type": "rar"}, "compression_type"),
        ({"linger_ms": -1}, "linger_ms = -1"),
        ({"buffer_memory": 0}, "buffer_memory"),
        ({"batch_size": 5}, "did you mean max_batch_size"),
        ({"security_protocol": "SSL", "ssl_cafile": "/nowhere"}, "ssl_cafile = '/nowhere'"),
        ({"loop": object(), "strict": True}, "the running event loop"),
    ],
)
def test_what_is_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        ProducerConfig.of(settings)


@pytest.mark.parametrize(
    ("settings", "idempotent"),
    [
        ({"acks": "all"}, True),
        ({"acks": "-1"}, True),
        ({"acks": 1}, False),
        ({"acks": "0"}, False),
        ({"max_in_flight_requests_per_connection": 6}, False),
        ({"enable_idempotence": False}, False),
    ],
)
def test_idempotence_is_on_where_nothing_is_in_its_way(
    settings: dict[str, Any], idempotent: bool
) -> None:
    assert ProducerConfig.of(settings).idempotent is idempotent


def test_delivery_takes_at_least_one_request() -> None:
    assert ProducerConfig.of({"request_timeout_ms": 130_000}).deliver_within_ms == 130_005


def test_what_is_aiokafkas_alone_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    ProducerConfig.of({"api_version": "auto", "loop": object()})
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "api_version (versions are negotiated" in record.getMessage()


def test_functions_are_checked() -> None:
    with pytest.raises(ConfigError, match="key_serializer is a function"):
        Producer(key_serializer="utf-8")  # type: ignore[call-overload]  # a user without mypy
    with pytest.raises(ConfigError, match="partitioner is a function"):
        Producer(partitioner=5)  # type: ignore[call-overload]  # a user without mypy
