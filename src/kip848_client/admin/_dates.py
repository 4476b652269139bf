"""Reads a date and time as Kafka's own tool does."""

from __future__ import annotations

from datetime import UTC, datetime

from kip848_client.errors import ConfigError

__all__ = ["parse_datetime_ms"]


def parse_datetime_ms(text: str) -> int:
    """``2026-01-01T00:00:00.000``, with a zone or in UTC, as milliseconds since 1970.

    Raises ``ConfigError``.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or "T" not in text:
        raise ConfigError(
            f"{text!r} is not a date and time such as 2026-01-01T00:00:00.000 (UTC), or with a zone"
        )
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0, round(moment.timestamp() * 1000))
