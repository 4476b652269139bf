"""The settings of clients, checked. Names and defaults are Kafka's and aiokafka's.

Each kind of client is imported with its first use: building its model takes a while.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kip848_client.core.lazy import lazy_names

if TYPE_CHECKING:
    from kip848_client.config._admin import AdminConfig, AdminSettings
    from kip848_client.config._client import ClientConfig
    from kip848_client.config._consumer import (
        CLASSIC_ONLY,
        ConsumerConfig,
        ConsumerSettings,
        parse_duration_ms,
    )
    from kip848_client.config._kafka_properties import (
        CLIENT_PROPERTIES,
        CONSUMER_PROPERTIES,
        PRODUCER_PROPERTIES,
        WORKER_PROPERTIES,
        client_settings,
        consumer_settings,
        producer_settings,
        worker_settings,
    )
    from kip848_client.config._metrics import MeasuredConfig
    from kip848_client.config._producer import ProducerConfig, ProducerSettings
    from kip848_client.config._without_effect import (
        CONSUMER_WITHOUT_EFFECT,
        PRODUCER_WITHOUT_EFFECT,
    )
    from kip848_client.config._worker import WorkerConfig, WorkerOptions

__all__ = [
    "CLASSIC_ONLY",
    "CLIENT_PROPERTIES",
    "CONSUMER_PROPERTIES",
    "CONSUMER_WITHOUT_EFFECT",
    "PRODUCER_PROPERTIES",
    "PRODUCER_WITHOUT_EFFECT",
    "WORKER_PROPERTIES",
    "AdminConfig",
    "AdminSettings",
    "ClientConfig",
    "ConsumerConfig",
    "ConsumerSettings",
    "MeasuredConfig",
    "ProducerConfig",
    "ProducerSettings",
    "WorkerConfig",
    "WorkerOptions",
    "client_settings",
    "consumer_settings",
    "parse_duration_ms",
    "producer_settings",
    "worker_settings",
]

_LAZY: Final = {
    "AdminConfig": "kip848_client.config._admin",
    "AdminSettings": "kip848_client.config._admin",
    "CLASSIC_ONLY": "kip848_client.config._consumer",
    "CLIENT_PROPERTIES": "kip848_client.config._kafka_properties",
    "CONSUMER_PROPERTIES": "kip848_client.config._kafka_properties",
    "CONSUMER_WITHOUT_EFFECT": "kip848_client.config._without_effect",
    "ClientConfig": "kip848_client.config._client",
    "ConsumerConfig": "kip848_client.config._consumer",
    "ConsumerSettings": "kip848_client.config._consumer",
    "MeasuredConfig": "kip848_client.config._metrics",
    "PRODUCER_PROPERTIES": "kip848_client.config._kafka_properties",
    "PRODUCER_WITHOUT_EFFECT": "kip848_client.config._without_effect",
    "ProducerConfig": "kip848_client.config._producer",
    "ProducerSettings": "kip848_client.config._producer",
    "WORKER_PROPERTIES": "kip848_client.config._kafka_properties",
    "WorkerConfig": "kip848_client.config._worker",
    "WorkerOptions": "kip848_client.config._worker",
    "client_settings": "kip848_client.config._kafka_properties",
    "consumer_settings": "kip848_client.config._kafka_properties",
    "parse_duration_ms": "kip848_client.config._consumer",
    "producer_settings": "kip848_client.config._kafka_properties",
    "worker_settings": "kip848_client.config._kafka_properties",
}

__getattr__ = lazy_names(__name__, _LAZY)
