"""From subscriptions to partitions: target assignments, and the members' way to them."""

from __future__ import annotations

__all__: list[str] = []
