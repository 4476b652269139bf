"""Settings of brokers, topics and groups: what there is, what is accepted, how it is told."""

from __future__ import annotations

__all__: list[str] = []
