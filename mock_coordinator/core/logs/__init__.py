"""Logs of partitions: batches, producers and markers."""

from __future__ import annotations

__all__: list[str] = []
