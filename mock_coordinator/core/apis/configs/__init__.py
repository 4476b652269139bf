"""Settings of topics, brokers, groups and loggers: described and altered."""

from __future__ import annotations

__all__: list[str] = []
