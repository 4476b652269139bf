"""Client metrics subscriptions: which clients should push which metrics (KIP-714), kept as data.

Nobody is asked for metrics: a broker without a metrics reporter does not offer telemetry, and the
subscriptions still exist.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.settings.config_refused import ConfigRefused
from mock_coordinator.core.settings.settings import Setting

__all__ = ["CLIENT_METRICS_SETTINGS", "check_client_metrics"]

CLIENT_METRICS_SETTINGS: Final[Mapping[str, Setting]] = {
    "interval.ms": Setting("interval.ms", "INT", "300000", "-", "4.0", "live"),
    "match": Setting("match", "LIST", "", "-", "4.0", "live"),
    "metrics": Setting("metrics", "LIST", "", "-", "4.0", "live"),
}
"""By name."""

_LEAST_MS: Final = 100
_MOST_MS: Final = 3_600_000
_MATCHED: Final = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)


def check_client_metrics(name: str, config: Mapping[str, str]) -> None:
    """Whether a subscription may have these settings. Raises ``ConfigRefused``."""
    if not name:
        raise ConfigRefused(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
    for key, text in config.items():
        setting = CLIENT_METRICS_SETTINGS.get(key)
        if setting is None:
            raise ConfigRefused(
                ErrorCode.INVALID_REQUEST, f"Unknown client metrics configuration: {key}"
            )
        try:
            value = setting.parse(text)
        except ValueError as err:
            raise ConfigRefused(ErrorCode.INVALID_CONFIG, str(err)) from err
        if isinstance(value, int) and not _LEAST_MS <= value <= _MOST_MS:
            raise ConfigRefused(
                ErrorCode.INVALID_REQUEST,
                f"Invalid value {text} for {key}, interval must be between {_LEAST_MS} and "
                f"{_MOST_MS} (1 hour)",
            )
        if key == "match" and isinstance(value, tuple):
            for pattern in value:
                _check_pattern(pattern)


def _check_pattern(text: str) -> None:
    """``attribute=regular expression``."""
    attribute, equals, expression = (part.strip() for part in text.partition("="))
    good = bool(equals) and attribute in _MATCHED
    if good:
        try:
            re.compile(expression)
        except re.error:
            good = False
    if not good:
        raise ConfigRefused(ErrorCode.INVALID_CONFIG, f"Illegal client matching pattern: {text}")
