"""Logs of partitions: batches, producers and markers in them, and what keeps its state in one."""

from __future__ import annotations

__all__: list[str] = []
