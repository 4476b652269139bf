"""From subscriptions to partitions: target assignments, and how members get there."""

from __future__ import annotations

__all__: list[str] = []
