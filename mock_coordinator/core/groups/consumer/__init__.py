"""The consumer group protocol (KIP-848): heartbeats and leaving."""

from __future__ import annotations

__all__: list[str] = []
