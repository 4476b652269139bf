"""The settings of an admin, checked: names and defaults are Kafka's."""

from __future__ import annotations

from pydantic import Field

from kip848_client.config._client import ClientConfig, ClientSettings, Int64

__all__ = ["AdminConfig", "AdminSettings"]


class AdminSettings(ClientSettings, total=False):
    """The keyword arguments of ``Admin``, for type checkers; see ``AdminConfig``."""

    default_api_timeout_ms: int


class AdminConfig(ClientConfig):
    """All settings of an admin. Frozen. Times in milliseconds."""

    default_api_timeout_ms: Int64 = Field(60_000, ge=1)
    """How long a call retries, unless it has its own ``timeout_ms``."""
