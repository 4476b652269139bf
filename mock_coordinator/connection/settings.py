"""Kafka's settings of connections."""

from __future__ import annotations

from dataclasses import dataclass

from mock_coordinator.core.settings.broker_config import BrokerConfig

__all__ = ["ConnectionSettings"]


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """What a broker's configuration says about its connections.

    Kafka cannot change these while it runs, so a connection reads them once.
    """

    max_frame_bytes: int = 104_857_600
    """``socket.request.max.bytes``"""
    max_sasl_frame_bytes: int = 524_288
    """``sasl.server.max.receive.size``: while a client is not authenticated"""
    idle_ms: int | None = 600_000
    """``connections.max.idle.ms``; ``None``: no limit"""
    failed_login_delay_ms: int = 100
    """``connection.failed.authentication.delay.ms``"""

    @classmethod
    def of(cls, config: BrokerConfig) -> ConnectionSettings:
        """Those of a broker."""
        idle_ms = config.integer("connections.max.idle.ms")
        return cls(
            config.integer("socket.request.max.bytes"),
            config.integer("sasl.server.max.receive.size"),
            None if idle_ms < 0 else idle_ms,
            config.integer("connection.failed.authentication.delay.ms"),
        )
