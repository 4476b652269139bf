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
from kip848_client.config._producer import ProducerConfig, ProducerSettings
from kip848_client.config._tls import Pem, tls_context

__all__ = [
    "CLASSIC_ONLY",
    "AdminConfig",
    "AdminSettings",
    "ClientConfig",
    "ConsumerConfig",
    "ConsumerSettings",
    "Pem",
    "ProducerConfig",
    "ProducerSettings",
    "parse_duration_ms",
    "tls_context",
]
