"""Settings of brokers, topics and groups: what there is, what is accepted, what is in effect."""

from __future__ import annotations

__all__: list[str] = []
