"""Settings of brokers, topics and groups: definitions, checks, and values in effect."""

from __future__ import annotations

__all__: list[str] = []
