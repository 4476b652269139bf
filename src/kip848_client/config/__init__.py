"""The settings of clients, checked. Names and defaults are Kafka's and aiokafka's."""

from __future__ import annotations

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
from kip848_client.config._producer import ProducerConfig, ProducerSettings
from kip848_client.config._worker import WorkerConfig, WorkerOptions

__all__ = [
    "CLASSIC_ONLY",
    "CLIENT_PROPERTIES",
    "CONSUMER_PROPERTIES",
    "PRODUCER_PROPERTIES",
    "WORKER_PROPERTIES",
    "AdminConfig",
    "AdminSettings",
    "ClientConfig",
    "ConsumerConfig",
    "ConsumerSettings",
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
